"""A match as data: what happened in each game, and what follows from it for two agents."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.boards.board import Board
from tokaido_env.core.jit import allocator, int64, kernel, parallel
from tokaido_env.core.luck import LUCK, begin_luck, key_of_seed, settle
from tokaido_env.core.rules import Row, apply, reward, score
from tokaido_env.core.state import LAST_GARDEN, LAST_SLAB, LAST_TEMPLE, PAINTINGS, start

POINTS = ("faith", "commerce", "culture", "total")
TRIGGERS = ("temple", "garden", "gold", "paintings")
Z95 = 1.959963984540054

# One game. What belongs to an agent stands as [a, b], whatever their seats.
GAME = np.dtype(
    [
        ("seed", "<i8"),
        ("seat_of_a", "i1"),
        ("result", "<f8"),  # of a: 1 for a win, 0.5 for a shared victory or the cap, 0 for a loss
        ("luck", "<f8"),  # how far chance favoured a, in results (`variance`); 0 until counted
        ("points", "<i2", (2, 3)),  # faith, commerce, culture
        ("coins", "i1", 2),
        ("triggers", "i1", (2, 4)),  # who had pulled which of TRIGGERS (R9.1)
        ("end", "i1"),  # index into `state.ENDS`
        ("rounds", "<i2"),
        ("decisions", "<i4"),
    ]
)


class Adjusted(NamedTuple):
    """A score with luck taken off: as if more games had been played.

    Attributes:
        score: of `a`, within [0, 1].
        interval: of 95 %.
        factor: how many times as many pairs would give the same interval without it.
    """

    score: float
    interval: tuple[float, float]
    factor: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {
            "score": round(self.score, 6),
            "ci95": [round(bound, 6) for bound in self.interval],
            "factor": round(self.factor, 4),
        }


@dataclass(frozen=True)
class Match:
    """The games of agent `a` against agent `b`.

    Attributes:
        a: spec of one agent.
        b: spec of the other.
        games: `GAME` (pairs, 2): the same luck twice, first with `a` as player_0.
        actions: int8 (pairs, 2, longest), the decisions of each game, -1 after its last; with the
            seed they are the whole game.
    """

    a: str
    b: str
    games: npt.NDArray[np.void]
    actions: npt.NDArray[np.int8]

    @property
    def results(self) -> npt.NDArray[np.float64]:
        """The results of `a`, float64 (pairs, 2)."""
        results: npt.NDArray[np.float64] = self.games["result"]
        return results

    @property
    def score(self) -> float:
        """The share of games that `a` won, half of the draws included."""
        return float(self.results.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the score."""
        return score_interval(self.results)

    @property
    def adjusted(self) -> Adjusted | None:
        """The score with luck taken off, None where nothing is left to adjust."""
        return adjusted_score(self.results, self.games["luck"])

    @property
    def pentanomial(self) -> npt.NDArray[np.int64]:
        """How many pairs gave `a` 0, 0.5, 1, 1.5 and 2 of two games: int64 (5,)."""
        twice = np.rint(2 * self.results.sum(axis=1)).astype(np.int64)
        return np.bincount(twice, minlength=5)

    def mean_points(self, agent: int) -> dict[str, float]:
        """Return the mean points of `a` (0) or `b` (1) by character, and their total."""
        means = [float(x) for x in self.games["points"][:, :, agent].mean(axis=(0, 1))]
        return dict(zip(POINTS, [*means, sum(means)], strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the match as plain JSON types, luck left out."""
        low, high = self.interval
        return {
            "a": self.a,
            "b": self.b,
            "games": int(self.results.size),
            "wins": int((self.results == 1.0).sum()),
            "draws": int((self.results == 0.5).sum()),
            "losses": int((self.results == 0.0).sum()),
            "score": round(self.score, 6),
            "ci95": [round(low, 6), round(high, 6)],
            "mean": {
                name: {key: round(value, 4) for key, value in self.mean_points(i).items()}
                for i, name in enumerate("ab")
            },
        }


def score_interval(results: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired results, (pairs, 2) within [0, 1].

    Wilson's interval (1927), which stays within [0, 1] and is honest at 0 and 1, with the effective
    number of independent games that the spread between pairs shows (Kish 1965), from one to four a
    pair.
    """
    pairs = len(results)
    p = float(results.mean())
    variance = float(results.mean(axis=1).var(ddof=1)) / pairs if pairs > 1 else 0.0
    n = p * (1 - p) / variance if variance > 0 else pairs
    n = min(max(n, pairs), 4 * pairs)
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def adjusted_score(
    results: npt.NDArray[np.float64], luck: npt.NDArray[np.float64]
) -> Adjusted | None:
    """Return the mean of paired results with luck as a control variate.

    The multiple of the luck that is taken off is estimated from the same pairs, so that luck which
    says little does no harm (Lavenberg and Welch 1981, "A Perspective on the Use of Control
    Variables to Increase the Efficiency of Monte Carlo Simulations").

    Args:
        results: float64 (pairs, 2), within [0, 1].
        luck: float64 (pairs, 2), of mean zero, in results.

    Returns:
        None if all pairs ended alike, luck is not known, or there are fewer than ten pairs.
    """
    each, lucks = results.mean(axis=1), luck.mean(axis=1)
    pairs = len(each)
    if pairs < 10 or each.var() == 0 or lucks.var() == 0:
        return None
    multiple = float(np.cov(each, lucks)[0, 1] / lucks.var(ddof=1))
    rest = each - multiple * lucks
    variance = float(rest.var(ddof=2))  # two numbers were estimated
    score, half = float(rest.mean()), Z95 * sqrt(variance / pairs)
    low, high = (min(max(x, 0.0), 1.0) for x in (score - half, score + half))
    return Adjusted(min(max(score, 0.0), 1.0), (low, high), float(each.var(ddof=1)) / variance)


def replay_games(
    board: Board,
    seeds: npt.NDArray[np.int64],
    seats_of_a: npt.NDArray[np.int8],
    actions: npt.NDArray[np.int8],
) -> npt.NDArray[np.void]:
    """Play finished games through and return what happened in them.

    Args:
        board: of all games.
        seeds: int64 (n,), of the games.
        seats_of_a: int8 (n,), where agent `a` sat.
        actions: int8 (n, longest), as in `Match`; all legal.

    Returns:
        `GAME` (n,).
    """
    games = np.zeros(len(seeds), GAME)
    games["seed"] = seeds
    games["seat_of_a"] = seats_of_a
    _replay(games, board.record, np.repeat(start(board), len(seeds)), actions)
    return games


@parallel
def _replay(games: Any, boards: Any, states: Any, actions: Any) -> None:
    """Play each game through in its row of `states`, which begin at the set-up."""
    for i in prange(len(games)):
        _replay_game(boards[0], states[i], actions[i], games[i])


@allocator
def _replay_game(board: Row, s: Row, actions: Any, game: Row) -> None:
    luck = np.empty(1, LUCK)[0]
    begin_luck(luck, key_of_seed(int64(game["seed"])))
    mask = settle(board, s, luck, np.uint64(0))
    decisions = 0
    while mask != np.uint64(0):
        mask = settle(board, s, luck, apply(board, s, int64(actions[decisions])))
        decisions += 1
    game["decisions"] = decisions
    _note_end(board, s, game)


@kernel
def _note_end(board: Row, s: Row, game: Row) -> None:
    seat_of_a = int64(game["seat_of_a"])
    game["result"] = (reward(board, s, seat_of_a, False) + 1.0) / 2.0
    game["end"] = s["end"]
    game["rounds"] = s["round"]
    for agent in range(2):
        seat = seat_of_a ^ agent
        faith, commerce, culture = score(board, s, seat)
        game["points"][agent, 0] = faith
        game["points"][agent, 1] = commerce
        game["points"][agent, 2] = culture
        game["coins"][agent] = s["coins"][seat]
        game["triggers"][agent, 0] = int(s["temple"][seat]) == LAST_TEMPLE
        game["triggers"][agent, 1] = int(s["garden"][seat]) == LAST_GARDEN
        game["triggers"][agent, 2] = int(s["gold"][seat]) == LAST_SLAB
        game["triggers"][agent, 3] = int(s["gifted"][seat]) == PAINTINGS
