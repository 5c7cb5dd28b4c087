"""Calibration: comparison of an agent's values with the results of its games against itself.

The value V of a position is the result that the agent expects for the player to decide, from -1
to 1. Three things are measured:

- **bias and reliability**: V less the mover's result, by round, and the mean result of positions
  with similar V (Murphy 1973). Positions of one game share its result, so intervals treat games as
  independent;
- **error against rollouts**: some positions are played to the end many times. The mean result is
  the truth plus noise of known size, which is subtracted;
- **luck explained**: the share of (result less first value) that the surprises of chance explain.
  A surprise is the value after a chance event less its mean over resampled chance. With the true
  values of a deterministic agent the surprises explain all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, States
from tokaido_env.arena.executors import Executor, SerialExecutor
from tokaido_env.arena.game_runner import Numbers
from tokaido_env.arena.match import MAX_GAMES, match_seed
from tokaido_env.arena.tournament import pair_seeds, play_selfplay, rollout_positions
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import check_seed
from tokaido_env.core.state import SETUP, copy_rows
from tokaido_env.learn.value_calibration import ROUNDS
from tokaido_env.study.agent_values import (
    Values,
    check_has_values,
    values_after_chance,
    values_at_decisions,
)
from tokaido_env.study.estimates import JsonDict, clustered_mean
from tokaido_env.trajectory import Trajectory, replay_chunks

VERSION = 1
GAMES, POSITIONS, ROLLOUTS = 6000, 800, 64
MAX_LUCK_GAMES = 1000
"""The first games, for which luck is measured; that takes six times as long as playing them."""

CHANCE_SAMPLES = 32  # for each surprise
BINS = 10  # of values, the usual number for the expected calibration error

_MAX_ROLLOUTS = 10_000_000  # in all

Progress = Callable[[int], None]


class DecisionValues(NamedTuple):
    """An agent's values at the decisions of games, and the results: n positions.

    Attributes:
        games: int64 (n,), the numbers of the games.
        rounds: int64 (n,).
        values: float64 (n,), the value for the player to decide.
        results: float64 (n,), that player's result: 1, 0 or -1.
    """

    games: Numbers
    rounds: Numbers
    values: Values
    results: Values


class RolloutResults(NamedTuple):
    """Results of rollouts from p positions, k each.

    Attributes:
        games: int64 (p,), the numbers of the games that the positions are from.
        values: float64 (p,), as in `DecisionValues`.
        results: float64 (p, k), of the player to decide.
    """

    games: Numbers
    values: Values
    results: Values


class LuckBalance(NamedTuple):
    """Gains and luck of player_0 in n games.

    Attributes:
        gains: float64 (n,), the result less the first value.
        luck: float64 (n,), the sum of the surprises.
        noise: float64 (n,), the variance of `luck` that comes from sampling chance.
    """

    gains: Values
    luck: Values
    noise: Values


@dataclass(frozen=True)
class CalibrationConfig:
    """The size and the seed of a calibration.

    Attributes:
        games: of the agent against itself, from 2.
        positions: of these games that get rollouts, from 0.
        rollouts: of each position, from 2.
        seed: of the luck, as for `Game`.

    Raises:
        ValueError: if a number is out of range.
    """

    games: int = GAMES
    positions: int = POSITIONS
    rollouts: int = ROLLOUTS
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", check_seed(self.seed))
        for name, least, most in (
            ("games", 2, MAX_GAMES),
            ("positions", 0, _MAX_ROLLOUTS),
            ("rollouts", 2, _MAX_ROLLOUTS // max(self.positions, 1)),
        ):
            got = getattr(self, name)
            if not least <= got <= most:
                raise ValueError(f"{name}: expected {least} to {most:,}, got {got:,}")

    @property
    def total(self) -> int:
        """The steps of progress: games, rollouts, and games with measured luck."""
        return self.games + self.positions * self.rollouts + min(self.games, MAX_LUCK_GAMES)

    def seeds(self, purpose: str, count: int) -> Numbers:
        """Return seeds of luck for one purpose, int64 (count,)."""
        return pair_seeds(match_seed(self.seed, "calibrate", purpose), count)


def calibrate(
    agent: Agent,
    board: Board,
    config: CalibrationConfig,
    on_progress: Progress = lambda games: None,
    executor: Executor | None = None,
) -> JsonDict:
    """Play games of an agent against itself; return its calibration as plain JSON types.

    Args:
        agent: gives values.
        board: of all games.
        config: the size and the seed.
        on_progress: called with the number of steps done since the last call, `config.total` in
            all.
        executor: plays the games and computes values; the results do not depend on it. None: this
            process.

    Raises:
        ValueError: if the agent gives no values, or the games have fewer positions than asked for.
        AgentFailed: if the agent fails, or a value is not a number from -1 to 1.
    """
    check_has_values(agent, board)
    executor = executor or SerialExecutor()
    seeds = config.seeds("games", config.games)
    played, actions = play_selfplay(agent, board, seeds, on_progress, executor)
    results = 2 * played["result"] - 1
    count = int(played["decisions"].sum())
    if count < config.positions:
        raise ValueError(
            f"positions: expected {count:,} or fewer, as many as the games have, "
            f"got {config.positions:,}: play more games"
        )
    rng = np.random.Generator(np.random.PCG64(match_seed(config.seed, "calibrate", "positions")))
    chosen = np.sort(rng.choice(count, config.positions, replace=False))
    decisions, states, balances, before = [], [], [], 0
    for games, part in replay_chunks(board, seeds, actions):
        rows = np.flatnonzero(part.decided)
        values = values_at_decisions(agent, part, seeds[games], rows, executor)
        decisions.append(_decision_values(part, games, rows, values, results))
        own = chosen[(chosen >= before) & (chosen < before + len(rows))] - before
        states.append(copy_rows(part.states, rows[own]))
        before += len(rows)
        some = games[games < MAX_LUCK_GAMES]
        if len(some):
            events = len(chance_events(part, len(some))[0])
            luck_seeds = config.seeds(f"luck {some[0]}", events * CHANCE_SAMPLES)
            luck_seeds = luck_seeds.reshape(-1, CHANCE_SAMPLES)
            balances.append(
                _luck_balance(agent, part, len(some), values, results[games], luck_seeds, executor)
            )
            on_progress(len(some))
    judged = DecisionValues(*map(np.concatenate, zip(*decisions, strict=True)))
    seeds = config.seeds("rollouts", config.positions * config.rollouts)
    ends = _roll_out(agent, board, np.concatenate(states), seeds, on_progress, executor)
    rolled = RolloutResults(judged.games[chosen], judged.values[chosen], ends)
    luck = LuckBalance(*map(np.concatenate, zip(*balances, strict=True)))
    head = {"agent": agent.spec, "board": board.name, "hash": board.hash, "seed": config.seed}
    return {"version": VERSION, **head, "games": config.games, **summarize(judged, rolled, luck)}


# Statistics


def summarize(judged: DecisionValues, rolled: RolloutResults, luck: LuckBalance) -> JsonDict:
    """Return the statistics of a calibration as plain JSON types."""
    return {
        "positions": len(judged.values),
        "bias": clustered_mean(judged.values - judged.results, judged.games),
        "squared_error": clustered_mean((judged.values - judged.results) ** 2, judged.games),
        "by_round": _by_round(judged),
        "reliability": _reliability(judged),
        "calibration_error": calibration_error(judged),
        "rollouts": _rollout_figures(rolled) if len(rolled.values) else None,
        "luck": _luck_figures(luck),
    }


def _by_round(judged: DecisionValues) -> list[JsonDict]:
    """Return value, result and bias by group of rounds, without empty groups."""
    which = np.digitize(judged.rounds, ROUNDS) - 1
    rows = []
    for group, first in enumerate(ROUNDS):
        selected: npt.NDArray[np.bool_] = which == group
        if selected.any():
            last = ROUNDS[group + 1] - 1 if group + 1 < len(ROUNDS) else None
            rows.append({"rounds": [first, last], **_means(judged, selected)})
    return rows


def _reliability(judged: DecisionValues) -> list[JsonDict]:
    """Return value, result and bias by bin of values, without empty bins."""
    which = _bins(judged.values)
    edges = np.linspace(-1, 1, BINS + 1).round(6).tolist()
    return [
        {"values": edges[bin_ : bin_ + 2], **_means(judged, which == bin_)}
        for bin_ in range(BINS)
        if (which == bin_).any()
    ]


def _means(judged: DecisionValues, selected: npt.NDArray[np.bool_]) -> JsonDict:
    values, results = judged.values[selected], judged.results[selected]
    columns = {"value": values, "result": results, "bias": values - results}
    return {
        name: clustered_mean(column, judged.games[selected]) for name, column in columns.items()
    }


def _bins(values: Values) -> Numbers:
    return np.clip(((values + 1) / 2 * BINS).astype(np.int64), 0, BINS - 1)


def calibration_error(judged: DecisionValues) -> float:
    """Return the expected calibration error (Naeini, Cooper and Hauskrecht 2015).

    It is the mean over bins of |mean value - mean result|, weighted by positions.
    """
    sums = np.bincount(_bins(judged.values), judged.values - judged.results)
    return round(float(np.abs(sums).sum()) / len(judged.values), 6)


def _rollout_figures(rolled: RolloutResults) -> JsonDict:
    """Return the error of the values against the means of rollouts, less the noise of those means.

    The variance of a mean, estimated from its rollouts, is subtracted from each squared error.
    """
    means = rolled.results.mean(axis=1)
    noise = rolled.results.var(axis=1, ddof=1) / rolled.results.shape[1]
    errors = rolled.values - means
    squared = clustered_mean(errors**2 - noise, rolled.games)
    low, high = squared["ci95"] or (None, None)
    return {
        "positions": len(rolled.values),
        "each": rolled.results.shape[1],
        "rms": {"value": _root(squared["mean"]), "ci95": low and [_root(low), _root(high)]},
        "bias": clustered_mean(errors, rolled.games),
        "noise": _root(float(noise.mean())),
    }


def _root(square: float | None) -> float:
    """Return the root of an estimated square; 0 for a negative estimate."""
    return round(sqrt(max(square or 0.0, 0.0)), 6)


def _luck_figures(luck: LuckBalance) -> JsonDict:
    """Return the share of the gains that luck explains, 1 - Σ (gain - luck)² / Σ gain².

    It is 1 if luck explains all, and can be negative. The noise of sampling is subtracted from the
    numerator. The interval is that of a ratio of means (the delta method).
    """
    games = np.arange(len(luck.gains))
    left, whole = (luck.gains - luck.luck) ** 2 - luck.noise, luck.gains**2
    ratio = float(left.sum() / whole.sum()) if whole.any() else 0.0
    spread = clustered_mean((left - ratio * whole) / (whole.mean() or 1.0), games)["ci95"]
    explained = None
    if spread is not None:
        explained = [round(1 - ratio + bound, 6) for bound in spread]
    return {
        "games": len(games),
        "draws": CHANCE_SAMPLES,
        "explained": {"value": round(1 - ratio, 6), "ci95": explained},
        "luck": clustered_mean(luck.luck, games),
    }


# Measurements


def _decision_values(
    trajectory: Trajectory, games: Numbers, rows: Numbers, values: Values, results: Values
) -> DecisionValues:
    """Return values and results from the mover's side, given player_0's."""
    signs = 1 - 2 * trajectory.movers[rows].astype(np.int64)
    own = games[trajectory.games[rows]]
    rounds = trajectory.states["round"][rows].astype(np.int64)
    return DecisionValues(own, rounds, signs * values, signs * results[own])


def _roll_out(
    agent: Agent,
    board: Board,
    states: States,
    seeds: Numbers,
    on_progress: Progress,
    executor: Executor,
) -> Values:
    """Play p positions to the end, k times each; return results of the mover, float64 (p, k).

    Args:
        agent: plays both seats.
        board: of all games.
        states: `STATE` (p,).
        seeds: int64 (p * k,).
        on_progress: called with the number of games finished since the last call.
        executor: plays the games.
    """
    if not len(states):
        return np.zeros((0, 0))
    each = np.repeat(np.arange(len(states)), len(seeds) // len(states))
    repeated = copy_rows(states, each)
    first, _ = rollout_positions(agent, board, repeated, seeds, on_progress, executor)
    signs = 1 - 2 * states["player"].astype(np.int64)
    results: Values = signs[:, None] * (2 * first - 1).reshape(len(states), -1)
    return results


def _luck_balance(
    agent: Agent,
    trajectory: Trajectory,
    games: int,
    values: Values,
    results: Values,
    seeds: Numbers,
    executor: Executor,
) -> LuckBalance:
    """Return the gains and luck of the first games of a trajectory.

    All chance between two decisions counts as one event and is resampled as a whole.

    Args:
        agent: plays both seats.
        trajectory: the games.
        games: the number of games.
        values: float64 (decisions,), the agent's values for player_0 at each decision.
        results: float64 (n,), of player_0.
        seeds: int64 (events, CHANCE_SAMPLES), of the samples.
        executor: draws the samples and computes their values.
    """
    events, after = chance_events(trajectory, games)
    decided = trajectory.decided
    row_values = np.where(decided, 0.0, results[trajectory.games])
    row_values[decided] = values
    samples = values_after_chance(agent, trajectory, events, seeds, executor)
    surprises = row_values[after] - samples.mean(axis=1)
    variances = samples.var(axis=1, ddof=1) / CHANCE_SAMPLES
    own = trajectory.games[events]
    luck: Values = np.bincount(own, surprises, games).astype(np.float64)
    noise: Values = np.bincount(own, variances, games).astype(np.float64)
    first = np.searchsorted(trajectory.games[decided], np.arange(games))
    return LuckBalance(results[:games] - values[first], luck, noise)


def chance_events(trajectory: Trajectory, games: int) -> tuple[Numbers, Numbers]:
    """Return the rows where chance begins after a decision, and the rows after that chance.

    Args:
        trajectory: whole games.
        games: the number of games, from the first.
    """
    stop = int(trajectory.offsets[games])
    decided = trajectory.decided[:stop]
    last = np.zeros(stop, np.bool_)
    last[trajectory.offsets[1 : games + 1] - 1] = True
    chance = ~decided & ~last
    in_setup = trajectory.states["phase"][:stop] == SETUP
    begins = np.flatnonzero(chance & np.roll(decided, 1) & ~in_setup)
    ends = np.flatnonzero(~chance)  # the next decision, or the end
    return begins, ends[np.searchsorted(ends, begins)]
