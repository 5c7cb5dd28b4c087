"""Means with intervals, against the definition."""

from statistics import mean, stdev

import numpy as np
import pytest

from tokaido_env.study.estimates import clustered_mean


def test_clustered_mean__of_independent_values_matches_the_definition() -> None:
    values = [3.0, 5.0, 4.0, 9.0, 1.0, 2.0]
    found = clustered_mean(values, np.arange(6))
    half = 1.959964 * stdev(values) / 6**0.5
    assert found["mean"] == pytest.approx(mean(values))
    assert found["ci95"] == pytest.approx([mean(values) - half, mean(values) + half], abs=2e-6)


def test_clustered_mean__without_values_or_clusters_is_none() -> None:
    assert clustered_mean([], np.arange(0)) == {"mean": None, "ci95": None, "n": 0}
    assert clustered_mean([1.0, 2.0], np.zeros(2, int))["ci95"] is None
