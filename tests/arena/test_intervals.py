"""Tests of arena/intervals.py: coverage on simulated results, and values of tables."""

from statistics import mean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matches import ResultModel, decided_by_luck, decided_by_skill, independent, with_draws
from slow_cases import slow_except_first

from tokaido_env.arena.intervals import (
    Estimate,
    adjusted_score,
    bootstrap_boards,
    clustered_mean,
    interquartile_mean,
    mean_over_seeds,
    percentile_interval,
    score_interval,
    student_t_quantile,
)

MEAN = 0.42  # of the simulated boards
SIMULATED, RESAMPLES = 300, 250

Counts = npt.NDArray[np.int64]


# Training seeds


@pytest.mark.parametrize(("seed_sd", "board_sd"), [(0.03, 0.08), (0.0, 0.08), (0.03, 0.0)])
def test_mean_over_seeds__covers_95_percent(seed_sd: float, board_sd: float) -> None:
    """Simulated: five seeds, 40 boards, games of a standard deviation of 0.1 a board."""
    rng = np.random.default_rng(0)
    covered, spreads = [], []
    for _ in range(1000):
        effects = rng.normal(0, seed_sd, (5, 1)) + rng.normal(0, board_sd, 40)
        found, spread = mean_over_seeds(0.5 + effects + rng.normal(0, 0.1, (5, 40)))
        covered.append(found.low <= 0.5 <= found.high)
        spreads.append(spread**2)
    assert 0.925 < np.mean(covered) < 0.99
    assert np.mean(spreads) == pytest.approx(seed_sd**2, abs=1.5e-4)


def test_mean_over_seeds__of_equal_scores_has_the_width_of_as_many_games_as_boards() -> None:
    found, spread = mean_over_seeds(np.zeros((5, 100)))
    assert (found.interval, spread) == ((0.0, pytest.approx(0.036993, abs=1e-6)), 0.0)


# Scores


@pytest.mark.parametrize("pairs", [20, 100, 500])
@pytest.mark.parametrize(
    ("results_of", "p"),
    slow_except_first(
        [
            *((decided_by_luck, p) for p in (0.7, 0.5)),
            *((independent, p) for p in (0.5, 0.7, 0.95)),
            *((with_draws, p) for p in (0.5, 0.7)),
            *((decided_by_skill, p) for p in (0.5, 0.7, 0.95)),
        ]
    ),
)
def test_score_interval__covers_the_mean_95_of_100_times(
    results_of: ResultModel, p: float, pairs: int
) -> None:
    rng = np.random.default_rng(pairs)
    covered = 0
    for _ in range(1000):
        results = results_of(rng, pairs, p)
        low, high = score_interval(results)
        assert 0.0 <= low <= results.mean() <= high <= 1.0
        assert low < high
        covered += low <= p <= high
    assert 900 <= covered <= 990


@pytest.mark.parametrize("pairs", [1, 2, 50, 5000])
@pytest.mark.parametrize("result", [0.0, 0.5, 1.0])
def test_score_interval__has_positive_width_for_equal_results(result: float, pairs: int) -> None:
    low, high = score_interval(np.full((pairs, 2), result))
    assert 0.0 <= low <= high <= 1.0
    assert low - 1e-12 <= result <= high + 1e-12
    assert high - low > 1 / (10 * pairs)


# Luck-adjusted scores


def simulated_luck(
    rng: np.random.Generator, pairs: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return results with a probability to win of 0.55 plus luck, and the luck."""
    luck = rng.uniform(-0.4, 0.4, (pairs, 2))
    return (rng.random((pairs, 2)) < 0.55 + luck).astype(float), luck


@pytest.mark.parametrize("pairs", [16, 50])
def test_adjusted_score__is_unbiased_and_covers_the_mean(pairs: int) -> None:
    rng = np.random.default_rng(0)
    scores, factors, covered = [], [], 0
    for _ in range(2000):
        adjusted = adjusted_score(*simulated_luck(rng, pairs))
        assert adjusted is not None
        score, factor = adjusted
        scores.append(score.value)
        factors.append(factor)
        covered += score.low <= 0.55 <= score.high
    assert abs(np.mean(scores) - 0.55) < 4 * np.std(scores) / np.sqrt(len(scores))
    assert 0.94 <= covered / 2000 <= 0.965
    # The variance p(1-p) = 0.2475 of a game contains 0.8²/12 = 0.0533 of the luck.
    assert np.mean(factors) == pytest.approx(0.2475 / (0.2475 - 0.0533), rel=0.08)


def test_adjusted_score__ignores_uncorrelated_luck_and_needs_variance() -> None:
    rng = np.random.default_rng(1)
    results = (rng.random((500, 2)) < 0.5).astype(float)
    adjusted = adjusted_score(results, rng.normal(size=(500, 2)))
    assert adjusted is not None
    assert adjusted[1] == pytest.approx(1, abs=0.03)
    assert adjusted_score(results, np.zeros((500, 2))) is None
    assert adjusted_score(np.ones((500, 2)), rng.normal(size=(500, 2))) is None


def test_clustered_mean__of_independent_values_matches_the_definition() -> None:
    values = [3.0, 5.0, 4.0, 9.0, 1.0, 2.0]
    found = clustered_mean(values, np.arange(6))
    half = 2.570582 * stdev(values) / 6**0.5  # of Student's t with five degrees of freedom
    assert found is not None
    assert found.value == pytest.approx(mean(values))
    assert found.interval == pytest.approx((mean(values) - half, mean(values) + half), abs=2e-6)


def test_clustered_mean__needs_values_and_two_clusters() -> None:
    assert clustered_mean([], np.arange(0)) is None
    assert clustered_mean([1.0, 2.0], np.zeros(2, int)) == Estimate(1.5, 1.5, 1.5)


# Scores on boards


def simulated_boards(rng: np.random.Generator, boards: int, pairs: int, spread: float) -> Counts:
    """Return pentanomials by board: the true scores spread about `MEAN`, a fifth of pairs drawn."""
    true = np.clip(MEAN + spread * rng.standard_normal(boards), 0, 1)[:, None, None]
    games = rng.random((boards, pairs, 2)) < (true - 0.1) / 0.8
    drawn = rng.random((boards, pairs)) < 0.2
    scores = np.where(drawn, 0.5, games.mean(axis=2))
    return np.stack([(4 * scores == points).sum(axis=1) for points in range(5)], axis=1)


def coverage(boards: int, pairs: int, spread: float) -> tuple[float, float]:
    """Return the share of intervals with the true mean, and their mean width."""
    rng = np.random.default_rng(boards + pairs)
    covered, widths = 0, []
    for i in range(SIMULATED):
        counts = simulated_boards(rng, boards, pairs, spread)
        draws = bootstrap_boards(counts, [i, 0], resamples=RESAMPLES).mean(axis=1)
        low, high = percentile_interval(draws, boards)
        covered += low <= MEAN <= high
        widths.append(high - low)
    return covered / SIMULATED, float(np.mean(widths))


@pytest.mark.parametrize(
    ("boards", "pairs", "spread"),
    slow_except_first(
        [(20, 10, 0.1), (10, 40, 0.1), (100, 1, 0.1)]
        + [(100, 40, spread) for spread in (0.1, 0.0, 0.03)]
    ),
)
def test_bootstrap_boards__covers_the_mean_at_the_right_width(
    boards: int, pairs: int, spread: float
) -> None:
    covered, width = coverage(boards, pairs, spread)
    assert 0.91 <= covered <= 0.985  # three standard errors of 300 simulations
    noise = 0.8 * (MEAN - 0.1) / 0.8 * (1 - (MEAN - 0.1) / 0.8) / 2
    expected = 2 * 1.96 * np.sqrt((spread**2 + noise / pairs) / boards)
    assert 0.85 * expected < width < 1.35 * expected


def test_bootstrap_boards__keeps_boards_that_are_no_sample() -> None:
    counts = np.array([[100, 0, 0, 0, 0], [0, 0, 0, 0, 100], [25, 0, 50, 0, 25]] * 4)
    draws = bootstrap_boards(counts, 0, drawn=False)
    assert draws.shape == (2000, 12)
    assert (draws[:, ::3] == 0).all()
    assert (draws[:, 1::3] == 1).all()
    # A pair has the variance 1/8, the mean of 100 pairs 1/800.
    assert draws[:, 2].std() == pytest.approx(np.sqrt(1 / 800), rel=0.1)
    assert draws[:, 2].mean() == pytest.approx(0.5, abs=0.005)
    drawn = bootstrap_boards(counts, 0)
    assert drawn.mean(axis=1).std() > 5 * draws.mean(axis=1).std()


def test_bootstrap_boards__repeats_by_seed_and_ignores_the_chunk_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = simulated_boards(np.random.default_rng(0), 30, 10, 0.1)
    one, other, seeded = (bootstrap_boards(counts, seed) for seed in (1, 1, 2))
    assert (one == other).all()
    assert (one != seeded).any()
    monkeypatch.setattr("tokaido_env.arena.intervals._BOARDS_AT_ONCE", 300)
    chunks = bootstrap_boards(counts, 1)
    assert (chunks == one).all()


# Formulas


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(0, 12.706), (2.5, 3.575), (3, 3.182), (9, 2.262), (99, 1.984), (10**9, 1.960)],
)
def test_student_t_quantile__agrees_with_tables(degrees: float, quantile: float) -> None:
    assert student_t_quantile(degrees) == pytest.approx(quantile, abs=5e-4)


def test_interquartile_mean__leaves_out_a_quarter_at_each_end() -> None:
    assert interquartile_mean(np.array([9.0, 1.0, 2.0, 3.0])) == 2.5
    assert interquartile_mean(np.array([5.0, 1.0])) == 3.0
    eight = np.array([[0.0, 0, 1, 2, 3, 4, 100, 100]] * 3)
    assert interquartile_mean(eight).tolist() == [2.5] * 3
