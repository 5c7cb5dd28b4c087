"""`TimeStep`: the result of a step of a `Batch`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class TimeStep(NamedTuple):
    """The result of a step of n games.

    With autoreset, a finished game's entries describe the first decision of its next episode,
    while `reward`, `terminated`, `player` and `next_player` describe the end.

    Attributes:
        observation: float32 or uint8 (n, N_FEATURES), N_BOARD_FEATURES wider with `see_board`,
            from the mover's view (player_0's at chance and at the end). With "afterstates" a dict
            of arrays
            (n, *AFTERSTATE_SHAPES[name]); None if the batch has no observation.
        mask: int8 (n, N_ACTIONS), 1 = legal; zeros at chance and at the end.
        legal: uint64 (n,), the legal actions as bits.
        mover: int8 (n,), the player to decide; -1 at chance and at the end.
        reward: float32 (n, 2), the reward of each seat for this step.
        terminated: bool (n,), whether the game ended in this step (R9.1, R10.1).
        player: int8 (n,), the player who decided in this step; -1 for chance, a reset or an
            ignored illegal move.
        next_player: int8 (n,), the next player to decide in the same episode; -1 at its end and at
            chance. A value estimate keeps its sign if this is `player`, and changes it otherwise.
    """

    observation: Any
    mask: npt.NDArray[np.int8]
    legal: npt.NDArray[np.uint64]
    mover: npt.NDArray[np.int8]
    reward: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    player: npt.NDArray[np.int8]
    next_player: npt.NDArray[np.int8]


def copy_timestep(live: TimeStep, observation: Any) -> TimeStep:
    """Return a time step with this observation, not copied, and copies of all other arrays."""
    others: tuple[npt.NDArray[Any], ...] = live[1:]
    return TimeStep._make((observation, *map(_copied, others)))


def _copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy an array; a row is copied as one item, which is faster than number by number."""
    if array.ndim == 1:
        return array.copy()
    row = np.dtype((np.void, array.shape[1] * array.itemsize))
    return array.view(row).copy().view(array.dtype)
