"""Means with 95 % intervals, for values that are correlated within clusters."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import Z95

Values = npt.NDArray[np.float64]
JsonDict = dict[str, Any]


def clustered_mean(values: npt.ArrayLike, clusters: npt.NDArray[np.int64]) -> JsonDict:
    """Return a mean with its 95 % interval, as {"mean", "ci95", "n"}.

    Values of one cluster may be correlated, clusters are independent (Liang and Zeger 1986). The
    mean is None without values, the interval with fewer than two clusters.

    Args:
        values: (n,).
        clusters: int64 (n,).
    """
    array = np.asarray(values, np.float64)
    return clustered_mean_of_sums(array, np.ones(len(array), np.int64), clusters)


def clustered_mean_of_sums(
    sums: npt.ArrayLike, counts: npt.NDArray[np.int64], clusters: npt.NDArray[np.int64]
) -> JsonDict:
    """Return the same as `clustered_mean`, from partial sums of the values.

    Args:
        sums: (n,).
        counts: int64 (n,), the number of values in each sum.
        clusters: int64 (n,), the cluster of each sum.
    """
    array, n = np.asarray(sums, np.float64), int(counts.sum())
    if not n:
        return _to_json(None, None, 0)
    mean = float(array.sum() / n)
    variance = _variance(array - mean * counts, clusters, n)
    if variance is None:
        return _to_json(mean, None, n)
    half = Z95 * sqrt(variance)
    return _to_json(mean, (mean - half, mean + half), n)


def _variance(residuals: Values, clusters: npt.NDArray[np.int64], n: int) -> float | None:
    """Return the variance of a mean of n values, None with a single cluster.

    Args:
        residuals: differences from the mean, of values or of partial sums.
        clusters: of the residuals.
        n: the number of values.
    """
    _, which = np.unique(clusters, return_inverse=True)
    sums = np.bincount(which, residuals)
    if len(sums) < 2:
        return None
    return float((sums**2).sum()) / n**2 * len(sums) / (len(sums) - 1)


def _to_json(mean: float | None, ci95: tuple[float, float] | None, n: int) -> JsonDict:
    return {
        "mean": None if mean is None else round(mean, 6),
        "ci95": None if ci95 is None else [round(bound, 6) for bound in ci95],
        "n": n,
    }
