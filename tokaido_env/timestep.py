"""What a step of a `Batch` tells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class TimeStep(NamedTuple):
    """What a step tells of each of n games; with autoreset, of a finished game its successor.

    Attributes:
        observation: float32 or uint8 (n, N_FEATURES), as the mover sees it (player_0 where nobody
            is to decide), with `see_board` N_BOARD_FEATURES more; of entities a dict of float32
            arrays (n, *ENTITY_SHAPES[name]); None if not asked for.
        mask: int8 (n, N_ACTIONS), 1 = legal; zeros where nobody is to decide.
        legal: uint64 (n,), the same as bits.
        mover: int8 (n,), whose decision it is now, -1 at chance and in games that are over.
        reward: float32 (n, 2), of the step, by seat.
        terminated: bool (n,), the step has ended the game by a trigger (R9.1).
        truncated: bool (n,), the step has reached the cap on rounds (R10.1).
        player: int8 (n,), who decided in the step; -1 if it was chance or a reset, or if an
            illegal move was ignored.
        next_player: int8 (n,), who decides next in the same game, -1 at its end and at chance: a
            value estimate keeps its sign if it is `player` again, and flips if not.
    """

    observation: Any
    mask: npt.NDArray[np.int8]
    legal: npt.NDArray[np.uint64]
    mover: npt.NDArray[np.int8]
    reward: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    player: npt.NDArray[np.int8]
    next_player: npt.NDArray[np.int8]


def copied_turn(live: TimeStep, observation: Any) -> TimeStep:
    """Return a turn with this observation and copies of all else."""
    others: tuple[npt.NDArray[Any], ...] = live[1:]
    return TimeStep._make((observation, *map(_copied, others)))


def _copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy; rows are copied as one item each, faster than number by number."""
    if array.ndim == 1:
        return array.copy()
    row = np.dtype((np.void, array.shape[1] * array.itemsize))
    return array.view(row).copy().view(array.dtype)
