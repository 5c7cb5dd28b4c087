"""Tests of arena/rating_model.py: derivatives far from even, and scores out of reach."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from tokaido_env.arena.rating_model import RatingError, _derivatives, maximum_likelihood


def test_derivatives__are_those_of_the_log_likelihood() -> None:
    z, step = np.linspace(-45, 45, 400), 1e-4
    won, lost = np.full(400, 3.0), np.full(400, 2.0)
    slope, curvature = _derivatives(z, won, lost)
    after, before = (_derivatives(z + d, won, lost)[0] for d in (step, -step))
    likelihood = [won * log_ndtr(z + d) + lost * log_ndtr(-z - d) for d in (step, -step)]
    assert slope == pytest.approx((likelihood[0] - likelihood[1]) / (2 * step), rel=1e-5, abs=1e-6)
    assert curvature == pytest.approx((before - after) / (2 * step), rel=1e-5, abs=1e-6)
    assert (curvature > 0).all()


def test_maximum_likelihood__refuses_scores_without_a_maximum() -> None:
    one = np.ones((1, 1))
    with pytest.raises(RatingError, match="too near 0 or 1 to rate"):
        maximum_likelihood(one, 0 * one, one, np.ones(1))
