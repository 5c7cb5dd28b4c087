"""Family 1: boards drawn at random that keep all that is known of the printed one.

    board = Board.generate(7)  # named "family:7"
    board.save("seven.toml")

The printed board is lost. What the rulebook says of it, and what follows from that, is the same on
all boards of the family; what it leaves open is drawn anew for each number. A result that holds on
them does not rest on the reconstruction. `docs/boards.md` has all of it in a table.

The draw is these rules and the number, nothing else. It is frozen: a change is family 2. Each entry
has a stream of random bits of its own, those of SplitMix64 (Steele, Lea, Flood 2014, "Fast
splittable pseudorandom number generators"), worked out with Python's integers alone.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tokaido_env.boards.geometry import Routes, neighbours, town_areas, town_reach
from tokaido_env.boards.procedural import PREFIX, check_number
from tokaido_env.core.constants import (
    AREAS,
    COASTAL_TOWNS,
    ICONS,
    MOUNTAIN_TOWNS,
    RING_SIZES,
    TOWNS,
    WARES,
)

FAMILY = 1

# In the rulebook, or inferred from it and a public source (see `shikoku.toml`).
CERTAIN: Mapping[str, Any] = {
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

# A die shows each number of its range at least once; its other faces are any of them.
PILGRIM_RANGE = (1, 2, 3, 4)
OTHER_RANGE = (1, 2, 3)
FACES = 6

MOUNTAIN_NUMBERS = (2, 3, 4)

# Stations besides the coastal towns: those of every board, and the urn of the others at first.
STATIONS_AT_LEAST = {"temple": 2, "garden": 2, "seashore": 2, "hot spring": 1}
URN = {"temple": 4, "garden": 3, "seashore": 2, "hot spring": 1}

# How often each price comes among six: the rarer a ware, the dearer it tends to be.
PRICES = {
    "kimono": (2, 3, 3, 4, 4, 4),
    "pottery": (2, 3, 3, 3, 4, 4),
    "doll": (2, 2, 3, 3, 3, 4),
    "fan": (2, 2, 2, 3, 3, 4),
}
ALL_PRICES = {2, 3, 4}
POTTERY = ("pottery", 3)  # sold in an example
TOKENS = 8

PAINTINGS_IN_EXAMPLE, POINTS_IN_EXAMPLE = 6, 18
RISES = (0, 1, 2)  # of what one painting brings over what the one before it brought
PAINTINGS = 10

_STREAMS = (
    *("dice.pilgrim", "dice.merchant", "dice.artist", "ring", "routes", "mountains", "areas"),
    *("starts", "boutiques", "culture"),
)
_COASTS, _MOUNTAINS = 0x0FF, 0xF00  # as bits of towns

_Item = TypeVar("_Item")


def draw_board(number: int) -> dict[str, Any]:
    """Return the fields of a `Board`: the one with that number in the family.

    Args:
        number: from 0 to 2**31 - 1.

    Raises:
        BoardError: if the number is something else.
    """
    number = check_number(number)
    key = _mix(FAMILY << 32 | number)
    luck = {entry: _Luck(key + stream) for stream, entry in enumerate(_STREAMS)}
    stations = _ring(luck["ring"])
    routes, numbers, icons = _island(luck["routes"], luck["mountains"], luck["areas"])
    return {
        **CERTAIN,
        "name": f"{PREFIX}{number}",
        "source": f"{PREFIX}{number}",
        "faces": (
            luck["dice.pilgrim"].choice(_dice(PILGRIM_RANGE)),
            luck["dice.merchant"].choice(_dice(OTHER_RANGE)),
            luck["dice.artist"].choice(_dice(OTHER_RANGE)),
        ),
        "stations": stations,
        "routes": routes,
        "mountain_numbers": numbers,
        "area_icons": icons,
        "starts": _starts(luck["starts"], stations, routes),
        "boutiques": _tokens(luck["boutiques"]),
        "culture": luck["culture"].choice(_culture_tables()),
        "provenance": dict(PROVENANCE),
    }


# Random bits


class _Luck:
    """The random stream of one entry of one board."""

    def __init__(self, key: int) -> None:
        self._state = _mix(key & _WORD)

    def below(self, n: int) -> int:
        """Return one of 0 … n-1; uneven by less than n in 2**32."""
        self._state = self._state + _GOLDEN & _WORD
        return (_mix(self._state) >> 32) * n >> 32

    def choice(self, items: Sequence[_Item]) -> _Item:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the items in an order drawn at random (Fisher and Yates 1938)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


_WORD = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(z: int) -> int:
    """Scramble 64 bits, as SplitMix64 does."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    return z ^ z >> 31


# The island: routes, mountain towns and areas


def _island(
    for_routes: _Luck, for_numbers: _Luck, for_icons: _Luck
) -> tuple[Routes, tuple[int, ...], tuple[str, ...]]:
    """Draw routes, numbers and icons until the rulebook's examples can happen on them."""
    while True:
        routes = _routes(for_routes)
        numbers = for_numbers.choice(_number_orders())
        icons = tuple(for_icons.shuffled(ICONS * 2))
        if _two_ways_and_a_sale(routes, numbers) and _a_gift_on_the_way(routes, icons):
            return routes, numbers, icons


def _routes(luck: _Luck) -> Routes:
    """Draw one of the 2,520 planar trees whose ends are the coastal towns in their order.

    From C1 such a tree is an ordered one: each mountain town has towns farther on, clockwise. Of
    all ways to give ten towns to four of the eleven others, read as the towns of a walk around
    the tree, exactly one turn is a tree (Dvoretzky and Motzkin 1947), so all are equally likely.
    Mountain towns are numbered as the walk meets them.
    """
    further = [0] * (len(TOWNS) - 1)
    for place, towns in zip(luck.choice(_places()), luck.choice(_shares()), strict=True):
        further[place] = towns
    sums = list(itertools.accumulate(towns - 1 for towns in further))
    first = (sums.index(min(sums)) + 1) % len(sums)
    return _tree(further[first:] + further[:first])


def _tree(further: Sequence[int]) -> Routes:
    """Return the routes of a tree from how many towns each has farther on, as met on the walk."""
    mountains, coasts = iter(MOUNTAIN_TOWNS), iter(COASTAL_TOWNS)
    inner: list[tuple[str, str]] = []
    outer: list[tuple[str, str]] = []
    open_ends = [next(coasts)]  # a town for each route that is still to be walked
    for towns in further:
        before = open_ends.pop()
        town = next(mountains if towns else coasts)
        is_inner = towns and before in MOUNTAIN_TOWNS
        (inner if is_inner else outer).append((before, town))
        open_ends += [town] * towns
    (first, root), *rest = outer
    return (*inner, (root, first), *rest)


@functools.cache
def _places() -> list[tuple[int, ...]]:
    """Return the choices of the four mountain towns among the eleven towns after C1."""
    return list(itertools.combinations(range(len(TOWNS) - 1), len(MOUNTAIN_TOWNS)))


@functools.cache
def _shares() -> list[tuple[int, ...]]:
    """Return the ways to share ten towns out among four, one each at least."""
    towns = len(TOWNS) - 2
    cuts = itertools.combinations(range(1, towns), len(MOUNTAIN_TOWNS) - 1)
    return [tuple(b - a for a, b in itertools.pairwise((0, *cut, towns))) for cut in cuts]


@functools.cache
def _number_orders() -> list[tuple[int, ...]]:
    """Return the 36 ways to give four mountain towns 2, 3 and 4 and one of these again."""
    orders = itertools.product(MOUNTAIN_NUMBERS, repeat=len(MOUNTAIN_TOWNS))
    return [order for order in orders if set(order) == set(MOUNTAIN_NUMBERS)]


def _two_ways_and_a_sale(routes: Routes, numbers: Sequence[int]) -> bool:
    """Return whether the rulebook's examples of merchants can happen."""
    reach = town_reach(routes, 2)[2]
    # A choice of one mountain town and one coastal town; three others can be occupied.
    two_ways = any(
        (towns & _MOUNTAINS).bit_count() == 1 and 1 <= (towns & _COASTS).bit_count() <= 4
        for towns in reach
    )
    # With a 2 to a town that gives three wares, with another 2 to a boutique.
    draw_and_sell = any(
        number == 3 and towns & _COASTS
        for number, towns in zip(numbers, reach[len(COASTAL_TOWNS) :], strict=True)
    )
    return two_ways and draw_and_sell


def _a_gift_on_the_way(routes: Routes, icons: Sequence[str]) -> bool:
    """Return whether an artist with a 2 can pass through bamboo to a waterfall.

    It comes from a third area: all have two neighbours or more, those along the coast.
    """
    return any(
        icons[middle] == "bamboo" and icons[end] == "waterfall"
        for middle, ends in enumerate(neighbours(routes))
        for end in ends
    )


# The ring


def _ring(luck: _Luck) -> tuple[str, ...]:
    """Draw the stations; at least one lies between any two coastal towns."""
    low, high = RING_SIZES
    others = luck.shuffled(_other_stations(luck, luck.below(high - low + 1) + low - len(AREAS)))
    counts = [1] * len(AREAS)
    for _ in others[len(AREAS) :]:
        counts[luck.below(len(AREAS))] += 1
    ring: list[str] = []
    for town, count in zip(COASTAL_TOWNS, counts, strict=True):
        ring += [town, *others[:count]]
        del others[:count]
    return tuple(ring)


def _other_stations(luck: _Luck, count: int) -> list[str]:
    """Draw what stations there are: the least, the rest from an urn (Pólya 1930).

    Each ball that is drawn goes back with another of its kind, so that boards differ much.
    """
    stations = [kind for kind, least in STATIONS_AT_LEAST.items() for _ in range(least)]
    urn = [kind for kind, balls in URN.items() for _ in range(balls)]
    for _ in range(count - len(stations)):
        urn.append(luck.choice(urn))
    return stations + urn[sum(URN.values()) :]


# Starts, tokens, dice, points


def _starts(
    luck: _Luck, stations: Sequence[str], routes: Routes
) -> tuple[tuple[int, str, str], ...]:
    """Draw six different spaces, each player's on a side of four areas of the island.

    The merchant's town borders one of the areas and is no coastal town at the ends of the side.
    """
    around = dict(zip(TOWNS, town_areas(routes), strict=True))
    side = luck.below(len(AREAS))
    starts: list[tuple[int, str, str]] = []
    for seat in range(2):
        areas = [(side + 4 * seat + i) % len(AREAS) for i in range(4)]
        bits = sum(1 << area for area in areas)
        coasts = [COASTAL_TOWNS[area] for area in areas]
        towns = [*coasts[1:], *(town for town in MOUNTAIN_TOWNS if around[town] & bits)]
        taken = {town for _, town, _ in starts}
        merchant = luck.choice([town for town in towns if town not in taken])
        first, last = stations.index(coasts[0]), stations.index(COASTAL_TOWNS[(areas[3] + 1) % 8])
        size = (last - first) % len(stations)
        spaces = [(first + i) % len(stations) for i in range(size)]
        pilgrim = luck.choice([space for space in spaces if stations[space] != merchant])
        starts.append((pilgrim, merchant, AREAS[luck.choice(areas)]))
    return tuple(starts)


def _tokens(luck: _Luck) -> tuple[tuple[str, int], ...]:
    """Draw tokens until there is one of each price; of each ware there is one at least."""
    while True:
        wares = [*WARES, *(luck.choice(WARES) for _ in range(TOKENS - len(WARES)))]
        tokens = [(ware, luck.choice(PRICES[ware])) for ware in wares]
        tokens[WARES.index("pottery")] = POTTERY
        if {price for _, price in tokens} == ALL_PRICES:
            return tuple(sorted(tokens, key=lambda token: (WARES.index(token[0]), -token[1])))


@functools.cache
def _dice(numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the dice that show each of some numbers at least once."""
    rest = itertools.combinations_with_replacement(numbers, FACES - len(numbers))
    return [tuple(sorted(numbers + more)) for more in rest]


@functools.cache
def _culture_tables() -> list[tuple[int, ...]]:
    """Return the 1,701 tables of points for 0 to 10 paintings.

    Each painting brings 1 at least, and as much as the one before it or up to 2 more; six bring 18.
    """
    tables = []
    most = POINTS_IN_EXAMPLE // PAINTINGS_IN_EXAMPLE  # that the first may bring
    openings = itertools.product(range(1, most + 1), *[RISES] * (PAINTINGS_IN_EXAMPLE - 1))
    for opening in openings:
        if sum(itertools.accumulate(opening)) == POINTS_IN_EXAMPLE:
            for rises in itertools.product(RISES, repeat=PAINTINGS - PAINTINGS_IN_EXAMPLE):
                steps = itertools.accumulate((*opening, *rises))
                tables.append((0, *itertools.accumulate(steps)))
    return tables
