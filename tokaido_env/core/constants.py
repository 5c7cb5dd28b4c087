"""What is in the box: the pieces by name and number, and a board as kernels read it."""

from __future__ import annotations

from typing import Any

import numpy as np

Row = Any  # of an array of records: NumPy has no type for a row of a known dtype
Mask = np.uint64  # the legal actions as bits
Action = int
Outcome = int
Seat = int

CHARACTERS = ("pilgrim", "merchant", "artist")
PILGRIM, MERCHANT, ARTIST = range(3)  # their places, as in the dice of a state
WARES = ("kimono", "pottery", "doll", "fan")
ICONS = ("moon", "waterfall", "mountain", "bamboo")
COASTAL_TOWNS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8")
MOUNTAIN_TOWNS = ("M1", "M2", "M3", "M4")
TOWNS = COASTAL_TOWNS + MOUNTAIN_TOWNS
AREAS = ("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8")
STATIONS = ("coastal town", "temple", "garden", "hot spring", "seashore")
COAST, TEMPLE, GARDEN, HOT_SPRING, SEASHORE = range(5)

RING_SIZES = (20, 40)
MAX_DIE = 6
MAX_ROUNDS = 400


SIDES = (("tranquil", "hasty"), ("crafty", "robust"), ("proficient", "inspired"))
TRANQUIL, HASTY = 0, 1
CRAFTY, ROBUST = 0, 1
PROFICIENT, INSPIRED = 0, 1

WARE_COUNTS = (5, 6, 7, 8)  # R1.3, in the order of WARES
PAINTING_COUNTS = ((3, 3, 2, 2), (2, 2, 3, 3))  # R1.7, [seat] in the order of ICONS
PAINTINGS = 10
LAST_TEMPLE, LAST_GARDEN, LAST_SLAB = 9, 6, 6  # R5.3, R4.5
# Of these fields of `STATE`, what makes the round the last when a seat has so much (R9.1).
TRIGGER_LEVELS = {
    "temple": LAST_TEMPLE,
    "garden": LAST_GARDEN,
    "gold": LAST_SLAB,
    "gifted": PAINTINGS,
}
CAPACITY = 5  # wares; one more with robust (R7.3)
GOLD_PRICE = 10  # R4.5

# Signed, but for masks of eight bits, which kernels read by `int64`: a mix of signed and unsigned
# integers becomes a float there. What every move reads comes first: of a pool of boards as little
# as possible should fill a processor's cache.
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
    ]
)
"""A board: lookup tables, made by `boards.geometry`."""
