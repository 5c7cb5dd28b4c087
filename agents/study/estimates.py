"""Means and shares with their 95 % intervals, of values of which some may hang together."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.arena.intervals import Z95, wilson

Values = npt.NDArray[np.float64]
Figure = dict[str, Any]


def mean_of(values: npt.ArrayLike, clusters: npt.NDArray[np.int64]) -> Figure:
    """Return a mean with its 95 % interval, as {"mean", "ci95", "n"}.

    Values of one cluster may hang together, clusters not (Liang and Zeger 1986). Without a value
    the mean is None, with fewer than two clusters the interval.

    Args:
        values: (n,).
        clusters: int64 (n,).
    """
    array = np.asarray(values, np.float64)
    if not len(array):
        return _estimate(None, None, 0)
    mean = float(array.mean())
    variance = _variance(array, clusters)
    if variance is None:
        return _estimate(mean, None, len(array))
    half = Z95 * sqrt(variance)
    return _estimate(mean, (mean - half, mean + half), len(array))


def share_of(values: npt.ArrayLike, clusters: npt.NDArray[np.int64]) -> Figure:
    """Return the mean of values within [0, 1] as `mean_of` does, by Wilson's interval (1927).

    It stays within [0, 1]. For values that hang together it counts as many independent ones as
    their spread shows (Kish 1965), at the least one for each cluster.
    """
    array = np.asarray(values, np.float64)
    if not len(array):
        return _estimate(None, None, 0)
    p = float(array.mean())
    variance = _variance(array, clusters) or 0.0
    fewest = len(np.unique(clusters))
    n = p * (1 - p) / variance if variance > 0 else fewest
    n = min(max(n, fewest), 4 * len(array))
    return _estimate(p, wilson(p, n), len(array))


def _variance(values: Values, clusters: npt.NDArray[np.int64]) -> float | None:
    """Return the variance of the mean of values in clusters, None if there is but one cluster."""
    _, which = np.unique(clusters, return_inverse=True)
    sums = np.bincount(which, values - values.mean())
    if len(sums) < 2:
        return None
    return float((sums**2).sum()) / len(values) ** 2 * len(sums) / (len(sums) - 1)


def _estimate(mean: float | None, ci95: tuple[float, float] | None, n: int) -> Figure:
    return {
        "mean": None if mean is None else round(mean, 6),
        "ci95": None if ci95 is None else [round(bound, 6) for bound in ci95],
        "n": n,
    }
