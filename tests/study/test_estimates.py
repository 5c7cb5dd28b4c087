"""Means and shares with intervals: published values and the definition."""

from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from tokaido_env.study.estimates import clustered_mean, clustered_share


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)],
)
def test_clustered_share__gives_published_wilson_intervals(
    hits: int, n: int, low: float, high: float
) -> None:
    """Newcombe 1998, table I."""
    found = clustered_share([1] * hits + [0] * (n - hits), np.arange(n))
    assert found["mean"] == pytest.approx(hits / n, abs=1e-6)
    # A share of independent games has n - 1 in its variance, Wilson n.
    assert found["ci95"] == pytest.approx([low, high], abs=6e-4)


def test_clustered_mean__of_independent_values_matches_the_definition() -> None:
    values = [3.0, 5.0, 4.0, 9.0, 1.0, 2.0]
    found = clustered_mean(values, np.arange(6))
    half = 1.959964 * stdev(values) / 6**0.5
    assert found["mean"] == pytest.approx(mean(values))
    assert found["ci95"] == pytest.approx([mean(values) - half, mean(values) + half], abs=2e-6)


@pytest.mark.parametrize("estimate", [clustered_mean, clustered_share])
def test_estimates__without_values_or_clusters_are_none(estimate: Any) -> None:
    assert estimate([], np.arange(0)) == {"mean": None, "ci95": None, "n": 0}
    assert clustered_mean([1.0, 2.0], np.zeros(2, int))["ci95"] is None
