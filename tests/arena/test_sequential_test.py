"""Tests of arena/sequential_test.py: the error rate under repeated looks, and the power."""

from collections.abc import Callable
from itertools import pairwise
from math import exp

import numpy as np
import numpy.typing as npt
import pytest

from tokaido_env.arena.sequential_test import better_agent, capital_processes, interim_looks

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]


def coins(rng: np.random.Generator, n: int) -> Floats:
    return rng.integers(0, 2, n).astype(float)


def pairs_of_games(rng: np.random.Generator, n: int) -> Floats:
    return rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], n, p=[0.15, 0.05, 0.6, 0.05, 0.15])


def skewed(rng: np.random.Generator, n: int) -> Floats:
    """Draw rare large losses and frequent small gains, of mean 0.5."""
    return np.where(rng.random(n) < 0.1, 0.05, 0.55)


def always_drawn(rng: np.random.Generator, n: int) -> Floats:
    return np.full(n, 0.5)


even_scores = pytest.mark.parametrize("draw", [coins, pairs_of_games, skewed, always_drawn])


@even_scores
@pytest.mark.parametrize("error", [0.05, 0.2])
def test_better_agent__keeps_the_error_rate_when_tested_after_every_pair(
    draw: Draw, error: float
) -> None:
    rng = np.random.default_rng(0)
    wrong = sum(better_agent(draw(rng, 1500), error) is not None for _ in range(600))
    assert wrong <= error * 600


@pytest.mark.parametrize(("mean", "pairs"), [(0.55, 3000), (0.6, 700), (0.8, 70)])
def test_better_agent__finds_the_better_agent_with_power_90_percent(
    mean: float, pairs: int
) -> None:
    rng = np.random.default_rng(1)
    for winner, p in (("a", mean), ("b", 1 - mean)):
        found = [better_agent((rng.random(pairs) < p).astype(float), 0.05) for _ in range(200)]
        assert found.count(winner) >= 0.9 * 200  # type: ignore[arg-type]
        assert len([x for x in found if x not in (winner, None)]) <= 0.05 * 200


def naive_capitals(scores: list[float]) -> tuple[float, float]:
    """Return the hedged capital process with aGRAPA bets, pair by pair from the paper."""
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


@even_scores
def test_capital_processes__agree_with_the_paper(draw: Draw) -> None:
    scores = draw(np.random.default_rng(5), 300)
    for n in (1, 2, 10, 300):
        a, b = capital_processes(scores[:n])
        assert (a[-1], b[-1]) == pytest.approx(naive_capitals(scores[:n].tolist()))


def test_capital_processes__do_not_overflow() -> None:
    for scores in (np.ones(20_000), np.zeros(20_000)):
        capitals = np.array(capital_processes(scores))
        assert np.isfinite(capitals).all()
        assert capitals.max() >= exp(600)


@pytest.mark.parametrize("pairs", [1, 99, 100, 101, 1000, 54_321])
def test_interim_looks__grow_by_a_quarter_and_end_with_the_last_pair(pairs: int) -> None:
    n = list(interim_looks(pairs))
    assert n[-1] == pairs
    assert n == sorted(set(n))
    assert all(pairs % 10 == 0 for pairs in n[:-1])
    assert all(0.25 * a - 1 <= b - a <= 0.25 * a + 10 for a, b in pairwise(n[:-1]))
    assert set(n[:-1]) <= set(interim_looks(10 * pairs))
    assert len(n) < 40
