"""The game's pieces by name and number, and types for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np

Row = Any  # one record of an array: NumPy has no type for a record of a known dtype
BoardRow = Row  # of a `BOARD` array
StateRow = Row  # of a `STATE` array
LuckRow = Row  # of a `LUCK` array, updated as numbers are drawn
Mask = np.uint64  # the legal actions as bits
Action = int
Outcome = int
Seat = int

CHARACTERS = ("pilgrim", "merchant", "artist")
PILGRIM, MERCHANT, ARTIST = range(3)  # indices into CHARACTERS, as in the dice of a state
WARES = ("kimono", "pottery", "doll", "fan")
ICONS = ("moon", "waterfall", "mountain", "bamboo")
COASTAL_TOWNS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8")
MOUNTAIN_TOWNS = ("M1", "M2", "M3", "M4")
TOWNS = COASTAL_TOWNS + MOUNTAIN_TOWNS
AREAS = ("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8")
STATIONS = ("coastal town", "temple", "garden", "hot spring", "seashore")
COAST, TEMPLE, GARDEN, HOT_SPRING, SEASHORE = range(5)

RING_SIZES = (12, 40)  # fewest and most stations of a ring
MAX_DIE = 6
MAX_ROUNDS = 400

# [character]: the two sides of its wave tile.
SIDES = (("tranquil", "hasty"), ("crafty", "robust"), ("proficient", "inspired"))
TRANQUIL, HASTY = 0, 1
CRAFTY, ROBUST = 0, 1
PROFICIENT, INSPIRED = 0, 1

WARE_COUNTS = (5, 6, 7, 8)  # R1.3, in the order of WARES
PAINTING_COUNTS = ((3, 3, 2, 2), (2, 2, 3, 3))  # R1.7, [seat] in the order of ICONS
PAINTINGS = 10
LAST_TEMPLE, LAST_GARDEN, LAST_SLAB = 9, 6, 6  # R5.3, R4.5
# When a seat reaches one of these values in a field of `STATE`, the round is the last (R9.1).
TRIGGER_LEVELS = {
    "temple": LAST_TEMPLE,
    "garden": LAST_GARDEN,
    "gold": LAST_SLAB,
    "gifted": PAINTINGS,
}
ANY_DIE = 0  # in tables by die, the row of all faces together
SIXTHS = 6  # faces of a die
CAPACITY = 5  # wares; one more with robust (R7.3)
GOLD_PRICE = 10  # R4.5
