"""A position drawn as text, for a terminal of 100 columns.

    print(draw(game.board, game.to_dict()))

The island is a rectangle: the ring of stations runs clockwise along its coast, the trade routes cut
it into the eight areas. The map of a board is surveyed once, for any ring and any tree of routes:
the ring is turned until the routes run straight, mountain towns stand amid their neighbours, routes
take the way with the fewest bends, areas are named where they are widest.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from tokaido_env.boards.board import Board
from tokaido_env.core.box import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS
from tokaido_env.render.scene import (
    Place,
    Player,
    Position,
    Scene,
    pawns_by_place,
    points_of,
    story_of,
)

WIDTH, HEIGHT = 100, 39

Cell = tuple[int, int]  # column, row
Size = tuple[int, int]  # width, height
Gate = tuple[Cell, int]  # where a route begins, and in which direction
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
_NOTHING, _CLOCKWISE_SIGN = "–", "►"

# A line is the set of directions in which it leaves its cell: the index of its sign.
_NORTH, _EAST, _SOUTH, _WEST = 1, 2, 4, 8
_LINE_SIGNS = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
_STEPS = {_NORTH: (0, -1), _EAST: (1, 0), _SOUTH: (0, 1), _WEST: (-1, 0)}
_BACK = {_NORTH: _SOUTH, _EAST: _WEST, _SOUTH: _NORTH, _WEST: _EAST}
_CLOCKWISE = {_NORTH: _WEST, _EAST: _NORTH, _SOUTH: _EAST, _WEST: _SOUTH}  # coast, by inland
_ARRIVED = 0

# The coast; this many stations stand along its top and its bottom, the others down its sides.
_LEFT, _TOP, _RIGHT, _BOTTOM = 13, 4, 86, 20
_ALONG = 7

_TOWN_SIZE: Size = (12, 3)  # a mountain town
_TOWN_SPACE: Size = (3, 1)  # kept free around it
_SHORT_NAME: Size = (5, 2)  # an area and who is there, above the sign of its icon
_NAME_ROOM = 6  # columns to leave for it between a side of the coast and a route
_ROW = 2  # a row is as high as two columns are wide

# What a route shuns, in columns: how far out of its way it goes instead.
_OFF_CENTRE, _SHORE, _NEARNESS, _BEND, _CROSSING = 2, 2, 3, 6, 1000

_RELAXATIONS, _TRIES = 50, 10

_TABLE_ROW, _TABLE_COLUMNS = 24, (7, 28, 49, 70, 82)
_PLAYER_ROW, _PLAYER_COLUMNS, _PLAYER_SIZE = 28, (0, 51), (49, 11)
_METERS = {"temple": 9, "garden": 6, "gold": 6, "gifted": 10}


def draw(board: Board, position: Position, *, color: bool = True) -> str:
    """Draw a position: lines of at most 100 columns.

    Args:
        board: the board of the position.
        position: a position as `Game.to_dict` gives it, drawn as it stands and not checked.
        color: whether to use the escape codes of a terminal with 256 colours.
    """
    canvas = _Canvas()
    _draw_heading(canvas, board, position)
    _draw_island(canvas, board, position)
    _draw_table(canvas, position)
    for seat in range(2):
        _draw_player(canvas, board, position, seat)
    return canvas.text(color)


def has_colors(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal with colours, and its user wants them."""
    wanted = os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    return wanted and stream.isatty()


class _Canvas:
    """A sheet of cells, each a sign and its style."""

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
            self.put(cell, _LINE_SIGNS[directions], "faint")

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


# The heading: what happens


def _draw_heading(canvas: _Canvas, board: Board, position: Position) -> None:
    title = "Tokaido Duo"
    name = "".join(sign for sign in position["board"] if sign.isprintable())
    facts = f"round {position['round']}", f"player_{position['lead']} leads", name
    canvas.put((1, 0), title, "name")
    canvas.put((1 + len(title), 0), "".join(f" · {fact}" for fact in facts))
    canvas.put((1, 1), f"{position['phase']} · {story_of(Scene(board, position))}", "turn")


# The island


def _draw_island(canvas: _Canvas, board: Board, position: Position) -> None:
    chart = _survey(board)
    pawns = _pawns(board, position)
    canvas.put_lines(chart.lines)
    canvas.put((_LEFT + 2, _TOP), _CLOCKWISE_SIGN, "faint")
    for index, (station, gate) in enumerate(zip(board.stations, chart.stations, strict=True)):
        _draw_station(canvas, gate, station, position["boutiques"].get(station))
        canvas.put_pawns(gate[0], pawns[index])
    for town, number in zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True):
        _draw_mountain_town(canvas, chart.towns[town], town, number)
        canvas.put_pawns(_beside(chart.towns[town], (8, 1)), pawns[town])
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        corner, (width, _) = chart.areas[area]
        name = f" {icon}" if width > _SHORT_NAME[0] else ""
        canvas.put(corner, area, "name")
        canvas.put_pawns(_beside(corner, (3, 0)), pawns[area])
        canvas.put(_beside(corner, (0, 1)), f"{_ICON_SIGNS[icon]}{name}")


def _draw_station(
    canvas: _Canvas, gate: Gate, station: str, boutique: Sequence[Any] | None
) -> None:
    cell, _ = gate
    if station in COASTAL_TOWNS:
        words = [station] if boutique is None else [station, "{} {}".format(*boutique)]
        styles: list[Style] = ["name", ""]
        canvas.put(cell, _TOWN_SIGN, "name")
    else:
        words = station.split()
        styles = ["faint", "faint"]
        canvas.put(cell, _STATION_SIGN, "faint")
    for start, word, style in zip(_word_cells(gate, words), words, styles, strict=False):
        canvas.put(start, word, style)


def _word_cells(gate: Gate, words: Sequence[str]) -> list[Cell]:
    """Return where words begin outside a gate: below each other, at the sides on one row."""
    (x, y), inland = gate
    if inland in (_NORTH, _SOUTH):
        top = y + 1 if inland == _NORTH else y - len(words)
        return [(x - len(word) // 2, row) for row, word in enumerate(words, top)]
    left = x + 2 if inland == _WEST else x - 1 - len(" ".join(words))
    starts = itertools.accumulate((len(word) + 1 for word in words[:-1]), initial=left)
    return [(start, y) for start in starts]


def _draw_mountain_town(canvas: _Canvas, corner: Cell, town: str, number: int) -> None:
    canvas.put(_beside(corner, (2, 1)), town, "name")
    canvas.put(_beside(corner, (5, 1)), f"+{number}")


def _pawns(board: Board, position: Position) -> defaultdict[Place, list[Pawn]]:
    """Return who stands where, as letters."""
    pawns: defaultdict[Place, list[Pawn]] = defaultdict(list)
    for place, standing in pawns_by_place(board, position).items():
        pawns[place] = [(seat, _PAWNS[seat][CHARACTERS.index(who)]) for seat, who in standing]
    return pawns


# The table: dice, waves, hot spring and bag


def _draw_table(canvas: _Canvas, position: Position) -> None:
    for row, label in enumerate(("", "die", "wave"), _TABLE_ROW):
        canvas.put((1, row), label, "faint")
    *by_character, spring, bag = _TABLE_COLUMNS
    for x, character in zip(by_character, CHARACTERS, strict=True):
        wave = position["waves"][character]
        owner, style = _owner(wave["owner"])
        canvas.put((x, _TABLE_ROW), character, "faint")
        canvas.put((x, _TABLE_ROW + 1), *_die(position, character))
        canvas.put((x, _TABLE_ROW + 2), f"{wave['side'] or 'not dealt'}, {owner}", style)
    canvas.put((spring, _TABLE_ROW), "hot spring", "faint")
    canvas.put((spring, _TABLE_ROW + 1), *_owner(position["hot_spring"]))
    canvas.put((bag, _TABLE_ROW), "bag", "faint")
    wares = [f"{ware} {count}" for ware, count in position["bag"].items()]
    for row in range(2):
        canvas.put((bag, _TABLE_ROW + 1 + row), "  ".join(wares[row::2]))


def _die(position: Position, character: str) -> tuple[str, Style]:
    if position["dice"] is None:
        return "not rolled", "faint"
    value = position["dice"][character]
    if character in position["dice_left"]:
        return f"{value} left", ""
    if character == position["die"]:
        return f"{value} in hand", "turn"
    return f"{value} taken", "faint"


def _owner(seat: int | None) -> tuple[str, Style]:
    return ("on board", "") if seat is None else (f"player_{seat}", _PLAYER_STYLES[seat])


# The players


def _draw_player(canvas: _Canvas, board: Board, position: Position, seat: int) -> None:
    player = position["players"][seat]
    corner = _PLAYER_COLUMNS[seat], _PLAYER_ROW
    points = points_of(board, player)
    canvas.put_lines(_rectangle(corner, _PLAYER_SIZE))
    canvas.put(_beside(corner, (2, 0)), f" player_{seat} ", _PLAYER_STYLES[seat])
    if position["player"] == seat:
        canvas.put(_beside(corner, (13, 0)), " decides ", "turn")
    total = f" total {sum(points.values())} "
    right = _PLAYER_SIZE[0] - 2 - len(total)
    canvas.put(_beside(corner, (right, 0)), total, _PLAYER_STYLES[seat])
    _draw_characters(canvas, corner, board, player, seat)
    _draw_meters(canvas, corner, player)
    _draw_holdings(canvas, corner, position, seat, points)


def _draw_characters(
    canvas: _Canvas, corner: Cell, board: Board, player: Player, seat: int
) -> None:
    """Write where the characters are; their letters are the legend of the map."""
    pilgrim, artist = player["pilgrim"], player["artist"]
    sign = _ICON_SIGNS[board.area_icons[AREAS.index(artist)]]
    places = f"{board.stations[pilgrim]} {pilgrim}", player["merchant"], f"{artist} {sign}"
    for row, letter in enumerate(_PAWNS[seat]):
        canvas.put_pawns(_beside(corner, (2, 1 + row)), [(seat, letter)])
        canvas.put(_beside(corner, (4, 1 + row)), CHARACTERS[row], "faint")
        canvas.put(_beside(corner, (13, 1 + row)), places[row])


def _draw_meters(canvas: _Canvas, corner: Cell, player: Player) -> None:
    for row, (name, size) in enumerate(_METERS.items(), 1):
        value = player[name]
        canvas.put(_beside(corner, (28, row)), name, "faint")
        canvas.put(_beside(corner, (35, row)), (_FULL * value).ljust(size, _EMPTY))
        canvas.put(_beside(corner, (45, row)), f"{value:2}")


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
        "easel": f"front {easel}" if easel else _NOTHING,
        "hidden": _counts({_ICON_SIGNS[icon]: n for icon, n in player["hidden"].items()}),
        "waves": ", ".join(waves) or _NOTHING,
    }
    for row, (name, text) in enumerate(holdings.items(), 4):
        canvas.put(_beside(corner, (2, row)), name, "faint")
        canvas.put(_beside(corner, (13, row)), text)


def _counts(counts: Mapping[str, int]) -> str:
    return "  ".join(f"{name} {count}" for name, count in counts.items())


# The map of a board


@dataclass(frozen=True)
class _Chart:
    """Where everything is."""

    stations: Sequence[Gate]  # clockwise from C1, each looking inland
    towns: Mapping[str, Cell]  # the top left corner of each mountain town
    areas: Mapping[str, tuple[Cell, Size]]  # the same of each area's name, and its size
    lines: Mapping[Cell, int]  # the coast, the mountain towns and the routes
    flaws: int  # cells where a name is outside its area, and many for each crossing of routes


@dataclass(frozen=True)
class _Layout:
    """One way to turn the ring, with the mountain towns that go with it."""

    stations: Sequence[Gate]
    gates: Mapping[str, Gate]  # of the coastal towns
    towns: Mapping[str, Cell]
    places: Mapping[str, complex]  # the middle of each town
    crookedness: int


@functools.lru_cache(maxsize=16)
def _survey(board: Board) -> _Chart:
    """Map a board, its ring turned the straightest way in which routes and names keep apart."""
    sites = _coast_sites(len(board.stations))
    turned = (sites[turn:] + sites[:turn] for turn in range(0, -len(sites), -1))
    layouts = sorted((_settle(board, sites) for sites in turned), key=lambda one: one.crookedness)
    charts = []
    for layout in layouts[:_TRIES]:
        charts.append(_Surveyor(board, layout).chart())
        if not charts[-1].flaws:
            break
    return min(charts, key=lambda chart: chart.flaws)


def _coast_sites(size: int) -> list[Gate]:
    """Spread a ring along the coast, clockwise from the top left."""
    columns = _spread(_ALONG, _LEFT, _RIGHT)
    down = size // 2 - _ALONG
    return [
        *(((x, _TOP), _SOUTH) for x in columns),
        *(((_RIGHT, y), _WEST) for y in _spread(down + size % 2, _TOP, _BOTTOM)),
        *(((x, _BOTTOM), _NORTH) for x in reversed(columns)),
        *(((_LEFT, y), _EAST) for y in reversed(_spread(down, _TOP, _BOTTOM))),
    ]


def _spread(count: int, low: int, high: int) -> list[int]:
    """Place points evenly between two borders."""
    room = high - low - 1
    return [low + 1 + (2 * k + 1) * room // (2 * count) for k in range(count)]


def _settle(board: Board, stations: Sequence[Gate]) -> _Layout:
    """Find a site for each mountain town, given those of the stations."""
    gates = {town: stations[board.stations.index(town)] for town in COASTAL_TOWNS}
    ideal = _ideal_places(board, gates)
    towns: dict[str, Cell] = {}
    middle = sum(ideal.values()) / len(ideal)
    for town in sorted(MOUNTAIN_TOWNS, key=lambda town: -abs(ideal[town] - middle)):
        towns[town] = _free_site(ideal[town], towns.values())
    places = ideal | {town: _middle(corner, _TOWN_SIZE) for town, corner in towns.items()}
    ways = [places[a] - places[b] for a, b in board.routes]
    slant = sum(min(abs(way.real), abs(way.imag)) for way in ways)
    shift = sum(abs(places[town] - ideal[town]) for town in towns)
    return _Layout(stations, gates, towns, places, crookedness=round(slant + 2 * shift))


def _ideal_places(board: Board, gates: Mapping[str, Gate]) -> dict[str, complex]:
    """Put each mountain town amid its neighbours: straight routes would not cross (Tutte).

    Mountain towns pull each other twice as hard as coastal towns: areas by the coast need room.
    """
    near: dict[str, list[str]] = {town: [] for town in MOUNTAIN_TOWNS}
    for a, b in (*board.routes, *(route[::-1] for route in board.routes)):
        if a in near:
            near[a] += [b, b] if b in near else [b]
    places = {town: _middle(cell) for town, (cell, _) in gates.items()}
    places |= dict.fromkeys(MOUNTAIN_TOWNS, sum(places.values()) / len(places))
    for _ in range(_RELAXATIONS):
        for town, others in near.items():
            places[town] = sum(places[other] for other in others) / len(others)
    return places


def _free_site(place: complex, taken: Iterable[Cell]) -> Cell:
    """Return the corner of the free site of a mountain town that is nearest to a place."""
    (width, height), (beside, below) = _TOWN_SIZE, _TOWN_SPACE
    columns = range(_LEFT + 1 + beside, _RIGHT - width - beside + 1)
    rows = range(_TOP + 1 + below, _BOTTOM - height - below + 1)
    taken = list(taken)
    free = (
        (x, y)
        for x, y in itertools.product(columns, rows)
        if all(abs(x - a) >= width + beside or abs(y - b) >= height + below for a, b in taken)
    )
    return min(free, key=lambda corner: abs(_middle(corner, _TOWN_SIZE) - place))


class _Surveyor:
    """Lays the routes and names the areas on the land within the coast."""

    def __init__(self, board: Board, layout: _Layout) -> None:
        size = _RIGHT - _LEFT + 1, _BOTTOM - _TOP + 1
        self._board = board
        self._layout = layout
        self._lines = _rectangle((_LEFT, _TOP), size)
        self._land = _cells((_LEFT, _TOP), size) - set(self._lines)
        for corner in layout.towns.values():
            self._lines |= _rectangle(corner, _TOWN_SIZE)
            self._land -= _cells(corner, _TOWN_SIZE)
        self._flaws = 0

    def chart(self) -> _Chart:
        """Lay the routes, name the areas and return the map."""
        for start, end in sorted(self._board.routes, key=self._rank):
            self._lay(self._way(self._ports(start), self._ports(end)))
        areas = {area: self._name(index) for index, area in enumerate(AREAS)}
        return _Chart(self._layout.stations, self._layout.towns, areas, self._lines, self._flaws)

    def _rank(self, route: tuple[str, str]) -> tuple[bool, float]:
        """Tell which routes to lay first: those between mountain towns, and the short ones."""
        places = self._layout.places
        start, end = route
        return start in COASTAL_TOWNS or end in COASTAL_TOWNS, abs(places[start] - places[end])

    def _lay(self, way: Sequence[Cell]) -> None:
        """Draw a route."""
        self._flaws += _CROSSING * len(self._land & set(self._lines) & set(way))
        for cell, ahead in itertools.pairwise(way):
            heading = next(heading for heading in _STEPS if _ahead(cell, heading) == ahead)
            self._lines[cell] = self._lines.get(cell, 0) | heading
            self._lines[ahead] = self._lines.get(ahead, 0) | _BACK[heading]

    def _ports(self, town: str) -> dict[Gate, int]:
        """Return where routes may leave a town, with what each costs."""
        if town in self._layout.gates:
            return {self._layout.gates[town]: 0}
        (left, top), (width, height) = self._layout.towns[town], _TOWN_SIZE
        ports = {((left, top + 1), _WEST): 0, ((left + width - 1, top + 1), _EAST): 0}
        for offset in range(1, width - 1):
            cost = _OFF_CENTRE * abs(2 * offset + 1 - width) // 2
            ports[(left + offset, top), _NORTH] = cost
            ports[(left + offset, top + height - 1), _SOUTH] = cost
        return ports

    def _way(self, starts: Mapping[Gate, int], ends: Mapping[Gate, int]) -> tuple[Cell, ...]:
        """Return the cheapest way from one of the starts to one of the ends (Dijkstra)."""
        queue: list[tuple[int, Cell, int, tuple[Cell, ...]]]
        queue = [(cost, cell, heading, (cell,)) for (cell, heading), cost in starts.items()]
        heapq.heapify(queue)
        done: set[Gate] = set()
        while True:
            cost, cell, heading, way = heapq.heappop(queue)
            if heading == _ARRIVED:
                return way
            if (cell, heading) in done:
                continue
            done.add((cell, heading))
            for ahead, turn, toll in self._steps(cell, heading, ends):
                heapq.heappush(queue, (cost + toll, ahead, turn, (*way, ahead)))

    def _steps(
        self, cell: Cell, heading: int, ends: Mapping[Gate, int]
    ) -> Iterator[tuple[Cell, int, int]]:
        """Yield the next cell with each heading from there on and what it costs."""
        ahead = _ahead(cell, heading)
        if (ahead, _BACK[heading]) in ends:
            yield ahead, _ARRIVED, ends[ahead, _BACK[heading]]
        elif ahead in self._land:
            toll = self._toll(ahead) * (_ROW if heading in (_NORTH, _SOUTH) else 1)
            for turn in _STEPS:
                if turn != _BACK[heading]:
                    yield ahead, turn, toll if turn == heading else toll + _BEND

    def _toll(self, cell: Cell) -> int:
        if cell in self._lines:
            return _CROSSING
        x, y = cell
        near = ((x - 2, y), (x - 1, y), (x + 1, y), (x + 2, y), (x, y - 1), (x, y + 1))
        crowded = any(other in self._lines for other in near)
        ashore = not _LEFT + _NAME_ROOM < x < _RIGHT - _NAME_ROOM
        return 1 + _NEARNESS * crowded + _SHORE * ashore

    def _name(self, area: int) -> tuple[Cell, Size]:
        """Take a site for the name of an area, in full if there is room."""
        coast = self._coast(area)
        region = self._region(coast)
        heart = sum(map(_middle, region or coast)) / len(region or coast)
        full = len(f"☾ {self._board.area_icons[area]}"), _SHORT_NAME[1]
        for size in (full, _SHORT_NAME):
            room, _, corner = max(
                (_room(region, corner, size), -abs(_middle(corner, size) - heart), corner)
                for corner in self._land
                if self._land >= _cells(corner, size)
            )
            if room > 0:
                break
        self._flaws += max(0, -room)
        self._land -= _cells(corner, size)
        return corner, size

    def _coast(self, area: int) -> set[Cell]:
        """Return land by the coast of an area: clockwise of each station up to the next town."""
        stations = self._board.stations
        first = stations.index(COASTAL_TOWNS[area])
        ends = (*map(stations.index, COASTAL_TOWNS), len(stations))
        gates = self._layout.stations[first : ends[area + 1]]
        return {_ahead(_ahead(cell, inland), _CLOCKWISE[inland]) for cell, inland in gates}

    def _region(self, coast: set[Cell]) -> set[Cell]:
        """Return all free land that can be reached from a coast."""
        free = self._land - set(self._lines)
        region: set[Cell] = set()
        edge = coast & free
        while edge:
            region |= edge
            edge = {_ahead(cell, heading) for cell in edge for heading in _STEPS} & free - region
        return region


def _room(region: set[Cell], corner: Cell, size: Size) -> int:
    """Return how much room a name has in its region; of cells outside it, minus their number."""
    outside = len(_cells(corner, size) - region)
    if outside:
        return -outside
    room = 1
    while region.issuperset(_rectangle(*_enlarged(corner, size, room))):
        room += 1
    return room


def _enlarged(corner: Cell, size: Size, beside: int) -> tuple[Cell, Size]:
    """Return a rectangle with more room around it."""
    below = beside // _ROW
    return _beside(corner, (-beside, -below)), _beside(size, (2 * beside, 2 * below))


def _ahead(cell: Cell, heading: int) -> Cell:
    return _beside(cell, _STEPS[heading])


def _beside(cell: Cell, offset: Cell) -> Cell:
    return cell[0] + offset[0], cell[1] + offset[1]


def _middle(corner: Cell, size: Size = (1, 1)) -> complex:
    """Return the middle of a rectangle in a plane where both directions have one scale."""
    return complex(corner[0] + size[0] / 2, _ROW * (corner[1] + size[1] / 2))


def _cells(corner: Cell, size: Size) -> set[Cell]:
    (left, top), (width, height) = corner, size
    return set(itertools.product(range(left, left + width), range(top, top + height)))


def _rectangle(corner: Cell, size: Size) -> dict[Cell, int]:
    """Return the lines around a rectangle."""
    left, top = corner
    right, bottom = left + size[0] - 1, top + size[1] - 1
    lines = {(x, y): _EAST | _WEST for x in range(left, right) for y in (top, bottom)}
    lines |= {(x, y): _NORTH | _SOUTH for x in (left, right) for y in range(top, bottom)}
    lines[left, top], lines[right, top] = _EAST | _SOUTH, _SOUTH | _WEST
    lines[left, bottom], lines[right, bottom] = _NORTH | _EAST, _NORTH | _WEST
    return lines
