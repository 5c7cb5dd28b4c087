"""The strengths under which what was scored is likeliest, for many sets of scores at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.links import Curve, Link

Floats = npt.NDArray[np.float64]

_FURTHEST = 1e6  # standard deviations that a step may move a match


class RatingError(ValueError):
    """Matches that give no ratings: the message says what is missing."""


def maximise(link: Link, design: Floats, offset: Floats, points: Floats, played: Floats) -> Floats:
    """Return the skills (sets, k) of the greatest likelihood for each set of points.

    In match m the expected share is link.share(offset[m] + design[m] @ skills). Newton's method,
    each step halved until it gains: the likelihood is concave (Pratt 1981).

    Args:
        link: of the model.
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
    here = _likelihood(link, offset, points, played)
    for _ in range(100):
        hessian = design.T @ (here.curvature[:, :, None] * design)
        gradient = here.slope @ design
        step = np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], np.float64)
        furthest = np.abs(step @ design.T).max()
        if not furthest < _FURTHEST:
            break
        skills, here = _gained(link, skills, step, (design, offset, points, played), here)
        if furthest < 1e-9:
            return skills
    raise RatingError("the ratings did not settle: scores too near 0 or 1 to rate")


def _likelihood(link: Link, z: Floats, points: Floats, played: Floats) -> Curve:
    """Return the logarithm of the likelihood (sets,) and, by match, its derivatives at z."""
    won, lost = link.curve(z), link.curve(-z)
    rest = played - points
    return Curve(
        (points * won.log + rest * lost.log).sum(axis=1),
        points * won.slope - rest * lost.slope,
        points * won.curvature + rest * lost.curvature,
    )


def _gained(
    link: Link, skills: Floats, step: Floats, data: tuple[Floats, ...], here: Curve
) -> tuple[Floats, Curve]:
    """Return the skills after a step, halved for the sets that it takes down, and what is there."""
    design, offset, points, played = data
    for _ in range(60):
        there = _likelihood(link, offset + (skills + step) @ design.T, points, played)
        down = ~(there.log >= here.log - 1e-11 * np.abs(here.log))  # rounding is no loss
        if not down.any():
            break
        step = np.where(down[:, None], step / 2, step)
    return skills + step, there
