"""The map of a board for a terminal: where stations, towns, areas and routes are drawn.

It is surveyed once, for any ring and any tree of routes: the ring is turned, C1 in the north-west
if that leaves room, until the routes run straight, mountain towns stand amid their neighbours,
routes take the way with the fewest bends, areas are named where they are widest.
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
from tokaido_env.render.layout_optimizer import Island, amid_neighbours

Cell = tuple[int, int]  # column, row
Size = tuple[int, int]  # width, height
Gate = tuple[Cell, int]  # where a route begins, and in which direction

# A line is the set of directions in which it leaves its cell: the index of its sign.
NORTH, EAST, SOUTH, WEST = 1, 2, 4, 8
LINE_SIGNS = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
_STEPS = {NORTH: (0, -1), EAST: (1, 0), SOUTH: (0, 1), WEST: (-1, 0)}
_BACK = {NORTH: SOUTH, EAST: WEST, SOUTH: NORTH, WEST: EAST}
_CLOCKWISE = {NORTH: WEST, EAST: NORTH, SOUTH: EAST, WEST: SOUTH}  # coast, by inland
_ARRIVED = 0

# The coast; this many stations stand along its top and its bottom, the others down its sides.
LEFT, TOP, _RIGHT, _BOTTOM = 13, 4, 86, 20
_ALONG = 7

_TOWN_SIZE: Size = (12, 3)  # a mountain town
_TOWN_SPACE: Size = (3, 1)  # kept free around it
SHORT_NAME: Size = (5, 2)  # an area and who is there, above the sign of its icon
_NAME_ROOM = 6  # columns to leave for it between a side of the coast and a route
_ROW = 2  # a row is as high as two columns are wide

# What a route shuns, in columns: how far out of its way it goes instead.
_OFF_CENTRE, _SHORE, _NEARNESS, _BEND, _CROSSING = 2, 2, 3, 6, 1000
_CUT_OFF = 2  # flaws

_TRIES, _MORE_TRIES = 6, 12
_UNITS = 7  # of a picture in a column


@dataclass(frozen=True)
class Chart:
    """Where everything is."""

    stations: Sequence[Gate]  # clockwise from C1, each looking inland
    towns: Mapping[str, Cell]  # the top left corner of each mountain town
    areas: Mapping[str, tuple[Cell, Size]]  # the same of each area's name, and its size
    lines: Mapping[Cell, int]  # the coast, the mountain towns and the routes
    # Cells where a name is outside its area, some for each station that a route cuts off from its
    # area, and very many for each crossing of routes.
    flaws: int


@dataclass(frozen=True)
class _Layout:
    """One way to turn the ring, with the mountain towns that go with it."""

    stations: Sequence[Gate]
    gates: Mapping[str, Gate]  # of the coastal towns
    towns: Mapping[str, Cell]
    places: Mapping[str, complex]  # the middle of each town
    crookedness: int


@functools.lru_cache(maxsize=16)
def survey(board: Board) -> Chart:
    """Map a board, its ring turned the straightest way in which routes and names keep apart."""
    layouts = _layouts(board)
    best = _Surveyor(board, next(layouts)).chart()
    for tried, layout in enumerate(layouts, start=1):
        if best.flaws <= int(tried > _TRIES):  # after so many a name may hide a bit of a route
            break
        best = min(best, _Surveyor(board, layout).chart(), key=lambda chart: chart.flaws)
    return best


def _layouts(board: Board) -> Iterator[_Layout]:
    """Give ways to turn the ring, best first; C1 in the north-west, as in `chart`, if it can be."""
    sites = _coast_sites(len(board.stations))
    turned = [sites[turn:] + sites[:turn] for turn in range(0, -len(sites), -1)]
    first = [stations[0][0] for stations in turned]
    northwest = [
        stations
        for stations, (x, y) in zip(turned, first, strict=True)
        if 2 * x <= LEFT + _RIGHT and 2 * y <= TOP + _BOTTOM
    ]
    for some in (northwest, turned):
        settled = (_settle(board, stations) for stations in some)
        straightest = sorted(settled, key=lambda one: one.crookedness)
        yield from straightest[:_TRIES]
        roomier = straightest[:_MORE_TRIES]
        yield from (_settle(board, one.stations, roomy=True) for one in roomier)


def _coast_sites(size: int) -> list[Gate]:
    """Spread a ring along the coast, clockwise from the top left."""
    columns = _spread(_ALONG, LEFT, _RIGHT)
    down = size // 2 - _ALONG
    return [
        *(((x, TOP), SOUTH) for x in columns),
        *(((_RIGHT, y), WEST) for y in _spread(down + size % 2, TOP, _BOTTOM)),
        *(((x, _BOTTOM), NORTH) for x in reversed(columns)),
        *(((LEFT, y), EAST) for y in reversed(_spread(down, TOP, _BOTTOM))),
    ]


def _spread(count: int, low: int, high: int) -> list[int]:
    """Place points evenly between two borders."""
    room = high - low - 1
    return [low + 1 + (2 * k + 1) * room // (2 * count) for k in range(count)]


def _settle(board: Board, stations: Sequence[Gate], roomy: bool = False) -> _Layout:
    """Find a site for each mountain town, given those of the stations.

    Args:
        board: that is mapped.
        stations: clockwise from C1.
        roomy: give towns, routes and areas room, at the cost of straight routes.
    """
    gates = {town: stations[board.stations.index(town)] for town in COASTAL_TOWNS}
    coasts = np.array([_middle(cell) for cell, _ in gates.values()])
    ideal = amid_neighbours(board, coasts)
    if roomy:
        ring = np.array([_middle(cell) for cell, _ in stations])
        settled = Island(board, _points(ring), per_station=1).settle(_points(ideal)) / _UNITS
        ideal = settled.view(complex)[:, 0]
    middle = np.r_[coasts, ideal].mean()
    towns: dict[str, Cell] = {}
    for number in np.argsort(-abs(ideal - middle), kind="stable").tolist():
        towns[MOUNTAIN_TOWNS[number]] = _free_site(ideal[number], towns.values())
    sites = [_middle(towns[town], _TOWN_SIZE) for town in MOUNTAIN_TOWNS]
    places = dict(zip(TOWNS, [*coasts.tolist(), *sites], strict=True))
    ways = [places[a] - places[b] for a, b in board.routes]
    slant = sum(min(abs(way.real), abs(way.imag)) for way in ways)
    shift = float(abs(sites - ideal).sum())
    return _Layout(stations, gates, towns, places, crookedness=round(slant + 2 * shift))


def _points(places: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
    """Return places in units of a picture, (n, 2)."""
    return (places * _UNITS).view(float).reshape(-1, 2)


def _free_site(place: complex, taken: Iterable[Cell]) -> Cell:
    """Return the corner of the free site of a mountain town that is nearest to a place."""
    corners = _town_corners()
    distance = abs(_middle(corners.T, _TOWN_SIZE) - place)
    for corner in taken:
        distance[(abs(corners - corner) < np.add(_TOWN_SIZE, _TOWN_SPACE)).all(axis=1)] = np.inf
    column, row = corners[distance.argmin()].tolist()
    return column, row


@functools.cache
def _town_corners() -> npt.NDArray[np.int64]:
    """Return all corners that a mountain town may have, (n, 2)."""
    (width, height), (beside, below) = _TOWN_SIZE, _TOWN_SPACE
    columns = range(LEFT + 1 + beside, _RIGHT - width - beside + 1)
    rows = range(TOP + 1 + below, _BOTTOM - height - below + 1)
    return np.array(list(itertools.product(columns, rows)))


class _Surveyor:
    """Lays the routes and names the areas on the land within the coast."""

    def __init__(self, board: Board, layout: _Layout) -> None:
        size = _RIGHT - LEFT + 1, _BOTTOM - TOP + 1
        self._board = board
        self._layout = layout
        self._lines = rectangle((LEFT, TOP), size)
        self._land = _cells((LEFT, TOP), size) - set(self._lines)
        for corner in layout.towns.values():
            self._lines |= rectangle(corner, _TOWN_SIZE)
            self._land -= _cells(corner, _TOWN_SIZE)
        self._flaws = 0
        self._tolls: dict[Cell, int] = {}  # until a route is laid

    def chart(self) -> Chart:
        """Lay the routes, name the areas and return the map."""
        for start, end in sorted(self._board.routes, key=self._rank):
            self._lay(self._way(self._ports(start), self._ports(end)))
        self._flaws += _CUT_OFF * sum(
            _ahead(cell, inland) in self._lines
            for (cell, inland), name in zip(
                self._layout.stations, self._board.stations, strict=True
            )
            if name not in COASTAL_TOWNS
        )
        areas = {area: self._name(index) for index, area in enumerate(AREAS)}
        return Chart(self._layout.stations, self._layout.towns, areas, self._lines, self._flaws)

    def _rank(self, route: tuple[str, str]) -> tuple[bool, float]:
        """Tell which routes to lay first: those between mountain towns, and the short ones."""
        places = self._layout.places
        start, end = route
        return start in COASTAL_TOWNS or end in COASTAL_TOWNS, abs(places[start] - places[end])

    def _lay(self, way: Sequence[Cell]) -> None:
        """Draw a route."""
        self._flaws += _CROSSING * len(self._land & set(self._lines) & set(way))
        self._tolls.clear()
        for cell, ahead in itertools.pairwise(way):
            heading = next(heading for heading in _STEPS if _ahead(cell, heading) == ahead)
            self._lines[cell] = self._lines.get(cell, 0) | heading
            self._lines[ahead] = self._lines.get(ahead, 0) | _BACK[heading]

    def _ports(self, town: str) -> dict[Gate, int]:
        """Return where routes may leave a town, with what each costs."""
        if town in self._layout.gates:
            return {self._layout.gates[town]: 0}
        (left, top), (width, height) = self._layout.towns[town], _TOWN_SIZE
        ports = {((left, top + 1), WEST): 0, ((left + width - 1, top + 1), EAST): 0}
        for offset in range(1, width - 1):
            cost = _OFF_CENTRE * abs(2 * offset + 1 - width) // 2
            ports[(left + offset, top), NORTH] = cost
            ports[(left + offset, top + height - 1), SOUTH] = cost
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
            if ahead not in self._tolls:
                self._tolls[ahead] = self._toll(ahead)
            toll = self._tolls[ahead] * (_ROW if heading in (NORTH, SOUTH) else 1)
            for turn in _STEPS:
                if turn != _BACK[heading]:
                    yield ahead, turn, toll if turn == heading else toll + _BEND

    def _toll(self, cell: Cell) -> int:
        if cell in self._lines:
            return _CROSSING
        x, y = cell
        near = ((x - 2, y), (x - 1, y), (x + 1, y), (x + 2, y), (x, y - 1), (x, y + 1))
        crowded = any(other in self._lines for other in near)
        ashore = not LEFT + _NAME_ROOM < x < _RIGHT - _NAME_ROOM
        return 1 + _NEARNESS * crowded + _SHORE * ashore

    def _name(self, area: int) -> tuple[Cell, Size]:
        """Take a site for the name of an area, in full if there is room."""
        coast = self._coast(area)
        region = self._region(coast)
        heart = sum(map(_middle, region or coast)) / len(region or coast)
        full = len(f"☾ {self._board.area_icons[area]}"), SHORT_NAME[1]
        for size in (full, SHORT_NAME):
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
    x, y = 1, 0
    while region.issuperset(rectangle(beside(corner, (-x, -y)), beside(size, (2 * x, 2 * y)))):
        x, y = x + 1, (x + 1) // _ROW
    return x


def _ahead(cell: Cell, heading: int) -> Cell:
    return beside(cell, _STEPS[heading])


def beside(cell: Cell, offset: Cell) -> Cell:
    """Return the cell that is so many columns and rows away."""
    return cell[0] + offset[0], cell[1] + offset[1]


def _middle(corner: Any, size: Size = (1, 1)) -> Any:
    """Return the middle of a rectangle in the complex plane, where rows are higher."""
    return corner[0] + size[0] / 2 + 1j * _ROW * (corner[1] + size[1] / 2)


def _cells(corner: Cell, size: Size) -> set[Cell]:
    (left, top), (width, height) = corner, size
    return set(itertools.product(range(left, left + width), range(top, top + height)))


def rectangle(corner: Cell, size: Size) -> dict[Cell, int]:
    """Return the lines around a rectangle."""
    left, top = corner
    right, bottom = left + size[0] - 1, top + size[1] - 1
    lines = {(x, y): EAST | WEST for x in range(left, right) for y in (top, bottom)}
    lines |= {(x, y): NORTH | SOUTH for x in (left, right) for y in range(top, bottom)}
    lines[left, top], lines[right, top] = EAST | SOUTH, SOUTH | WEST
    lines[left, bottom], lines[right, bottom] = NORTH | EAST, NORTH | WEST
    return lines
