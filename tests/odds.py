"""The odds of the family of boards, worked out slowly from `docs/boards.md`.

Nothing here is the generator's: trees are grown branch by branch, ways walked step by step.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from positions import COASTAL, WARES
from reference import neighbours, simple_paths

Routes = frozenset[tuple[str, str]]  # the mountain town first, or that with the lower number
Tree = tuple[Any, ...]  # a town's branches; of a coastal town none

NUMBERS = [n for n in itertools.product((2, 3, 4), repeat=4) if {*n} == {2, 3, 4}]
ICON_ORDERS = sorted(
    set(itertools.permutations(["bamboo", "waterfall", "moon"] * 2 + ["mountain"] * 2))
)
PRICES = {"kimono": "233444", "pottery": "233344", "doll": "223334", "fan": "222334"}


# Shares


def check_shares(seen: Iterable[Hashable], odds: Mapping[Any, float]) -> None:
    """Fail if what was seen is not as often as the odds have it (chi-square, 1 in 1,000).

    What is expected less than five times is counted together.
    """
    counts = Counter(seen)
    assert counts.keys() <= {one for one, chance in odds.items() if chance > 0}
    n, total = counts.total(), sum(odds.values())
    cells: dict[Any, list[float]] = {}
    for one, chance in odds.items():
        expected = n * chance / total
        cell = cells.setdefault(one if expected >= 5 else "rare", [0, 0])
        cell[0] += counts[one]
        cell[1] += expected
    if len(cells) > 1 and cells.get("rare", [0, 5])[1] < 5:
        del cells["rare"]
    if len(cells) == 1:
        return
    square = sum((got - expected) ** 2 / expected for got, expected in cells.values())
    assert square < most_square(len(cells) - 1), {one: cell for one, cell in cells.items()}


def most_square(freedom: int) -> float:
    """What chi-square exceeds once in 1,000 times (Wilson and Hilferty 1931)."""
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + 3.09 * spread**0.5) ** 3)


def check_count(seen: int, chances: Sequence[float]) -> None:
    """Fail if something happened too often or too seldom, by its chance in each case."""
    spread = sum(chance * (1 - chance) for chance in chances) ** 0.5
    assert abs(seen - sum(chances)) < 3.3 * spread


# The island


@functools.cache
def trees() -> dict[Routes, float]:
    """The odds of all routes: how often the rulebook's examples can happen on them."""
    return {routes: sales(routes) * gifts(routes).mean() for routes in all_routes()}


@functools.cache
def all_routes() -> list[Routes]:
    """All planar trees on four mountain towns whose ends are the eight coastal towns in order."""
    return [named(tree) for tree in grown(4, 7) if tree]


def grown(mountains: int, coasts: int) -> Iterator[Tree]:
    """The trees with so many towns of each kind."""
    if (mountains, coasts) == (0, 1):
        yield ()
    elif mountains:
        yield from (row for row in rows(mountains - 1, coasts) if row)


def rows(mountains: int, coasts: int) -> Iterator[Tree]:
    """The rows of trees with so many towns of each kind in all."""
    if not mountains and not coasts:
        yield ()
    for m, c in itertools.product(range(mountains + 1), range(coasts + 1)):
        for first in grown(m, c):
            yield from ((first, *rest) for rest in rows(mountains - m, coasts - c))


def named(tree: Tree) -> Routes:
    """The routes of a tree that C1 leads to: towns are numbered as a walk around it meets them."""
    mountains, coasts = iter(["M1", "M2", "M3", "M4"]), iter(COASTAL)

    def walk(before: str, branches: Tree) -> Iterator[tuple[str, str]]:
        town = next(mountains if branches else coasts)
        yield (town, before) if before == "C1" else (before, town)
        for branch in branches:
            yield from walk(town, branch)

    return frozenset(walk(next(coasts), tree))


@functools.cache
def ends_of_a_2(routes: Routes) -> dict[str, list[str]]:
    """Where a merchant with a 2 can go, from each town."""
    near = neighbours([*routes])
    return {town: [path[-1] for path in simple_paths(near, [town], 2)] for town in near}


@functools.cache
def has_two_ways(routes: Routes) -> bool:
    """Whether a 2 leaves the choice of one mountain town and one coastal town somewhere.

    Three of the coastal towns can be occupied.
    """
    kinds = [Counter(end[0] for end in ends) for ends in ends_of_a_2(routes).values()]
    return any(kind["M"] == 1 and 1 <= kind["C"] <= 4 for kind in kinds)


def sells(routes: Routes, numbers: Sequence[int]) -> bool:
    """Whether a 2 can lead to a town that gives three wares and another 2 to a coastal town."""
    threes = {f"M{i}" for i, number in enumerate(numbers, 1) if number == 3}
    return bool(threes & sellers(routes))


@functools.cache
def sellers(routes: Routes) -> set[str]:
    """From where a 2 can lead to a coastal town."""
    ends = ends_of_a_2(routes).items()
    return {town for town, its in ends if any(end[0] == "C" for end in its)}


@functools.cache
def sales(routes: Routes) -> int:
    """How many orders of the numbers let the examples of merchants happen."""
    return has_two_ways(routes) * sum(sells(routes, numbers) for numbers in NUMBERS)


@functools.cache
def borders(routes: Routes) -> list[list[str]]:
    """The towns on the way along each area, from one coastal town to the next."""
    near = neighbours([*routes])
    ends = zip(COASTAL, COASTAL[1:] + COASTAL[:1], strict=True)
    return [
        next(p for n in range(12) for p in simple_paths(near, [start], n) if p[-1] == end)
        for start, end in ends
    ]


@functools.cache
def gifts(routes: Routes) -> npt.NDArray[np.bool_]:
    """Which orders of the icons let an artist with a 2 pass through bamboo to a waterfall."""
    ways = [{frozenset(route) for route in itertools.pairwise(path)} for path in borders(routes)]
    return _gifts(
        tuple(tuple(a != b and bool(ways[a] & ways[b]) for b in range(8)) for a in range(8))
    )


@functools.cache
def _gifts(next_to: tuple[tuple[bool, ...], ...]) -> npt.NDArray[np.bool_]:
    near = np.array(next_to)
    assert (near.sum(axis=1) >= 2).all()  # so the artist can come from a third area
    orders = np.array(ICON_ORDERS)
    return np.asarray(((orders == "bamboo") @ near & (orders == "waterfall")).any(axis=1))


# Tokens and points


@functools.cache
def tokens() -> dict[tuple[tuple[str, int], ...], float]:
    """The odds of all sets of tokens, sorted."""
    odds: Counter[tuple[tuple[str, int], ...]] = Counter()
    for more in itertools.combinations_with_replacement(WARES, 4):
        free = Counter([*more, *WARES])
        free["pottery"] -= 1  # that at 3
        ways = math.factorial(4) // math.prod(map(math.factorial, Counter(more).values()))
        for prices in itertools.product(*(_prices(ware, free[ware]).items() for ware in WARES)):
            told = [(ware, p) for ware, (ps, _) in zip(WARES, prices, strict=True) for p in ps]
            if {2, 4} <= {price for _, price in told}:
                chance = ways * math.prod(chance for _, chance in prices)
                odds[tuple(sorted([*told, ("pottery", 3)]))] += chance
    return odds


@functools.cache
def _prices(ware: str, count: int) -> dict[tuple[int, ...], float]:
    """The chances of the prices of so many tokens of a ware."""
    chances: Counter[tuple[int, ...]] = Counter()
    faces = Counter(map(int, PRICES[ware]))
    for prices in itertools.product(faces, repeat=count):
        chances[tuple(sorted(prices))] += math.prod(faces[price] / 6 for price in prices)
    return chances


def culture_tables() -> Iterator[tuple[int, ...]]:
    """All tables of points for paintings, each as likely as any other."""
    for first, *rises in itertools.product(range(1, 19), *[range(3)] * 5):
        steps = list(itertools.accumulate([first, *rises]))
        if sum(steps) == 18:
            for later in itertools.product(range(3), repeat=4):
                more = list(itertools.accumulate([steps[-1], *later]))[1:]
                yield (0, *itertools.accumulate([*steps, *more]))


def urn(balls: int, others: int, drawn: int, not_drawn: int) -> float:
    """The chance that Pólya's urn gives so many balls of a kind, and so many not of it."""
    return (
        math.comb(drawn + not_drawn, drawn)
        * math.prod(balls + i for i in range(drawn))
        * math.prod(others + i for i in range(not_drawn))
        / math.prod(balls + others + i for i in range(drawn + not_drawn))
    )


# Starts


def sides(routes: Routes) -> Iterator[tuple[float, list[list[int]], list[str]]]:
    """The sides of the players and the towns of their merchants, with their odds.

    Yields:
        The chance, the four areas of each seat, the town of each seat.
    """
    for first in range(8):
        areas = [[(first + 4 * seat + i) % 8 for i in range(4)] for seat in range(2)]
        towns = [towns_of_side(routes, mine) for mine in areas]
        for one in towns[0]:
            free = [town for town in towns[1] if town != one]
            for other in free:
                yield 1 / 8 / len(towns[0]) / len(free), areas, [one, other]


def towns_of_side(routes: Routes, areas: Sequence[int]) -> list[str]:
    """The mountain towns around some areas, and the coastal towns between two of them."""
    around = {town for area in areas for town in borders(routes)[area]}
    coasts = [COASTAL[area] for area in areas[1:]]
    return [*coasts, *sorted(town for town in around if town[0] == "M")]


def stations_of_side(stations: Sequence[str], areas: Sequence[int], merchant: str) -> list[int]:
    """The stations of some areas, the first coastal town included, but not the merchant's."""
    twice = [*range(len(stations))] * 2
    first = stations.index(COASTAL[areas[0]])
    last = stations.index(COASTAL[(areas[-1] + 1) % 8])
    side = twice[first : last + (len(stations) if last < first else 0)]
    return [index for index in side if stations[index] != merchant]
