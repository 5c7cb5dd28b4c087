"""Reviews of played games: what each decision lost, and what chance gave, in win probability.

Decisions are judged by a search. Where it prefers another action than the one played, both are
judged again with equal effort and the same luck: each is played, chance goes on by seeds that both
share, and the search says what can be expected then. The loss is the mean of the differences over
these draws, with its 95 % interval. That luck is not the one by which the search preferred, so the
loss of a good decision is nothing on average (see `regret` on the winner's curse).

Chance is judged by a value that is quick: that of a position at chance is the mean over all
outcomes by their exact odds, so what chance gives has mean zero whatever the value is worth. With
what it gave taken off, the result is what the players' decisions were worth
(`arena.variance_reduction`). The set-up counts as neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import chunked
from tokaido_env.arena.game_runner import Numbers, naming_agent
from tokaido_env.arena.intervals import student_t_quantile
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import LABELS
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import CHANCE_PHASES, OVER, Phase, copy_rows
from tokaido_env.study.agent_values import check_tells, expected_of, worth_of
from tokaido_env.study.regret import BLUNDER, ERROR
from tokaido_env.trajectory import Trajectory

Floats = npt.NDArray[np.float64]
States = npt.NDArray[np.void]

DRAWS = 8
"""How often chance goes on behind each of two actions that are compared."""

MARKS = {"blunder": BLUNDER / 2, "mistake": ERROR / 2, "inaccuracy": ERROR / 4}
"""From what loss of win probability a decision is called so, if its interval excludes that nothing
was lost; the worst first. The first two are GNU Backgammon's very bad and bad."""

OPEN = 0.1
"""A game is open while both can win with at least this probability. Where one cannot, decisions
have little to lose, and whether it comes to that depends on the opponent."""

_NOTHING = -1
_FEWEST_DRAWS = 4
_AT_ONCE = 4096  # chance nodes that are looked behind at once


class Sums(NamedTuple):
    """What the decisions of a player, and chance, came to in a game."""

    choices: int
    loss: float  # of all of them
    open_choices: int
    open_loss: float
    agreed: int
    marks: tuple[int, ...]  # in the order of `MARKS`
    luck: float
    result: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types, with means instead of sums."""
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
    """What was found of games, a row for each event, as in their trajectory.

    Attributes:
        played: the games.
        judge, values_by: specs of who judged decisions, and chance.
        draws: behind each action that was compared.
        values: float64 (rows,), the probability that player_0 wins before an event, in the last
            row of a game what became of it; a shared victory is half a win.
        luck: float64 (rows,), by how much an event of chance raised it, 0 elsewhere.
        best: int64 (rows,), the action that the judge prefers; -1 where there was no choice.
        loss: float64 (rows,), the win probability that the choice cost who decided: 0 if it is the
            preferred one, NaN where there was no choice.
        error: float64 (rows,), half the width of its 95 % interval.
    """

    played: Trajectory
    judge: str
    values_by: str
    draws: int
    values: Floats
    luck: Floats
    best: Numbers
    loss: Floats
    error: Floats

    def choices(self, game: int = 0) -> Numbers:
        """Return the rows of a game in which there was a choice, int64 (k,)."""
        rows = self.played.rows(game)
        return np.asarray(rows.start + np.flatnonzero(self.best[rows] != _NOTHING))

    def is_open(self, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Return in which rows the game was open, see `OPEN`: bool (k,)."""
        return np.asarray(np.abs(self.values[rows] - 0.5) <= 0.5 - OPEN)

    def mark(self, row: int) -> str | None:
        """Return what a decision is called, one of `MARKS`, or None."""
        if not self.loss[row] - self.error[row] > 0:
            return None
        return next((name for name, least in MARKS.items() if self.loss[row] >= least), None)

    def totals(self, game: int = 0) -> list[dict[str, Any]]:
        """Return for each player what the decisions and chance came to, as JSON types."""
        return [sums.to_dict() for sums in self.sums(game)]

    def sums(self, game: int = 0) -> tuple[Sums, Sums]:
        """Return for each player what the decisions and chance came to."""
        rows = self.played.rows(game)
        luck, end = float(self.luck[rows].sum()), float(self.values[rows][-1])
        chosen = self.choices(game)
        movers = self.played.movers[chosen]
        return (
            self._sums_of(chosen[movers == 0], end, luck),
            self._sums_of(chosen[movers == 1], 1 - end, -luck),
        )

    def _sums_of(self, rows: Numbers, result: float, luck: float) -> Sums:
        losses, is_open = self.loss[rows], self.is_open(rows)
        marks = [self.mark(row) for row in rows.tolist()]
        return Sums(
            *(len(rows), float(losses.sum()), int(is_open.sum()), float(losses[is_open].sum())),
            int((self.best[rows] == self.played.events[rows]).sum()),
            tuple(marks.count(name) for name in MARKS),
            *(luck, result),
        )

    def to_dict(self, game: int = 0) -> dict[str, Any]:
        """Return what was found of a game as JSON types."""
        rows, labels = self.played.rows(game), self.played.labels(game)
        events = [
            self._event(row, label)
            for row, label in zip(range(rows.start, rows.stop - 1), labels, strict=True)
        ]
        return {
            **{"judge": self.judge, "values_by": self.values_by, "draws": self.draws},
            **{"players": self.totals(game), "events": events},
        }

    def _event(self, row: int, label: str) -> dict[str, Any]:
        told: dict[str, Any] = {"event": label, "wins": _rounded(self.values[row])}
        if self.played.movers[row] == _NOTHING:
            return told | {"luck": _rounded(self.luck[row])}
        told["player"] = int(self.played.movers[row])
        if self.best[row] != _NOTHING:
            told["best"] = LABELS[self.best[row]]
            told |= {"loss": _rounded(self.loss[row]), "error": _rounded(self.error[row])}
            told["mark"] = self.mark(row)
        return told


def review(
    played: Trajectory, judge: Agent, values_by: Agent, draws: int = DRAWS, seed: int = 0
) -> Review:
    """Review games.

    Args:
        played: whole or unfinished.
        judge: of decisions: an agent that tells what results it expects, by search best.
        values_by: of chance: one that tells it quickly.
        draws: of chance behind each of two actions that are compared, from 4.
        seed: of these draws and of what agents draw: same seed, same review.

    Raises:
        ValueError: for fewer draws, or an agent that does not tell what results it expects.
        AgentFailed: if an agent fails.
    """
    check_draws(draws)
    for agent in (judge, values_by):
        check_tells(agent, played.board)
    values = _values_of(played, values_by, seed)
    luck = np.zeros(len(values))
    chance = np.flatnonzero((played.movers == _NOTHING) & (played.events != _NOTHING))
    luck[chance] = values[chance + 1] - values[chance]
    legal = played.legal
    rows = np.flatnonzero(played.decided & (legal & (legal - np.uint64(1)) != 0))
    best = np.full(len(values), _NOTHING)
    loss, error = np.full(len(values), np.nan), np.full(len(values), np.nan)
    positions = _Positions(copy_rows(played.states, rows), legal[rows], rows)
    best[rows] = _preferred(played.board, judge, positions, seed)
    loss[rows] = error[rows] = 0.0
    other = rows[best[rows] != played.events[rows]]
    compared = _compare(played, judge, other, best[other], draws, seed)
    loss[other], error[other] = compared.loss, compared.error
    specs = judge.spec, values_by.spec
    return Review(played, *specs, draws, values, luck, best, loss, error)


def check_draws(draws: int) -> None:
    """Raise `ValueError` for fewer draws than intervals need."""
    if draws < _FEWEST_DRAWS:
        raise ValueError(f"draws: expected {_FEWEST_DRAWS} or more, got {draws}")


# Decisions


class _Positions(NamedTuple):
    """Positions with a decision to take, and the numbers that random bits follow from."""

    states: States
    legal: npt.NDArray[np.uint64]
    numbers: Numbers


class _Compared(NamedTuple):
    loss: Floats
    error: Floats


def _preferred(board: Board, judge: Agent, positions: _Positions, seed: int) -> Numbers:
    """Return the action that a judge prefers in each position."""
    chosen = np.empty(len(positions.legal), np.int64)
    for some in chunked(np.arange(len(chosen)), judge.games_at_once):
        asked = copy_rows(positions.states, some), positions.legal[some]
        with naming_agent(judge):
            shares, _ = judge.judge(board.record, *asked, _keys(seed, positions.numbers[some]))
        chosen[some] = shares.argmax(axis=1)
    return chosen


def _compare(
    played: Trajectory, judge: Agent, rows: Numbers, best: Numbers, draws: int, seed: int
) -> _Compared:
    """Return what the actions that were played lose against others, with the same luck behind."""
    seeds = _seeds(seed, np.add.outer(rows * draws, np.arange(draws)).reshape(-1))
    states, shared = copy_rows(played.states, rows), seeds.reshape(-1, draws)
    expected = [
        expected_behind(judge, played.board, states, actions, shared)
        for actions in (best, played.events[rows].astype(np.int64))
    ]
    sign = 1 - 2 * played.movers[rows].astype(np.float64)[:, None]
    losses = (expected[0] - expected[1]) * sign / 2
    return _Compared(losses.mean(axis=1), half_width(losses))


def half_width(draws: Floats) -> Floats:
    """Return half the width of the 95 % interval of the mean of each row."""
    count = draws.shape[1]
    return np.asarray(student_t_quantile(count - 1) * draws.std(axis=1, ddof=1) / count**0.5)


def expected_behind(
    judge: Agent, board: Board, states: States, actions: Numbers, seeds: Numbers
) -> Floats:
    """Return what results player_0 can expect behind actions, float64 (k, draws).

    Each is played, chance goes on by seeds, and an agent is asked there.

    Args:
        judge: that is asked.
        board: of the positions.
        states: `STATE` (k,), each with a decision to take.
        actions: int64 (k,), legal there.
        seeds: int64 (k, draws), of what chance brings then.

    Raises:
        AgentFailed: if the agent fails.
    """
    draws = seeds.shape[1]
    out = np.empty(seeds.shape)
    for some in chunked(np.arange(len(states)), max(1, judge.games_at_once // draws)):
        batch = Batch(len(some) * draws, board, observation=None, autoreset=False)
        batch.reset(seeds[some].reshape(-1), copy_rows(states, np.repeat(some, draws)))
        batch.advance(batch.all_games, np.repeat(actions[some], draws))
        out[some] = worth_of(judge, board, batch).reshape(-1, draws)
    return out


# Chance


def _values_of(played: Trajectory, agent: Agent, seed: int) -> Floats:
    """Return the probability that player_0 wins in each row, at chance the mean by exact odds."""
    values = np.empty(len(played.states))
    decisions = np.flatnonzero(played.legal)
    keys = _keys(seed, decisions)
    states, legal = copy_rows(played.states, decisions), played.legal[decisions]
    values[decisions] = expected_of(agent, played.board, states, legal, keys)
    over = np.flatnonzero(played.states["phase"] == OVER)
    if len(over):
        ended = _explicit(played.board, copy_rows(played.states, over))
        values[over] = ended.rewards(ended.all_games)[:, 0]
    phases = played.states["phase"]
    chance = np.flatnonzero(np.isin(phases, [*CHANCE_PHASES]) & (phases != Phase.SETUP))
    for some in chunked(chance, _AT_ONCE):
        values[some] = _means(played.board, agent, copy_rows(played.states, some), seed)
    for row in np.flatnonzero(phases == Phase.SETUP)[::-1].tolist():
        values[row] = values[row + 1] if played.events[row] != _NOTHING else 0.0
    return (1 + values) / 2


def _means(board: Board, agent: Agent, states: States, seed: int) -> Floats:
    """Return what results player_0 can expect at chance, by the odds of all that may come."""
    means = np.zeros(len(states))
    for origin, odds, after, done in _futures(board, states):
        values = after.rewards(done)[:, 0].astype(np.float64)
        decides = np.flatnonzero(after.legal[done])
        there = done[decides]
        positions = copy_rows(after.states, there), after.legal[there]
        keys = _keys(seed, origin[decides])
        values[decides] = expected_of(agent, board, *positions, keys)
        means += np.bincount(origin, odds * values, len(means))
    return means


def _futures(board: Board, states: States) -> Iterator[tuple[Numbers, Floats, Batch, Numbers]]:
    """Yield the decisions and ends that chance may lead to: whence, with what odds, and where.

    Where is a batch, and the games in it that have come to one.
    """
    origin, odds = np.arange(len(states)), np.ones(len(states))
    while len(states):
        batch = _explicit(board, states)
        weights = batch.outcome_weights()
        at, outcome = np.nonzero(weights)
        odds = odds[at] * weights[at, outcome] / weights.sum(axis=1)[at]
        origin = origin[at]
        after = _explicit(board, copy_rows(states, at))
        after.advance(after.all_games, outcome)
        goes_on = np.isin(after.states["phase"], [*CHANCE_PHASES])
        done, still = np.flatnonzero(~goes_on), np.flatnonzero(goes_on)
        yield origin[done], odds[done], after, done
        origin, odds, states = origin[still], odds[still], copy_rows(after.states, still)


def _explicit(board: Board, states: States) -> Batch:
    """Return positions as games whose chance is chosen."""
    batch = Batch(len(states), board, chance="explicit", observation=None, autoreset=False)
    batch.reset(0, states)
    return batch


# Asking


def _seeds(seed: int, numbers: Numbers) -> Numbers:
    return np.array([arena_seed(seed, int(number)) for number in numbers], np.int64)


def _keys(seed: int, numbers: Numbers) -> npt.NDArray[np.uint64]:
    return _seeds(seed, numbers).astype(np.uint64)


def _rounded(number: float) -> float:
    return round(float(number), 6)
