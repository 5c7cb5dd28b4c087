"""Tests of arena/rating_models.py: expected scores, their logarithms and derivatives."""

import numpy as np
import pytest

from tokaido_env.arena.rating_models import model_named


@pytest.mark.parametrize("name", ["logistic", "probit"])
def test_log_score__is_the_logarithm_of_the_expected_score_with_derivatives(name: str) -> None:
    z, step = np.linspace(-45, 12, 400), 1e-4
    z = z[np.abs(z + 30) > 0.1]  # where the series of the tail begins
    model = model_named(name)
    at, after, before = (model.log_score(z + d) for d in (0, step, -step))
    near = np.abs(z) < 8
    assert np.exp(at.value[near]) == pytest.approx(model.expected_score(z[near]))
    assert model.expected_score(z) + model.expected_score(-z) == pytest.approx(np.ones(len(z)))
    slope = (after.value - before.value) / (2 * step)
    assert at.slope == pytest.approx(slope, rel=1e-5, abs=1e-9)
    curvature = -(after.slope - before.slope) / (2 * step)
    assert at.curvature == pytest.approx(curvature, rel=2e-3, abs=1e-9)
    assert (at.curvature > 0).all()


def test_model_named__refuses_an_unknown_model() -> None:
    with pytest.raises(ValueError, match="model: expected one of 'logistic', 'probit', got 'elo'"):
        model_named("elo")
