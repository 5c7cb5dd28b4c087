"""The odds of the family of boards, worked out slowly from `docs/boards.md`.

Nothing here is the generator's. Islands and starts are frozen with the family (`FROZEN`).
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from positions import WARES

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
