"""Tests of arena/generalisation.py: scores on boards and the gap between two sets of boards."""

import numpy as np
import pytest
from matches import Floats, match_of_results

from tokaido_env.arena.generalisation import (
    BoardScores,
    generalisation_gap,
    scores_on_boards,
)
from tokaido_env.arena.intervals import wilson_interval
from tokaido_env.boards.board_pool import BoardPool


def board_scores(scores: Floats, kind: int = 0) -> tuple[BoardScores, Floats]:
    """Return the scores of (boards, pairs): both games of a pair have the same result."""
    match = match_of_results(np.repeat(scores.reshape(-1, 1), 2, axis=1))
    pool = BoardPool.load(f"family:test/{len(scores)}")
    return scores_on_boards(match, pool, 0, kind, drawn=True)


def test_scores_on_boards__agree_with_hand_computed_values() -> None:
    pool = BoardPool.load("family:test/4")
    scores = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 0]], np.float64)
    found, means = board_scores(scores)
    assert (found.pool, found.hash, found.pairs, found.games) == (pool.name, pool.hash, 4, 32)
    assert [one.board for one in found.each] == [board.name for board in pool]
    assert [one.value for one in found.each] == [1.0, 0.5, 0.25, 0.75]
    assert (found.mean.value, found.iqm.value, found.above_even.value) == (0.625, 0.625, 0.625)
    for estimate in (found.mean, found.iqm, found.above_even, *found.each):
        low, high = estimate.ci95
        assert 0 <= low <= estimate.value <= high <= 1
    assert means.shape == (2000,)


def test_scores_on_boards__fall_back_to_wilson_intervals_for_equal_results() -> None:
    won, _ = board_scores(np.ones((5, 6)))
    assert won.mean.ci95 == pytest.approx(wilson_interval(1.0, 30), abs=1e-6)
    assert won.above_even.ci95 == pytest.approx(wilson_interval(1.0, 5), abs=1e-6)
    lost, _ = board_scores(np.zeros((5, 6)))
    assert lost.mean.ci95 == pytest.approx(wilson_interval(0.0, 30), abs=1e-6)


def test_generalisation_gap__is_a_difference_with_the_uncertainty_of_both() -> None:
    rng = np.random.default_rng(0)
    sides = [
        board_scores((rng.random((50, 20)) < mean).astype(np.float64), kind)
        for kind, mean in enumerate((0.5, 0.75))
    ]
    gap = generalisation_gap(*sides)
    test, train = (scores.mean for scores, _ in sides)
    assert gap.value == pytest.approx(test.value - train.value, abs=1e-6)
    halves = [(mean.ci95[1] - mean.ci95[0]) / 2 for mean in (test, train)]
    assert (gap.ci95[1] - gap.ci95[0]) / 2 == pytest.approx(np.hypot(*halves), rel=0.1)
    assert gap.ci95[0] < gap.value < gap.ci95[1] < 0


def test_generalisation_gap__of_equal_results_has_positive_width() -> None:
    gap = generalisation_gap(*(board_scores(np.ones((5, 6)), kind) for kind in (0, 1)))
    width = 1 - wilson_interval(1.0, 30)[0]
    assert gap.value == 0
    assert gap.ci95 == pytest.approx((-width, width), abs=1e-6)
