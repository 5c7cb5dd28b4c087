"""Calibration: whether the results that an agent expects are those that come, against itself.

An agent that judges positions says what result the player to decide can expect, its value V, from
-1 to 1. In games of the agent against itself three things are measured:

- **bias and reliability**: V less the result of the mover, by round, and the mean result of the
  positions of which it says alike (Murphy 1973). Positions of one game share its result, so that
  intervals take games as what is independent;
- **error against rollouts**: some positions are played to the end many times; the mean of their
  results is the truth but for noise of a known size, which is taken off;
- **luck explained**: how much of result less first value the surprises of chance make up, each of
  them the value after it less its mean over what might have come. With the true values of a
  deterministic agent they make up all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import Executor, SerialExecutor
from tokaido_env.arena.ladder import match_seed
from tokaido_env.arena.match import MAX_GAMES
from tokaido_env.arena.tournament import pair_seeds, play_selfplay, rollout_positions
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import check_seed
from tokaido_env.core.state import SETUP, copy_rows
from tokaido_env.learn.value_calibration import ROUNDS
from tokaido_env.study.agent_values import check_tells, values_after, values_of
from tokaido_env.study.estimates import Figure, mean_of
from tokaido_env.trajectory import Trajectory, replay_chunks

VERSION = 1
GAMES, POSITIONS, ROLLOUTS = 6000, 800, 64
LUCK_GAMES = 1000
"""Games whose luck is counted, at the most: it takes as long as six times as many games."""

DRAWS = 32  # of what chance might have brought instead, for each of its surprises
BINS = 10

_MOST_ROLLOUTS = 10_000_000  # in all

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
States = npt.NDArray[np.void]
Progress = Callable[[int], None]


class Judged(NamedTuple):
    """What an agent expected at each decision of games, and what came: n positions.

    Attributes:
        games: int64 (n,), the numbers of the games.
        rounds: int64 (n,).
        values: float64 (n,), the result that it expected for the player to decide.
        results: float64 (n,), the result of that player: 1, 0 or -1.
    """

    games: Numbers
    rounds: Numbers
    values: Values
    results: Values


class Rolled(NamedTuple):
    """Positions that were played to the end many times, p of them.

    Attributes:
        games: int64 (p,), the numbers of the games that they are from.
        values: float64 (p,), as of `Judged`.
        results: float64 (p, k), of the player to decide.
    """

    games: Numbers
    values: Values
    results: Values


class Lucky(NamedTuple):
    """How far chance surprised an agent in each of n games, all for player_0.

    Attributes:
        gains: float64 (n,), the result less the first value.
        luck: float64 (n,), the sum of the surprises.
        noise: float64 (n,), the variance of `luck` that comes from drawing what might have come.
    """

    gains: Values
    luck: Values
    noise: Values


@dataclass(frozen=True)
class Plan:
    """What is to be played.

    Attributes:
        games: of the agent against itself, from 2.
        positions: of these that are played to the end many times, from 0.
        rollouts: how many times each, from 2.
        seed: of the luck, 0 to 2**53 - 1.

    Raises:
        ValueError: if one is out of range.
    """

    games: int = GAMES
    positions: int = POSITIONS
    rollouts: int = ROLLOUTS
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name, least, most in (
            ("games", 2, MAX_GAMES),
            ("positions", 0, _MOST_ROLLOUTS),
            ("rollouts", 2, _MOST_ROLLOUTS // max(self.positions, 1)),
        ):
            got = getattr(self, name)
            if not least <= got <= most:
                raise ValueError(f"{name}: expected {least} to {most:,}, got {got:,}")

    @property
    def total(self) -> int:
        """Games in all: those, the rollouts, and the games whose luck is counted."""
        return self.games + self.positions * self.rollouts + min(self.games, LUCK_GAMES)

    def seeds(self, what: str, count: int) -> Numbers:
        """Return seeds of luck that nothing else here has, int64 (count,)."""
        return pair_seeds(match_seed(self.seed, "calibrate", what), count)


def calibrate(
    agent: Agent,
    board: Board,
    plan: Plan,
    progress: Progress = lambda games: None,
    executor: Executor | None = None,
) -> Figure:
    """Measure an agent; return all figures as plain JSON types.

    Args:
        agent: that tells what results it expects.
        board: of all games.
        plan: what is to be played.
        progress: called with the number of games finished now and then, `Plan.total` in all.
        executor: who plays and judges; the figures are the same. None: this process.

    Raises:
        ValueError: if it does not tell that, or fewer positions come up than are asked for.
        AgentFailed: if it fails; what it expects has to be numbers from -1 to 1.
    """
    check_tells(agent, board)
    executor = executor or SerialExecutor()
    seeds = plan.seeds("games", plan.games)
    played, actions = play_selfplay(agent, board, seeds, progress, executor)
    results = 2 * played["result"] - 1
    count = int(played["decisions"].sum())
    if count < plan.positions:
        raise ValueError(f"positions: expected at most {count:,}, as many as came up")
    rng = np.random.Generator(np.random.PCG64(match_seed(plan.seed, "calibrate", "positions")))
    chosen = np.sort(rng.choice(count, plan.positions, replace=False))
    parts, states, lucky, before = [], [], [], 0
    for games, part in replay_chunks(board, seeds, actions):
        rows = np.flatnonzero(part.decided)
        values = values_of(agent, part, seeds[games], rows, executor)
        parts.append(_judged(part, games, rows, values, results))
        own = chosen[(chosen >= before) & (chosen < before + len(rows))] - before
        states.append(copy_rows(part.states, rows[own]))
        before += len(rows)
        some = games[games < LUCK_GAMES]
        if len(some):
            draws = plan.seeds(f"luck {some[0]}", len(events_of(part, len(some))[0]) * DRAWS)
            draws = draws.reshape(-1, DRAWS)
            lucky.append(_luck(agent, part, len(some), values, results[games], draws, executor))
            progress(len(some))
    judged = Judged(*map(np.concatenate, zip(*parts, strict=True)))
    seeds = plan.seeds("rollouts", plan.positions * plan.rollouts)
    ends = _roll(agent, board, np.concatenate(states), seeds, progress, executor)
    rolled = Rolled(judged.games[chosen], judged.values[chosen], ends)
    luck = Lucky(*map(np.concatenate, zip(*lucky, strict=True)))
    head = {"agent": agent.spec, "board": board.name, "hash": board.hash, "seed": plan.seed}
    return {"version": VERSION, **head, "games": plan.games, **figures(judged, rolled, luck)}


# Figures


def figures(judged: Judged, rolled: Rolled, luck: Lucky) -> Figure:
    """Return what follows from all that was measured, as plain JSON types."""
    return {
        "positions": len(judged.values),
        "bias": mean_of(judged.values - judged.results, judged.games),
        "squared_error": mean_of((judged.values - judged.results) ** 2, judged.games),
        "by_round": _by_round(judged),
        "reliability": _reliability(judged),
        "calibration_error": calibration_error(judged),
        "rollouts": _rollout_figures(rolled) if len(rolled.values) else None,
        "luck": _luck_figures(luck),
    }


def _by_round(judged: Judged) -> list[Figure]:
    """Return value, result and bias by group of rounds, of the groups that came up."""
    which = np.digitize(judged.rounds, ROUNDS) - 1
    rows = []
    for group, first in enumerate(ROUNDS):
        there: npt.NDArray[np.bool_] = which == group
        if there.any():
            last = ROUNDS[group + 1] - 1 if group + 1 < len(ROUNDS) else None
            rows.append({"rounds": [first, last], **_means(judged, there)})
    return rows


def _reliability(judged: Judged) -> list[Figure]:
    """Return value, result and bias of the positions with values in each bin, if there are any."""
    which = _bins(judged.values)
    edges = np.linspace(-1, 1, BINS + 1).round(6).tolist()
    return [
        {"values": edges[bin_ : bin_ + 2], **_means(judged, which == bin_)}
        for bin_ in range(BINS)
        if (which == bin_).any()
    ]


def _means(judged: Judged, there: npt.NDArray[np.bool_]) -> Figure:
    games, values, results = judged.games[there], judged.values[there], judged.results[there]
    columns = {"value": values, "result": results, "bias": values - results}
    return {name: mean_of(column, games) for name, column in columns.items()}


def _bins(values: Values) -> Numbers:
    return np.clip(((values + 1) / 2 * BINS).astype(np.int64), 0, BINS - 1)


def calibration_error(judged: Judged) -> float:
    """Return the expected calibration error: the mean distance of value and result of the bins.

    Each bin counts by its positions (Naeini, Cooper and Hauskrecht 2015).
    """
    sums = np.bincount(_bins(judged.values), judged.values - judged.results)
    return round(float(np.abs(sums).sum()) / len(judged.values), 6)


def _rollout_figures(rolled: Rolled) -> Figure:
    """Return the error of the values against the means of rollouts, without the noise of these.

    A squared distance is too large by the variance of the mean, which the spread tells.
    """
    means = rolled.results.mean(axis=1)
    noise = rolled.results.var(axis=1, ddof=1) / rolled.results.shape[1]
    errors = rolled.values - means
    squared = mean_of(errors**2 - noise, rolled.games)
    low, high = squared["ci95"] or (None, None)
    return {
        "positions": len(rolled.values),
        "each": rolled.results.shape[1],
        "rms": {"value": _root(squared["mean"]), "ci95": low and [_root(low), _root(high)]},
        "bias": mean_of(errors, rolled.games),
        "noise": _root(float(noise.mean())),
    }


def _root(square: float | None) -> float:
    """Return the root of an estimated square, which may fall below 0 where it is small."""
    return round(sqrt(max(square or 0.0, 0.0)), 6)


def _luck_figures(luck: Lucky) -> Figure:
    """Return the share of the spread of the gains that luck makes up: 1 if all, below 0 if none.

    1 - Σ (gain - luck)² / Σ gain². What drawing adds to the numerator is taken off. The interval is
    that of a ratio of means (the delta method).
    """
    games = np.arange(len(luck.gains))
    left, whole = (luck.gains - luck.luck) ** 2 - luck.noise, luck.gains**2
    ratio = float(left.sum() / whole.sum()) if whole.any() else 0.0
    spread = mean_of((left - ratio * whole) / (whole.mean() or 1.0), games)["ci95"]
    explained = None
    if spread is not None:
        explained = [round(1 - ratio + bound, 6) for bound in spread]
    return {
        "games": len(games),
        "draws": DRAWS,
        "explained": {"value": round(1 - ratio, 6), "ci95": explained},
        "luck": mean_of(luck.luck, games),
    }


# What the agent expects


def _judged(
    played: Trajectory, games: Numbers, rows: Numbers, values: Values, results: Values
) -> Judged:
    signs = 1 - 2 * played.movers[rows].astype(np.int64)
    own = games[played.games[rows]]
    rounds = played.states["round"][rows].astype(np.int64)
    return Judged(own, rounds, signs * values, signs * results[own])


# Rollouts


def _roll(
    agent: Agent,
    board: Board,
    states: States,
    seeds: Numbers,
    progress: Progress,
    executor: Executor,
) -> Values:
    """Play p positions to the end, k times each; return results of the mover, float64 (p, k).

    Args:
        agent: plays both seats.
        board: of all games.
        states: `STATE` (p,).
        seeds: int64 (p * k,).
        progress: called with the number of games finished now and then.
        executor: who plays.
    """
    if not len(states):
        return np.zeros((0, 0))
    each = np.repeat(np.arange(len(states)), len(seeds) // len(states))
    first = rollout_positions(agent, board, copy_rows(states, each), seeds, progress, executor)[0]
    signs = 1 - 2 * states["player"].astype(np.int64)
    results: Values = signs[:, None] * (2 * first - 1).reshape(len(states), -1)
    return results


# Luck


def _luck(
    agent: Agent,
    played: Trajectory,
    games: int,
    values: Values,
    results: Values,
    seeds: Numbers,
    executor: Executor,
) -> Lucky:
    """Return how far chance surprised the agent in the first games of a trajectory.

    What chance brings between two decisions counts as one event, and is drawn anew as a whole.

    Args:
        agent: plays both seats.
        played: the games.
        games: how many of them.
        values: float64 (decisions,), what the agent expected for player_0 at each decision.
        results: float64 (n,), of player_0.
        seeds: int64 (events, DRAWS), of what is drawn.
        executor: who draws and judges.
    """
    events, after = events_of(played, games)
    decided = played.decided
    worth = np.where(decided, 0.0, results[played.games])
    worth[decided] = values
    drawn = values_after(agent, played, events, seeds, executor)
    surprises = worth[after] - drawn.mean(axis=1)
    own = played.games[events]
    luck: Values = np.bincount(own, surprises, games).astype(np.float64)
    noise: Values = np.bincount(own, drawn.var(axis=1, ddof=1) / DRAWS, games).astype(np.float64)
    first = np.searchsorted(played.games[decided], np.arange(games))
    return Lucky(results[:games] - values[first], luck, noise)


def events_of(played: Trajectory, games: int) -> tuple[Numbers, Numbers]:
    """Return the rows where chance comes in after a decision, and those where it has come.

    Args:
        played: whole games.
        games: how many of them, from the first.
    """
    stop = int(played.offsets[games])
    decided = played.decided[:stop]
    last = np.zeros(stop, np.bool_)
    last[played.offsets[1 : games + 1] - 1] = True
    chance = ~decided & ~last
    begins = np.flatnonzero(chance & np.roll(decided, 1) & (played.states["phase"][:stop] != SETUP))
    ends = np.flatnonzero(~chance)  # the next decision, or the end
    return begins, ends[np.searchsorted(ends, begins)]
