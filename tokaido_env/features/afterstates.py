"""Afterstates: the positions after each legal action, before chance or the next decision.

An afterstate (Sutton and Barto 2018, section 6.8) follows from a position and an action alone: no
random number is drawn. A method that learns values of afterstates needs no model of chance to
choose an action.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.core.arguments import check_choice
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import Mask, Row
from tokaido_env.core.jit import index, int64, kernel, parallel
from tokaido_env.core.observation import FLOAT_QUOTIENTS, N_FEATURES, encode
from tokaido_env.core.rules import apply, reward
from tokaido_env.core.state import NO_PLAYER, OVER, STATE
from tokaido_env.features.evaluation import new_scratch
from tokaido_env.features.geometry_features import N_GEOMETRY, encode_geometry
from tokaido_env.features.network_inputs import N_INPUTS, active_seat, encode_position

CHANCE, DECISION, END = range(3)
"""What follows an afterstate: the values of `Afterstates.kind`."""

AfterstateInputs = Literal["afterstates", "geometry", "float32"]
_BLOCK = 4  # positions that a thread takes at a time
_WIDTHS = {"afterstates": N_INPUTS, "geometry": N_GEOMETRY, "float32": N_FEATURES, None: 0}


class Afterstates(NamedTuple):
    """The afterstates of all legal actions of some games.

    There is one row per legal action, k in all: games in order, then actions in ascending order.

    Attributes:
        game: int64 (k,), the index of the game among the given games.
        action: int64 (k,), the action.
        states: `STATE` (k,), the positions after the actions, before any chance.
        legal: uint64 (k,), the legal actions there as bits; 0 at chance and at the end.
        viewer: int8 (k,), the seat that decides there; at chance the seat of the current pick, at
            the end the seat that moved.
        kind: int8 (k,), what follows: CHANCE, DECISION or END.
        result: float32 (k,), at the end the reward of the seat that moved, else 0.
        inputs: float32 (k, N_INPUTS), the inputs of the networks, (k, N_GEOMETRY), the geometry,
            or (k, N_FEATURES), the observation; None without inputs. They are from the view of
            `viewer`: a value changes its sign for the other seat. At the end the inputs after the
            first N_FEATURES are 0.
    """

    game: Any
    action: Any
    states: Any
    legal: Any
    viewer: Any
    kind: Any
    result: Any
    inputs: Any

    def best_rows(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the row of each game's highest score, the last one if several are equal.

        Args:
            scores: (k,).

        Returns:
            int64 (games,).
        """
        order = np.lexsort((scores, self.game))
        return order[np.flatnonzero(np.diff(self.game[order], append=-1))]


def afterstates_of(
    boards: npt.NDArray[np.void],
    which: npt.NDArray[np.integer[Any]],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
    inputs: AfterstateInputs | None,
    margin: bool,
) -> Afterstates:
    """Return the afterstates of n positions at decisions.

    Args:
        boards: `BOARD` (b,).
        which: integers (n,), the index of each position's board.
        states: `STATE` (n,).
        legal: uint64 (n,), the legal actions as bits.
        inputs: "afterstates", "geometry", "float32" or None, see `Afterstates.inputs`.
        margin: whether results are score margins.

    Raises:
        ValueError: for unknown `inputs`.
    """
    check_choice("inputs", inputs, _WIDTHS)
    counts = np.bitwise_count(legal).astype(np.int64)
    ends = np.cumsum(counts)
    k = int(counts.sum())
    numbers = np.empty(k, np.int64), np.empty(k, np.int64)
    seats_and_kinds = np.empty(k, np.int8), np.empty(k, np.int8)
    legal_after, result = np.empty(k, np.uint64), np.empty(k, np.float32)
    rows = np.empty((k, _WIDTHS[inputs]), np.float32)
    after = Afterstates(*numbers, np.empty(k, STATE), legal_after, *seats_and_kinds, result, rows)
    begins, which = ends - counts, which.astype(np.int64, copy=False)
    _write_each(begins, after, boards, which, states, legal, margin)
    return after if inputs is not None else after._replace(inputs=None)


@parallel(at_least=16)
def _write_each(
    begins: Any,
    out: Afterstates,
    boards: Any,
    which: Any,
    states: Any,
    masks: Any,
    margin: bool,
) -> None:
    """Write the afterstates of all positions, from the row `begins` of each."""
    for block in prange((len(begins) + _BLOCK - 1) // _BLOCK):
        scratch = new_scratch()
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, len(begins))):
            board = boards[index(which[i])]
            _write_afterstates(board, i, begins[i], states[i], masks[i], margin, scratch[0], out)


@kernel
def _write_afterstates(
    board: Row,
    game: int,
    row: int,
    state: Row,
    left: Mask,
    margin: bool,
    scratch: Row,
    out: Any,
) -> None:
    """Write the afterstates of the actions of a mask, from a row."""
    while left != np.uint64(0):
        action = lowest_action(left)
        left &= left - np.uint64(1)
        out.game[row] = game
        out.action[row] = action
        out.states[row] = state
        _write_afterstate(board, row, action, margin, scratch, out)
        row += 1


@kernel
def _write_afterstate(
    board: Row,
    row: int,
    action: int,
    margin: bool,
    scratch: Row,
    out: Any,
) -> None:
    """Apply the action to the state of a row, and write the rest of the row."""
    s = out.states[row]
    mover = int64(s["player"])
    mask = apply(board, s, action)
    out.legal[row] = mask
    out.result[row] = 0.0
    viewer = active_seat(s)
    if int(s["phase"]) == OVER:
        viewer = mover
        out.kind[row] = END
        out.result[row] = reward(board, s, mover, margin)
    elif int64(s["player"]) == NO_PLAYER:
        out.kind[row] = CHANCE
    else:
        out.kind[row] = DECISION
    out.viewer[row] = viewer
    width = out.inputs.shape[1]
    if width == N_INPUTS:
        encode_position(board, s, viewer, scratch, out.inputs[row])
    elif width == N_GEOMETRY:
        encode_geometry(board, s, viewer, out.inputs[row])
    elif width == N_FEATURES:
        encode(board, s, viewer, FLOAT_QUOTIENTS, out.inputs[row])
