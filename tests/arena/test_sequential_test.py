"""Stopping when it is decided: rarely wrong however often one looks, and soon when it is clear."""

from collections.abc import Callable
from itertools import pairwise
from math import exp

import numpy as np
import numpy.typing as npt
import pytest

from tokaido_env.arena.sequential_test import (
    better_agent,
    capital_processes,
    check_error_rate,
    interim_looks,
)

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]


def coins(rng: np.random.Generator, n: int) -> Floats:
    return rng.integers(0, 2, n).astype(float)


def pairs_of_games(rng: np.random.Generator, n: int) -> Floats:
    return rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], n, p=[0.15, 0.05, 0.6, 0.05, 0.15])


def lopsided(rng: np.random.Generator, n: int) -> Floats:
    """Seldom a great loss, mostly a little gain; the mean is a half."""
    return np.where(rng.random(n) < 0.1, 0.05, 0.55)


def always_shared(rng: np.random.Generator, n: int) -> Floats:
    return np.full(n, 0.5)


@pytest.mark.parametrize("draw", [coins, pairs_of_games, lopsided, always_shared])
@pytest.mark.parametrize("error", [0.05, 0.2])
def test_it_is_seldom_wrong_though_one_looks_after_every_pair(draw: Draw, error: float) -> None:
    rng = np.random.default_rng(0)
    runs = 600
    wrong = sum(better_agent(draw(rng, 1500), error) is not None for _ in range(runs))
    assert wrong <= error * runs


@pytest.mark.parametrize(
    ("mean", "pairs", "power"), [(0.55, 3000, 0.9), (0.6, 700, 0.9), (0.8, 70, 0.9)]
)
def test_it_finds_the_better_one(mean: float, pairs: int, power: float) -> None:
    rng = np.random.default_rng(1)
    for winner, p in (("a", mean), ("b", 1 - mean)):
        found = [better_agent((rng.random(pairs) < p).astype(float), 0.05) for _ in range(200)]
        assert found.count(winner) >= power * 200  # type: ignore[arg-type]
        assert len([x for x in found if x not in (winner, None)]) <= 0.05 * 200


def capitals_by_hand(scores: list[float]) -> tuple[float, float]:
    """The hedged capital process with aGRAPA's bets, written out pair by pair from the paper."""
    a, b = 0.5, 0.5
    total, squares = 0.0, 0.0
    mean, variance = 0.5, 0.25
    for t, x in enumerate(scores, start=1):
        bet = (mean - 0.5) / (variance + (mean - 0.5) ** 2)
        bet = max(min(bet, 0.75 / 0.5), -0.75 / 0.5)
        a *= 1 + max(bet, 0.0) * (x - 0.5)
        b *= 1 - max(-bet, 0.0) * (x - 0.5)
        total += x
        mean = (0.5 + total) / (t + 1)
        squares += (x - mean) ** 2
        variance = (0.25 + squares) / (t + 1)
    return a, b


@pytest.mark.parametrize("draw", [coins, pairs_of_games, lopsided, always_shared])
def test_the_capital_is_that_of_the_paper(draw: Draw) -> None:
    scores = draw(np.random.default_rng(5), 300)
    for n in (1, 2, 10, 300):
        a, b = capital_processes(scores[:n])
        assert (a[-1], b[-1]) == pytest.approx(capitals_by_hand(scores[:n].tolist()))


def test_a_bet_does_not_know_what_it_bets_on() -> None:
    """What comes later changes nothing of the capital before, and a bet is fair."""
    rng = np.random.default_rng(6)
    scores = coins(rng, 50)
    up, down = (np.append(scores, x) for x in (1.0, 0.0))
    for after_up, after_down in zip(capital_processes(up), capital_processes(down), strict=True):
        assert (after_up[:-1] == after_down[:-1]).all()
        assert (after_up[-1] + after_down[-1]) / 2 == pytest.approx(after_up[-2])


def test_no_capital_overflows_or_is_lost_for_good() -> None:
    for scores in (np.ones(20_000), np.zeros(20_000)):
        both = np.array(capital_processes(scores))
        assert np.isfinite(both).all()
        assert both.max() >= exp(600)
    assert better_agent(np.ones(100), 0.05) == "a"
    assert better_agent(np.zeros(100), 0.05) == "b"
    assert better_agent(np.zeros(0), 0.05) is None


def test_once_decided_it_stays_so() -> None:
    scores = np.concatenate([np.ones(50), np.zeros(500)])
    assert better_agent(scores[:50], 0.05) == better_agent(scores, 0.05) == "a"


@pytest.mark.parametrize("pairs", [1, 99, 100, 101, 1000, 54_321])
def test_looks_grow_and_end_with_the_last_pair(pairs: int) -> None:
    n = list(interim_looks(pairs))
    assert n[-1] == pairs
    assert n == sorted(set(n))
    assert all(look % 10 == 0 for look in n[:-1])
    assert all(0.25 * a - 1 <= b - a <= 0.25 * a + 10 for a, b in pairwise(n[:-1]))
    assert set(n[:-1]) <= set(interim_looks(10 * pairs))
    assert len(n) < 40


@pytest.mark.parametrize("error", [0.0, -1.0, 0.6, float("nan")])
def test_a_wrong_error_rate_is_refused(error: float) -> None:
    with pytest.raises(ValueError, match=r"error: expected a rate from 1e-9 to 0\.5, got"):
        check_error_rate(error)
