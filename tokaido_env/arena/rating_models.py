"""Rating models: the expected score for a difference in strength, and its maximum likelihood fit.

Both models give every agent a strength; the expected score depends on the difference of two
strengths. `probit` is the model of Thurstone (1927, case V) and Mosteller (1951), on which Elo
(1978) built his ratings: in each game an agent performs as a normal variate about its strength, and
the better performance wins. `logistic` is the model of Bradley and Terry (1952): its tails are
longer, so that a weak agent scores more against a far stronger one.

Ratings are in Elo points: near a difference of 0 one point raises the expected score by
ln(10) / 1600 in both models.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, log, pi, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.core.arguments import check_choice

Floats = npt.NDArray[np.float64]

LOGISTIC, PROBIT = "logistic", "probit"

_SLOPE = log(10) / 1600  # expected score per Elo point, at a difference of 0
_MAX_STEP = 1e6  # standard deviations by which a Newton step may move a match
_FAR = 30.0  # standard deviations, from where the normal tail is computed by its series


class LogScore(NamedTuple):
    """The logarithm of the expected score, ln p(z), with two derivatives.

    Attributes:
        value: ln p(z).
        slope: its derivative, positive.
        curvature: minus its second derivative, positive: ln p is concave.
    """

    value: Floats
    slope: Floats
    curvature: Floats


class RatingModel(NamedTuple):
    """A model of the expected score for a difference in strength.

    Attributes:
        name: "logistic" or "probit".
        expected_score: returns p(z); p(-z) = 1 - p(z).
        log_score: returns ln p(z); right also where p(z) underflows.
        elo_per_unit: Elo points for a difference z of 1.
    """

    name: str
    expected_score: Callable[[Floats], Floats]
    log_score: Callable[[Floats], LogScore]
    elo_per_unit: float


def model_named(name: str) -> RatingModel:
    """Return the rating model of a name.

    Raises:
        ValueError: if there is no such model.
    """
    check_choice("model", name, RATING_MODELS)
    return RATING_MODELS[name]


def _logistic(z: Floats) -> Floats:
    return np.asarray((1 + np.tanh(z / 2)) / 2)


def _logistic_log(z: Floats) -> LogScore:
    log_share, log_other = -np.logaddexp(0, -z), -np.logaddexp(0, z)
    return LogScore(log_share, np.exp(log_other), np.exp(log_share + log_other))


_erfc = np.frompyfunc(erfc, 1, 1)


def _normal(z: Floats) -> Floats:
    """Return the normal distribution function."""
    return np.asarray(_erfc(-z / sqrt(2)) / 2, np.float64)


def _normal_log(z: Floats) -> LogScore:
    near = np.maximum(z, -_FAR)
    density, share = np.exp(-(near**2) / 2) / sqrt(2 * pi), _normal(near)
    far = np.minimum(z, -_FAR)
    tail = 1 - 1 / far**2 + 3 / far**4  # the series of Mills' ratio
    is_far = z < -_FAR
    slope = np.where(is_far, -far / tail, density / share)
    log_far = -(far**2) / 2 - np.log(-far * sqrt(2 * pi)) + np.log(tail)
    log_share = np.where(is_far, log_far, np.log(share))
    return LogScore(log_share, slope, slope * (z + slope))


RATING_MODELS = {
    LOGISTIC: RatingModel(LOGISTIC, _logistic, _logistic_log, 1 / (4 * _SLOPE)),
    PROBIT: RatingModel(PROBIT, _normal, _normal_log, 1 / (sqrt(2 * pi) * _SLOPE)),
}


class RatingError(ValueError):
    """Matches determine no ratings: the message gives the reason and a remedy."""


def maximum_likelihood(
    model: RatingModel, design: Floats, offset: Floats, points: Floats, played: Floats
) -> Floats:
    """Return the skills (sets, k) of maximum likelihood for each set of points.

    In match m the expected score is model.expected_score(offset[m] + design[m] @ skills). By
    Newton's method, each step halved until the likelihood rises: it is concave (Pratt 1981).

    Args:
        model: see `RatingModel`.
        design: (matches, k).
        offset: (sets, matches).
        points: (sets, matches), of `a`; within 0 and `played`.
        played: (matches,), games.

    Raises:
        RatingError: if the maximum does not exist or is numerically out of reach.
    """
    skills = np.zeros((len(points), design.shape[1]))
    if not skills.size:
        return skills
    likelihood = _log_likelihood(model, offset, points, played)
    for _ in range(100):
        hessian = design.T @ (likelihood.curvature[:, :, None] * design)
        gradient = likelihood.slope @ design
        step = np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], np.float64)
        longest = np.abs(step @ design.T).max()
        if not longest < _MAX_STEP:
            break
        data = design, offset, points, played
        skills, likelihood = _line_search(model, skills, step, data, likelihood)
        if longest < 1e-9:
            return skills
    raise RatingError("the ratings did not converge: scores are too near 0 or 1 to rate")


def _log_likelihood(model: RatingModel, z: Floats, points: Floats, played: Floats) -> LogScore:
    """Return the log-likelihood (sets,) and, by match, its derivatives at z."""
    won, lost = model.log_score(z), model.log_score(-z)
    rest = played - points
    return LogScore(
        (points * won.value + rest * lost.value).sum(axis=1),
        points * won.slope - rest * lost.slope,
        points * won.curvature + rest * lost.curvature,
    )


def _line_search(
    model: RatingModel, skills: Floats, step: Floats, data: tuple[Floats, ...], before: LogScore
) -> tuple[Floats, LogScore]:
    """Return skills and likelihood after a step, halved where the likelihood would fall."""
    design, offset, points, played = data
    for _ in range(60):
        after = _log_likelihood(model, offset + (skills + step) @ design.T, points, played)
        falls = ~(after.value >= before.value - 1e-11 * np.abs(before.value))  # beyond rounding
        if not falls.any():
            break
        step = np.where(falls[:, None], step / 2, step)
    return skills + step, after
