"""Map layout of terminal pictures: cells of a board's stations, towns, areas and routes.

The layout works for any ring and any tree of routes. It turns the ring, with C1 in the north-west
if that leaves room, until routes are straight; places mountain towns among their neighbours; draws
routes with few bends; and writes area names where areas are widest.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.constants import AREAS, COASTAL_TOWNS, MOUNTAIN_TOWNS, TOWNS
from tokaido_env.render.layout_optimizer import Island, barycentric_places

Cell = tuple[int, int]  # column, row
Size = tuple[int, int]  # width, height
Port = tuple[Cell, int]  # the first cell of a route and its direction

# A line is the bit set of directions in which it leaves its cell, an index into these characters.
NORTH, EAST, SOUTH, WEST = 1, 2, 4, 8
LINE_SIGNS = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
_STEPS = {NORTH: (0, -1), EAST: (1, 0), SOUTH: (0, 1), WEST: (-1, 0)}
_OPPOSITE = {NORTH: SOUTH, EAST: WEST, SOUTH: NORTH, WEST: EAST}
_CLOCKWISE = {NORTH: WEST, EAST: NORTH, SOUTH: EAST, WEST: SOUTH}  # along the coast, by inland
_ARRIVED = 0

# The coast; the top and the bottom have this many stations each, the sides the others.
LEFT, TOP, _RIGHT, _BOTTOM = 13, 4, 86, 20
_STATIONS_ACROSS = 7

_TOWN_SIZE: Size = (12, 3)  # a mountain town
_TOWN_MARGIN: Size = (3, 1)
SHORT_NAME: Size = (5, 2)  # an area's name and its pawns, above its icon
_NAME_ROOM = 6  # columns to leave for it between a side of the coast and a route
_ROW = 2  # a row is as high as two columns are wide

# Costs of a route, in columns; chosen by eye.
_OFF_CENTRE, _SHORE, _NEARNESS, _BEND, _CROSSING = 2, 2, 3, 6, 1000
_CUT_OFF = 2  # flaws

_TRIES, _MORE_TRIES = 6, 12
_UNITS = 7  # of a picture in a column


@dataclass(frozen=True)
class TerminalMap:
    """Cells of everything on the map.

    Attributes:
        stations: clockwise from C1, with their inland directions.
        towns: the top left corner of each mountain town.
        areas: the top left corner and the size of each area's name.
        lines: of the coast, the mountain towns and the routes.
        flaws: the number of cells of names outside their areas, plus `_CUT_OFF` for each station
            that a route separates from its area and `_CROSSING` for each crossing of routes.
    """

    stations: Sequence[Port]
    towns: Mapping[str, Cell]
    areas: Mapping[str, tuple[Cell, Size]]
    lines: Mapping[Cell, int]
    flaws: int


@dataclass(frozen=True)
class _Placement:
    """Stations for one turn of the ring, with matching mountain towns."""

    stations: Sequence[Port]
    ports: Mapping[str, Port]  # of the coastal towns
    towns: Mapping[str, Cell]
    places: Mapping[str, complex]  # the middle of each town
    crookedness: int


@functools.lru_cache(maxsize=16)
def terminal_map_of(board: Board) -> TerminalMap:
    """Return the map of a board, for the straightest turn of the ring that has few flaws."""
    placements = _placements(board)
    best = _Router(board, next(placements)).map()
    for tried, placement in enumerate(placements, start=1):
        if best.flaws <= int(tried > _TRIES):  # later a name may hide one cell of a route
            break
        best = min(best, _Router(board, placement).map(), key=lambda one: one.flaws)
    return best


def _placements(board: Board) -> Iterator[_Placement]:
    """Yield placements for turns of the ring, best first; C1 in the north-west if possible."""
    sites = _coast_sites(len(board.stations))
    turned = [sites[turn:] + sites[:turn] for turn in range(0, -len(sites), -1)]
    first = [stations[0][0] for stations in turned]
    northwest = [
        stations
        for stations, (x, y) in zip(turned, first, strict=True)
        if 2 * x <= LEFT + _RIGHT and 2 * y <= TOP + _BOTTOM
    ]
    for some in (northwest, turned):
        placements = (_place_towns(board, stations) for stations in some)
        straightest = sorted(placements, key=lambda one: one.crookedness)
        yield from straightest[:_TRIES]
        roomier = straightest[:_MORE_TRIES]
        yield from (_place_towns(board, one.stations, roomy=True) for one in roomier)


def _coast_sites(size: int) -> list[Port]:
    """Return sites for a ring of stations along the coast, clockwise from the top left."""
    columns = _spread(_STATIONS_ACROSS, LEFT, _RIGHT)
    down = size // 2 - _STATIONS_ACROSS
    return [
        *(((x, TOP), SOUTH) for x in columns),
        *(((_RIGHT, y), WEST) for y in _spread(down + size % 2, TOP, _BOTTOM)),
        *(((x, _BOTTOM), NORTH) for x in reversed(columns)),
        *(((LEFT, y), EAST) for y in reversed(_spread(down, TOP, _BOTTOM))),
    ]


def _spread(count: int, low: int, high: int) -> list[int]:
    """Return points at equal distances between two borders."""
    room = high - low - 1
    return [low + 1 + (2 * k + 1) * room // (2 * count) for k in range(count)]


def _place_towns(board: Board, stations: Sequence[Port], roomy: bool = False) -> _Placement:
    """Return a placement with a site for each mountain town, given the stations.

    Args:
        board: the board to map.
        stations: clockwise from C1.
        roomy: prefer room for towns, routes and areas over straight routes.
    """
    ports = {town: stations[board.stations.index(town)] for town in COASTAL_TOWNS}
    coasts = np.array([_middle(cell) for cell, _ in ports.values()])
    ideal = barycentric_places(board, coasts)
    if roomy:
        ring = np.array([_middle(cell) for cell, _ in stations])
        roomier = Island(board, _points(ring), per_station=1).optimise(_points(ideal)) / _UNITS
        ideal = roomier.view(complex)[:, 0]
    middle = np.r_[coasts, ideal].mean()
    towns: dict[str, Cell] = {}
    for number in np.argsort(-abs(ideal - middle), kind="stable").tolist():
        towns[MOUNTAIN_TOWNS[number]] = _free_site(ideal[number], towns.values())
    sites = [_middle(towns[town], _TOWN_SIZE) for town in MOUNTAIN_TOWNS]
    places = dict(zip(TOWNS, [*coasts.tolist(), *sites], strict=True))
    ways = [places[a] - places[b] for a, b in board.routes]
    slant = sum(min(abs(way.real), abs(way.imag)) for way in ways)
    shift = float(abs(sites - ideal).sum())
    return _Placement(stations, ports, towns, places, crookedness=round(slant + 2 * shift))


def _points(places: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
    """Return places in units of a picture, (n, 2)."""
    return (places * _UNITS).view(float).reshape(-1, 2)


def _free_site(place: complex, taken: Iterable[Cell]) -> Cell:
    """Return the top left corner of the free site for a mountain town nearest to a place."""
    corners = _town_corners()
    distance = abs(_middle(corners.T, _TOWN_SIZE) - place)
    for corner in taken:
        distance[(abs(corners - corner) < np.add(_TOWN_SIZE, _TOWN_MARGIN)).all(axis=1)] = np.inf
    column, row = corners[distance.argmin()].tolist()
    return column, row


@functools.cache
def _town_corners() -> npt.NDArray[np.int64]:
    """Return all possible top left corners of a mountain town, (n, 2)."""
    (width, height), (columns_free, rows_free) = _TOWN_SIZE, _TOWN_MARGIN
    columns = range(LEFT + 1 + columns_free, _RIGHT - width - columns_free + 1)
    rows = range(TOP + 1 + rows_free, _BOTTOM - height - rows_free + 1)
    return np.array(list(itertools.product(columns, rows)))


class _Router:
    """Draws the routes and places the areas' names on the land within the coast."""

    def __init__(self, board: Board, placement: _Placement) -> None:
        size = _RIGHT - LEFT + 1, _BOTTOM - TOP + 1
        self._board = board
        self._placement = placement
        self._lines = rectangle((LEFT, TOP), size)
        self._land = _cells((LEFT, TOP), size) - set(self._lines)
        for corner in placement.towns.values():
            self._lines |= rectangle(corner, _TOWN_SIZE)
            self._land -= _cells(corner, _TOWN_SIZE)
        self._flaws = 0
        self._costs: dict[Cell, int] = {}  # valid until the next route is drawn

    def map(self) -> TerminalMap:
        """Draw the routes, place the areas' names and return the map."""
        for start, end in sorted(self._board.routes, key=self._rank):
            self._draw_route(self._cheapest_path(self._ports(start), self._ports(end)))
        self._flaws += _CUT_OFF * sum(
            _ahead(cell, inland) in self._lines
            for (cell, inland), name in zip(
                self._placement.stations, self._board.stations, strict=True
            )
            if name not in COASTAL_TOWNS
        )
        areas = {area: self._place_name(index) for index, area in enumerate(AREAS)}
        placement = self._placement
        return TerminalMap(placement.stations, placement.towns, areas, self._lines, self._flaws)

    def _rank(self, route: tuple[str, str]) -> tuple[bool, float]:
        """Return a sort key: routes between mountain towns first, then short routes first."""
        places = self._placement.places
        start, end = route
        return start in COASTAL_TOWNS or end in COASTAL_TOWNS, abs(places[start] - places[end])

    def _draw_route(self, path: Sequence[Cell]) -> None:
        self._flaws += _CROSSING * len(self._land & set(self._lines) & set(path))
        self._costs.clear()
        for cell, ahead in itertools.pairwise(path):
            heading = next(heading for heading in _STEPS if _ahead(cell, heading) == ahead)
            self._lines[cell] = self._lines.get(cell, 0) | heading
            self._lines[ahead] = self._lines.get(ahead, 0) | _OPPOSITE[heading]

    def _ports(self, town: str) -> dict[Port, int]:
        """Return the possible ports of routes at a town, with their costs."""
        if town in self._placement.ports:
            return {self._placement.ports[town]: 0}
        (left, top), (width, height) = self._placement.towns[town], _TOWN_SIZE
        ports = {((left, top + 1), WEST): 0, ((left + width - 1, top + 1), EAST): 0}
        for offset in range(1, width - 1):
            cost = _OFF_CENTRE * abs(2 * offset + 1 - width) // 2
            ports[(left + offset, top), NORTH] = cost
            ports[(left + offset, top + height - 1), SOUTH] = cost
        return ports

    def _cheapest_path(
        self, starts: Mapping[Port, int], ends: Mapping[Port, int]
    ) -> tuple[Cell, ...]:
        """Return the cheapest path from one of the starts to one of the ends (Dijkstra 1959)."""
        queue: list[tuple[int, Cell, int, tuple[Cell, ...]]]
        queue = [(cost, cell, heading, (cell,)) for (cell, heading), cost in starts.items()]
        heapq.heapify(queue)
        done: set[Port] = set()
        while True:
            cost, cell, heading, path = heapq.heappop(queue)
            if heading == _ARRIVED:
                return path
            if (cell, heading) in done:
                continue
            done.add((cell, heading))
            for ahead, turn, more in self._steps(cell, heading, ends):
                heapq.heappush(queue, (cost + more, ahead, turn, (*path, ahead)))

    def _steps(
        self, cell: Cell, heading: int, ends: Mapping[Port, int]
    ) -> Iterator[tuple[Cell, int, int]]:
        """Yield the next cell, each possible heading from there, and its cost."""
        ahead = _ahead(cell, heading)
        if (ahead, _OPPOSITE[heading]) in ends:
            yield ahead, _ARRIVED, ends[ahead, _OPPOSITE[heading]]
        elif ahead in self._land:
            if ahead not in self._costs:
                self._costs[ahead] = self._cost(ahead)
            cost = self._costs[ahead] * (_ROW if heading in (NORTH, SOUTH) else 1)
            for turn in _STEPS:
                if turn != _OPPOSITE[heading]:
                    yield ahead, turn, cost if turn == heading else cost + _BEND

    def _cost(self, cell: Cell) -> int:
        if cell in self._lines:
            return _CROSSING
        x, y = cell
        near = ((x - 2, y), (x - 1, y), (x + 1, y), (x + 2, y), (x, y - 1), (x, y + 1))
        is_crowded = any(other in self._lines for other in near)
        is_at_coast = not LEFT + _NAME_ROOM < x < _RIGHT - _NAME_ROOM
        return 1 + _NEARNESS * is_crowded + _SHORE * is_at_coast

    def _place_name(self, area: int) -> tuple[Cell, Size]:
        """Reserve cells for the name of an area, with its icon's name if there is room."""
        coast = self._coast(area)
        region = self._region(coast)
        centre = sum(map(_middle, region or coast)) / len(region or coast)
        full = len(f"☾ {self._board.area_icons[area]}"), SHORT_NAME[1]
        for size in (full, SHORT_NAME):
            room, _, corner = max(
                (_room(region, corner, size), -abs(_middle(corner, size) - centre), corner)
                for corner in self._land
                if self._land >= _cells(corner, size)
            )
            if room > 0:
                break
        self._flaws += max(0, -room)
        self._land -= _cells(corner, size)
        return corner, size

    def _coast(self, area: int) -> set[Cell]:
        """Return the land cells next to an area's coast, clockwise of each of its stations."""
        stations = self._board.stations
        first = stations.index(COASTAL_TOWNS[area])
        ends = (*map(stations.index, COASTAL_TOWNS), len(stations))
        ports = self._placement.stations[first : ends[area + 1]]
        return {_ahead(_ahead(cell, inland), _CLOCKWISE[inland]) for cell, inland in ports}

    def _region(self, coast: set[Cell]) -> set[Cell]:
        """Return all free land connected to a coast."""
        free = self._land - set(self._lines)
        region: set[Cell] = set()
        edge = coast & free
        while edge:
            region |= edge
            edge = {_ahead(cell, heading) for cell in edge for heading in _STEPS} & free - region
        return region


def _room(region: set[Cell], corner: Cell, size: Size) -> int:
    """Return the room of a name in its region, or minus the number of its cells outside it."""
    outside = len(_cells(corner, size) - region)
    if outside:
        return -outside
    x, y = 1, 0
    while region.issuperset(
        rectangle(offset_cell(corner, (-x, -y)), offset_cell(size, (2 * x, 2 * y)))
    ):
        x, y = x + 1, (x + 1) // _ROW
    return x


def _ahead(cell: Cell, heading: int) -> Cell:
    return offset_cell(cell, _STEPS[heading])


def offset_cell(cell: Cell, offset: Cell) -> Cell:
    """Return the cell at an offset of columns and rows."""
    return cell[0] + offset[0], cell[1] + offset[1]


def _middle(corner: Any, size: Size = (1, 1)) -> Any:
    """Return the middle of a rectangle in the complex plane, with the unit of columns."""
    return corner[0] + size[0] / 2 + 1j * _ROW * (corner[1] + size[1] / 2)


def _cells(corner: Cell, size: Size) -> set[Cell]:
    (left, top), (width, height) = corner, size
    return set(itertools.product(range(left, left + width), range(top, top + height)))


def rectangle(corner: Cell, size: Size) -> dict[Cell, int]:
    """Return the border lines of a rectangle."""
    left, top = corner
    right, bottom = left + size[0] - 1, top + size[1] - 1
    lines = {(x, y): EAST | WEST for x in range(left, right) for y in (top, bottom)}
    lines |= {(x, y): NORTH | SOUTH for x in (left, right) for y in range(top, bottom)}
    lines[left, top], lines[right, top] = EAST | SOUTH, SOUTH | WEST
    lines[left, bottom], lines[right, bottom] = NORTH | EAST, NORTH | WEST
    return lines
