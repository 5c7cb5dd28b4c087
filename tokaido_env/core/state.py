"""The dtypes of states and compiled boards, `STATE` and `BOARD`: one record each.

A batch of games is `np.zeros(n, STATE)`, a copy is one assignment, a snapshot is `bytes`. The
record holds the position and nothing of the future: random streams are kept separately
(`rng.LUCK`), so two equal records are the same position.
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.constants import (
    CAPACITY,
    CHARACTERS,
    MAX_DIE,
    PAINTING_COUNTS,
    RING_SIZES,
    WARE_COUNTS,
)

# A game can reach 32 coins. The sixth gold slab ends the game after its round. Before that round a
# seat has nine coins at most, and the round earns it 33 at most: five wares sold at 4 with crafty,
# and a pilgrim that visits towns of 4 twice. The slab costs ten (R4.5, R8, R9.1).
MAX_COINS = 63  # further coins are lost
MAX_PENDING = 10

NO_PLAYER = -1  # no player decides, or none owns a tile or token
UNSET = -1  # no selected die, no origin, or a boutique or wave side not drawn yet


class Phase(IntEnum):
    """What the game waits for: a decision of `player`, or an outcome of chance."""

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

# A field holds both seats: the pilgrim of seat 1 is s["pilgrim"][1]. There is no padding, because
# NumPy drops it in copies. All numbers are signed, because Numba turns a mix of signed and unsigned
# integers into a float.
STATE = np.dtype(
    [
        ("easel", "<i4", 2),  # revealed paintings, two bits each, front lowest (R3.4)
        ("round", "<i2"),  # rolls made
        ("phase", "i1"),  # Phase
        ("player", "i1"),  # the seat that decides; NO_PLAYER at chance and at the end
        ("lead", "i1"),  # the seat that rolled the dice; at ROLL, the seat that rolls next
        ("dice", "i1", 3),  # values by character; 0 before the first roll
        ("dice_left", "i1"),  # bit c = the die of character c is not taken yet
        ("die", "i1"),  # the character in hand, else UNSET
        ("origin", "i1"),  # the artist's area before the move in hand, else UNSET (R7.2)
        ("pending", "i1"),  # draws or reveals left
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

# Numbers are signed, because Numba turns a mix of signed and unsigned integers into a float. Only
# masks of eight bits are unsigned; kernels read them by `int64`. The fields that every move reads
# come first, so that a pool of boards fills as little as possible of a processor's cache.
BOARD = np.dtype(
    [
        ("ring_size", "i1"),
        ("coast_station", "i1", 8),  # ring index of each coastal town
        ("mountain_number", "i1", 4),  # wares drawn (R4.3)
        ("area_icon", "i1", 8),  # index into ICONS
        ("kinds", "i1"),  # different boutique tokens (ware, price)
        ("kind_ware", "i1", 8),
        ("kind_price", "i1", 8),
        ("kind_count", "i1", 8),
        ("faces", "i1", (3, 6)),  # [character, face]: its value
        ("station_areas", "u1", RING_SIZES[1]),  # bit a = the station borders area a (R3.3)
        ("station_kind", "i1", RING_SIZES[1]),  # index into STATIONS
        ("town_areas", "u1", 12),  # bit a = the town borders area a
        ("area_reach", "u1", (MAX_DIE + 1, 8)),  # [die, area]: bit a = area a is that far (R3.1)
        ("town_reach", "<i2", (MAX_DIE + 1, 12)),  # [die, town]: bit t = town t is that far (R4.1)
        ("icons_touched", "i1", (MAX_DIE + 1, 8, 8)),  # [die, from, to]: bit = icon (R7.2)
        ("face_count", "i1", (3, MAX_DIE + 1)),  # [character, value]: faces with that value
        ("commerce", "<i2", 7),  # by gold slabs (R9.2)
        ("culture", "<i2", 11),  # by paintings given
        ("temple", "<i2", 10),  # by peg, 1 to 9
        ("garden", "<i2", 7),  # by peg, 1 to 6
        ("start", "i1", (2, 3)),  # [seat, character]: ring index, town, area
        ("max_rounds", "<i2"),  # R10.1
        ("gift_faces", "i1", (2, MAX_DIE + 1, 8, 4)),  # [inspired, die, area, icon]: 6 if in reach
        ("most_drawn", "i1", (MAX_DIE + 1, 12)),  # [die, town]: largest mountain number in reach
        ("draw_faces", "i1", (CAPACITY + 1, 12)),  # [room, town]: wares by all faces together
        ("best_price", "i1", 4),  # of a ware, at any boutique
        ("ring_kinds", "i1", 5),  # stations of each kind on the ring
        ("kind_bits", "<i8", 8),  # bit 8 * ware: price 2 or 4; bit 32 + 8 * ware: price 3 or 4
    ]
)
"""A compiled board: lookup tables that `boards.board` computes; agents read the last six."""


def initial_states(boards: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the states before the set-up (R1) on `boards`, `BOARD` (b,): `STATE` (b,)."""
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
    """Return a copy of some rows of an array.

    Copies whole bytes: NumPy copies records field by field, up to fifty times slower.

    Args:
        array: (n,) of records or numbers.
        rows: int64 (k,), indices (default: all rows).
    """
    whole = array.view(_bytes_of(array.dtype))
    return (whole.copy() if rows is None else whole[rows]).view(array.dtype)


def put_rows(
    array: npt.NDArray[Any], rows: npt.NDArray[np.int64], values: npt.NDArray[Any]
) -> None:
    """Write values to rows of an array.

    Args:
        array: (n,) of records or numbers.
        rows: int64 (k,), indices.
        values: (k,), or (1,) for all rows, of the array's dtype.
    """
    whole = _bytes_of(array.dtype)
    array.view(whole)[rows] = values.view(whole)


@functools.cache
def _bytes_of(dtype: np.dtype[Any]) -> np.dtype[np.void]:
    return np.dtype((np.void, dtype.itemsize))


def easel(row: np.void, seat: int) -> list[int]:
    """Return the icons, indices in `ICONS`, of a seat's revealed paintings, front first."""
    return [int(row["easel"][seat]) >> 2 * i & 3 for i in range(int(row["easel_size"][seat]))]
