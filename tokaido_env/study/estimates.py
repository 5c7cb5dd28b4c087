"""Means and shares with their 95 % intervals, of values of which some may hang together."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import Z95, wilson_interval

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
    return mean_of_sums(array, np.ones(len(array), np.int64), clusters)


def mean_of_sums(
    sums: npt.ArrayLike, counts: npt.NDArray[np.int64], clusters: npt.NDArray[np.int64]
) -> Figure:
    """Return `mean_of` values of which some sums are known.

    Args:
        sums: (n,).
        counts: int64 (n,), of how many values each is the sum.
        clusters: int64 (n,), whose values they are.
    """
    array, n = np.asarray(sums, np.float64), int(counts.sum())
    if not n:
        return _estimate(None, None, 0)
    mean = float(array.sum() / n)
    variance = _variance(array - mean * counts, clusters, n)
    if variance is None:
        return _estimate(mean, None, n)
    half = Z95 * sqrt(variance)
    return _estimate(mean, (mean - half, mean + half), n)


def share_of(values: npt.ArrayLike, clusters: npt.NDArray[np.int64]) -> Figure:
    """Return the mean of values within [0, 1] as `mean_of` does, by Wilson's interval (1927).

    It stays within [0, 1]. For values that hang together it counts as many independent ones as
    their spread shows (Kish 1965), at the least one for each cluster.
    """
    array = np.asarray(values, np.float64)
    if not len(array):
        return _estimate(None, None, 0)
    p = float(array.mean())
    variance = _variance(array - p, clusters, len(array)) or 0.0
    fewest = len(np.unique(clusters))
    n = p * (1 - p) / variance if variance > 0 else fewest
    n = min(max(n, fewest), 4 * len(array))
    return _estimate(p, wilson_interval(p, n), len(array))


def _variance(away: Values, clusters: npt.NDArray[np.int64], n: int) -> float | None:
    """Return the variance of a mean of n values, None if there is but one cluster.

    Args:
        away: by how much values, or sums of them, differ from what the mean says.
        clusters: of these.
        n: how many values.
    """
    _, which = np.unique(clusters, return_inverse=True)
    sums = np.bincount(which, away)
    if len(sums) < 2:
        return None
    return float((sums**2).sum()) / n**2 * len(sums) / (len(sums) - 1)


def _estimate(mean: float | None, ci95: tuple[float, float] | None, n: int) -> Figure:
    return {
        "mean": None if mean is None else round(mean, 6),
        "ci95": None if ci95 is None else [round(bound, 6) for bound in ci95],
        "n": n,
    }
