"""Text pictures of positions, for terminals of 100 columns.

    print(draw(game.scene()))

The island is a rectangle with the ring of stations along its coast, clockwise; the trade routes
divide it into eight areas (`ansi_map`).
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TextIO

from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import printable
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS
from tokaido_env.render.ansi_map import (
    LEFT,
    LINE_SIGNS,
    NORTH,
    SHORT_NAME,
    SOUTH,
    TOP,
    WEST,
    Cell,
    Port,
    offset_cell,
    rectangle,
    terminal_map_of,
)
from tokaido_env.render.scene import (
    SEATS,
    Place,
    Player,
    Position,
    Scene,
    die_state,
    place_of,
    round_text,
    status_text,
)

WIDTH, HEIGHT = 100, 39

Pawn = tuple[int, str]  # seat, letter
Style = Literal["", "name", "faint", "turn", "player_0", "player_1", "pawn_0", "pawn_1"]

_ESCAPES: dict[Style, str] = {
    "name": "1",
    "faint": "38;5;244",
    "turn": "1;38;5;172",
    "player_0": "1;38;5;134",
    "player_1": "1;38;5;71",
    "pawn_0": "1;38;5;231;48;5;91",
    "pawn_1": "1;38;5;231;48;5;28",
}
_PLAYER_STYLES: tuple[Style, ...] = ("player_0", "player_1")
_PAWN_STYLES: tuple[Style, ...] = ("pawn_0", "pawn_1")
_PAWNS = ("PMA", "pma")  # [seat][character]

_ICON_SIGNS = {"moon": "☾", "waterfall": "≋", "mountain": "▲", "bamboo": "╫"}
_TOWN_SIGN, _STATION_SIGN = "■", "○"
_FULL, _EMPTY = "■", "·"
_NONE, _CLOCKWISE_SIGN = "–", "►"

_SUPPLY_ROW, _SUPPLY_COLUMNS = 24, (7, 28, 49, 70, 82)
_PLAYER_ROW, _PLAYER_COLUMNS, _PLAYER_SIZE = 28, (0, 51), (49, 11)
_METERS = {"temple": 9, "garden": 6, "gold": 6, "gifted": 10}


def draw(scene: Scene, *, color: bool = True) -> str:
    """Return a scene as text, in lines of at most 100 columns.

    Characters that standard output cannot encode are replaced by similar ones.

    Args:
        scene: the position to draw.
        color: use the escape codes of terminals with 256 colours.
    """
    canvas = _Canvas()
    _draw_heading(canvas, scene)
    _draw_island(canvas, scene.board, scene.position)
    _draw_supply(canvas, scene.position)
    for seat in range(2):
        _draw_player(canvas, scene, seat)
    return printable(canvas.text(color))


def has_colors(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours, and TERM and NO_COLOR allow them."""
    allowed = os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    return allowed and stream.isatty()


class _Canvas:
    """A grid of cells with a character and a style each."""

    def __init__(self) -> None:
        self._signs = [[" "] * WIDTH for _ in range(HEIGHT)]
        self._styles: list[list[Style]] = [[""] * WIDTH for _ in range(HEIGHT)]

    def put(self, cell: Cell, text: str, style: Style = "") -> None:
        column, row = cell
        signs = text[: WIDTH - column]
        self._signs[row][column : column + len(signs)] = signs
        self._styles[row][column : column + len(signs)] = [style] * len(signs)

    def put_lines(self, lines: Mapping[Cell, int]) -> None:
        for cell, directions in lines.items():
            self.put(cell, LINE_SIGNS[directions], "faint")

    def put_pawns(self, cell: Cell, pawns: Iterable[Pawn]) -> None:
        column, row = cell
        for offset, (seat, letter) in enumerate(pawns):
            self.put((column + offset, row), letter, _PAWN_STYLES[seat])

    def text(self, color: bool) -> str:
        lines = ["".join(signs).rstrip() for signs in self._signs]
        if color:
            lines = [_colored(*line) for line in zip(lines, self._styles, strict=True)]
        return "\n".join(lines)


def _colored(line: str, styles: Sequence[Style]) -> str:
    runs = []
    for style, signs in itertools.groupby(zip(line, styles, strict=False), lambda cell: cell[1]):
        run = "".join(sign for sign, _ in signs)
        runs.append(f"\x1b[{_ESCAPES[style]}m{run}\x1b[0m" if style else run)
    return "".join(runs)


# The heading


def _draw_heading(canvas: _Canvas, scene: Scene) -> None:
    scene = replace(scene, names=SEATS)
    canvas.put((1, 0), "Tokaido Duo", "name")
    canvas.put((12, 0), f" · {round_text(scene)}")
    canvas.put((1, 1), f"{scene.position['phase']} · {status_text(scene)}", "turn")


# The island


def _draw_island(canvas: _Canvas, board: Board, position: Position) -> None:
    layout = terminal_map_of(board)
    pawns = _pawns(board, position)
    canvas.put_lines(layout.lines)
    canvas.put((LEFT + 2, TOP), _CLOCKWISE_SIGN, "faint")
    for index, (station, port) in enumerate(zip(board.stations, layout.stations, strict=True)):
        _draw_station(canvas, port, station, position["boutiques"].get(station))
        canvas.put_pawns(port[0], pawns[index])
    for town, number in zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True):
        corner = layout.towns[town]
        canvas.put(offset_cell(corner, (2, 1)), town, "name")
        canvas.put(offset_cell(corner, (5, 1)), f"+{number}")
        canvas.put_pawns(offset_cell(corner, (8, 1)), pawns[town])
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        corner, (width, _) = layout.areas[area]
        name = f" {icon}" if width > SHORT_NAME[0] else ""
        canvas.put(corner, area, "name")
        canvas.put_pawns(offset_cell(corner, (3, 0)), pawns[area])
        canvas.put(offset_cell(corner, (0, 1)), f"{_ICON_SIGNS[icon]}{name}")


def _draw_station(
    canvas: _Canvas, port: Port, station: str, boutique: Sequence[Any] | None
) -> None:
    cell, _ = port
    if station in COASTAL_TOWNS:
        texts = [station] if boutique is None else [station, "{} {}".format(*boutique)]
        styles: list[Style] = ["name", ""]
        canvas.put(cell, _TOWN_SIGN, "name")
    else:
        texts = station.split()
        styles = ["faint", "faint"]
        canvas.put(cell, _STATION_SIGN, "faint")
    for start, text, style in zip(_text_cells(port, texts), texts, styles, strict=False):
        canvas.put(start, text, style)


def _text_cells(port: Port, texts: Sequence[str]) -> list[Cell]:
    """Return the first cells of a station's texts: in one column, at the sides in one row."""
    (x, y), inland = port
    if inland in (NORTH, SOUTH):
        top = y + 1 if inland == NORTH else y - len(texts)
        return [(x - len(text) // 2, row) for row, text in enumerate(texts, top)]
    left = x + 2 if inland == WEST else x - 1 - len(" ".join(texts))
    starts = itertools.accumulate((len(text) + 1 for text in texts[:-1]), initial=left)
    return [(start, y) for start in starts]


def _pawns(board: Board, position: Position) -> defaultdict[Place, list[Pawn]]:
    """Return the pawns at each place."""
    pawns: defaultdict[Place, list[Pawn]] = defaultdict(list)
    for seat, player in enumerate(position["players"]):
        for letter, character in zip(_PAWNS[seat], CHARACTERS, strict=True):
            pawns[place_of(board, player, character)].append((seat, letter))
    return pawns


# The supply: dice, waves, hot spring and bag


def _draw_supply(canvas: _Canvas, position: Position) -> None:
    for row, label in enumerate(("", "die", "wave"), _SUPPLY_ROW):
        canvas.put((1, row), label, "faint")
    *by_character, spring, bag = _SUPPLY_COLUMNS
    for x, character in zip(by_character, CHARACTERS, strict=True):
        wave = position["waves"][character]
        owner, style = _owner(wave["owner"])
        canvas.put((x, _SUPPLY_ROW), character, "faint")
        canvas.put((x, _SUPPLY_ROW + 1), *_die(position, character))
        canvas.put((x, _SUPPLY_ROW + 2), f"{wave['side'] or 'not dealt'}, {owner}", style)
    canvas.put((spring, _SUPPLY_ROW), "hot spring", "faint")
    canvas.put((spring, _SUPPLY_ROW + 1), *_owner(position["hot_spring"]))
    canvas.put((bag, _SUPPLY_ROW), "bag", "faint")
    wares = [f"{ware} {count}" for ware, count in position["bag"].items()]
    for row in range(2):
        canvas.put((bag, _SUPPLY_ROW + 1 + row), "  ".join(wares[row::2]))


def _die(position: Position, character: str) -> tuple[str, Style]:
    state = die_state(position, character)
    value = f"{position['dice'][character]} " if position["dice"] else ""
    styles: dict[str, Style] = {"available": "", "selected": "turn"}
    return value + state, styles.get(state, "faint")


def _owner(seat: int | None) -> tuple[str, Style]:
    return ("on board", "") if seat is None else (f"player_{seat}", _PLAYER_STYLES[seat])


# The players


def _draw_player(canvas: _Canvas, scene: Scene, seat: int) -> None:
    position, points = scene.position, scene.points[seat]
    player = position["players"][seat]
    corner = _PLAYER_COLUMNS[seat], _PLAYER_ROW
    canvas.put_lines(rectangle(corner, _PLAYER_SIZE))
    canvas.put(offset_cell(corner, (2, 0)), f" player_{seat} ", _PLAYER_STYLES[seat])
    if position["player"] == seat:
        canvas.put(offset_cell(corner, (13, 0)), " decides ", "turn")
    total = f" total {sum(points.values())} "
    right = _PLAYER_SIZE[0] - 2 - len(total)
    canvas.put(offset_cell(corner, (right, 0)), total, _PLAYER_STYLES[seat])
    _draw_characters(canvas, corner, scene.board, player, seat)
    _draw_meters(canvas, corner, player)
    _draw_holdings(canvas, corner, position, seat, points)


def _draw_characters(
    canvas: _Canvas, corner: Cell, board: Board, player: Player, seat: int
) -> None:
    """Write the characters' places; their letters are the legend of the map."""
    pilgrim, artist = player["pilgrim"], player["artist"]
    sign = _ICON_SIGNS[board.area_icons[AREAS.index(artist)]]
    places = f"{board.stations[pilgrim]} {pilgrim}", player["merchant"], f"{artist} {sign}"
    for row, letter in enumerate(_PAWNS[seat]):
        canvas.put_pawns(offset_cell(corner, (2, 1 + row)), [(seat, letter)])
        canvas.put(offset_cell(corner, (4, 1 + row)), CHARACTERS[row], "faint")
        canvas.put(offset_cell(corner, (13, 1 + row)), places[row])


def _draw_meters(canvas: _Canvas, corner: Cell, player: Player) -> None:
    for row, (name, size) in enumerate(_METERS.items(), 1):
        value = player[name]
        canvas.put(offset_cell(corner, (28, row)), name, "faint")
        canvas.put(offset_cell(corner, (35, row)), (_FULL * value).ljust(size, _EMPTY))
        canvas.put(offset_cell(corner, (45, row)), f"{value:2}")


def _draw_holdings(
    canvas: _Canvas, corner: Cell, position: Position, seat: int, points: Mapping[str, int]
) -> None:
    player = position["players"][seat]
    spring = "   hot spring" if position["hot_spring"] == seat else ""
    easel = " ".join(_ICON_SIGNS[icon] for icon in player["easel"])
    waves = [str(wave["side"]) for wave in position["waves"].values() if wave["owner"] == seat]
    holdings = {
        "coins": f"{player['coins']}{spring}",
        "points": _counts(points),
        "wares": _counts(player["wares"]),
        "easel": f"front {easel}" if easel else _NONE,
        "hidden": _counts({_ICON_SIGNS[icon]: n for icon, n in player["hidden"].items()}),
        "waves": ", ".join(waves) or _NONE,
    }
    for row, (name, text) in enumerate(holdings.items(), 4):
        canvas.put(offset_cell(corner, (2, row)), name, "faint")
        canvas.put(offset_cell(corner, (13, row)), text)


def _counts(counts: Mapping[str, int]) -> str:
    return "  ".join(f"{name} {count}" for name, count in counts.items())
