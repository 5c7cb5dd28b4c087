"""Regret: what an agent's decisions lose against the best action, by a set of rolled-out positions.

The truth is known with noise: the best of several means that are uncertain is too high on average
(the winner's curse). So the best action is chosen by all blocks of rollouts but one and valued by
that one, for each block in turn (cross-validation; van Hasselt 2013, "Estimating the Maximum
Expected Value"): the noise of choosing is not in the value. What comes out is on average at most
the true regret, for the action chosen may not be the best; choosing and valuing by the same blocks
gives on average at least the true regret. Both are told: the truth lies between them.

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
from tokaido_env.arena.executors import (
    CallTask,
    Executor,
    SerialExecutor,
    agent_spec_of,
    chunked,
    split_work,
)
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.verification import REPEATS
from tokaido_env.batch import Batch
from tokaido_env.batch_validation import checked_moves
from tokaido_env.core.actions import LABELS, N_ACTIONS
from tokaido_env.core.arguments import IllegalMove, repr_short, str_short
from tokaido_env.core.state import copy_rows
from tokaido_env.core.threads import single_thread
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, Questions, RegretSet

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

ERROR, BLUNDER = 0.08, 0.16
"""From what loss on a decision is an error, a blunder: as GNU Backgammon's bad and very bad."""

RESAMPLES = 2000

_TIMED = 200  # positions of a unit at most, in which an agent is timed


class Losses(NamedTuple):
    """What choices lose, one of each position: float64 (n,)."""

    least: Floats
    """By cross-validation: on average at most the true regret."""
    most: Floats
    """By the best mean itself: on average at least the true regret."""


class Measured(NamedTuple):
    """An agent's choices."""

    agent: str
    choices: Rows
    """Actions, int64 (n,)."""
    seconds: float
    """Of a processor, a decision, on one thread."""


# Measuring


def measure(agent: Agent, told: RegretSet, executor: Executor | None = None) -> Measured:
    """Ask an agent what it does in all positions of a set.

    Args:
        agent: that is asked.
        told: the set.
        executor: who asks; the choices are the same. None: this process.

    Raises:
        AgentFailed: if it raised an error, naming the agent and the position.
        IllegalMove: if an action is not legal, naming both.
    """
    executor, asked = executor or SerialExecutor(), (agent_spec_of(agent),)

    def task(some: Rows) -> CallTask:
        text = f"{len(some)} positions that {repr_short(agent.spec)} is asked about"
        arguments = told.questions(some), len(told)
        return CallTask(_choose, asked, arguments, text)

    choices, seconds = np.empty(len(told), np.int64), {}
    tasks = map(task, split_work(np.arange(len(told)), executor.workers))
    for number, (rows, actions, spent) in executor.map(tasks, (agent,)):
        choices[rows], seconds[number] = actions, spent
    return Measured(agent.spec, choices, sum(seconds.values()) / len(told))


def _choose(agent: Agent, questions: Questions, total: int) -> Iterator[tuple[Rows, Rows, float]]:
    """Ask an agent in positions of a set; yield their numbers, its actions, and what it took.

    Args:
        agent: that is asked.
        questions: the positions.
        total: how many the set has, for messages.
    """
    batch = questions.batch()
    agent.prepare(list({id(board): board for board in questions.boards}.values()))
    every = np.arange(len(batch))

    def ask(some: Rows) -> Rows:
        return _ask(agent, batch, some, questions.numbers, total)

    parts = [ask(some) for some in chunked(every, agent.games_at_once)]
    # In some of them it is timed: processor time on one thread, the median of some repeats.
    timed = every[:: -(-len(batch) // _TIMED)]
    times = []
    with single_thread():
        for _ in range(REPEATS + 1):
            began = time.process_time()
            for some in chunked(timed, agent.games_at_once):
                ask(some)
            times.append(time.process_time() - began)
    each = statistics.median(times[1:]) / len(timed)  # the first may load or compile
    yield questions.numbers, np.concatenate(parts), len(every) * each


def _ask(agent: Agent, batch: Batch, some: Rows, numbers: Rows, total: int) -> Rows:
    """Return what an agent does in some of the positions, by their numbers in the set."""
    own = numbers[some]
    try:
        actions = _asked(agent, batch, some)
    except (Exception, SystemExit) as error:
        place = f"positions {own[0]} to {own[-1]}"
        if len(some) > 1:  # asked about each alone, it should fail in one again
            for i in range(len(some)):
                _ask(agent, batch, some[i : i + 1], numbers, total)
        else:
            place = f"position {own[0]} of {total}"
        what = f"{type(error).__name__}: {str_short(' '.join(str(error).split()), 200)}"
        raise AgentFailed(f"agent {repr_short(agent.spec)}: {place} of the set: {what}") from error
    wrong = np.flatnonzero(batch.find_illegal(some, actions))
    if len(wrong):
        action = int(actions[wrong[0]])
        name = f" ({LABELS[action]})" if 0 <= action < N_ACTIONS else ""
        raise IllegalMove(
            f"agent {repr_short(agent.spec)}: position {own[wrong[0]]} of {total} of the set: illegal "
            f"action {action}{name}"
        )
    return actions


def _asked(agent: Agent, batch: Batch, some: Rows) -> Rows:
    states = copy_rows(batch.states, some)
    actions = agent.act(batch.boards_of(some), states, batch.legal[some], batch.keys(some))
    return checked_moves(actions, len(some))


# Estimating


def losses(told: RegretSet, rows: Rows, policy: int | None = None) -> Losses:
    """Return what choices lose.

    Args:
        told: the set.
        rows: int64 (n,), the rows of the choices, by `RegretSet.rows`.
        policy: by whose rollouts, None for the mean of all.
    """
    values = block_values(told, policy)  # (m, blocks)
    own = values[rows]  # nan where it was not rolled out
    best = np.take_along_axis(values, best_without(told, values), axis=0)
    top = values[best_rows(told, values)]
    return Losses(np.nanmean(best - own, axis=1), np.nanmean(top - own, axis=1))


def block_values(told: RegretSet, policy: int | None = None) -> Floats:
    """Return the mean result of each block, nan where it was not rolled out: (m, blocks)."""
    sums = told.sums if policy is None else told.sums[:, policy : policy + 1]
    values = np.where(sums == NOT_ROLLED, np.nan, sums / BLOCK)
    return np.asarray(values.mean(axis=1))


def _places(told: RegretSet) -> Rows:
    """Return the rows of the actions of each position, -1 behind the last: int64 (n, most)."""
    counts = np.diff(told.starts)
    numbers = np.arange(counts.max())
    return np.where(numbers < counts[:, None], told.starts[:-1, None] + numbers, -1)


# Telling


def figures(told: RegretSet, measured: Measured, *, timed: bool = False) -> dict[str, Any]:
    """Return the regret of an agent as plain JSON types.

    Args:
        told: the set.
        measured: by `measure`.
        timed: whether to tell core seconds, which are another time's and machine's.
    """
    rows = told.rows(measured.choices)
    found = losses(told, rows)
    columns = {
        "regret": found.least,
        "at_most": found.most,
        "errors": (found.least >= ERROR).astype(float),
        "blunders": (found.least >= BLUNDER).astype(float),
    }
    for number, name in enumerate(told.card["policies"]):
        columns[f"by_{name}"] = losses(told, rows, number).least
    strata = [stratum for stratum in told.card["strata"] if stratum["share"]]
    groups = {
        key: {name: _in_group(told, found.least, key, name) for name in _names(strata, key)}
        for key in ("boards", "phase", "rounds")
    }
    head = {"agent": measured.agent, **estimates(columns, told), **groups}
    head["choices"] = measured.choices.tolist()
    return head | ({"core_seconds": measured.seconds} if timed else {})


def _names(strata: Sequence[dict[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(stratum[key] for stratum in strata))


def _in_group(told: RegretSet, values: Floats, key: str, name: str) -> dict[str, Any]:
    chosen = [stratum[key] == name for stratum in told.card["strata"]]
    mean: dict[str, Any] = estimates({"regret": values}, told, chosen)["regret"]
    return mean


def estimates(
    columns: dict[str, Floats], told: RegretSet, chosen: Sequence[bool] | None = None
) -> dict[str, Any]:
    """Return means over all choices in some strata, as {"mean", "ci95"} each.

    The mean of a stratum counts by its share among choices. Intervals resample positions within
    strata (the bootstrap of stratified samples, with deviations widened for small strata: Rao and
    Wu 1988).

    Args:
        columns: float64 (n,), by name.
        told: the set.
        chosen: which strata, as many as there are; None for all.
    """
    values = np.stack(list(columns.values()), axis=1)
    weights = told.shares * np.asarray(True if chosen is None else chosen)
    means, draws = np.zeros(values.shape[1]), np.zeros((RESAMPLES, values.shape[1]))
    rng = np.random.default_rng(0)
    for k in np.flatnonzero(weights):
        own = values[told.stratum == k]
        weight = weights[k] / weights.sum()
        means += weight * own.mean(axis=0)
        draws += weight * resampled(own, rng)
    low, high = np.quantile(means + draws, [0.025, 0.975], axis=0)
    return {
        name: {"mean": _rounded(means[c]), "ci95": [_rounded(low[c]), _rounded(high[c])]}
        for c, name in enumerate(columns)
    }


def _rounded(number: float) -> float:
    return round(float(number), 6)


def resampled(values: Floats, rng: np.random.Generator) -> Floats:
    """Return how far means of resamples lie from the mean: float64 (RESAMPLES, columns).

    Args:
        values: float64 (n, columns), n from 2.
        rng: of the resamples.
    """
    n = len(values)
    counts = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)
    away = (counts - 1.0) @ values / n
    return np.asarray(away * np.sqrt(n / (n - 1)))


def difference(
    told: RegretSet, one: Measured, other: Measured, boards: str | None = None
) -> dict[str, Any]:
    """Return how much more regret one agent has than another in the same positions.

    Args:
        told: the set.
        one, other: the agents.
        boards: of the strata that count; None for all.
    """
    chosen = [boards in (None, stratum["boards"]) for stratum in told.card["strata"]]
    each = [losses(told, told.rows(measured.choices)).least for measured in (one, other)]
    more = estimates({"more": each[0] - each[1]}, told, chosen)["more"]
    return {"a": one.agent, "b": other.agent, **more}


def best_rows(told: RegretSet, values: Floats) -> Rows:
    """Return the row of the best action of each position, of those rolled out in full: (n,)."""
    return _best_of(told, values.sum(axis=1)[:, None])[:, 0]


def best_without(told: RegretSet, values: Floats) -> Rows:
    """Return the row of the best action by all blocks but one, for each: (n, blocks)."""
    return _best_of(told, values.sum(axis=1)[:, None] - values)


def _best_of(told: RegretSet, worth: Floats) -> Rows:
    """Return the row of the action that is worth most in each position, nan is none: (n, k)."""
    places = _places(told)
    there = np.where((places >= 0)[:, :, None], worth[places], np.nan)
    return np.take_along_axis(places, np.nanargmax(there, axis=1), axis=1)
