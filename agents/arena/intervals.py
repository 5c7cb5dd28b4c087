"""Intervals of 95 % of scores and shares."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Z95 = 1.959963984540054


class Adjusted(NamedTuple):
    """A score with luck taken off: as if more games had been played.

    Attributes:
        score: of `a`, within [0, 1].
        interval: of 95 %.
        factor: how many times as many pairs would give the same interval without it.
    """

    score: float
    interval: tuple[float, float]
    factor: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {
            "score": round(self.score, 6),
            "ci95": [round(bound, 6) for bound in self.interval],
            "factor": round(self.factor, 4),
        }


def wilson(p: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval (1927) of a share: within [0, 1], and honest at 0 and 1.

    Args:
        p: the share found, 0 to 1.
        n: of so many independent values; need not be whole.
    """
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def score_interval(results: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired results, (pairs, 2) within [0, 1].

    Wilson's interval (1927), which stays within [0, 1] and is honest at 0 and 1, with the effective
    number of independent games that the spread between pairs shows (Kish 1965), from one to four a
    pair.
    """
    pairs = len(results)
    p = float(results.mean())
    variance = float(results.mean(axis=1).var(ddof=1)) / pairs if pairs > 1 else 0.0
    n = p * (1 - p) / variance if variance > 0 else pairs
    n = min(max(n, pairs), 4 * pairs)
    return wilson(p, n)


def adjusted_score(
    results: npt.NDArray[np.float64], luck: npt.NDArray[np.float64]
) -> Adjusted | None:
    """Return the mean of paired results with luck as a control variate.

    The multiple of the luck that is taken off is estimated from the same pairs, so that luck which
    says little does no harm (Lavenberg and Welch 1981, "A Perspective on the Use of Control
    Variables to Increase the Efficiency of Monte Carlo Simulations").

    Args:
        results: float64 (pairs, 2), within [0, 1].
        luck: float64 (pairs, 2), of mean zero, in results.

    Returns:
        None if all pairs ended alike, luck is not known, or there are fewer than ten pairs.
    """
    each, lucks = results.mean(axis=1), luck.mean(axis=1)
    pairs = len(each)
    if pairs < 10 or each.var() == 0 or lucks.var() == 0:
        return None
    multiple = float(np.cov(each, lucks)[0, 1] / lucks.var(ddof=1))
    rest = each - multiple * lucks
    variance = float(rest.var(ddof=2))  # two numbers were estimated
    score, half = float(rest.mean()), Z95 * sqrt(variance / pairs)
    low, high = (min(max(x, 0.0), 1.0) for x in (score - half, score + half))
    return Adjusted(min(max(score, 0.0), 1.0), (low, high), float(each.var(ddof=1)) / variance)
