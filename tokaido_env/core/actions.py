"""The table of action ids and labels.

New actions are appended only: saved policies and records depend on the ids.
"""

from __future__ import annotations

from tokaido_env.core.constants import AREAS, CHARACTERS, TOWNS, WARES

MOVE_PILGRIM, MOVE_PILGRIM_WAVE = 0, 1
MOVE_MERCHANT = 2  # + town, C1 … C8 M1 … M4
MERCHANT_STAY = 14
MOVE_ARTIST = 15  # + area
ARTIST_STAY = 23
PASS = 24
VISIT = 25
TAKE = 26  # + character
DRAW, DRAW_WAVE = 29, 30
SELL = 30  # + number of wares, 1 to 6
SELL_WAVE = 36  # + number of wares, 1 to 5
PAINT, PAINT_WAVE = 42, 43
GIFT = 44
DISCARD = 45  # + ware

LABELS: tuple[str, ...] = (
    *("pilgrim", "pilgrim:wave"),
    *(f"merchant:{town}" for town in TOWNS),
    "merchant:stay",
    *(f"artist:{area}" for area in AREAS),
    "artist:stay",
    "pass",
    "visit",
    *(f"take:{character}" for character in CHARACTERS),
    *("draw", "draw:wave"),
    *(f"sell:{n}" for n in range(1, 7)),
    *(f"sell:{n}:wave" for n in range(1, 6)),
    *("paint", "paint:wave"),
    "gift",
    *(f"discard:{ware}" for ware in WARES),
)
"""The label of each action; its id is the index."""

IDS: dict[str, int] = {label: action for action, label in enumerate(LABELS)}
N_ACTIONS = len(LABELS)
NO_ACTION = -1
"""No action, and no outcome of chance: none was chosen, or none is legal."""

ACTION_TABLE_VERSION = 1
