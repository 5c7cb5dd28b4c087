"""Tests of arena/generalisation.py: scores on boards and the gap between two sets of boards."""

import numpy as np
import pytest
from matches import Floats, match_of_results

from tokaido_env.arena.generalisation import (
    FIGURES,
    PoolScores,
    generalisation_gap,
    improvement,
    over_seeds,
    pool_estimates,
    pool_scores,
)
from tokaido_env.arena.intervals import Estimate, wilson_interval
from tokaido_env.boards.board_pool import BoardPool


def board_scores(scores: Floats, kind: int = 0) -> PoolScores:
    """Return the scores of (boards, pairs): both games of a pair have the same result."""
    match = match_of_results(np.repeat(scores.reshape(-1, 1), 2, axis=1))
    pool = BoardPool.load(f"family:test/{len(scores)}")
    return pool_scores(match, pool, 0, kind, drawn=True)


def test_pool_scores__agree_with_hand_computed_values() -> None:
    pool = BoardPool.load("family:test/4")
    found = board_scores(
        np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 0]], np.float64)
    )
    assert [one.board for one in found.scores] == [board.name for board in pool]
    assert [one.value for one in found.scores] == [1.0, 0.5, 0.25, 0.75]
    assert {(one.a, one.b, one.n, one.group) for one in found.scores} == {("x", "y", 8, pool.name)}
    estimates = pool_estimates(found)
    values = {one.measure: one.value for one in estimates}
    assert values == dict(zip(FIGURES, (0.625, 0.625, 0.625, 0.25), strict=True))
    assert {(one.agent, one.other, one.n) for one in estimates} == {("x", "y", 32)}
    for one in (*estimates, *found.scores):
        assert 0 <= one.low <= one.value <= one.high <= 1
    assert found.resampled().shape == (2000, 4)


def test_pool_estimates__fall_back_to_wilson_intervals_for_equal_results() -> None:
    mean, _, above_even, _ = pool_estimates(board_scores(np.ones((5, 6))))
    assert mean.interval == pytest.approx(wilson_interval(1.0, 30), abs=1e-6)
    assert above_even.interval == pytest.approx(wilson_interval(1.0, 5), abs=1e-6)
    mean, *_ = pool_estimates(board_scores(np.zeros((5, 6))))
    assert mean.interval == pytest.approx(wilson_interval(0.0, 30), abs=1e-6)


def test_generalisation_gap__is_a_difference_with_the_uncertainty_of_both() -> None:
    rng = np.random.default_rng(0)
    sides = [
        board_scores((rng.random((50, 20)) < mean).astype(np.float64), kind)
        for kind, mean in enumerate((0.5, 0.75))
    ]
    gap = generalisation_gap(*sides)
    test, train = (pool_estimates(side)[0] for side in sides)
    assert gap.value == pytest.approx(test.value - train.value, abs=1e-6)
    halves = [(mean.high - mean.low) / 2 for mean in (test, train)]
    assert (gap.high - gap.low) / 2 == pytest.approx(np.hypot(*halves), rel=0.1)
    assert gap.low < gap.value < gap.high < 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0.3, 12), (6, 4)])
def test_pool_estimates__cover_what_new_boards_give(shape: tuple[float, float]) -> None:
    """The truth is the mean over many measurements: measured scores contain the luck of pairs."""
    rng, each = np.random.default_rng(3), []
    for _ in range(60):
        chances = rng.beta(*shape, size=(100, 1))
        side = board_scores((rng.random((100, 20)) < chances).astype(np.float64))
        each.append(pool_estimates(side))
    for place in range(1, 4):
        figures = [one[place] for one in each]
        truth = np.mean([one.value for one in figures])
        covered = np.mean([one.low <= truth <= one.high for one in figures])
        assert 0.88 <= covered <= 1


# Several results


def measured(rng: np.random.Generator, seeds: int, mean: float, boards: Floats) -> Floats:
    """Return scores (seeds, boards): effects of seeds and boards, and the luck of 40 pairs."""
    chances = mean + 0.04 * rng.standard_normal((seeds, 1)) + boards
    return np.asarray(rng.binomial(40, chances.clip(0, 1)) / 40)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_over_seeds__covers_the_truth(seeds: int) -> None:
    rng, covered = np.random.default_rng(seeds), []
    for _ in range(600):
        scores = measured(rng, seeds, 0.6, 0.08 * rng.standard_normal(100))
        runs = []
        for run in scores:
            half = 1.96 * run.std(ddof=1) / 10
            runs.append(Estimate.of(run.mean(), (run.mean() - half, run.mean() + half)))
        low, high = over_seeds(runs).interval
        covered.append(low <= 0.6 <= high)
    assert 0.93 <= np.mean(covered) <= (1 if seeds == 2 else 0.99)
    assert over_seeds(runs[:1]) is runs[0]


def test_improvement__covers_the_truth() -> None:
    rng, covered = np.random.default_rng(3), []
    boards = 0.08 * rng.standard_normal((20_000, 1))  # one of each pair of seeds
    ours, theirs = (measured(rng, 20_000, mean, boards) for mean in (0.63, 0.6))
    expected = 0.5 + np.sign(ours - theirs).mean() / 2
    for _ in range(400):
        boards = 0.08 * rng.standard_normal(100)
        found = improvement(measured(rng, 3, 0.63, boards), measured(rng, 3, 0.6, boards))
        covered.append(found.low <= expected <= found.high)
    assert 0.93 <= np.mean(covered) <= 1


def test_improvement__counts_pairs_of_seeds_and_ties() -> None:
    ours, theirs = np.array([[0.7, 0.5], [0.6, 0.2]]), np.array([[0.6, 0.4]])
    assert improvement(ours, theirs).value == (1 + 1 + 0.5 + 0) / 4
    same = improvement(ours[:1], ours[:1])
    assert same.value == 0.5
    assert same.interval == pytest.approx(wilson_interval(0.5, 2), abs=1e-6)
