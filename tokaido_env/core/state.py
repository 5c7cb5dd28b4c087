"""The state of a game: one record.

A batch of games is `np.zeros(n, STATE)`, a copy is one assignment, a snapshot is `bytes`. The
record holds the position and nothing of the future: luck lives beside it (`luck.LUCK`), so two
equal records are one position.
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.constants import CHARACTERS, PAINTING_COUNTS, WARE_COUNTS

# A game can reach 32. The sixth slab ends the game with its round, before which there were
# nine coins at most, and a round brings a seat 33 at most: five wares sold at 4 with crafty, and a
# pilgrim that visits towns of 4 twice. So 32 are left of them (R4.5, R8, R9.1).
MAX_COINS = 63  # a coin beyond is not kept
MAX_PENDING = 10

NO_PLAYER = -1  # no player decides, or none owns a tile or token
UNSET = -1  # no die in hand, no origin, or a boutique or wave side not drawn yet


class Phase(IntEnum):
    """What happens next: a decision of `player`, or an outcome of chance."""

    SETUP = 0
    ROLL = 1
    MOVE = 2
    EFFECT = 3
    DRAW = 4
    REVEAL = 5
    DISCARD = 6
    REPEAT = 7
    OVER = 8


SETUP, ROLL, MOVE, EFFECT, DRAW, REVEAL, DISCARD, REPEAT, OVER = (int(phase) for phase in Phase)
CHANCE_PHASES = (Phase.SETUP, Phase.ROLL, Phase.DRAW, Phase.REVEAL)

ENDS = (None, "triggers", "cap")
NOT_ENDED, END_TRIGGERS, END_CAP = range(3)

# Two seats side by side in one field: the pilgrim of seat 1 is s["pilgrim"][1]. No padding, which
# NumPy drops in copies; signed throughout, for a mix of signed and unsigned becomes a float in a
# kernel.
STATE = np.dtype(
    [
        ("easel", "<i4", 2),  # revealed paintings, two bits each, front lowest (R3.4)
        ("round", "<i2"),  # rolls made
        ("phase", "i1"),  # Phase
        ("player", "i1"),  # whose decision; NO_PLAYER at chance and at the end
        ("lead", "i1"),  # who rolled, at ROLL who will
        ("dice", "i1", 3),  # values by character; 0 before the first roll
        ("dice_left", "i1"),  # bit = character whose die is not taken yet
        ("die", "i1"),  # the character in hand, else UNSET
        ("origin", "i1"),  # the artist's area before the move in hand, else UNSET (R7.2)
        ("pending", "i1"),  # draws or reveals still to come
        ("end_triggered", "i1"),  # R9.1
        ("end", "i1"),  # index into ENDS
        ("boutiques", "i1", 8),  # by coastal town: kind of token, UNSET until drawn
        ("bag", "i1", 4),  # by ware
        ("hot_spring", "i1"),  # owner of the token, NO_PLAYER = on the board (R8)
        ("wave_side", "i1", 3),  # by character: index into its SIDES, UNSET until drawn
        ("wave_owner", "i1", 3),  # by character, NO_PLAYER = on the board
        ("pilgrim", "i1", 2),  # ring index
        ("merchant", "i1", 2),  # town
        ("artist", "i1", 2),  # area
        ("temple", "i1", 2),  # peg, 1 to 9
        ("garden", "i1", 2),  # peg, 1 to 6
        ("coins", "i1", 2),
        ("gold", "i1", 2),  # slabs
        ("wares", "i1", (2, 4)),  # [seat, ware]
        ("hidden", "i1", (2, 4)),  # face-down paintings, [seat, icon]
        ("easel_size", "i1", 2),
        ("gifted", "i1", 2),  # paintings given
    ]
)


def initial_states(boards: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the states before the set-up (R1) on boards, `BOARD` (b,): `STATE` (b,)."""
    states = np.zeros(len(boards), STATE)
    for name in ("player", "hot_spring", "wave_owner"):
        states[name] = NO_PLAYER
    for name in ("die", "origin", "boutiques", "wave_side"):
        states[name] = UNSET
    states["bag"] = WARE_COUNTS
    states["hidden"] = PAINTING_COUNTS
    states["temple"] = 1
    states["garden"] = 1
    for column, character in enumerate(CHARACTERS):
        states[character] = boards["start"][:, :, column]
    return states


def copy_rows(
    array: npt.NDArray[Any], rows: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[Any]:
    """Return a copy of some rows (all by default) of an array (n,) of records, as whole bytes.

    NumPy by itself copies records field by field, up to fifty times slower.
    """
    whole = array.view(_bytes_of(array.dtype))
    return (whole.copy() if rows is None else whole[rows]).view(array.dtype)


def put_rows(
    array: npt.NDArray[Any], rows: npt.NDArray[np.int64], values: npt.NDArray[Any]
) -> None:
    """Write some rows of an array (n,) of records, as whole bytes; one value goes to all."""
    whole = _bytes_of(array.dtype)
    array.view(whole)[rows] = values.view(whole)


@functools.cache
def _bytes_of(dtype: np.dtype[Any]) -> np.dtype[np.void]:
    return np.dtype((np.void, dtype.itemsize))


def easel(row: np.void, seat: int) -> list[int]:
    """Return the icons of the revealed paintings of a seat, front first."""
    return [int(row["easel"][seat]) >> 2 * i & 3 for i in range(int(row["easel_size"][seat]))]
