"""What suites and measures of generalisation share: matches board by board, with luck of their own.

A protocol fixes opponents, boards, pairs of games and luck, so that whatever agent is measured
plays the same games. The luck of the games on a board follows from the protocol's seed and name and
the board alone: more boards only add games.
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
    """What an agent scores on one board, or how strong it is there."""

    board: Name


def protocol_match(
    agent: str, opponent: str, pool: BoardPool, pairs: int, seed: int, *names: str
) -> MatchState:
    """Return a match to be played, as many pairs on each board, board after board.

    Args:
        agent: spec of who is measured.
        opponent: spec of whom it meets.
        pool: the boards.
        pairs: of games, on each of them.
        seed: of the protocol.
        names: what the luck of the match follows from, beside seed and board.
    """
    return MatchState.for_boards(
        *(agent, opponent, pool, pairs), lambda board: match_seed(seed, *names, board)
    )


def pentanomials_by_board(match: Match, boards: int) -> npt.NDArray[np.int64]:
    """Return how many pairs on each board gave 0, 0.5, 1, 1.5 and 2 points: int64 (boards, 5)."""
    twice = np.rint(4 * match.results.mean(axis=1)).astype(np.int64).reshape(boards, -1)
    return np.asarray((twice[:, :, None] == np.arange(5)).sum(axis=1))
