"""Procedural boards, of which family 1 agrees with all known facts about the printed board.

    board = Board.generate(7)  # named "family:7"
    board.save("seven.toml")

The printed board is lost. All boards of family 1 have the values that the rulebook gives or
implies; a board's number determines the others. A result that holds on the family does not depend
on the reconstruction. `docs/reference/board-family.md` lists all values.

A board depends on these rules and its number only. The rules are frozen; a change needs a new
family. Family 2 is the split `far`: train cannot have any of its drawn entries, except for starts
and the length of 38 of its 100 rings.

Each entry has a separate random stream of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable
pseudorandom number generators"), computed with Python integers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tokaido_env.boards.geometry import Routes, neighbours, town_areas, town_reach
from tokaido_env.boards.procedural import FAR, PREFIX, SPLITS, check_number
from tokaido_env.core.constants import (
    AREAS,
    COASTAL_TOWNS,
    ICONS,
    LAST_SLAB,
    MOUNTAIN_TOWNS,
    PAINTINGS,
    STATIONS,
    TOWNS,
    WARES,
)

FAMILY, FAR_FAMILY = 1, 2

# From the rulebook, or inferred from it and a public source (see `shikoku.toml`).
KNOWN: Mapping[str, Any] = {
    "max_rounds": 200,
    "commerce": (0, 5, 11, 18, 26, 35, 45),
    "temple": (1, 2, 3, 4, 5, 6, 7, 8, 9),
    "garden": (1, 2, 3, 4, 5, 6),
}
PROVENANCE = {
    **dict.fromkeys(("dice.pilgrim", "dice.merchant", "dice.artist"), "reconstruction"),
    **dict.fromkeys(("ring", "routes", "mountains", "areas"), "reconstruction"),
    **dict.fromkeys(("starts", "boutiques"), "reconstruction"),
    **{"commerce": "inferred", "culture": "reconstruction"},
    **dict.fromkeys(("temple", "garden"), "rulebook"),
}

# A die has each number of its range at least once; the other faces are random.
PILGRIM_RANGE = (1, 2, 3, 4)
OTHER_RANGE = (1, 2, 3)
FACES = 6

MOUNTAIN_NUMBERS = (2, 3, 4)
RING_SIZES = (20, 40)

# Stations other than coastal towns: those of every board, and the initial urn for the others.
STATIONS_AT_LEAST = {"temple": 2, "garden": 2, "seashore": 2, "hot spring": 1}
URN = {"temple": 4, "garden": 3, "seashore": 2, "hot spring": 1}

# Six equally likely prices for each ware; rare wares tend to cost more.
PRICES = {
    "kimono": (2, 3, 3, 4, 4, 4),
    "pottery": (2, 3, 3, 3, 4, 4),
    "doll": (2, 2, 3, 3, 3, 4),
    "fan": (2, 2, 2, 3, 3, 4),
}
ALL_PRICES = {2, 3, 4}
POTTERY = ("pottery", 3)  # sold in the rulebook's example
TOKENS = 8

PAINTINGS_IN_EXAMPLE, POINTS_IN_EXAMPLE = 6, 18
RISES = (0, 1, 2)  # in points, from one painting to the next

# Values of family 2. A die has each number of one of its ranges at least once.
FAR_PILGRIM_RANGES = (1, 3, 6), (2, 3, 5)
FAR_OTHER_RANGES = (1, 2), (1, 2, 4)
FAR_RING_SIZES = (*range(12, 20), *range(36, 41))
FAR_GAPS = 3  # between coastal towns, with all other stations
FAR_PRICES = (2, 4)

_STREAMS = (
    *("dice.pilgrim", "dice.merchant", "dice.artist", "ring", "routes", "mountains", "areas"),
    *("starts", "boutiques", "culture", "commerce"),
)
_COASTS, _MOUNTAINS = 0x0FF, 0xF00  # as bits of towns

_Item = TypeVar("_Item")


def draw_board(number: int) -> dict[str, Any]:
    """Return the fields of the family's `Board` with a number.

    Args:
        number: from 0 to 2**31 - 1, or of the split `far` (`procedural.SPLITS`).

    Raises:
        BoardError: if the number is out of range.
    """
    number = check_number(number)
    is_far = number in SPLITS[FAR]
    key = _mix((FAR_FAMILY if is_far else FAMILY) << 32 | number)
    streams = {entry: _RandomStream(key + i) for i, entry in enumerate(_STREAMS)}
    return {
        **KNOWN,
        "name": f"{PREFIX}{number}",
        "source": f"{PREFIX}{number}",
        "provenance": dict(PROVENANCE),
        **(_far_entries(streams) if is_far else _entries(streams)),
    }


def _entries(streams: Mapping[str, _RandomStream]) -> dict[str, Any]:
    """Return the drawn fields of a board of family 1."""
    stations = _ring(streams["ring"])
    routes, numbers, icons = _island(streams["routes"], streams["mountains"], streams["areas"])
    return {
        "faces": (
            streams["dice.pilgrim"].choice(_dice(PILGRIM_RANGE)),
            streams["dice.merchant"].choice(_dice(OTHER_RANGE)),
            streams["dice.artist"].choice(_dice(OTHER_RANGE)),
        ),
        "stations": stations,
        "routes": routes,
        "mountain_numbers": numbers,
        "area_icons": icons,
        "starts": _starts(streams["starts"], stations, routes),
        "boutiques": _tokens(streams["boutiques"]),
        "culture": streams["culture"].choice(_culture_tables()),
    }


# Random bits


class _RandomStream:
    """SplitMix64 stream of one entry of one board."""

    def __init__(self, key: int) -> None:
        self._state = _mix(key & _WORD)

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1, uniform up to a bias of n / 2**32."""
        self._state = self._state + _GOLDEN & _WORD
        return (_mix(self._state) >> 32) * n >> 32

    def choice(self, items: Sequence[_Item]) -> _Item:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the items in random order (Fisher and Yates 1938)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


_WORD = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(z: int) -> int:
    """Return 64 bits mixed by SplitMix64's finaliser."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    return z ^ z >> 31


# The island: routes, mountain towns and areas


def _island(
    for_routes: _RandomStream, for_numbers: _RandomStream, for_icons: _RandomStream
) -> tuple[Routes, tuple[int, ...], tuple[str, ...]]:
    """Return routes, numbers and icons for which the rulebook's examples are possible."""
    while True:
        routes = _routes(for_routes)
        numbers = for_numbers.choice(_number_orders())
        icons = tuple(for_icons.shuffled(ICONS * 2))
        if _allows_merchant_examples(routes, numbers) and _allows_artist_example(routes, icons):
            return routes, numbers, icons


def _routes(stream: _RandomStream) -> Routes:
    """Return one of the 2,520 planar trees with the coastal towns as leaves in their order.

    Seen from C1 such a tree is ordered: each mountain town has children, clockwise. Consider all
    ways to give ten children to four of the eleven other towns, in the order of a walk around the
    tree. Exactly one rotation of each is a tree (Dvoretzky and Motzkin 1947), so all trees are
    equally likely. The walk numbers the mountain towns.
    """
    return _tree(_children(stream.choice(_indices()), stream.choice(_counts())))


def _children(indices: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return each town's number of children in the walk's order."""
    children = [0] * (len(TOWNS) - 1)
    for index, count in zip(indices, counts, strict=True):
        children[index] = count
    sums = list(itertools.accumulate(count - 1 for count in children))
    first = (sums.index(min(sums)) + 1) % len(sums)
    return children[first:] + children[:first]


def _tree(children: Sequence[int]) -> Routes:
    """Return the routes of a tree, given each town's number of children in the walk's order."""
    mountains, coasts = iter(MOUNTAIN_TOWNS), iter(COASTAL_TOWNS)
    inner: list[tuple[str, str]] = []
    outer: list[tuple[str, str]] = []
    parents = [next(coasts)]  # one entry for each child that the walk has not reached
    for count in children:
        parent = parents.pop()
        town = next(mountains if count else coasts)
        is_inner = count and parent in MOUNTAIN_TOWNS
        (inner if is_inner else outer).append((parent, town))
        parents += [town] * count
    (first, root), *rest = outer
    return (*inner, (root, first), *rest)


@functools.cache
def _indices() -> list[tuple[int, ...]]:
    """Return all choices of the four mountain towns among the eleven towns after C1."""
    return list(itertools.combinations(range(len(TOWNS) - 1), len(MOUNTAIN_TOWNS)))


@functools.cache
def _counts() -> list[tuple[int, ...]]:
    """Return all numbers of children of the four mountain towns, ten in all, each at least one."""
    towns = len(TOWNS) - 2
    bounds = itertools.combinations(range(1, towns), len(MOUNTAIN_TOWNS) - 1)
    return [tuple(b - a for a, b in itertools.pairwise((0, *inner, towns))) for inner in bounds]


@functools.cache
def _number_orders() -> list[tuple[int, ...]]:
    """Return the 36 ways to number four mountain towns with 2, 3, 4 and one of these again."""
    orders = itertools.product(MOUNTAIN_NUMBERS, repeat=len(MOUNTAIN_TOWNS))
    return [order for order in orders if set(order) == set(MOUNTAIN_NUMBERS)]


def _allows_merchant_examples(routes: Routes, numbers: Sequence[int]) -> bool:
    """Return whether the rulebook's two examples for merchants are possible."""
    reach = town_reach(routes, 2)[2][len(COASTAL_TOWNS) :]
    # With a 2 to a town that gives three wares, with another 2 to a boutique.
    return _allows_choice(routes) and any(
        number == 3 and towns & _COASTS for number, towns in zip(numbers, reach, strict=True)
    )


def _allows_choice(routes: Routes) -> bool:
    """Return whether a merchant with a 2 can choose between one mountain and one coastal town.

    Three other coastal towns can be occupied.
    """
    return any(
        (towns & _MOUNTAINS).bit_count() == 1 and 1 <= (towns & _COASTS).bit_count() <= 4
        for towns in town_reach(routes, 2)[2]
    )


def _allows_artist_example(routes: Routes, icons: Sequence[str]) -> bool:
    """Return whether an artist with a 2 can pass through bamboo to a waterfall.

    The artist comes from a third area; every area has at least two neighbours along the coast.
    """
    return any(
        icons[middle] == "bamboo" and icons[end] == "waterfall"
        for middle, ends in enumerate(neighbours(routes))
        for end in ends
    )


# The ring


def _ring(stream: _RandomStream) -> tuple[str, ...]:
    """Return the stations, with at least one between any two coastal towns."""
    low, high = RING_SIZES
    size = stream.below(high - low + 1) + low - len(AREAS)
    others = stream.shuffled(_other_stations(stream, size))
    counts = [1] * len(AREAS)
    for _ in others[len(AREAS) :]:
        counts[stream.below(len(AREAS))] += 1
    ring: list[str] = []
    for town, count in zip(COASTAL_TOWNS, counts, strict=True):
        ring += [town, *others[:count]]
        del others[:count]
    return tuple(ring)


def _other_stations(stream: _RandomStream, count: int) -> list[str]:
    """Return stations other than coastal towns: the minimum, and the rest from a Pólya urn (1930).

    Each drawn ball returns with another of its kind, so that boards differ much.
    """
    stations = [kind for kind, least in STATIONS_AT_LEAST.items() for _ in range(least)]
    urn = [kind for kind, balls in URN.items() for _ in range(balls)]
    for _ in range(count - len(stations)):
        urn.append(stream.choice(urn))
    return stations + urn[sum(URN.values()) :]


# Starts, tokens, dice, points


def _starts(
    stream: _RandomStream, stations: Sequence[str], routes: Routes
) -> tuple[tuple[int, str, str], ...]:
    """Return six different starting places; each player has a side of four areas.

    The merchant's town borders one of the areas and is not a coastal town at an end of the side.
    """
    around = dict(zip(TOWNS, town_areas(routes), strict=True))
    side = stream.below(len(AREAS))
    starts: list[tuple[int, str, str]] = []
    for seat in range(2):
        areas = [(side + 4 * seat + i) % len(AREAS) for i in range(4)]
        bits = sum(1 << area for area in areas)
        coasts = [COASTAL_TOWNS[area] for area in areas]
        towns = [*coasts[1:], *(town for town in MOUNTAIN_TOWNS if around[town] & bits)]
        taken = {town for _, town, _ in starts}
        merchant = stream.choice([town for town in towns if town not in taken])
        first, last = stations.index(coasts[0]), stations.index(COASTAL_TOWNS[(areas[3] + 1) % 8])
        size = (last - first) % len(stations)
        spaces = [(first + i) % len(stations) for i in range(size)]
        pilgrim = stream.choice([space for space in spaces if stations[space] != merchant])
        starts.append((pilgrim, merchant, AREAS[stream.choice(areas)]))
    return tuple(starts)


def _tokens(stream: _RandomStream) -> tuple[tuple[str, int], ...]:
    """Return boutique tokens with each ware and each price at least once."""
    while True:
        wares = [*WARES, *(stream.choice(WARES) for _ in range(TOKENS - len(WARES)))]
        tokens = [(ware, stream.choice(PRICES[ware])) for ware in wares]
        tokens[WARES.index("pottery")] = POTTERY
        if {price for _, price in tokens} == ALL_PRICES:
            return tuple(sorted(tokens, key=lambda token: (WARES.index(token[0]), -token[1])))


@functools.cache
def _dice(numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all dice with each of some numbers at least once."""
    rest = itertools.combinations_with_replacement(numbers, FACES - len(numbers))
    return [tuple(sorted(numbers + more)) for more in rest]


@functools.cache
def _culture_tables() -> list[tuple[int, ...]]:
    """Return the 1,701 possible tables of points for 0 to 10 paintings.

    The first painting gives at least 1 point. Each next one gives 0 to 2 points more than the one
    before it. Six paintings give 18 points.
    """
    tables = []
    most = POINTS_IN_EXAMPLE // PAINTINGS_IN_EXAMPLE  # for the first painting
    openings = itertools.product(range(1, most + 1), *[RISES] * (PAINTINGS_IN_EXAMPLE - 1))
    for opening in openings:
        if sum(itertools.accumulate(opening)) == POINTS_IN_EXAMPLE:
            for rises in itertools.product(RISES, repeat=PAINTINGS - PAINTINGS_IN_EXAMPLE):
                steps = itertools.accumulate((*opening, *rises))
                tables.append((0, *itertools.accumulate(steps)))
    return tables


# Family 2: boards unlike those of family 1


def _far_entries(streams: Mapping[str, _RandomStream]) -> dict[str, Any]:
    """Return the drawn fields of a board of family 2."""
    stations = _far_ring(streams["ring"])
    routes = streams["routes"].choice(_far_trees())
    pilgrims, others = (
        [die for numbers in ranges for die in _dice(numbers)]
        for ranges in (FAR_PILGRIM_RANGES, FAR_OTHER_RANGES)
    )
    numbers = streams["mountains"].shuffled(MOUNTAIN_NUMBERS)[:2]
    steps = sorted((2 + streams["commerce"].below(11) for _ in range(LAST_SLAB)), reverse=True)
    return {
        "faces": (
            streams["dice.pilgrim"].choice(pilgrims),
            streams["dice.merchant"].choice(others),
            streams["dice.artist"].choice(others),
        ),
        "stations": stations,
        "routes": routes,
        "mountain_numbers": tuple(streams["mountains"].choice(numbers) for _ in MOUNTAIN_TOWNS),
        "area_icons": tuple(streams["areas"].shuffled(_mostly_two(streams["areas"], ICONS))),
        "starts": _starts(streams["starts"], stations, routes),
        "boutiques": _far_tokens(streams["boutiques"]),
        "commerce": (0, *itertools.accumulate(steps)),
        "culture": _far_culture(streams["culture"]),
        "provenance": {**PROVENANCE, "commerce": "reconstruction"},
    }


def _far_ring(stream: _RandomStream) -> tuple[str, ...]:
    """Return stations of three kinds besides coastal towns, in three gaps between these."""
    size = stream.choice(FAR_RING_SIZES) - len(COASTAL_TOWNS)
    urn = stream.shuffled(STATIONS[1:])[:3]
    while len(urn) < size:
        urn.append(stream.choice(urn))  # Pólya urn
    gaps = stream.shuffled(COASTAL_TOWNS)[:FAR_GAPS]
    after: dict[str, list[str]] = {town: [town] for town in COASTAL_TOWNS}
    for i, station in enumerate(stream.shuffled(urn)):
        after[gaps[i] if i < FAR_GAPS else stream.choice(gaps)].append(station)
    return tuple(itertools.chain.from_iterable(after.values()))


@functools.cache
def _far_trees() -> list[Routes]:
    """Return the 64 trees in which the merchants' example of the rulebook is impossible."""
    shapes = itertools.product(_indices(), _counts())
    trees = dict.fromkeys(_tree(_children(*shape)) for shape in shapes)
    return [tree for tree in trees if not _allows_choice(tree)]


def _mostly_two(stream: _RandomStream, kinds: Sequence[str]) -> list[str]:
    """Return one of each of four kinds, and four more of one or two of them."""
    two = stream.shuffled(kinds)[:2]
    return [*kinds, *(stream.choice(two) for _ in kinds)]


def _far_tokens(stream: _RandomStream) -> tuple[tuple[str, int], ...]:
    tokens = [(ware, stream.choice(FAR_PRICES)) for ware in _mostly_two(stream, WARES)]
    return tuple(sorted(tokens, key=lambda token: (WARES.index(token[0]), -token[1])))


def _far_culture(stream: _RandomStream) -> tuple[int, ...]:
    """Return points that rise ever more slowly, or that begin after some paintings."""
    step = 5 + stream.below(4)
    if stream.below(2):
        without = 2 + stream.below(3)
        return tuple(step * max(paintings - without, 0) for paintings in range(PAINTINGS + 1))
    points = [0]
    for _ in range(PAINTINGS):
        points.append(points[-1] + step)
        step = max(step - stream.below(3), 1)
    return tuple(points)
