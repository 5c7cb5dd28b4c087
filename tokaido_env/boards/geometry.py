"""Geometry of the island, derived from its routes: paths, areas, neighbours and reach.

A route is a pair of towns.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tokaido_env.core.constants import COASTAL_TOWNS, MAX_DIE, TOWNS

Routes = tuple[tuple[str, str], ...]
Neighbours = tuple[tuple[int, ...], ...]


def component(town: str, routes: Routes) -> set[str]:
    """Return the names of the towns that routes connect to a town, itself included."""
    reached = {town}
    for _ in routes:
        reached |= {t for route in routes if reached & set(route) for t in route}
    return reached


@functools.lru_cache(maxsize=64)
def area_paths(routes: Routes) -> tuple[tuple[str, ...], ...]:
    """Return, for each area, the path of towns between its two coastal towns.

    Args:
        routes: a tree on all towns.
    """
    to_root = _paths_to_root(routes)
    ends = zip(COASTAL_TOWNS, COASTAL_TOWNS[1:] + COASTAL_TOWNS[:1], strict=True)
    return tuple(_join_paths(to_root[start], to_root[end]) for start, end in ends)


def town_path(routes: Routes, start: str, end: str) -> tuple[str, ...]:
    """Return the path from one town to another, both included.

    Args:
        routes: a tree on all towns.
        start: the first town.
        end: the last town.
    """
    to_root = _paths_to_root(routes)
    return _join_paths(to_root[start], to_root[end])


def _paths_to_root(routes: Routes) -> dict[str, tuple[str, ...]]:
    """Return the path of each town to the first town, both included."""
    adjacent = adjacent_towns(routes)
    paths: dict[str, tuple[str, ...]] = {TOWNS[0]: (TOWNS[0],)}
    queue = [TOWNS[0]]
    for town in queue:
        for other in adjacent[town]:
            if other not in paths:
                paths[other] = (other, *paths[town])
                queue.append(other)
    return paths


def _join_paths(start: tuple[str, ...], end: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path between the first towns of two paths to the root."""
    shared = 1
    most = min(len(start), len(end))
    while shared < most and start[-shared - 1] == end[-shared - 1]:
        shared += 1
    return start[: len(start) - shared] + end[len(end) - shared :: -1]


def adjacent_towns(routes: Routes) -> dict[str, list[str]]:
    """Return the names of the towns one route away from each town, by its name."""
    adjacent: dict[str, list[str]] = {town: [] for town in TOWNS}
    for a, b in routes:
        adjacent[a].append(b)
        adjacent[b].append(a)
    return adjacent


def edges(path: tuple[str, ...]) -> set[frozenset[str]]:
    """Return the routes of a path of towns as sets of two names, without direction."""
    return {frozenset(edge) for edge in itertools.pairwise(path)}


def town_reach(routes: Routes, most: int = MAX_DIE) -> list[list[int]]:
    """Return the towns at each distance from each town: `[steps][town]`, bit t for town t.

    Args:
        routes: a tree on all towns.
        most: the largest distance, 1 or more.
    """
    adjacent = [[TOWNS.index(b) for b in towns] for towns in adjacent_towns(routes).values()]
    start = [1 << town for town in range(len(TOWNS))]
    reach = [start, _unions(start, adjacent)]
    for _ in range(2, most + 1):
        # A town at distance k of a neighbour is at distance k + 1 or k - 1 in a tree.
        nearer, last = reach[-2:]
        further = _unions(last, adjacent)
        reach.append([far & ~near for far, near in zip(further, nearer, strict=True)])
    return reach


def _unions(masks: Sequence[int], groups: Sequence[Sequence[int]]) -> list[int]:
    """Return the union of each group's masks."""
    unions = []
    for group in groups:  # a board is drawn 10 % faster than with functools.reduce
        union = 0
        for one in group:
            union |= masks[one]
        unions.append(union)
    return unions


def town_areas(routes: Routes) -> list[int]:
    """Return the areas that each town borders, bit a for area a (R3.3).

    Args:
        routes: a tree on all towns.
    """
    around = dict.fromkeys(TOWNS, 0)
    for area, path in enumerate(area_paths(routes)):
        for town in path:
            around[town] |= 1 << area
    return list(around.values())


@functools.lru_cache(maxsize=64)
def neighbours(routes: Routes) -> Neighbours:
    """Return the areas that share a route with each area, ascending (R3.1).

    Args:
        routes: a tree on all towns with the coastal towns as its leaves.
    """
    count = len(COASTAL_TOWNS)
    near = [{(area - 1) % count, (area + 1) % count} for area in range(count)]  # along the coast
    sides: dict[tuple[str, str], int] = {}
    for area, path in enumerate(area_paths(routes)):
        for start, end in itertools.pairwise(path[1:-1]):
            if (end, start) in sides:  # the area on the other side, in the other direction
                other = sides[end, start]
                near[area].add(other)
                near[other].add(area)
            sides[start, end] = area
    return tuple(tuple(sorted(areas)) for areas in near)


@functools.lru_cache(maxsize=512)  # 441 different neighbours exist
def areas_on_the_way(neighbours: Neighbours) -> npt.NDArray[np.int16]:
    """Return the areas on walks, int16 (`MAX_DIE` + 1, 8, 8): bit a of [steps, start, end].

    They are the areas on all simple paths of a number of steps, with both ends; 0 without such a
    path. The array is read-only.

    Args:
        neighbours: of each area.
    """
    count = len(neighbours)
    touched = [[[0] * count for _ in range(count)] for _ in range(MAX_DIE + 1)]
    for start in range(count):
        for steps, end, path in _simple_walks(neighbours, start, 1 << start):
            touched[steps][start][end] |= path
    array = np.array(touched, np.int16)
    array.flags.writeable = False
    return array


def _simple_walks(
    neighbours: Neighbours, end: int, path: int, steps: int = 0
) -> Iterator[tuple[int, int, int]]:
    """Yield the steps, the end and the areas' bits of every simple path that extends a path."""
    yield steps, end, path
    if steps < MAX_DIE:
        for area in neighbours[end]:
            if not path >> area & 1:
                yield from _simple_walks(neighbours, area, path | 1 << area, steps + 1)
