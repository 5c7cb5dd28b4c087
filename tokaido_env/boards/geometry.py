"""The shape of an island, as it follows from its routes: ways, areas, neighbours, walks.

A route is a pair of towns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from tokaido_env.core.box import COASTAL_TOWNS, MAX_DIE, TOWNS

Routes = tuple[tuple[str, str], ...]


def component(town: str, routes: Routes) -> set[str]:
    """Return the towns that can be reached from a town."""
    reached = {town}
    for _ in routes:
        reached |= {t for route in routes if reached & set(route) for t in route}
    return reached


def area_paths(routes: Routes) -> list[tuple[str, ...]]:
    """Return, for each area, the towns on the way between its two coastal towns."""
    ways = graph(routes)
    ends = zip(COASTAL_TOWNS, COASTAL_TOWNS[1:] + COASTAL_TOWNS[:1], strict=True)
    return [next(paths(ways, start, end)) for start, end in ends]


def graph(routes: Routes) -> dict[str, list[str]]:
    """Return the towns next to each town."""
    return {
        town: [other for route in routes if town in route for other in route if other != town]
        for town in TOWNS
    }


def paths(
    ways: Mapping[str, list[str]], start: str, end: str, before: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield every simple path between two towns of a `graph`, after the towns in `before`."""
    path = (*before, start)
    if start == end:
        yield path
    for town in ways[start]:
        if town not in path:
            yield from paths(ways, town, end, path)


def edges(path: tuple[str, ...]) -> set[frozenset[str]]:
    """Return the routes of a path, in no direction."""
    return {frozenset(edge) for edge in itertools.pairwise(path)}


def simple_walks(
    neighbours: tuple[tuple[int, ...], ...], path: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """Yield every simple path that begins with the given one, up to the longest die."""
    yield path
    if len(path) <= MAX_DIE:
        for area in neighbours[path[-1]]:
            if area not in path:
                yield from simple_walks(neighbours, (*path, area))


def neighbours(routes: Routes) -> tuple[tuple[int, ...], ...]:
    """Return the areas that share a route with each area, ascending (R3.1)."""
    around = [edges(path) for path in area_paths(routes)]
    return tuple(tuple(b for b in range(8) if b != a and around[a] & around[b]) for a in range(8))
