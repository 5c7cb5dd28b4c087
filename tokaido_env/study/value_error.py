"""Value error: the distance of an agent's values from the results of a regret set.

The value of an action is the result that the agent expects after it. Three measures compare these
values with the mean rollout results, in results from -1 to 1:

- the bias, the mean of value less result;
- the error, the root of the mean squared difference;
- the share explained of the differences between the actions of one position: 1 less the mean
  squared error of these differences over their mean square. A choice depends on nothing else.

Rollouts have noise: its estimated variance is subtracted from every mean square.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, States
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.executors.base import (
    CallTask,
    Executor,
    SerialExecutor,
    chunked,
    task_agent,
)
from tokaido_env.arena.match import match_seed
from tokaido_env.arena.result import Measure
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.constants import LAST_GARDEN, LAST_SLAB, LAST_TEMPLE, PAINTINGS
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import copy_rows
from tokaido_env.features.network_inputs import apply_actions
from tokaido_env.study.agent_values import game_values
from tokaido_env.study.regret import RESAMPLES, block_means
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, RegretSet

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

SAMPLES = 8
"""Samples of chance after an action; the value of the action is the mean of theirs."""

DISTANCES = ("ended", "1", "2", "3", "4–")
"""Names of the groups by `trigger_distances`."""

_ROWS = 2**14  # samples of one task


class _Means(NamedTuple):
    """Means over the actions of each position, without noise: float64 (n,)."""

    bias: Floats
    """Of the errors."""
    error: Floats
    """Of the squared errors."""
    within: Floats
    """Of the squared errors of differences from the position's mean."""
    total: Floats
    """Of the squared differences from the position's mean."""


def afterstate_values(
    agent: Agent, regret_set: RegretSet, executor: Executor | None = None
) -> Floats:
    """Return an agent's values of all actions of a set for the players who decide, float64 (m,).

    Args:
        agent: gives the values.
        regret_set: the set.
        executor: runs the agent; None: this process.

    Raises:
        AgentFailed: if the agent fails, or gives no numbers from -1 to 1.
    """
    executor, agent = executor or SerialExecutor(), as_agent(agent)
    agents = (task_agent(agent, executor),)
    states = copy_rows(regret_set.states, regret_set.action_positions)
    which = regret_set.board[regret_set.action_positions].astype(np.int64)
    actions = regret_set.actions.astype(np.int64)
    at_chance = apply_actions(regret_set.boards.records, which, copy_rows(states), actions) >= 0
    counts = np.where(at_chance, SAMPLES, 1)
    rows = np.repeat(np.arange(len(actions)), counts)
    seed = match_seed(regret_set.card["seed"], "regret", "values")
    seeds = np.array([arena_seed(seed, k) for k in range(len(rows))], np.int64)

    def tasks() -> Iterator[CallTask]:
        for k, board in enumerate(regret_set.boards):
            for some in chunked(np.flatnonzero(which[rows] == k), _ROWS):
                own = rows[some]
                text = f"values of {repr_short(agent.spec)} after {len(some)} actions"
                arguments = some, board, copy_rows(states, own), actions[own], seeds[some]
                yield CallTask(_values_task, agents, arguments, text)

    values = np.empty(len(rows))
    for _, (indices, found) in executor.map(tasks()):
        values[indices] = found
    return np.asarray(np.bincount(rows, values) / counts * (1 - 2 * states["player"]))


def _values_task(
    agent: Agent, indices: Rows, board: Board, states: States, actions: Rows, seeds: Rows
) -> Iterator[tuple[Rows, Floats]]:
    batch = Batch(len(indices), board, autoreset=False, observation=None)
    batch.reset(seeds, states)
    batch.advance(batch.all_games, actions)
    yield indices, game_values(agent, board, batch)


def value_measures(regret_set: RegretSet, agent: str, values: Floats) -> list[Measure]:
    """Return bias, value error and share explained of an agent's values.

    Args:
        regret_set: the set.
        agent: its spec.
        values: by `afterstate_values`.

    Returns:
        For each kind of boards (`other`), all positions and the groups by rounds and by distance
        (`trigger_distances`); groups without positions are left out. Positions count by the shares
        of their strata, as in the regret.
    """
    means = _means(regret_set, values)
    sizes = np.bincount(regret_set.stratum, minlength=len(regret_set.shares))
    weights = (regret_set.shares / np.maximum(sizes, 1))[regret_set.stratum]
    rounds, kinds = (_names(regret_set, key) for key in ("rounds", "boards"))
    distances = np.asarray(DISTANCES)[trigger_distances(regret_set.states)]
    found: list[Measure] = []
    for boards in dict.fromkeys(kinds.tolist()):
        groups = {"": kinds == boards}
        groups |= {f"rounds {name}": rounds == name for name in dict.fromkeys(rounds.tolist())}
        groups |= {f"distance {name}": distances == name for name in DISTANCES}
        for group, members in groups.items():
            chosen = members & (kinds == boards)
            if chosen.any():
                about = {"agent": agent, "n": int(chosen.sum()), "other": boards, "group": group}
                own = _Means(*(column[chosen] for column in means))
                found += _measures(own, weights[chosen], about)
    return found


def trigger_distances(states: States) -> Rows:
    """Return the fewest steps that any player needs to pull an end trigger (R9.1), up to 4.

    Args:
        states: `STATE` (n,).

    Returns:
        int64 (n,); 0 after a trigger.
    """
    lasts = {"temple": LAST_TEMPLE, "garden": LAST_GARDEN, "gold": LAST_SLAB, "gifted": PAINTINGS}
    left = [last - states[name].astype(np.int64).max(axis=1) for name, last in lasts.items()]
    return np.where(states["end_triggered"], 0, np.min(left, axis=0).clip(0, len(DISTANCES) - 1))


def _names(regret_set: RegretSet, key: str) -> npt.NDArray[Any]:
    """Return the name of each position's group of strata."""
    return np.array([stratum[key] for stratum in regret_set.card["strata"]])[regret_set.stratum]


def _means(regret_set: RegretSet, values: Floats) -> _Means:
    """Return the means of each position."""
    if regret_set.is_exact:
        truth = block_means(regret_set)[:, 0]
        noise = np.zeros_like(truth)
    else:
        truth, noise = _mean_results(regret_set)
    position, counts = regret_set.action_positions, np.diff(regret_set.starts)

    def mean(column: Floats) -> Floats:
        return np.asarray(np.bincount(position, column) / counts)

    def centred(column: Floats) -> Floats:
        return np.asarray(column - mean(column)[position])

    noise_within = mean(noise) * (1 - 1 / counts)
    return _Means(
        bias=mean(values - truth),
        error=mean((values - truth) ** 2) - mean(noise),
        within=mean(centred(values - truth) ** 2) - noise_within,
        total=mean(centred(truth) ** 2) - noise_within,
    )


def _mean_results(regret_set: RegretSet) -> tuple[Floats, Floats]:
    """Return the mean result of the rollouts of each action and its variance, float64 (m,)."""
    rolled = regret_set.sums != NOT_ROLLED
    rollouts = BLOCK * rolled.sum(axis=2)  # (m, policies)
    means = np.where(rolled, regret_set.sums, 0).sum(axis=2) / rollouts
    # A result is 1 or -1, but for rare shared victories, so that its variance is 1 less the mean
    # squared; the divisor makes the estimate unbiased.
    noise = ((1 - means**2) / (rollouts - 1)).mean(axis=1) / means.shape[1]
    return means.mean(axis=1), noise


def _measures(means: _Means, weights: Floats, about: dict[str, Any]) -> list[Measure]:
    """Return the measures of some positions; intervals are of a bootstrap over positions."""
    n = len(weights)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES) * weights

    def mean(column: Floats) -> list[float]:
        """Return the mean and the bounds of its interval."""
        resampled = drawn @ column / np.maximum(drawn.sum(axis=1), 1e-300)
        return [weights @ column / weights.sum(), *np.quantile(resampled, [0.025, 0.975])]

    bias, *of_bias = (round(float(x), 4) for x in mean(means.bias))
    error, *of_error = (round(math.sqrt(max(float(x), 0.0)), 4) for x in mean(means.error))
    within, total = (float(weights @ column) for column in (means.within, means.total))
    measures = [
        Measure.named("value bias", value=bias, interval=of_bias, **about),
        Measure.named("value error", value=error, interval=of_error, **about),
    ]
    if total > 0:
        explained = round(1 - within / total, 4)
        measures.append(Measure.named("share explained", value=explained, **about))
    return measures
