"""Reviews of games: the loss of each decision and the luck of each chance event.

Both are in win probability. A search judges the decisions. Where it prefers another action than the
one played, both actions are compared with equal effort and the same luck: each is played, chance is
sampled by shared seeds, and the search values the positions after it. The loss is the mean
difference over these samples, with its 95 % interval. The samples are independent of the search
that chose the preferred action, so a good decision has a mean loss of 0 (see `regret` on the
winner's curse).

A fast agent values chance. The value at a chance node is the mean over all outcomes by their exact
odds, so luck has mean zero however good the values are. The result less the luck measures the
players' decisions (`arena.variance_reduction`). The set-up counts as neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, States
from tokaido_env.agents.registry import as_agents
from tokaido_env.arena.executors.base import chunked
from tokaido_env.arena.game_runner import Numbers, naming_agent
from tokaido_env.arena.intervals import student_t_quantile
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import NO_ACTION
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import CHANCE_PHASES, NO_PLAYER, OVER, Phase, copy_rows
from tokaido_env.study.agent_values import check_has_values, game_values, position_values
from tokaido_env.study.regret import BLUNDER, ERROR
from tokaido_env.trajectory import Trajectory

Floats = npt.NDArray[np.float64]

CHANCE_SAMPLES = 8
"""Samples of chance after each of two compared actions; not tuned."""

MARKS = {"blunder": BLUNDER / 2, "mistake": ERROR / 2, "inaccuracy": ERROR / 4}
"""The least loss of win probability of each mark, worst first; the loss's interval must exclude 0.

The first two are the thresholds of GNU Backgammon's "very bad" and "bad"."""

OPEN = 0.1
"""A game is open while both players win with at least this probability.

In decided games decisions can lose little, and the opponent's strength decides how many there
are."""

_MIN_SAMPLES = 4  # below, Student's interval is too wide to mark anything
_CHANCE_NODES = 4096  # expanded at once, which bounds memory


class PlayerTotals(NamedTuple):
    """Totals of a player's decisions and luck in one game.

    Attributes:
        choices: number of decisions with two or more legal actions.
        loss: win probability that all of them lost.
        open_choices: number of those while both could win (`OPEN`).
        open_loss: win probability that these lost.
        agreed: number of choices that the judge prefers too.
        marks: number of each of `MARKS`, in their order.
        luck: change of the win probability by chance.
        result: 1, ½ or 0; in an unfinished game the expected result.
    """

    choices: int
    loss: float
    open_choices: int
    open_loss: float
    agreed: int
    marks: tuple[int, ...]
    luck: float
    result: float

    def to_dict(self) -> dict[str, Any]:
        """Return the totals as JSON types, rounded.

        `loss`, `open_loss` and `agreed` are per choice, None without choices; each of `MARKS` has
        a key with its number, and `result_less_luck` is added.
        """
        return {
            "choices": self.choices,
            "loss": _rounded(self.loss / self.choices) if self.choices else None,
            "open_choices": self.open_choices,
            "open_loss": _rounded(self.open_loss / self.open_choices)
            if self.open_choices
            else None,
            "agreed": _rounded(self.agreed / self.choices) if self.choices else None,
            **dict(zip(MARKS, self.marks, strict=True)),
            "luck": _rounded(self.luck),
            "result": self.result,
            "result_less_luck": _rounded(self.result - self.luck),
        }


@dataclass(frozen=True)
class Review:
    """The review of games, with a row for each row of their trajectory.

    Attributes:
        trajectory: the games.
        judge: spec of the agent that judged decisions.
        value_agent: spec of the agent that valued chance.
        chance_samples: the number after each compared action.
        values: float64 (rows,), player_0's win probability before each event, and the result in
            the last row of a game; a shared victory is half a win.
        luck: float64 (rows,), the increase of `values` by each chance event, 0 elsewhere.
        best: int64 (rows,), the action that the judge would play; -1 where there was no choice.
        loss: float64 (rows,), the win probability that the decision cost its player: 0 for the
            preferred action, NaN where there was no choice.
        error: float64 (rows,), half the width of the loss's 95 % interval.
    """

    trajectory: Trajectory
    judge: str
    value_agent: str
    chance_samples: int
    values: Floats
    luck: Floats
    best: Numbers
    loss: Floats
    error: Floats

    def progress(self) -> tuple[int, int]:
        """Return the number of judged decisions, and of all that there are to judge."""
        return int((self.best != NO_ACTION).sum()), len(_choice_rows(self.trajectory))

    def choices(self, game: int = 0) -> Numbers:
        """Return the rows of a game in which there was a choice, int64 (k,)."""
        rows = self.trajectory.rows(game)
        return np.asarray(rows.start + np.flatnonzero(self.best[rows] != NO_ACTION))

    def is_open(self, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Return whether both players could still win (`OPEN`) at rows, int64 (k,): bool (k,)."""
        return np.asarray(np.abs(self.values[rows] - 0.5) <= 0.5 - OPEN)

    def with_forfeit(self, seat: int) -> Review:
        """Return the review of one game that a seat forfeited, which is the game's result."""
        return replace(self, values=np.append(self.values[:-1], float(seat)))

    def mark(self, row: int) -> str | None:
        """Return the mark, one of `MARKS`, of the decision in a row; None if it has none."""
        if not self.loss[row] - self.error[row] > 0:
            return None
        return next((name for name, least in MARKS.items() if self.loss[row] >= least), None)

    def totals(self, game: int = 0) -> list[dict[str, Any]]:
        """Return both players' totals of a game as JSON types, as of `PlayerTotals.to_dict`."""
        return [totals.to_dict() for totals in self.player_totals(game)]

    def player_totals(self, game: int = 0) -> tuple[PlayerTotals, PlayerTotals]:
        """Return player_0's and player_1's totals of a game, by its index."""
        rows = self.trajectory.rows(game)
        luck, end = float(self.luck[rows].sum()), float(self.values[rows][-1])
        chosen = self.choices(game)
        movers = self.trajectory.movers[chosen]
        return (
            self._totals_of(chosen[movers == 0], end, luck),
            self._totals_of(chosen[movers == 1], 1 - end, -luck),
        )

    def _totals_of(self, rows: Numbers, result: float, luck: float) -> PlayerTotals:
        losses, is_open = self.loss[rows], self.is_open(rows)
        marks = [self.mark(row) for row in rows.tolist()]
        return PlayerTotals(
            *(len(rows), float(losses.sum()), int(is_open.sum()), float(losses[is_open].sum())),
            int((self.best[rows] == self.trajectory.events[rows]).sum()),
            tuple(marks.count(name) for name in MARKS),
            *(luck, result),
        )


def review(
    trajectory: Trajectory,
    judge: Agent,
    value_agent: Agent,
    chance_samples: int = CHANCE_SAMPLES,
    seed: int = 0,
) -> Review:
    """Review games.

    Args:
        trajectory: the games, finished or not.
        judge: judges decisions; an agent that gives values, best one that searches.
        value_agent: values chance; a fast agent that gives values.
        chance_samples: after each of two compared actions, from 4.
        seed: of these samples and of the agents' random bits; same seed, same review.

    Raises:
        ValueError: for fewer samples, or an agent that gives no values.
        AgentFailed: if an agent fails.
    """
    everything = len(trajectory.events)
    *_, whole = review_parts(trajectory, judge, value_agent, chance_samples, seed, everything)
    return whole


def review_parts(
    trajectory: Trajectory,
    judge: Agent,
    value_agent: Agent,
    chance_samples: int = CHANCE_SAMPLES,
    seed: int = 0,
    rows_at_once: int = 8,
) -> Iterator[Review]:
    """Yield the review of games as it grows: first without judged decisions, last the whole.

    Args:
        trajectory: the games, finished or not.
        judge: judges decisions; an agent that gives values, best one that searches.
        value_agent: values chance; a fast agent that gives values.
        chance_samples: after each of two compared actions, from 4.
        seed: of these samples and of the agents' random bits.
        rows_at_once: the number of decisions that each part adds.

    Raises:
        ValueError: for fewer samples, or an agent that gives no values.
        AgentFailed: if an agent fails.
    """
    check_chance_samples(chance_samples)
    judge, value_agent = as_agents(judge, value_agent)
    for agent in (judge, value_agent):
        check_has_values(agent, trajectory.board)
    values = _win_probabilities(trajectory, value_agent, seed)
    luck = np.zeros(len(values))
    chance = np.flatnonzero((trajectory.movers == NO_PLAYER) & (trajectory.events != NO_ACTION))
    luck[chance] = values[chance + 1] - values[chance]
    best = np.full(len(values), NO_ACTION)
    loss, error = np.full(len(values), np.nan), np.full(len(values), np.nan)
    specs = judge.spec, value_agent.spec
    rows = _choice_rows(trajectory)
    for some in [rows[:0], *(rows[part] for part in chunked(np.arange(len(rows)), rows_at_once))]:
        best[some] = _preferred_actions(trajectory, judge, some, seed)
        loss[some] = error[some] = 0.0
        other = some[best[some] != trajectory.events[some]]
        samples = _sampled_losses(trajectory, judge, other, best[other], chance_samples, seed)
        loss[other], error[other] = samples.mean(axis=1), interval_half_width(samples)
        found = best.copy(), loss.copy(), error.copy()
        yield Review(trajectory, *specs, chance_samples, values, luck, *found)


def _choice_rows(trajectory: Trajectory) -> Numbers:
    """Return the rows of decisions with two or more legal actions, int64 (k,)."""
    legal = trajectory.legal
    return np.flatnonzero(trajectory.decided & (legal & (legal - np.uint64(1)) != 0))


def check_chance_samples(chance_samples: int) -> None:
    """Raise `ValueError` for fewer than 4 samples, which intervals need."""
    if chance_samples < _MIN_SAMPLES:
        raise ValueError(f"chance_samples: expected {_MIN_SAMPLES} or more, got {chance_samples}")


# Decisions


def _preferred_actions(trajectory: Trajectory, judge: Agent, rows: Numbers, seed: int) -> Numbers:
    """Return the action that a judge would play in each row, int64 (k,)."""
    chosen = np.empty(len(rows), np.int64)
    for some in chunked(np.arange(len(rows)), judge.games_at_once):
        part = rows[some]
        states = copy_rows(trajectory.states, part)
        with naming_agent(judge):
            chosen[some] = judge.act(
                trajectory.board.record, states, trajectory.legal[part], _keys(seed, part)
            )
    return chosen


def _sampled_losses(
    trajectory: Trajectory, judge: Agent, rows: Numbers, best: Numbers, samples: int, seed: int
) -> Floats:
    """Return the losses of the played actions against others, float64 (k, samples).

    Both actions have the same luck after them.
    """
    seeds = _seeds(seed, np.add.outer(rows * samples, np.arange(samples)).reshape(-1))
    states, shared = copy_rows(trajectory.states, rows), seeds.reshape(-1, samples)
    of_best, of_played = (
        values_after_actions(judge, trajectory.board, states, actions, shared)
        for actions in (best, trajectory.events[rows].astype(np.int64))
    )
    sign = 1 - 2 * trajectory.movers[rows].astype(np.float64)[:, None]
    return np.asarray((of_best - of_played) * sign / 2)


def interval_half_width(samples: Floats) -> Floats:
    """Return half the width of the 95 % interval of each row's mean, float64 (k,).

    Args:
        samples: float64 (k, samples).
    """
    count = samples.shape[1]
    return np.asarray(student_t_quantile(count - 1) * samples.std(axis=1, ddof=1) / count**0.5)


def values_after_actions(
    judge: Agent, board: Board, states: States, actions: Numbers, seeds: Numbers
) -> Floats:
    """Return player_0's values after actions and the chance that follows, float64 (k, samples).

    Args:
        judge: gives the values at the next decision.
        board: of the positions.
        states: `STATE` (k,), each at a decision.
        actions: int64 (k,), legal there.
        seeds: int64 (k, samples), of the chance after the actions.

    Raises:
        AgentFailed: if the agent fails.
    """
    samples = seeds.shape[1]
    out = np.empty(seeds.shape)
    for some in chunked(np.arange(len(states)), max(1, judge.games_at_once // samples)):
        batch = Batch(len(some) * samples, board, observation=None, autoreset=False)
        batch.reset(seeds[some].reshape(-1), copy_rows(states, np.repeat(some, samples)))
        batch.advance(batch.all_games, np.repeat(actions[some], samples))
        out[some] = game_values(judge, board, batch).reshape(-1, samples)
    return out


# Chance


def _win_probabilities(trajectory: Trajectory, agent: Agent, seed: int) -> Floats:
    """Return player_0's win probability in each row; at chance the mean by exact odds."""
    board, phases = trajectory.board, trajectory.states["phase"]
    values = np.empty(len(phases))
    decisions = np.flatnonzero(trajectory.legal)
    states, legal = copy_rows(trajectory.states, decisions), trajectory.legal[decisions]
    values[decisions] = position_values(agent, board, states, legal, _keys(seed, decisions))
    over = np.flatnonzero(phases == OVER)
    if len(over):
        ended = _explicit_batch(board, copy_rows(trajectory.states, over))
        values[over] = ended.rewards(ended.all_games)[:, 0]
    chance = np.flatnonzero(np.isin(phases, [*CHANCE_PHASES]) & (phases != Phase.SETUP))
    for some in chunked(chance, _CHANCE_NODES):
        values[some] = _chance_node_values(board, agent, copy_rows(trajectory.states, some), seed)
    for row in np.flatnonzero(phases == Phase.SETUP)[::-1].tolist():
        values[row] = values[row + 1] if trajectory.events[row] != NO_ACTION else 0.0
    return (1 + values) / 2


def _chance_node_values(board: Board, agent: Agent, states: States, seed: int) -> Floats:
    """Return player_0's values at chance nodes: means over all outcomes by their odds."""
    means = np.zeros(len(states))
    for origin, odds, after, done in _successors(board, states):
        values = after.rewards(done)[:, 0].astype(np.float64)
        decisions = np.flatnonzero(after.legal[done])
        games = done[decisions]
        positions = copy_rows(after.states, games), after.legal[games]
        keys = _keys(seed, origin[decisions])
        values[decisions] = position_values(agent, board, *positions, keys)
        means += np.bincount(origin, odds * values, len(means))
    return means


def _successors(board: Board, states: States) -> Iterator[tuple[Numbers, Floats, Batch, Numbers]]:
    """Yield the decisions and ends that follow chance nodes.

    Each item has, for k of them: the index of the chance node and the probability, both (k,); a
    batch; and the indices of the k games in it.
    """
    origin, odds = np.arange(len(states)), np.ones(len(states))
    while len(states):
        batch = _explicit_batch(board, states)
        weights = batch.outcome_weights()
        at, outcome = np.nonzero(weights)
        odds = odds[at] * weights[at, outcome] / weights.sum(axis=1)[at]
        origin = origin[at]
        after = _explicit_batch(board, copy_rows(states, at))
        after.advance(after.all_games, outcome)
        at_chance = np.isin(after.states["phase"], [*CHANCE_PHASES])
        done, rest = np.flatnonzero(~at_chance), np.flatnonzero(at_chance)
        yield origin[done], odds[done], after, done
        origin, odds, states = origin[rest], odds[rest], copy_rows(after.states, rest)


def _explicit_batch(board: Board, states: States) -> Batch:
    """Return positions as games with explicit chance."""
    batch = Batch(len(states), board, chance="explicit", observation=None, autoreset=False)
    batch.reset(0, states)
    return batch


def _seeds(seed: int, numbers: Numbers) -> Numbers:
    return np.array([arena_seed(seed, int(number)) for number in numbers], np.int64)


def _keys(seed: int, numbers: Numbers) -> npt.NDArray[np.uint64]:
    return _seeds(seed, numbers).astype(np.uint64)


def _rounded(number: float) -> float:
    return round(float(number), 6)
