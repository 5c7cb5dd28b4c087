"""The shape of an island, as it follows from its routes: ways, areas, neighbours, walks.

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
    """Return the towns that can be reached from a town."""
    reached = {town}
    for _ in routes:
        reached |= {t for route in routes if reached & set(route) for t in route}
    return reached


@functools.lru_cache(maxsize=64)
def area_paths(routes: Routes) -> tuple[tuple[str, ...], ...]:
    """Return, for each area, the towns on the way between its two coastal towns.

    Args:
        routes: a tree on all towns.
    """
    homeward = _homeward(routes)
    ends = zip(COASTAL_TOWNS, COASTAL_TOWNS[1:] + COASTAL_TOWNS[:1], strict=True)
    return tuple(_path(homeward[start], homeward[end]) for start, end in ends)


def town_path(routes: Routes, start: str, end: str) -> tuple[str, ...]:
    """Return the towns on the way from one town to another, both included.

    Args:
        routes: a tree on all towns.
        start: a town.
        end: another.
    """
    homeward = _homeward(routes)
    return _path(homeward[start], homeward[end])


def _homeward(routes: Routes) -> dict[str, tuple[str, ...]]:
    """Return the way of each town to the first, both included."""
    ways = graph(routes)
    homeward: dict[str, tuple[str, ...]] = {TOWNS[0]: (TOWNS[0],)}
    ahead = [TOWNS[0]]
    for town in ahead:
        for other in ways[town]:
            if other not in homeward:
                homeward[other] = (other, *homeward[town])
                ahead.append(other)
    return homeward


def _path(start: tuple[str, ...], end: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path between the first towns of two ways home: it turns where they meet."""
    shared = 1
    most = min(len(start), len(end))
    while shared < most and start[-shared - 1] == end[-shared - 1]:
        shared += 1
    return start[: len(start) - shared] + end[len(end) - shared :: -1]


def graph(routes: Routes) -> dict[str, list[str]]:
    """Return the towns next to each town."""
    ways: dict[str, list[str]] = {town: [] for town in TOWNS}
    for a, b in routes:
        ways[a].append(b)
        ways[b].append(a)
    return ways


def edges(path: tuple[str, ...]) -> set[frozenset[str]]:
    """Return the routes of a path, in no direction."""
    return {frozenset(edge) for edge in itertools.pairwise(path)}


def town_reach(routes: Routes, most: int = MAX_DIE) -> list[list[int]]:
    """Return which towns are how far from each: `[steps][town]`, bit t for town t.

    Args:
        routes: a tree on all towns.
        most: the steps told of, 1 or more.
    """
    ways = graph(routes)
    near = [[TOWNS.index(other) for other in ways[town]] for town in TOWNS]
    here = [1 << town for town in range(len(TOWNS))]
    reach = [here, _unions(here, near)]
    for _ in range(2, most + 1):
        # Whatever is one step less from a neighbour is one step more from here, or one less.
        before, last = reach[-2:]
        further = _unions(last, near)
        reach.append([far & ~back for far, back in zip(further, before, strict=True)])
    return reach


def _unions(masks: Sequence[int], groups: Sequence[Sequence[int]]) -> list[int]:
    """Return the union of the masks of each group."""
    unions = []
    for group in groups:
        union = 0
        for one in group:
            union |= masks[one]
        unions.append(union)
    return unions


def town_areas(routes: Routes) -> list[int]:
    """Return the areas around each town, bit a for area a: those it lies on the border of (R3.3).

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
        routes: a tree on all towns whose ends are the coastal ones.
    """
    count = len(COASTAL_TOWNS)
    near = [{(area - 1) % count, (area + 1) % count} for area in range(count)]  # by the coast
    sides: dict[tuple[str, str], int] = {}
    for area, path in enumerate(area_paths(routes)):
        for start, end in itertools.pairwise(path[1:-1]):
            if (end, start) in sides:  # the other side walks it the other way
                other = sides[end, start]
                near[area].add(other)
                near[other].add(area)
            sides[start, end] = area
    return tuple(tuple(sorted(areas)) for areas in near)


@functools.lru_cache(maxsize=512)  # more than there are: 441
def areas_on_the_way(neighbours: Neighbours) -> npt.NDArray[np.int16]:
    """Return the areas that walks touch, (`MAX_DIE` + 1, 8, 8): bit a of [steps, start, end].

    They are those of all simple paths of exactly so many steps, both ends included; 0 if there is
    no such path. The array cannot be written to.

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
    """Yield every simple path that begins with a given one: its steps, end and areas, as bits."""
    yield steps, end, path
    if steps < MAX_DIE:
        for area in neighbours[end]:
            if not path >> area & 1:
                yield from _simple_walks(neighbours, area, path | 1 << area, steps + 1)
