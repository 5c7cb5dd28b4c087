"""The map of the island: where a board's stations, towns and areas stand in a picture.

Worked out from the board's data alone, once for each board, so that any board file draws. The ring
is a closed, convex curve with the stations at equal distances. Each mountain town stands amid its
neighbours, which keeps straight routes from crossing (Tutte 1963). The ring is turned until the
narrowest area is as wide as can be.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.box import AREAS, COASTAL_TOWNS, MOUNTAIN_TOWNS

Points = npt.NDArray[np.float64]  # (n, 2): x to the right, y down
Point = tuple[float, float]

WIDTH, HEIGHT = 640, 470  # of the map, in units of the picture
_CENTRE = np.array([WIDTH / 2, HEIGHT / 2])
_RADII = np.array([252.0, 168.0])  # of the ring: room outside for tokens in the sea
_ROUNDNESS = 2.5  # exponent of the superellipse: 2 is an ellipse, more has wider corners
_SAMPLES = 720
_PER_STATION = 3  # points of the coast drawn from one station to the next

_SHORE = 22.0  # how far the coast is from the ring
_WOBBLE = 5.0  # how far the coast leaves that line, at most
_RELAXATIONS = 60
_PULL = 2  # of mountain towns on each other, that areas by the coast have room
_GRID = 14  # units between the sites tried for the middle of an area


@dataclass(frozen=True)
class Chart:
    """Where everything is.

    Attributes:
        stations: of each ring index.
        inland: a unit vector for each station, away from the sea.
        towns: of each mountain town.
        areas: the middle of each area, as far as can be from its borders.
        outlines: the border of each area.
        coast: the outline of the island.
    """

    stations: Sequence[Point]
    inland: Sequence[Point]
    towns: Mapping[str, Point]
    areas: Mapping[str, Point]
    outlines: Mapping[str, Sequence[Point]]
    coast: Sequence[Point]

    def of(self, place: int | str) -> Point:
        """Return where a station, a mountain town or an area is."""
        if isinstance(place, int):
            return self.stations[place]
        return self.towns[place] if place in self.towns else self.areas[place]


@functools.lru_cache(maxsize=16)
def chart_of(board: Board) -> Chart:
    """Map a board."""
    size = len(board.stations)
    turns = [_Turn(board, turn / size) for turn in range(size)]
    best = max(turns, key=lambda turn: round(turn.narrowest, 3))
    ring, normals = best.ring[::_PER_STATION], best.normals[::_PER_STATION]
    return Chart(
        stations=_rounded(ring),
        inland=[(-x, -y) for x, y in normals.tolist()],
        towns={town: _rounded(best.towns[town][None])[0] for town in MOUNTAIN_TOWNS},
        areas={area: _rounded(best.middle(i)[0][None])[0] for i, area in enumerate(AREAS)},
        outlines={area: _rounded(best.outline(i)) for i, area in enumerate(AREAS)},
        coast=_rounded(_coast(best.ring, best.normals)),
    )


class _Turn:
    """The map with the ring turned by a share of a whole turn."""

    def __init__(self, board: Board, turn: float) -> None:
        size = len(board.stations)
        self.board = board
        self.ring, self.normals = _ring(size * _PER_STATION, turn)
        self.starts = [board.stations.index(town) * _PER_STATION for town in COASTAL_TOWNS]
        self.towns = self._towns()

    @functools.cached_property
    def narrowest(self) -> float:
        """How far the middle of the narrowest area is from its border."""
        return min(self.middle(area)[1] for area in range(len(AREAS)))

    def _towns(self) -> dict[str, Points]:
        near: dict[str, list[str]] = {town: [] for town in MOUNTAIN_TOWNS}
        for a, b in (*self.board.routes, *(route[::-1] for route in self.board.routes)):
            if a in near:
                near[a] += [b] * (_PULL if b in near else 1)
        coasts = dict(zip(COASTAL_TOWNS, self.ring[self.starts], strict=True))
        places = {**coasts, **dict.fromkeys(MOUNTAIN_TOWNS, _CENTRE)}
        for _ in range(_RELAXATIONS):
            for town, others in near.items():
                places[town] = np.mean([places[other] for other in others], axis=0)
        return places

    def outline(self, area: int) -> Points:
        """Return the border of an area: its coast, then the routes back through the towns."""
        start, end = self.starts[area], self.starts[(area + 1) % len(AREAS)]
        along = np.arange(start, end + (len(self.ring) if end <= start else 0) + 1)
        first, last = COASTAL_TOWNS[area], COASTAL_TOWNS[(area + 1) % len(AREAS)]
        back = [self.towns[town] for town in _route(self.board, last, first)[1:-1]]
        return np.concatenate([self.ring[along % len(self.ring)], np.reshape(back, (-1, 2))])

    @functools.cache  # noqa: B019  these live no longer than the map that is made of them
    def middle(self, area: int) -> tuple[Points, float]:
        """Return the point inside an area that is farthest from its border, and how far it is."""
        outline = self.outline(area)
        (left, top), (right, bottom) = outline.min(axis=0), outline.max(axis=0)
        xs, ys = np.arange(left, right, _GRID), np.arange(top, bottom, _GRID)
        sites = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        room = np.where(_inside(sites, outline), _distance(sites, outline), -1.0)
        return sites[room.argmax()], float(room.max())


def _ring(count: int, turn: float) -> tuple[Points, Points]:
    """Return points at equal distances along the ring, clockwise, and their outward normals."""
    angles = np.linspace(0, 2 * np.pi, _SAMPLES + 1)
    unit = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    curve = np.sign(unit) * np.abs(unit) ** (2 / _ROUNDNESS) * _RADII
    lengths = np.r_[0, np.hypot(*np.diff(curve, axis=0).T).cumsum()]
    wanted = ((np.arange(count) / count + turn) % 1) * lengths[-1]
    points = np.stack([np.interp(wanted, lengths, curve[:, axis]) for axis in (0, 1)], axis=1)
    normals = np.sign(points) * np.abs(points / _RADII) ** (_ROUNDNESS - 1) / _RADII
    return points + _CENTRE, normals / np.hypot(*normals.T)[:, None]


def _coast(ring: Points, normals: Points) -> Points:
    """Return the outline of the island: off the ring, with capes and bays of its own."""
    angles = np.arctan2(*(ring - _CENTRE).T[::-1])
    waves = np.sin(3 * angles + 0.7) + np.sin(7 * angles) * 0.7 + np.sin(12 * angles + 2) * 0.5
    return np.asarray(ring + normals * (_SHORE + _WOBBLE * waves / 2.2)[:, None])


def _route(board: Board, start: str, end: str) -> list[str]:
    """Return the towns on the way from one to another, both included: routes are a tree."""
    ways = [[start]]
    while True:
        way = ways.pop()
        if way[-1] == end:
            return way
        for a, b in board.routes:
            ahead = {a: b, b: a}.get(way[-1])
            if ahead is not None and ahead not in way:
                ways.append([*way, ahead])


def _inside(points: Points, outline: Points) -> npt.NDArray[np.bool_]:
    """Return which points are inside a polygon (even-odd rule)."""
    (x, y), inside = points.T, np.zeros(len(points), bool)
    for (ax, ay), (bx, by) in itertools.pairwise([*outline, outline[0]]):
        if ay != by:
            crosses = (ay > y) != (by > y)
            inside ^= crosses & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    return inside


def _distance(points: Points, outline: Points) -> npt.NDArray[np.float64]:
    """Return how far each point is from the nearest side of a polygon."""
    starts, sides = outline, np.roll(outline, -1, axis=0) - outline
    away = points[:, None] - starts
    squares = np.maximum((sides**2).sum(axis=1), 1e-9)
    along = np.clip((away * sides).sum(axis=2) / squares, 0, 1)[..., None]
    return np.asarray(np.hypot(*np.moveaxis(away - along * sides, 2, 0)).min(axis=1))


def _rounded(points: Points) -> list[Point]:
    return [(round(x, 1), round(y, 1)) for x, y in points.tolist()]
