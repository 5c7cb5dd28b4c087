"""Rating models: the share of points that a difference in strength is worth, and how to fit it.

Both models give every agent a number, its strength, and expect a share of points that depends on
the difference of two of them. `probit` is that of Thurstone (1927, case V) and Mosteller (1951), on
which Elo (1978) built his ratings: each game an agent performs as a normal variate about its
strength, and the better performance wins. `logistic` is that of Bradley and Terry (1952): its tails
are longer, so that a weak agent keeps more of its chances against a far stronger one.

Points are Elo's: near a difference of 0 a point is worth the same share on both, ln(10) / 1600.
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

_SLOPE = log(10) / 1600  # share of points for a point of Elo, at a difference of 0
_FURTHEST = 1e6  # standard deviations that a step may move a match
_FAR = 30.0  # standard deviations, where a normal tail is told by its series


class Curve(NamedTuple):
    """The logarithm of the expected share p at some places z, and how it bends there.

    Attributes:
        log: ln p(z).
        slope: its derivative, positive.
        curvature: less its second derivative, positive: ln p is concave.
    """

    log: Floats
    slope: Floats
    curvature: Floats


class RatingModel(NamedTuple):
    """A model of what share of points a difference in strength is worth.

    Attributes:
        name: "logistic" or "probit".
        share: returns p(z), the share expected; p(-z) = 1 - p(z).
        curve: see `Curve`; right where p(z) is no number above 0 any more, too.
        points: Elo points for a difference z of 1.
    """

    name: str
    share: Callable[[Floats], Floats]
    curve: Callable[[Floats], Curve]
    points: float


def model_named(name: str) -> RatingModel:
    """Return the rating model of a name.

    Raises:
        ValueError: if there is none of that name.
    """
    check_choice("model", name, RATING_MODELS)
    return RATING_MODELS[name]


def _logistic(z: Floats) -> Floats:
    return np.asarray((1 + np.tanh(z / 2)) / 2)


def _logistic_curve(z: Floats) -> Curve:
    log_share, log_other = -np.logaddexp(0, -z), -np.logaddexp(0, z)
    return Curve(log_share, np.exp(log_other), np.exp(log_share + log_other))


_erfc = np.frompyfunc(erfc, 1, 1)


def _normal(z: Floats) -> Floats:
    """Return the normal distribution function."""
    return np.asarray(_erfc(-z / sqrt(2)) / 2, np.float64)


def _normal_curve(z: Floats) -> Curve:
    near = np.maximum(z, -_FAR)
    density, share = np.exp(-(near**2) / 2) / sqrt(2 * pi), _normal(near)
    far = np.minimum(z, -_FAR)
    tail = 1 - 1 / far**2 + 3 / far**4  # of Mills' ratio
    is_far = z < -_FAR
    slope = np.where(is_far, -far / tail, density / share)
    log_far = -(far**2) / 2 - np.log(-far * sqrt(2 * pi)) + np.log(tail)
    log_share = np.where(is_far, log_far, np.log(share))
    return Curve(log_share, slope, slope * (z + slope))


RATING_MODELS = {
    LOGISTIC: RatingModel(LOGISTIC, _logistic, _logistic_curve, 1 / (4 * _SLOPE)),
    PROBIT: RatingModel(PROBIT, _normal, _normal_curve, 1 / (sqrt(2 * pi) * _SLOPE)),
}


class RatingError(ValueError):
    """Matches that give no ratings: the message says what is missing."""


def maximum_likelihood(
    model: RatingModel, design: Floats, offset: Floats, points: Floats, played: Floats
) -> Floats:
    """Return the skills (sets, k) of the greatest likelihood for each set of points.

    In match m the expected share is model.share(offset[m] + design[m] @ skills). Newton's method,
    each step halved until it gains: the likelihood is concave (Pratt 1981).

    Args:
        model: see `RatingModel`.
        design: (matches, k).
        offset: (sets, matches).
        points: (sets, matches), of `a`; within 0 and `played`.
        played: (matches,), games.

    Raises:
        RatingError: if there is no greatest likelihood, or none that numbers can tell.
    """
    skills = np.zeros((len(points), design.shape[1]))
    if not skills.size:
        return skills
    here = _likelihood(model, offset, points, played)
    for _ in range(100):
        hessian = design.T @ (here.curvature[:, :, None] * design)
        gradient = here.slope @ design
        step = np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], np.float64)
        furthest = np.abs(step @ design.T).max()
        if not furthest < _FURTHEST:
            break
        skills, here = _gained(model, skills, step, (design, offset, points, played), here)
        if furthest < 1e-9:
            return skills
    raise RatingError("the ratings did not settle: scores too near 0 or 1 to rate")


def _likelihood(model: RatingModel, z: Floats, points: Floats, played: Floats) -> Curve:
    """Return the logarithm of the likelihood (sets,) and, by match, its derivatives at z."""
    won, lost = model.curve(z), model.curve(-z)
    rest = played - points
    return Curve(
        (points * won.log + rest * lost.log).sum(axis=1),
        points * won.slope - rest * lost.slope,
        points * won.curvature + rest * lost.curvature,
    )


def _gained(
    model: RatingModel, skills: Floats, step: Floats, data: tuple[Floats, ...], here: Curve
) -> tuple[Floats, Curve]:
    """Return the skills after a step, halved for the sets that it takes down, and what is there."""
    design, offset, points, played = data
    for _ in range(60):
        there = _likelihood(model, offset + (skills + step) @ design.T, points, played)
        down = ~(there.log >= here.log - 1e-11 * np.abs(here.log))  # rounding is no loss
        if not down.any():
            break
        step = np.where(down[:, None], step / 2, step)
    return skills + step, there
