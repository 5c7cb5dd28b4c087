"""Regret: the loss of an agent's actions against the best action, in a set of positions.

The rollouts have noise, and the highest of several noisy means is too high on average (the winner's
curse). So all blocks of rollouts but one choose the best action, and that block values it, for each
block in turn (cross-validation; van Hasselt 2013, "Estimating the Maximum Expected Value"). This
estimate is on average at most the true regret, because the chosen action may not be the best.
Choosing and valuing by the same blocks gives on average at least the true regret. Both are
reported: the truth lies between them. In solved positions, whose results are exact, the regret is
exact, and the share of the best actions is reported instead.

Regret is in results: 1 turns a shared victory into a win, 2 a loss into a win; 0.02 is one win in
a hundred games.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.executors.base import (
    CallTask,
    Executor,
    SerialExecutor,
    chunked,
    split_work,
    task_agent,
)
from tokaido_env.arena.game_runner import naming_agent
from tokaido_env.arena.intervals import Estimate, wilson_interval
from tokaido_env.arena.result import BoardsEntry, Measure
from tokaido_env.batch import Batch
from tokaido_env.core.actions import LABELS, N_ACTIONS
from tokaido_env.core.arguments import IllegalMove, repr_short
from tokaido_env.core.threads import single_thread
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, SAME, PositionSubset, RegretSet

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

ERROR, BLUNDER = 0.08, 0.16
"""The least loss of an error and of a blunder: GNU Backgammon's "bad" and "very bad"."""

RESAMPLES = 2000

_MAX_TIMED = 200  # positions of a task in which an agent is timed
_REPEATS = 5  # of timings, of which the median counts


class Losses(NamedTuple):
    """Estimated losses of one action a position, in results of -1 to 1.

    Attributes:
        low: float64 (n,), by cross-validation: on average at most the true regret.
        high: float64 (n,), by the highest mean: on average at least the true regret.
    """

    low: Floats
    high: Floats


class AgentChoices(NamedTuple):
    """An agent's actions in a set.

    Attributes:
        agent: its spec.
        choices: int64 (n,), the actions; NO_ACTION where the agent forfeits.
        seconds: processor time of a decision on one thread, without that of programs.
    """

    agent: str
    choices: Rows
    seconds: float


# Actions


def choose_actions(
    agent: Agent, regret_set: RegretSet, executor: Executor | None = None
) -> AgentChoices:
    """Return an agent's actions in all positions of a set, and its time for them.

    Args:
        agent: chooses the actions.
        regret_set: the positions.
        executor: runs the agent; the actions do not depend on it. None: this process.

    Raises:
        AgentFailed: if the agent raised an error.
        IllegalMove: if an action is not legal, naming the position.
    """
    executor, agent = executor or SerialExecutor(), as_agent(agent)
    agents = (task_agent(agent, executor),)

    def task(some: Rows) -> CallTask:
        text = f"actions of {repr_short(agent.spec)} in {len(some)} positions"
        arguments = regret_set.subset(some), len(regret_set)
        return CallTask(_choose_task, agents, arguments, text)

    choices, seconds = np.empty(len(regret_set), np.int64), 0.0
    tasks = map(task, split_work(np.arange(len(regret_set)), executor.workers))
    for _, (rows, actions, spent) in executor.map(tasks):
        choices[rows] = actions
        seconds += spent
    return AgentChoices(agent.spec, choices, seconds / len(regret_set))


def _choose_task(
    agent: Agent, positions: PositionSubset, total: int
) -> Iterator[tuple[Rows, Rows, float]]:
    """Yield the numbers of some of a set's `total` positions, the agent's actions, its seconds."""
    batch = positions.batch()
    agent.prepare(list({id(board): board for board in positions.boards}.values()))
    every = np.arange(len(batch))

    def choose(some: Rows) -> Rows:
        return _checked_actions(agent, batch, some, positions.numbers, total)

    if agent.may_fail:  # it is not ours, and answers once: its answers may cost money
        with single_thread():
            began = time.process_time()
            parts = [choose(some) for some in chunked(every, agent.games_at_once)]
            spent = time.process_time() - began
        yield positions.numbers, np.concatenate(parts), spent
        return
    parts = [choose(some) for some in chunked(every, agent.games_at_once)]
    # Timed in some positions: processor time on one thread, the median of repeats.
    timed = every[:: -(-len(batch) // _MAX_TIMED)]
    times = []
    with single_thread():
        for _ in range(_REPEATS + 1):
            began = time.process_time()
            for some in chunked(timed, agent.games_at_once):
                choose(some)
            times.append(time.process_time() - began)
    each = statistics.median(times[1:]) / len(timed)  # the first may load or compile
    yield positions.numbers, np.concatenate(parts), len(every) * each


def _checked_actions(agent: Agent, batch: Batch, some: Rows, numbers: Rows, total: int) -> Rows:
    """Return an agent's actions in some games; an illegal one is named with its position."""
    with naming_agent(agent):
        actions, illegal = batch.check_moves(some, agent.act(*batch.act_arguments(some)))
    wrong = np.flatnonzero(illegal)
    if len(wrong):
        action = int(actions[wrong[0]])
        name = f" ({LABELS[action]})" if 0 <= action < N_ACTIONS else ""
        place = f"position {numbers[some[wrong[0]]]} of {total} of the set"
        raise IllegalMove(f"agent {repr_short(agent.spec)}: {place}: illegal action {action}{name}")
    return actions


# Estimates


def losses(regret_set: RegretSet, rows: Rows, policy: int | None = None) -> Losses:
    """Return the losses of actions, one a position.

    Args:
        regret_set: the set.
        rows: int64 (n,), the rows of the actions, by `RegretSet.action_rows`; -1 (no action)
            loses the game.
        policy: index of the policy of the rollouts, None for the mean of all.
    """
    values = block_means(regret_set, policy)  # (m, blocks)
    own = np.where(rows[:, None] < 0, -1.0, values[rows])  # nan without rollouts
    sums = values.sum(axis=1)[:, None]
    high = np.nanmean(values[best_rows(regret_set, sums)[:, 0]] - own, axis=1)
    if regret_set.is_exact:
        return Losses(high, high)
    best = np.take_along_axis(values, best_rows(regret_set, sums - values), axis=0)
    return Losses(np.nanmean(best - own, axis=1), high)


def block_means(regret_set: RegretSet, policy: int | None = None) -> Floats:
    """Return the mean result of each block of each action: float64 (m, blocks), -1 to 1.

    It is nan without rollouts. `policy` is the index of that of the rollouts, None for all.
    """
    if regret_set.is_exact:
        return np.asarray(regret_set.sums[:, 0], np.float64)
    sums = regret_set.sums if policy is None else regret_set.sums[:, policy : policy + 1]
    values = np.where(sums == NOT_ROLLED, np.nan, sums / BLOCK)
    return np.asarray(values.mean(axis=1))


def best_rows(regret_set: RegretSet, values: Floats) -> Rows:
    """Return the row of the action with the highest value in each position, int64 (n, k).

    Args:
        regret_set: the set.
        values: float64 (m, k), nan for actions that do not count.
    """
    counts = np.diff(regret_set.starts)
    numbers = np.arange(counts.max())
    rows: Rows = regret_set.starts[:-1, None].astype(np.int64) + numbers  # (n, most actions)
    exists = numbers < counts[:, None]
    padded = np.where(exists[:, :, None], values[np.where(exists, rows, 0)], np.nan)
    return np.take_along_axis(rows, np.nanargmax(padded, axis=1), axis=1)


def regret_measures(regret_set: RegretSet, chosen: AgentChoices) -> list[Measure]:
    """Return an agent's regret, in results: of the whole set, by policy of rollouts, by group.

    Args:
        regret_set: the set.
        chosen: by `choose_actions`.
    """
    rows = regret_set.action_rows(chosen.choices)
    found = losses(regret_set, rows)
    optimal = (found.low < SAME).astype(float)
    columns = {
        "regret": found.low,
        **({"optimal": optimal} if regret_set.is_exact else {"regret at most": found.high}),
        "errors": (found.low >= ERROR).astype(float),
        "blunders": (found.low >= BLUNDER).astype(float),
    }
    policies = [f"policy {name}" for name in regret_set.card["policies"]]
    for number, policy in enumerate(policies):
        columns[policy] = losses(regret_set, rows, number).low
    about: dict[str, Any] = {"agent": chosen.agent, "n": len(regret_set)}
    means = stratified_means(columns, regret_set)
    measures = []
    for name, mean in means.items():
        of, part = ("regret", name) if name in policies else (name, "")
        if regret_set.is_exact or of in ("errors", "blunders"):  # else perhaps negative
            mean = _within(mean, len(regret_set), of)
        measures.append(_measure(of, mean, group=part, **about))
    strata = [stratum for stratum in regret_set.card["strata"] if stratum["share"]]
    for key in ("boards", "phase", "rounds"):
        for name in dict.fromkeys(stratum[key] for stratum in strata):
            selected = [stratum[key] == name for stratum in regret_set.card["strata"]]
            count = int(np.asarray(selected)[regret_set.stratum].sum())
            mean = stratified_means({"regret": found.low}, regret_set, selected)["regret"]
            group = about | {"n": count, "group": f"{key} {name}"}
            mean = _within(mean, count, "regret") if regret_set.is_exact else mean
            measures.append(_measure("regret", mean, **group))
    return measures


def seconds_measure(chosen: AgentChoices) -> Measure:
    """Return the processor seconds of a decision on one thread, which depend on the machine."""
    seconds = float(f"{chosen.seconds:.3g}")  # six decimals are too few for a fast agent
    return Measure(seconds, seconds, seconds, "core-seconds", chosen.agent)


def _within(mean: Estimate, n: int, measure: str) -> Estimate:
    """Return a mean of `n` values with an interval in their range, of positive width."""
    most = 2 if measure == "regret" else 1
    low, high = max(mean.low, 0.0), min(mean.high, most)
    if low == high:  # resamples have no variance
        low, high = (most * end for end in wilson_interval(mean.value / most, n))
    return Estimate.of(mean.value, (low, high))


def _measure(measure: str, mean: Estimate, **more: Any) -> Measure:
    return Measure(mean.value, mean.low, mean.high, measure, **more)


def stratified_means(
    columns: dict[str, Floats], regret_set: RegretSet, selected: Sequence[bool] | None = None
) -> dict[str, Estimate]:
    """Return means over all choices in some strata.

    The mean of a stratum has the weight of its share among choices. Intervals resample positions
    within strata (the bootstrap of stratified samples, with deviations scaled up for small strata:
    Rao and Wu 1988).

    Args:
        columns: float64 (n,), by name.
        regret_set: the set.
        selected: a flag for each stratum; None for all.
    """
    values = np.stack(list(columns.values()), axis=1)
    weights = regret_set.shares * np.asarray(True if selected is None else selected)
    means, deviations = np.zeros(values.shape[1]), np.zeros((RESAMPLES, values.shape[1]))
    rng = np.random.default_rng(0)
    for k in np.flatnonzero(weights):
        own = values[regret_set.stratum == k]
        n, weight = len(own), weights[k] / weights.sum()
        means += weight * own.mean(axis=0)
        counts = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)
        deviations += weight * ((counts - 1.0) @ own / n * np.sqrt(n / (n - 1)))
    low, high = np.quantile(means + deviations, [0.025, 0.975], axis=0)
    return {name: Estimate.of(means[c], (low[c], high[c])) for c, name in enumerate(columns)}


def regret_difference(regret_set: RegretSet, one: AgentChoices, other: AgentChoices) -> Measure:
    """Return one agent's regret less another's in the same positions, with a 95 % interval.

    Args:
        regret_set: the set.
        one: the first agent's actions.
        other: the second agent's actions.
    """
    of_one, of_other = (
        losses(regret_set, regret_set.action_rows(chosen.choices)).low for chosen in (one, other)
    )
    more = stratified_means({"more": of_one - of_other}, regret_set)["more"]
    about: dict[str, Any] = {"agent": one.agent, "other": other.agent}
    return _measure("regret difference", more, n=len(regret_set), **about)


def set_entry(regret_set: RegretSet) -> BoardsEntry:
    """Return how a result names a set of positions: its name, hash and number of positions."""
    return BoardsEntry(regret_set.card["name"], regret_set.hash, len(regret_set), drawn=True)
