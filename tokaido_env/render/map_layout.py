"""Map layout of SVG pictures: coordinates of a board's stations, towns and areas.

The layout follows from the board's data alone. The ring is a closed, convex curve with stations at
equal distances, and C1 in the north-west. Each mountain town is placed among its neighbours. A
relaxation then moves mountain towns that are too near to something else.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.boards.geometry import area_paths
from tokaido_env.core.constants import AREAS, COASTAL_TOWNS, MOUNTAIN_TOWNS, TOWNS

Floats = npt.NDArray[np.float64]
Points = npt.NDArray[np.float64]  # (n, 2): x to the right, y down
Point = tuple[float, float]

WIDTH, HEIGHT = 640, 470  # of the map, in units of the picture
_CENTRE = np.array([WIDTH / 2, HEIGHT / 2])
_RADII = np.array([252.0, 168.0])  # of the ring: leaves room for tokens in the sea
_ROUNDNESS = 2.5  # exponent of the superellipse: 2 is an ellipse, more has wider corners
_SAMPLES = 720
_PER_STATION = 3  # points of the coast from one station to the next

_SHORE = 22.0  # distance from the ring to the coast
_WOBBLE = 5.0  # largest deviation of the coast from that distance
_MIN_SHORE = 92.0  # shortest shore of an area, if there is room
_MIN_STEP = 33.0  # smallest distance of stations

_GRID, _FINE = 14, 7  # units between the sites tried for the middle of an area

# Distances below which the relaxation moves a mountain town; chosen by eye.
_TOWN_TO_TOWN, _TOWN_TO_STATION, _TOWN_TO_AREA = 60.0, 64.0, 56.0
_TOWN_TO_ROUTE, _STATION_TO_ROUTE, _AREA_TO_ROUTE = 48.0, 36.0, 36.0
_ROUNDS = 30
_SHARE = 0.4  # of each missing distance in a round
_STEP = 15.0  # longest in a round, across and down

# From a mountain town to an area's icon that has enough room, across and down.
_CLEARANCE = (70.0, 56.0)

INLAND = 25.0  # distance from a station to its pawns
_TO_COAST = 43.0  # from an area's icon, so that pawns at the coast do not hide it
_PAWN = 12.0  # radius of a pawn with a margin
# Pawns relative to the icon of an area, best first; the area's name is below the icon.
_PAWN_OFFSETS = np.array(
    [(-27, 0), (27, 0), (-51, 0), (51, 0), (-25, -19), (25, -19), (-25, 19), (25, 19)]
)


@dataclass(frozen=True)
class MapLayout:
    """Coordinates (x, y) of everything on the map, in units of the picture.

    Attributes:
        stations: by ring index.
        inland: a unit vector for each station, away from the sea.
        towns: of the mountain towns.
        areas: the middle of each area, far from its borders.
        pawns: the two players' artists in each area, by seat.
        outlines: the border of each area.
        coast: the outline of the island.
    """

    stations: Sequence[Point]
    inland: Sequence[Point]
    towns: Mapping[str, Point]
    areas: Mapping[str, Point]
    pawns: Mapping[str, Sequence[Point]]
    outlines: Mapping[str, Sequence[Point]]
    coast: Sequence[Point]

    def of(self, place: int | str) -> Point:
        """Return the point of a station by ring index, or of a mountain town or area by name."""
        if isinstance(place, int):
            return self.stations[place]
        return self.towns[place] if place in self.towns else self.areas[place]


@functools.lru_cache(maxsize=16)
def map_layout_of(board: Board) -> MapLayout:
    """Return where everything is on the map of a board, in units of the picture."""
    draft = _Draft(board)
    draft.relax()
    ring, normals = draft.ring[::_PER_STATION], draft.normals[::_PER_STATION]
    return MapLayout(
        stations=_rounded(ring),
        inland=[(-x, -y) for x, y in normals.tolist()],
        towns=dict(zip(MOUNTAIN_TOWNS, _rounded(draft.towns), strict=True)),
        areas={area: _rounded(draft.middle(i)[None])[0] for i, area in enumerate(AREAS)},
        pawns={area: _rounded(draft.pawns(i)) for i, area in enumerate(AREAS)},
        outlines={area: _rounded(draft.outline(i)) for i, area in enumerate(AREAS)},
        coast=_rounded(_coast(draft.ring, draft.normals)),
    )


class _Draft:
    """A layout with mountain towns that can still move."""

    def __init__(self, board: Board) -> None:
        self.board, size = board, len(board.stations)
        self.ring, self.normals = _ring(_shares(board), size * 5 // 8 / size)  # to the north-west
        self.starts = [board.stations.index(town) * _PER_STATION for town in COASTAL_TOWNS]
        self.towns: Points = _barycentres(board, self.ring[self.starts])

    def relax(self) -> None:
        """Move the mountain towns until everything has room, in at most `_ROUNDS` rounds."""
        ends, wanted = _wanted(self.board)
        for _ in range(_ROUNDS):
            moves = self._moves(ends, wanted)
            if not moves.any():
                break
            self.towns = self.towns + np.clip(_SHARE * moves, -_STEP, _STEP)

    def _moves(self, ends: npt.NDArray[np.int64], wanted: Floats) -> Points:
        """Return the moves of the mountain towns, (4, 2), for all missing distances in full."""
        places = np.concatenate([self.ring[self.starts], self.towns])
        middles = np.array([self.middle(area, _GRID) for area in range(len(AREAS))])
        objects = np.concatenate([self.towns, self.ring[::_PER_STATION], middles])
        offsets, along = _offsets(objects, places[ends[:, 0]], places[ends[:, 1]])
        lengths = np.maximum(np.hypot(*np.moveaxis(offsets, -1, 0)), 1.0)
        pushes = (np.maximum(wanted - lengths, 0) / lengths)[..., None] * offsets
        moves = np.zeros_like(places)
        np.subtract.at(moves, ends[:, 0], ((1 - along)[..., None] * pushes).sum(axis=0))
        np.subtract.at(moves, ends[:, 1], (along[..., None] * pushes).sum(axis=0))
        count = len(self.towns)
        return np.asarray(moves[-count:] + pushes[:count].sum(axis=1))

    def outline(self, area: int) -> Points:
        """Return the border of an area: its coast, then the routes back through its towns."""
        back = [MOUNTAIN_TOWNS.index(t) for t in area_paths(self.board.routes)[area][-2:0:-1]]
        return np.concatenate([self.ring[self._along(area)], self.towns[back]])

    def _along(self, area: int) -> npt.NDArray[np.int64]:
        """Return the indices of the ring's points from one coastal town of an area to the other."""
        start, end = self.starts[area], self.starts[(area + 1) % len(AREAS)]
        size = len(self.ring)
        return np.arange(start, end + (size if end <= start else 0) + 1) % size

    def middle(self, area: int, grid: int = _FINE) -> Points:
        """Return the point of an area with the most room to its border, towns and coast."""
        sites, to_border = self._sites(area, grid)
        if not len(sites):  # too narrow for the grid
            return np.asarray(self.outline(area).mean(axis=0))
        shore = self.ring[self._along(area)]
        to_coast = _distances(sites, shore[:-1], shore[1:]).min(axis=1)
        room = to_border * _clearance(sites, self.towns) * np.minimum(to_coast / _TO_COAST, 1)
        return np.asarray(sites[room.argmax()])

    def pawns(self, area: int) -> Points:
        """Return points for two pawns next to an area's icon, (2, 2), inside it if possible."""
        outline = self.outline(area)
        points = self.middle(area) + _PAWN_OFFSETS
        inside, room = _inside_and_distance(points, outline)
        shore = self._along(area)[::_PER_STATION]
        pilgrims = self.ring[shore] - INLAND * self.normals[shore]
        distance = np.hypot(*np.moveaxis(points[:, None] - pilgrims, -1, 0)).min(axis=1) - _PAWN
        room = np.minimum(np.minimum(room, distance), _PAWN)
        room[~inside] = -_PAWN
        pairs = [
            (float(room[one]), float(room[other]), one, other)
            for one, other in itertools.permutations(range(len(points)), 2)
            if np.hypot(*(points[one] - points[other])) > 2 * _PAWN
        ]
        *_, first, second = max(pairs, key=lambda pair: min(pair[:2]))
        return np.array([points[first], points[second]])

    def _sites(self, area: int, grid: int) -> tuple[Points, Floats]:
        """Return a grid of points inside an area, and their distances to its border."""
        outline = self.outline(area)
        (left, top), (right, bottom) = outline.min(axis=0), outline.max(axis=0)
        xs, ys = np.arange(left, right, grid), np.arange(top, bottom, grid)
        sites = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        inside, room = _inside_and_distance(sites, outline)
        return sites[inside], room[inside]


def _barycentres(board: Board, coasts: Points) -> Points:
    """Return the mountain towns' places, (4, 2), at the weighted means of their neighbours' places.

    Straight routes between such places do not cross (Tutte 1963). Neighbours in the mountains have
    twice the weight of coastal towns, which are at `coasts`, (8, 2), to leave room for areas.
    """
    count = len(COASTAL_TOWNS)
    pull = np.zeros((len(TOWNS), len(TOWNS)))
    for route in board.routes:
        one, other = (TOWNS.index(town) for town in route)
        pull[one, other] = pull[other, one] = 2 if min(one, other) >= count else 1
    laplacian = np.diag(pull.sum(axis=1)) - pull
    towns = np.linalg.solve(laplacian[count:, count:], pull[count:, :count] @ coasts)
    return towns.astype(np.float64)


def _wanted(board: Board) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return segments of the map and the distances that objects should have to them.

    Returns:
        The towns at the ends of each segment, (m, 2): of the routes, then of the mountain towns,
        each with itself. The distances of mountain towns, stations and areas, (n, m); 0 for an
        object at an end.
    """
    hills = [[TOWNS.index(town)] * 2 for town in MOUNTAIN_TOWNS]
    routes = [[TOWNS.index(town) for town in route] for route in board.routes]
    ends = np.array(routes + hills)
    names = np.array([*MOUNTAIN_TOWNS, *board.stations, *AREAS])
    to_route = np.full(len(names), _STATION_TO_ROUTE)
    to_hill = np.full(len(names), _TOWN_TO_STATION)
    to_route[: len(hills)], to_hill[: len(hills)] = _TOWN_TO_ROUTE, _TOWN_TO_TOWN
    to_route[-len(AREAS) :], to_hill[-len(AREAS) :] = _AREA_TO_ROUTE, _TOWN_TO_AREA
    wanted = np.stack([to_route] * len(routes) + [to_hill] * len(hills), axis=1)
    wanted[(names[:, None, None] == np.array(TOWNS)[ends]).any(axis=2)] = 0
    return ends, wanted


def _shares(board: Board) -> Floats:
    """Return the positions of stations and points between them, as shares of the ring's length.

    Stations are at equal distances, unless an area's shore would be too short.
    """
    towns = [*(board.stations.index(town) for town in COASTAL_TOWNS), len(board.stations)]
    steps = np.diff(towns)  # from one station to the next, by area
    length = float(np.hypot(*np.diff(_curve(), axis=0).T).sum())
    shore = _MIN_SHORE
    while True:
        shores = np.maximum(steps * length / steps.sum(), shore)
        for _ in AREAS:  # lengthening short shores shortens the others, which may get too short
            short = shores <= shore
            rest = length - shore * short.sum()
            shores = np.maximum(steps * rest / max(steps[~short].sum(), 1), shore)
        if abs(shores.sum() - length) < 1 and (shores / steps).min() >= _MIN_STEP:
            break
        shore -= 2
    gaps = np.repeat(shores / steps, steps * _PER_STATION) / _PER_STATION
    return np.asarray(np.r_[0, gaps.cumsum()[:-1]] / gaps.sum())


def _ring(shares: Floats, turn: float) -> tuple[Points, Points]:
    """Return points at shares of the ring's length, clockwise, and their outward normals."""
    curve = _curve()
    lengths = np.r_[0, np.hypot(*np.diff(curve, axis=0).T).cumsum()]
    wanted = ((shares + turn) % 1) * lengths[-1]
    points = np.stack([np.interp(wanted, lengths, curve[:, axis]) for axis in (0, 1)], axis=1)
    normals = np.sign(points) * np.abs(points / _RADII) ** (_ROUNDNESS - 1) / _RADII
    return points + _CENTRE, normals / np.hypot(*normals.T)[:, None]


@functools.cache
def _curve() -> Points:
    """Return the ring around the origin."""
    angles = np.linspace(0, 2 * np.pi, _SAMPLES + 1)
    unit = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.asarray(np.sign(unit) * np.abs(unit) ** (2 / _ROUNDNESS) * _RADII)


def _coast(ring: Points, normals: Points) -> Points:
    """Return the outline of the island, outside the ring with capes and bays."""
    angles = np.arctan2(*(ring - _CENTRE).T[::-1])
    waves = np.sin(3 * angles + 0.7) + np.sin(7 * angles) * 0.7 + np.sin(12 * angles + 2) * 0.5
    return np.asarray(ring + normals * (_SHORE + _WOBBLE * waves / 2.2)[:, None])


def _inside_and_distance(points: Points, outline: Points) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Return which points are inside a polygon, and the distance of each to its border."""
    ends = np.roll(outline, -1, axis=0)
    inside = _crossings(points, outline, ends).sum(axis=1) % 2 == 1
    return inside, _distances(points, outline, ends).min(axis=1)


def _clearance(sites: Points, towns: Points) -> Floats:
    """Return the room between an area's icon at sites, (n, 2), and towns, (4, 2).

    Returns:
        (n,), 1 for enough room, less the more the icon overlaps a town.
    """
    gaps = np.abs(sites[:, None] - towns) / _CLEARANCE
    return np.asarray(np.minimum(gaps.max(axis=-1).min(axis=-1), 1))


def _distances(points: Points, starts: Points, ends: Points) -> Floats:
    """Return the distances of points, (n, 2), to segments, (m, 2), as (n, m)."""
    return np.asarray(np.hypot(*np.moveaxis(_offsets(points, starts, ends)[0], -1, 0)))


def _offsets(points: Points, starts: Points, ends: Points) -> tuple[npt.NDArray[Any], Floats]:
    """Return the offsets of points, (n, 2), from the nearest points of segments, (m, 2).

    Returns:
        The offsets, (n, m, 2), and the nearest points as shares of the segments, (n, m).
    """
    sides = ends - starts
    offsets = points[:, None] - starts
    along = (offsets * sides).sum(axis=-1) / np.maximum((sides**2).sum(axis=-1), 1e-9)
    along = np.clip(along, 0, 1)
    return offsets - along[..., None] * sides, along


def _crossings(points: Points, starts: Points, ends: Points) -> npt.NDArray[np.bool_]:
    """Return which segments, (m, 2), are to the right of points, (n, 2), as (n, m).

    A point is inside a polygon if an odd number of sides are to its right.
    """
    x, y = points[:, 0, None], points[:, 1, None]
    (ax, ay), (bx, by) = starts.T, ends.T
    height = np.where(ay == by, 1.0, by - ay)
    return np.asarray(((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / height + ax))


def _rounded(points: Points) -> list[Point]:
    return [(round(x, 1), round(y, 1)) for x, y in points.tolist()]
