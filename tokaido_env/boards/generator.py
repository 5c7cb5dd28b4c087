"""Boards drawn at random that keep all that is known of the printed one.

What the rulebook says stays as it is: the 4 of the pilgrim's die and the 2 of the others, mountain
towns with 2, 3 and 4, a pottery boutique at 3, 18 points for six paintings, the worked examples.
What the default board merely chose is drawn anew. A result that holds on such boards does not rest
on the reconstruction.

    board = plausible_board(7)
    Path("seven.toml").write_text(plausible_toml(7))
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokaido_env.boards.board import BOARDS_FOLDER, Board
from tokaido_env.core.box import AREAS, COASTAL_TOWNS, ICONS, MOUNTAIN_TOWNS, TOWNS, WARES

# How the known range of a die may be shared out over its faces.
PILGRIM_DICE = ((1, 2, 2, 3, 3, 4), (1, 1, 2, 2, 3, 4), (1, 1, 2, 3, 3, 4), (1, 2, 3, 3, 4, 4))
OTHER_DICE = ((1, 1, 2, 2, 3, 3), (1, 2, 2, 2, 2, 3), (1, 1, 1, 2, 2, 3), (1, 2, 2, 3, 3, 3))

# The two trees on four towns, each as the corners that a walk around it passes. Coastal towns hang
# at corners, in the order of the walk, so that no routes cross.
CHAIN = ("M1", "M2", "M3", "M4", "M3", "M2")
STAR = ("M1", "M2", "M3", "M2", "M4", "M2")

# Stations besides the coastal towns: those of every board, and the odds of the rest.
STATIONS_AT_LEAST = {"temple": 4, "garden": 3, "seashore": 2, "hot spring": 1}
STATIONS_BEYOND = (6, 14)

MOUNTAIN_NUMBERS = (2, 3, 4)
PRICES = {"kimono": (3, 4), "pottery": (3, 4), "doll": (2, 3), "fan": (2, 3)}

# What each further painting brings, from even to steep: 18 points for the first six.
CULTURE_STEPS = (
    (3, 3, 3, 3, 3, 3, 3, 3, 3, 3),
    (2, 2, 3, 3, 4, 4, 5, 5, 6, 6),
    (1, 2, 3, 3, 4, 5, 6, 7, 8, 9),
)


def plausible_board(seed: int) -> Board:
    """Return the board of a seed, checked as every board file is."""
    return replace(_load(plausible_toml(seed)), source=f"plausible_board({seed})")


def plausible_toml(seed: int) -> str:
    """Return the board file of a seed, an integer."""
    rng = random.Random(seed)
    default = (BOARDS_FOLDER / "shikoku.toml").read_text(encoding="utf-8")
    while True:
        data = tomllib.loads(default) | {"name": f"plausible_{seed}"}
        for entry, values in _draw(rng).items():
            table, _, die = entry.partition(".")
            (data[table][die] if die else data[table]).update(
                values | {"note": "drawn at random from what the rulebook leaves open"}
            )
        text = _toml(data)
        if gives_the_examples(_load(text)):
            return text


def gives_the_examples(board: Board) -> bool:
    """Return whether the worked examples of the rulebook about moves can happen on a board."""
    reach = [int(towns) for towns in board.record[0]["town_reach"][2]]
    coasts, mountains = 0xFF, 0xF00
    # A choice of one mountain town and one coastal town; three others can be occupied.
    two_ways = any(
        (towns & mountains).bit_count() == 1 and 1 <= (towns & coasts).bit_count() <= 4
        for towns in reach
    )
    # With a 2 to a town that gives three wares, with another 2 to a boutique.
    draw_and_sell = any(
        number == 3 and reach[TOWNS.index(town)] & coasts
        for town, number in zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True)
    )
    # With a 2 through bamboo to a waterfall, from a third area.
    on_the_way = any(
        board.area_icons[middle] == "bamboo" and board.area_icons[end] == "waterfall"
        for middle in range(8)
        for _, end in itertools.permutations(board.neighbours[middle], 2)
    )
    return two_ways and draw_and_sell and on_the_way


def _draw(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the values of all entries that the rulebook leaves open."""
    walk = rng.choice((CHAIN, STAR))
    corners = _corners(rng, walk)
    numbers = rng.sample((*MOUNTAIN_NUMBERS, rng.choice(MOUNTAIN_NUMBERS)), 4)
    steps = rng.choice(CULTURE_STEPS)
    return {
        "dice.pilgrim": {"faces": rng.choice(PILGRIM_DICE)},
        "dice.merchant": {"faces": rng.choice(OTHER_DICE)},
        "dice.artist": {"faces": rng.choice(OTHER_DICE)},
        "ring": {"stations": _ring(rng)},
        "routes": {"pairs": _routes(walk, corners)},
        "mountains": {"numbers": dict(zip(MOUNTAIN_TOWNS, numbers, strict=True))},
        "areas": {"icons": dict(zip(AREAS, rng.sample(ICONS * 2, 8), strict=True))},
        "starts": _starts(rng.randrange(4), corners),
        "boutiques": {"tokens": _tokens(rng)},
        "culture": {"points": [0, *itertools.accumulate(steps)]},
    }


def _corners(rng: random.Random, walk: Sequence[str]) -> list[str]:
    """Return the mountain town that each coastal town hangs on, C1 to C8."""
    ends = {town for town in walk if walk.count(town) == 1}
    while True:
        towns = [walk[corner] for corner in sorted(rng.randrange(6) for _ in COASTAL_TOWNS)]
        if ends <= set(towns):  # else a route would end at a mountain town
            turn = rng.randrange(8)
            return towns[turn:] + towns[:turn]


def _routes(walk: Sequence[str], corners: Sequence[str]) -> list[list[str]]:
    steps = zip(walk, (*walk[1:], walk[0]), strict=True)
    inner = {tuple(sorted(step)) for step in steps}
    outer = zip(corners, COASTAL_TOWNS, strict=True)
    return [list(route) for route in (*sorted(inner), *outer)]


def _ring(rng: random.Random) -> list[str]:
    """Return the stations; at least one lies between any two coastal towns."""
    kinds = list(STATIONS_AT_LEAST)
    odds = list(STATIONS_AT_LEAST.values())
    stations = [kind for kind in kinds for _ in range(STATIONS_AT_LEAST[kind])]
    stations += rng.choices(kinds, odds, k=rng.randint(*STATIONS_BEYOND))
    rng.shuffle(stations)
    areas = [*range(8), *(rng.randrange(8) for _ in stations[8:])]
    ring = []
    for area, town in enumerate(COASTAL_TOWNS):
        between = [station for where, station in zip(areas, stations, strict=True) if where == area]
        ring += [town, *between]
    return ring


def _starts(coast: int, corners: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return starts around a coastal town, and around the one across the island."""
    return {
        f"player_{seat}": {
            "pilgrim": COASTAL_TOWNS[coast + 4 * seat],
            "merchant": corners[coast + 4 * seat],
            "artist": AREAS[coast + 4 * seat],
        }
        for seat in range(2)
    }


def _tokens(rng: random.Random) -> list[tuple[str, int]]:
    wares = [*WARES, *rng.sample(WARES * 2, 4)]
    tokens = [(ware, rng.choice(PRICES[ware])) for ware in wares]
    tokens[wares.index("pottery")] = ("pottery", 3)
    return tokens


def _load(text: str) -> Board:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plausible.toml"
        path.write_text(text, encoding="utf-8")
        return Board.load(path)


def _toml(data: Mapping[str, Any]) -> str:
    """Write a board as TOML: its own values first, then its tables; JSON's values are TOML's."""
    lines = [f"{key} = {json.dumps(data[key])}" for key in ("format", "name", "max_rounds")]
    for name, table in data.items():
        if isinstance(table, dict):
            tables = (
                {f"dice.{die}": table[die] for die in table} if name == "dice" else {name: table}
            )
            for title, entry in tables.items():
                lines += ["", f"[{title}]", *(f"{k} = {_value(v)}" for k, v in entry.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
