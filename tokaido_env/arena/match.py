"""Results of a match: one row for each game, and the score of agent `a` with its interval."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import Estimate, adjusted_score, score_interval
from tokaido_env.core.constants import LAST_GARDEN, LAST_SLAB, LAST_TEMPLE, PAINTINGS, Row
from tokaido_env.core.jit import entry, int64, kernel
from tokaido_env.core.rules import reward, score

SCORE_KEYS = ("faith", "commerce", "culture", "total")
MAX_GAMES = 10_000_000  # of a match, which keeps all actions: about 100 bytes a game
TRIGGERS = ("temple", "garden", "gold", "paintings")

# One game. Pairs of values are of agents [a, b], not of seats.
GAME = np.dtype(
    [
        ("seed", "<i8"),
        ("board", "<i4"),  # index into the pool that the match is played on
        ("seat_of_a", "i1"),
        ("result", "<f8"),  # of a: 1 for a win, 0.5 for a shared victory, 0 for a loss
        ("luck", "<f8"),  # by which chance raised the result of a (`variance_reduction`); or 0
        ("points", "<i4", (2, 3)),  # faith, commerce, culture
        ("coins", "i1", 2),
        ("triggers", "i1", (2, 4)),  # the TRIGGERS that each has fulfilled (R9.1)
        ("end", "i1"),  # index into `state.ENDS`
        ("rounds", "<i2"),
        ("decisions", "<i4"),
        ("forfeit", "i1"),  # 1 + index into `record.REASONS`; 0: no forfeit
    ]
)


@dataclass(frozen=True)
class Match:
    """The games of agent `a` against agent `b`.

    Attributes:
        a: spec of one agent.
        b: spec of the other.
        games: `GAME` (pairs, 2): two games of one seed, first with `a` as player_0.
        actions: int8 (pairs, 2, longest), the decisions of each game, -1 after its last; seed and
            actions determine the game.
        decided: the better agent, "a" or "b", if a sequential test has found it.
    """

    a: str
    b: str
    games: npt.NDArray[np.void]
    actions: npt.NDArray[np.int8]
    decided: Literal["a", "b"] | None = None

    @property
    def results(self) -> npt.NDArray[np.float64]:
        """The results of `a`, 1, 0.5 or 0 in each game: float64 (pairs, 2)."""
        results: npt.NDArray[np.float64] = self.games["result"]
        return results

    @property
    def score(self) -> float:
        """The mean result of `a`: wins and half of the draws, as a share of all games."""
        return float(self.results.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The ends, low and high, of the 95 % interval of the score (`score_interval`)."""
        return score_interval(self.results)

    @property
    def adjusted(self) -> tuple[Estimate, float] | None:
        """The luck-adjusted score and how many times the pairs it saves: see `adjusted_score`."""
        return adjusted_score(self.results, self.games["luck"])

    @property
    def pentanomial(self) -> npt.NDArray[np.int64]:
        """The number of pairs in which `a` scored 0, 0.5, 1, 1.5 and 2: int64 (5,)."""
        half_points = np.rint(2 * self.results.sum(axis=1)).astype(np.int64)
        return np.bincount(half_points, minlength=5)

    def mean_points(self, agent: int) -> tuple[float, float, float]:
        """Return the mean faith, commerce and culture of `a` (0) or `b` (1).

        Games that a forfeit stopped do not count; without others the means are 0.
        """
        points = self.games["points"][:, :, agent][self.games["forfeit"] == 0]
        faith, commerce, culture = (points.sum(axis=0) / max(len(points), 1)).tolist()
        return faith, commerce, culture


def match_seed(seed: int, *names: str) -> int:
    """Return a seed, 0 to 2**52 - 1: a hash of the seed of a set of matches, and of names in order.

    Names are those of agents and boards, or of the purpose.
    With one seed for all matches, an agent would have the same dice against every opponent. More
    opponents would then not make its rating more certain.
    """
    text = json.dumps([seed, *names])
    return int(hashlib.sha256(text.encode()).hexdigest()[:13], 16)  # 52 bits


@entry
def store_ends(games: Any, boards: Any, board_index: Any, states: Any) -> None:
    """Store results, points, triggers and ends of games from their last positions.

    Args:
        games: `GAME` (n,).
        boards: `BOARD` (b,).
        board_index: int64 (n,), of the board of each game.
        states: `STATE` (n,), its last position.
    """
    for i in range(len(games)):
        _store_end(boards[board_index[i]], states[i], games[i])


@kernel
def _store_end(board: Row, s: Row, game: Row) -> None:
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
