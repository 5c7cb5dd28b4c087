"""Text boards of positions, for terminals of 80 columns.

    print(draw(game.scene()))

A board lists the coast clockwise, with a row for each coastal town, the stations after it and their
area; then the mountain towns, the supply and the players' pieces. Pawns are in brackets after the
names of their places: P, M and A are those of player_0, p, m and a those of player_1.
"""

from __future__ import annotations

import itertools
import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from tokaido_env.boards.board import Board
from tokaido_env.boards.geometry import adjacent_towns
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    MOUNTAIN_TOWNS,
    TRIGGER_LEVELS,
)
from tokaido_env.render.scene import (
    SEATS,
    Place,
    Position,
    Scene,
    die_state,
    place_of,
    round_text,
    status_text,
)

WIDTH = 80

Pawns = Mapping[Place, str]  # the letters at each place
Row = Sequence[str]  # the cells of a table's row

_PAWNS = ("PMA", "pma")  # [seat][character]
_ICON_SIGNS = {"moon": "☾", "waterfall": "≋", "mountain": "▲", "bamboo": "╫"}
_NONE = "–"
_GLUE = "\N{NO-BREAK SPACE}"  # between words of a name, which stay on one line

# Widths of the columns of tables; a space separates them.
_COAST, _MOUNTAINS, _SUPPLY = (18, 30, 18, 11), (18, 30, 30), (8, 23, 23, 23)
_BAG, _PLAYERS = (8, 47, 23), (8, 35, 35)

_DETAILS = {
    "die": "selected die: {}",
    "origin": "from {}",
    "pending": "pending draws: {}",
    "end": "end reason: {}",
}
_STYLES = {
    "head": "1",
    "turn": "1;38;5;172",
    "faint": "38;5;244",
    "first": "1;38;5;134",
    "second": "1;38;5;71",
}
_HIGHLIGHT = re.compile(  # the group's name is that of a style
    r"(?P<first>player_0|[PMA](?=[PMApma]*\]))|(?P<second>player_1|[pma](?=[PMApma]*\]))"
    r"|(?P<turn>\d selected|decides)|(?P<faint>\d taken|not rolled|not dealt)|(?P<head>[A-Z]{2,})"
)


def draw(scene: Scene, *, color: bool = True) -> str:
    """Return a scene as text, in lines of at most 80 columns.

    Args:
        scene: the position to draw.
        color: use the escape codes of terminals with 256 colours.
    """
    scene = replace(scene, names=SEATS)
    title = f"Tokaido Duo · {round_text(scene)}"[:WIDTH]
    position = scene.position
    details = [text.format(position[key]) for key, text in _DETAILS.items() if position[key]]
    status = textwrap.wrap(" · ".join((position["phase"], status_text(scene), *details)), WIDTH)
    tables = "\n".join((*_map(scene), *_supply(scene.position), *_players(scene)))
    if color:
        title, status = _styled(title, "head"), [_styled(line, "turn") for line in status]
        tables = _HIGHLIGHT.sub(lambda found: _styled(found[0], str(found.lastgroup)), tables)
    return "\n".join((title, *status, tables))


def has_colors(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal with colours, and TERM and NO_COLOR allow them."""
    allowed = os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    return allowed and stream is not None and stream.isatty()


def _styled(text: str, style: str) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def _table(widths: Sequence[int], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table; a cell that is too long takes several lines."""
    for row in rows:
        cells = [textwrap.wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in itertools.zip_longest(*cells, fillvalue=""):
            line = " ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
            yield line.rstrip().replace(_GLUE, " ")


def _counts(counts: Mapping[str, int]) -> str:
    return "  ".join(f"{name} {count}" for name, count in counts.items())


# The map


def _map(scene: Scene) -> Iterator[str]:
    pawns = _pawns(scene)
    yield from _table(_COAST, _coast(scene.board, scene.position, pawns))
    yield from _table(_MOUNTAINS, _mountains(scene.board, pawns))


def _pawns(scene: Scene) -> defaultdict[Place, str]:
    """Return the pawns at each place, in brackets."""
    letters: defaultdict[Place, str] = defaultdict(str)
    for seat, player in enumerate(scene.position["players"]):
        for letter, character in zip(_PAWNS[seat], CHARACTERS, strict=True):
            letters[place_of(scene.board, player, character)] += letter
    return defaultdict(str, {place: f"[{some}]" for place, some in letters.items()})


def _coast(board: Board, position: Position, pawns: Pawns) -> Iterator[Row]:
    """Yield a row for each coastal town, the stations after it, and their area."""
    yield "   COASTAL TOWN", "STATIONS AFTER IT", "AREA", "NEXT TO"
    ends = [*map(board.stations.index, COASTAL_TOWNS), len(board.stations)]
    for k, (town, area) in enumerate(zip(COASTAL_TOWNS, AREAS, strict=True)):
        token = position["boutiques"][town]
        boutique = "" if token is None else " {} {}".format(*token)
        stations = (
            board.stations[place].replace(" ", _GLUE) + pawns[place]
            for place in range(ends[k] + 1, ends[k + 1])
        )
        icon = board.area_icons[k]
        yield (
            f"{ends[k]:2} {town}{boutique}{pawns[ends[k]]}",
            "  ".join(stations),
            f"{area} {_ICON_SIGNS[icon]} {icon}{pawns[area]}",
            " ".join(AREAS[other] for other in board.neighbours[k]),
        )


def _mountains(board: Board, pawns: Pawns) -> Iterator[Row]:
    """Yield a row for each mountain town."""
    yield "   MOUNTAIN TOWN", "ROUTES TO", "IN AREAS"
    routes = adjacent_towns(board.routes)
    for town, number in zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True):
        areas = (area for area, towns in zip(AREAS, board.borders, strict=True) if town in towns)
        yield f"   {town} +{number}{pawns[town]}", " ".join(routes[town]), " ".join(areas)


# The supply: dice, waves, bag and hot spring


def _supply(position: Position) -> Iterator[str]:
    waves = (position["waves"][character] for character in CHARACTERS)
    rows = (
        ("SUPPLY", *map(str.upper, CHARACTERS)),
        ("die", *(_die(position, character) for character in CHARACTERS)),
        ("wave", *(f"{one['side'] or 'not dealt'}, {_owner(one['owner'])}" for one in waves)),
    )
    yield from _table(_SUPPLY, rows)
    spring = f"hot spring {_owner(position['hot_spring'])}"
    yield from _table(_BAG, [("bag", _counts(position["bag"]), spring)])


def _die(position: Position, character: str) -> str:
    value = f"{position['dice'][character]} " if position["dice"] else ""
    return value + die_state(position, character)


def _owner(seat: int | None) -> str:
    return "on board" if seat is None else SEATS[seat]


# The players


def _players(scene: Scene) -> Iterator[str]:
    columns = (_player(scene, seat) for seat in range(2))
    labels = ("PLAYERS", "pawns", "faith", "commerce", "wares", "culture", "easel")
    yield from _table(_PLAYERS, zip(labels, *columns, strict=True))


def _player(scene: Scene, seat: int) -> Row:
    """Return a player's cells: the name, then the pieces by kind."""
    position, points = scene.position, scene.points[seat]
    player = position["players"][seat]
    decides = ", decides" if position["player"] == seat else ""
    station = scene.board.stations[player["pilgrim"]]
    pilgrim, merchant, artist = (f"[{letter}]" for letter in _PAWNS[seat])
    steps = {name: f"{name} {player[name]}/{last}" for name, last in TRIGGER_LEVELS.items()}
    hidden = " ".join(f"{_ICON_SIGNS[icon]}{count}" for icon, count in player["hidden"].items())
    easel = " ".join(_ICON_SIGNS[icon] for icon in player["easel"])
    return (
        f"{SEATS[seat]}, total {sum(points.values())}{decides}",
        f"{pilgrim} {station} {player['pilgrim']}  {merchant} {player['merchant']}  "
        f"{artist} {player['artist']}",
        f"{points['faith']:<3} {steps['temple']}  {steps['garden']}",
        f"{points['commerce']:<3} {steps['gold']}  coins {player['coins']}",
        _counts(player["wares"]),
        f"{points['culture']:<3} {steps['gifted']} hidden {hidden}",
        f"front {easel}" if easel else _NONE,
    )
