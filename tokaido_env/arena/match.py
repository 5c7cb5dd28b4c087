"""A match as data: what happened in each game, and what follows from it for two agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import AdjustedScore, adjusted_score, score_interval
from tokaido_env.core.constants import LAST_GARDEN, LAST_SLAB, LAST_TEMPLE, PAINTINGS, Row
from tokaido_env.core.jit import entry, int64, kernel
from tokaido_env.core.rules import reward, score
from tokaido_env.core.state import put_rows
from tokaido_env.trajectory import Trajectory

SCORE_KEYS = ("faith", "commerce", "culture", "total")
MAX_GAMES = 10_000_000  # of a match: it keeps the actions of all, about 100 bytes a game
TRIGGERS = ("temple", "garden", "gold", "paintings")

# One game. What belongs to an agent stands as [a, b], whatever their seats.
GAME = np.dtype(
    [
        ("seed", "<i8"),
        ("board", "<i4"),  # index into the pool that the match is played on
        ("seat_of_a", "i1"),
        ("result", "<f8"),  # of a: 1 for a win, 0.5 for a shared victory or the cap, 0 for a loss
        ("luck", "<f8"),  # how far chance favoured a, in results (`variance`); 0 until counted
        ("points", "<i2", (2, 3)),  # faith, commerce, culture
        ("coins", "i1", 2),
        ("triggers", "i1", (2, 4)),  # who had pulled which of TRIGGERS (R9.1)
        ("end", "i1"),  # index into `state.ENDS`
        ("rounds", "<i2"),
        ("decisions", "<i4"),
        ("forfeit", "i1"),  # why who lost it failed: 1 + index into `record.REASONS`; 0: it did not
    ]
)


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
    def adjusted(self) -> AdjustedScore | None:
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
        return dict(zip(SCORE_KEYS, [*means, sum(means)], strict=True))

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


def unplayed_games(
    seeds: npt.NDArray[np.int64], seats_of_a: npt.ArrayLike, which: npt.ArrayLike
) -> npt.NDArray[np.void]:
    """Return games that are not played yet, `GAME` (n,): seed, seat of `a` and board alone."""
    games = np.zeros(len(seeds), GAME)
    games["seed"], games["seat_of_a"], games["board"] = seeds, seats_of_a, which
    return games


def store_played(
    games: npt.NDArray[np.void], some: npt.NDArray[np.int64], played: Trajectory
) -> None:
    """Write to `GAME` (n,) what happened in those of its games that were played through."""
    part = games[some]
    part["decisions"] = np.bincount(played.games[played.decided], minlength=len(played))
    store_ends(part, played.board.record, np.zeros(len(part), np.int64), played.ends)
    put_rows(games, some, part)


@entry
def store_ends(games: Any, boards: Any, which: Any, states: Any) -> None:
    """Write what the positions at the end of games say of them.

    Args:
        games: `GAME` (n,).
        boards: `BOARD` (b,).
        which: int64 (n,), the board of each game.
        states: `STATE` (n,), its last position.
    """
    for i in range(len(games)):
        _note_end(boards[which[i]], states[i], games[i])


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
