"""Matches board by board with fixed seeds, as used by suites and measures of generalisation.

A protocol fixes opponents, boards, pairs of games and seeds, so that every agent plays under the
same conditions. The seeds on a board are derived from the protocol's seed and name and the board
alone: more boards only add games.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import Estimate
from tokaido_env.arena.ladder import match_seed
from tokaido_env.arena.match import Match
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.decoding import Name


class BoardEstimate(Estimate, frozen=True):
    """The score or strength of an agent on one board."""

    board: Name


def protocol_match(
    agent: str, opponent: str, pool: BoardPool, pairs: int, seed: int, *names: str
) -> MatchState:
    """Return an unplayed match with the same number of pairs on each board, board after board.

    Args:
        agent: spec of the measured agent.
        opponent: spec of its opponent.
        pool: the boards.
        pairs: of games, on each board.
        seed: of the protocol.
        names: from which the seeds are derived, together with `seed` and the board.
    """
    return MatchState.for_boards(
        *(agent, opponent, pool, pairs), lambda board: match_seed(seed, *names, board)
    )


def pentanomials_by_board(match: Match, boards: int) -> npt.NDArray[np.int64]:
    """Return the number of pairs on each board with 0, 0.5, 1, 1.5 and 2 points: (boards, 5)."""
    half_points = np.rint(4 * match.results.mean(axis=1)).astype(np.int64).reshape(boards, -1)
    return np.asarray((half_points[:, :, None] == np.arange(5)).sum(axis=1))
