"""The rating model: expected scores by differences in strength, and its maximum likelihood fit.

The model is that of Thurstone (1927, case V) and Mosteller (1951), on which Elo (1978) built his
ratings. In each game an agent performs as a normal variate about its strength, and the better
performance wins. So the expected score is the normal distribution function of the difference.

Ratings are in Elo points: near a difference of 0 one point raises the expected score by
ln(10) / 1600, as in the logistic model of chess.
"""

from __future__ import annotations

from math import log, pi, sqrt

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PROBIT = "probit"  # the model's name in files and tables
ELO_PER_UNIT = 1600 / (log(10) * sqrt(2 * pi))
"""Elo points for a difference of one standard deviation."""

_MOST_STEPS = 100  # of Newton's method; ratings of matches take about ten


class RatingError(ValueError):
    """Matches determine no ratings: the message gives the reason and a remedy."""


def maximum_likelihood(design: Floats, offset: Floats, points: Floats, played: Floats) -> Floats:
    """Return the skills of maximum likelihood for each set of points, float64 (sets, k).

    In match m the expected score is Phi(offset[m] + design[m] @ skills). The likelihood is concave
    (Pratt 1981). By Newton's method for all sets at once, which SciPy's solvers do one at a time.

    Args:
        design: float64 (matches, k).
        offset: float64 (sets, matches), in standard deviations, as the skills.
        points: float64 (sets, matches), of `a`; within 0 and `played`.
        played: float64 (matches,), games.

    Raises:
        RatingError: if the maximum does not exist or is numerically out of reach.
    """
    skills = np.zeros((len(points), design.shape[1]))
    if not skills.size:
        return skills
    for _ in range(_MOST_STEPS):
        slope, curvature = _derivatives(offset + skills @ design.T, points, played - points)
        hessian = design.T @ (curvature[:, :, None] * design)
        step = np.linalg.solve(hessian, (slope @ design)[:, :, None])[:, :, 0]
        skills += step
        if np.abs(step @ design.T).max() < 1e-9:
            return skills
    raise RatingError("the ratings did not converge: scores are too near 0 or 1 to rate")


def _derivatives(z: Floats, won: Floats, lost: Floats) -> tuple[Floats, Floats]:
    """Return the first and minus the second derivative of won ln Phi(z) + lost ln Phi(-z)."""
    of_won, of_lost = _slope(z), _slope(-z)
    slope = won * of_won - lost * of_lost
    return slope, won * of_won * (of_won + z) + lost * of_lost * (of_lost - z)


def _slope(z: Floats) -> Floats:
    """Return the derivative of ln Phi(z), right also where Phi(z) underflows."""
    from scipy.special import erfcx

    return np.asarray(sqrt(2 / pi) / erfcx(-z / sqrt(2)))
