"""A position drawn as text for a terminal of 100 columns.

    print(draw(game.board, game.to_dict()))

The island is a rectangle: the ring of stations runs clockwise around it, the trade routes cut it into
the eight areas. The map of a board is surveyed once, for any ring and any tree of routes: mountain
towns stand at the middle of their neighbours, routes take the way with the fewest bends, and areas
are named where they are widest.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tokaido_env.board import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS, TOWNS, WARES, Board

WIDTH = 100
HEIGHT = 38

Cell = tuple[int, int]  # column, row
Style = Literal["", "name", "dim", "turn", "player_0", "player_1", "pawn_0", "pawn_1"]

_ESCAPES: dict[Style, str] = {
    "name": "1",
    "dim": "38;5;244",
    "turn": "1;38;5;214",
    "player_0": "1;38;5;134",
    "player_1": "1;38;5;71",
    "pawn_0": "1;38;5;231;48;5;91",
    "pawn_1": "1;38;5;231;48;5;28",
}
_PLAYER_STYLES: tuple[Style, Style] = ("player_0", "player_1")
_PAWN_STYLES: tuple[Style, Style] = ("pawn_0", "pawn_1")
_PAWNS = (dict(zip(CHARACTERS, "PMA", strict=True)), dict(zip(CHARACTERS, "pma", strict=True)))

_ICON_SIGNS = {"moon": "☾", "waterfall": "≋", "mountain": "▲", "bamboo": "╫"}
_TOWN, _STATION, _FULL, _EMPTY = "■", "○", "■", "·"

# Lines are sets of directions in which a cell is left; a set is the index of its sign.
_NORTH, _EAST, _SOUTH, _WEST = 1, 2, 4, 8
_LINES = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
_STEPS = {_NORTH: (0, -1), _EAST: (1, 0), _SOUTH: (0, 1), _WEST: (-1, 0)}
_BACK = {_NORTH: _SOUTH, _SOUTH: _NORTH, _EAST: _WEST, _WEST: _EAST}

# The coast, and how many stations run along its top and its bottom: all others run down the sides.
_LEFT, _TOP, _RIGHT, _BOTTOM = 13, 4, 86, 20
_ALONG = 7

# The room of a mountain town and of an area's name, and what is kept free around a town.
_BOX = (10, 3)
_LABEL = (11, 2)
_MARGIN = (4, 1)

# What a route avoids, from least to most.
_ROW, _OFF_CENTRE, _BEND, _CLOSE, _CROSSING = 1, 1, 6, 4, 500
