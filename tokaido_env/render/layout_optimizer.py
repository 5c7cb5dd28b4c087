"""Optimisation of the mountain towns' places on a map.

`barycentric_places` puts each town among its neighbours, so that straight routes do not cross.
Towns can still be crowded, so `Island.optimise` moves one at a time in the direction that reduces
the missing room most, with decreasing step lengths.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.boards.geometry import area_paths, edges
from tokaido_env.core.constants import COASTAL_TOWNS, TOWNS

Floats = npt.NDArray[np.float64]

# Room for icons, names and pawns without overlap, in units of the picture; chosen by eye.
TOWN_X, TOWN_Y = 86.0, 64.0  # from town to town
TOWN_TO_AREA_X, TOWN_TO_AREA_Y = 70.0, 56.0
TOWN_TO_STATION = 64.0
TOWN_TO_ROUTE = 48.0  # of other towns
STATION_TO_ROUTE = 30.0
AREA = 40.0  # from the middle of an area to its border

ENOUGH = 0.05
"""Acceptable crowding."""

_CROSSING = 100.0  # penalty of two crossing routes
_STEPS = (48.0, 24.0, 12.0, 6.0)
_GRID = 24  # units between the sites tried for the middle of an area
_WAYS = 8


class Island:
    """The fixed parts of a map, and the room on it for given places of the mountain towns.

    Args:
        board: the board to map.
        ring: (n, 2), the ring, clockwise from C1.
        per_station: points of the ring from one station to the next.
    """

    def __init__(self, board: Board, ring: Floats, per_station: int) -> None:
        coasts = [board.stations.index(town) * per_station for town in COASTAL_TOWNS]
        routes = np.array([[TOWNS.index(town) for town in route] for route in board.routes])
        paths = [edges(path) for path in area_paths(board.routes)]
        along = [[frozenset(route) in path for route in board.routes] for path in paths]
        self._stations = ring[::per_station]
        self._coasts = ring[coasts]
        self._routes = routes
        self._borders = np.array(along, np.int64)
        low, high = ring.min(axis=0), ring.max(axis=0)
        axes = [np.arange(a + _GRID / 2, b, _GRID) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        ends = np.roll(ring, -1, axis=0)
        crossed = crossings(grid, ring, ends)
        inside = crossed.sum(axis=1) % 2 == 1
        self._sites = grid[inside]
        self._to_ring = distances(self._sites, ring, ends).min(axis=1)
        shores = np.zeros((len(coasts), len(ring)), np.int64)  # sides of the ring, by area
        for shore, start, end in zip(shores, coasts, coasts[1:] + coasts[:1], strict=True):
            shore[np.arange(start, end if end > start else end + len(ring)) % len(ring)] = 1
        self._shores = crossed[inside].astype(np.int64) @ shores.T
        towns = np.arange(len(coasts), len(coasts) + 4)
        self._foreign = (routes[None] != towns[:, None, None]).all(axis=2)  # (4, 11)
        own = np.array([coast // per_station for coast in coasts])
        stations = np.arange(len(self._stations))
        at_coast = np.where(routes < len(coasts), own[np.minimum(routes, len(coasts) - 1)], -1)
        self._elsewhere = (at_coast[None] != stations[:, None, None]).all(axis=2)  # (n, 11)

    def crowding(self, towns: Floats) -> float:
        """Return the missing room for places of the mountain towns, (4, 2); 0 if all have room."""
        return float(self._crowding(towns[None])[0])

    def optimise(self, towns: Floats) -> Floats:
        """Return places of the mountain towns with more room, (4, 2), near the given ones."""
        best, crowding = towns, self.crowding(towns)
        for step in _STEPS:
            unmoved = 0  # towns in a row that were not moved
            for town in itertools.cycle(range(len(best))):
                moved = np.repeat(best[None], _WAYS, axis=0)
                moved[:, town] += step * _COMPASS
                tried = self._crowding(moved)
                unmoved += 1
                if tried.min() < crowding:
                    best, crowding, unmoved = moved[tried.argmin()], float(tried.min()), 0
                if unmoved == len(best) or crowding <= ENOUGH / 5:
                    break
        return best

    def _crowding(self, towns: Floats) -> Floats:
        """Return the missing room, (k,), for k placements of the towns, (k, 4, 2)."""
        places = np.concatenate(
            [np.broadcast_to(self._coasts, (len(towns), *self._coasts.shape)), towns], axis=1
        )
        starts, ends = places[:, self._routes[:, 0]], places[:, self._routes[:, 1]]
        to_stations = distances(self._stations, starts, ends)
        to_towns = distances(towns, starts, ends)
        between_towns = np.abs(towns[:, :, None] - towns[:, None])[:, *np.triu_indices(4, 1)]
        to_ring = np.hypot(*np.moveaxis(towns[:, :, None] - self._stations, -1, 0))
        missing = (
            _missing((between_towns / (TOWN_X, TOWN_Y)).max(axis=-1))
            + _missing(to_ring.min(axis=2) / TOWN_TO_STATION)
            + _missing(np.where(self._foreign, to_towns, np.inf).min(axis=2) / TOWN_TO_ROUTE)
            + _missing(
                np.where(self._elsewhere, to_stations, np.inf).min(axis=1) / STATION_TO_ROUTE
            )
            + _missing(self._rooms(towns, starts, ends) / AREA)
        )
        return np.asarray(missing + _CROSSING * _crossing_pairs(starts, ends))

    def _rooms(self, towns: Floats, starts: Floats, ends: Floats) -> Floats:
        """Return the distance from the middle of each area to its border, (k, 8)."""
        to_border = np.minimum(distances(self._sites, starts, ends).min(axis=2), self._to_ring)
        to_border = to_border * clearance(self._sites, towns)
        crossed = crossings(self._sites, starts, ends).astype(np.int64) @ self._borders.T
        inside = (crossed + self._shores) % 2 == 1
        return np.asarray(np.where(inside, to_border[..., None], 0).max(axis=1))


def barycentric_places(board: Board, coasts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the mountain towns' places at the weighted means of their neighbours' places.

    Straight routes between such places do not cross (Tutte 1963). Neighbours in the mountains have
    twice the weight of coastal towns, to leave room for areas at the coast.

    Args:
        board: the board to map.
        coasts: places of the coastal towns, complex or real in the last axis.
    """
    count = len(COASTAL_TOWNS)
    pull = np.zeros((len(TOWNS), len(TOWNS)))
    for route in board.routes:
        one, other = (TOWNS.index(town) for town in route)
        pull[one, other] = pull[other, one] = 2 if min(one, other) >= count else 1
    laplacian = np.diag(pull.sum(axis=1)) - pull
    return np.linalg.solve(laplacian[count:, count:], pull[count:, :count] @ coasts)


def clearance(sites: Floats, towns: Floats) -> Floats:
    """Return the room between an area's icon at sites, (n, 2), and towns, (…, 4, 2).

    Returns:
        (…, n), 1 for enough room, less the more the icon overlaps a town.
    """
    gaps = np.abs(sites[:, None] - towns[..., None, :, :]) / (TOWN_TO_AREA_X, TOWN_TO_AREA_Y)
    return np.asarray(np.minimum(gaps.max(axis=-1).min(axis=-1), 1))


def distances(points: Floats, starts: Floats, ends: Floats) -> Floats:
    """Return the distances of points, (…, n, 2), to segments, (…, m, 2), as (…, n, m)."""
    sides = (ends - starts)[..., None, :, :]
    offsets = points[..., :, None, :] - starts[..., None, :, :]
    squares = np.maximum((sides**2).sum(axis=-1), 1e-9)
    along = np.clip((offsets * sides).sum(axis=-1) / squares, 0, 1)
    return np.asarray(np.hypot(*np.moveaxis(offsets - along[..., None] * sides, -1, 0)))


def crossings(points: Floats, starts: Floats, ends: Floats) -> npt.NDArray[np.bool_]:
    """Return which segments, (…, m, 2), are to the right of points, (n, 2), as (…, n, m).

    A point is inside a polygon if an odd number of sides are to its right.
    """
    x, y = points[:, 0, None], points[:, 1, None]
    (ax, ay), (bx, by) = (np.moveaxis(p, -1, 0)[..., None, :] for p in (starts, ends))
    height = np.where(ay == by, 1.0, by - ay)
    return np.asarray(((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / height + ax))


def _crossing_pairs(starts: Floats, ends: Floats) -> Floats:
    """Return the number of crossing pairs of segments, (k, m, 2), without a common end."""
    a, b = starts[:, :, None], ends[:, :, None]
    c, d = starts[:, None], ends[:, None]
    across = (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)
    return np.asarray(across.sum(axis=(1, 2)) / 2)


def _side(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the side of the line from a to b on which c is, -1 or 1; 0 if c is an end."""
    (abx, aby), (acx, acy) = (np.moveaxis(other - a, -1, 0) for other in (b, c))
    side = np.sign(abx * acy - aby * acx)
    common = (a == c).all(axis=-1) | (b == c).all(axis=-1)
    return np.asarray(np.where(common, 0, side))


def _missing(room: Floats) -> Floats:
    """Return the sum of squares of missing room, (k,)."""
    return np.asarray((np.maximum(1 - room, 0) ** 2).sum(axis=1))


_ANGLES = np.arange(_WAYS) * 2 * np.pi / _WAYS
_COMPASS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
