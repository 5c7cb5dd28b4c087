"""Estimates with 95 % intervals: scores, luck-adjusted scores, and bootstraps over boards."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import numpy.typing as npt

from tokaido_env.decoding import Number, Struct

Z95 = 1.959963984540054  # the 97.5 % quantile of the standard normal distribution


class Estimate(Struct, frozen=True):
    """A value with its 95 % interval.

    Attributes:
        value: the estimate.
        low: lower end of the interval; the value where there is no interval.
        high: upper end, likewise.
    """

    value: Number
    low: Number
    high: Number

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval, (low, high); (value, value) where there is none."""
        return self.low, self.high

    @classmethod
    def of(cls, value: float, interval: Sequence[float] | None = None) -> Estimate:
        """Return an estimate rounded to six decimals; None: the interval is the value alone."""
        low, high = interval or (value, value)
        return Estimate(*(round(float(x), 6) + 0.0 for x in (value, low, high)))  # never -0.0


def wilson_interval(p: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927): within [0, 1], of positive width.

    Args:
        p: the observed share, 0 to 1.
        n: number of independent observations, not necessarily whole.
    """
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    # It contains p; rounding could leave out a p of 0 or 1 by 1e-17.
    return min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half))


def student_t_quantile(degrees: float) -> float:
    """Return the 97.5 % quantile of Student's t distribution; fewer degrees than 1 count as 1."""
    from scipy.special import stdtrit

    return float(stdtrit(max(degrees, 1.0), 0.975))


def score_interval(results: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired results.

    Wilson's interval with the effective number of independent games, estimated from the variance
    between pairs.

    Args:
        results: float64 (pairs, 2), within [0, 1].
    """
    pairs = len(results)
    p = float(results.mean())
    variance = float(results.mean(axis=1).var(ddof=1)) if pairs > 1 else 0.0
    return wilson_interval(p, effective_games(p, variance, pairs))


def effective_games(p: float, variance: float, pairs: int) -> float:
    """Return the effective number of independent games of pairs (Kish 1965), one to four a pair.

    Args:
        p: the mean score.
        variance: of the mean scores of pairs.
        pairs: their number.
    """
    n = p * (1 - p) * pairs / variance if variance > 0 else pairs
    return min(max(n, pairs), 4 * pairs)


def adjusted_score(
    results: npt.NDArray[np.float64], luck: npt.NDArray[np.float64]
) -> tuple[Estimate, float] | None:
    """Return the mean of paired results with luck as a control variate.

    The coefficient of the luck is estimated from the same pairs: uncorrelated luck gets a
    coefficient near 0. Source: Lavenberg and Welch 1981, "A Perspective on the Use of Control
    Variables to Increase the Efficiency of Monte Carlo Simulations".

    Args:
        results: float64 (pairs, 2), within [0, 1].
        luck: float64 (pairs, 2), of mean zero, in results.

    Returns:
        The luck-adjusted score, and the factor by which the unadjusted score needs more pairs for
        the same interval: its variance over that of the adjusted score. None if all pairs had the
        same score or luck, or there are fewer than ten pairs.
    """
    scores, lucks = results.mean(axis=1), luck.mean(axis=1)
    pairs = len(scores)
    if pairs < 10 or scores.var() == 0 or lucks.var() == 0:
        return None
    coefficient = float(np.cov(scores, lucks)[0, 1] / lucks.var(ddof=1))
    adjusted = scores - coefficient * lucks
    factor = float(scores.var(ddof=1) / adjusted.var(ddof=2))
    value = min(max(float(adjusted.mean()), 0.0), 1.0)
    games = factor * effective_games(value, float(scores.var(ddof=1)), pairs)
    games *= (Z95 / student_t_quantile(pairs - 2)) ** 2  # two parameters are estimated
    return Estimate.of(value, wilson_interval(value, games)), factor


def clustered_mean(
    sums: npt.ArrayLike,
    clusters: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64] | None = None,
) -> Estimate | None:
    """Return the mean of values that may be correlated within clusters (Liang and Zeger 1986).

    Args:
        sums: (n,), values or partial sums of values.
        clusters: int64 (n,), the cluster of each; clusters are independent.
        counts: int64 (n,), the number of values in each sum; None for one each.

    Returns:
        None without values; with fewer than two clusters an estimate without an interval.
    """
    array = np.asarray(sums, np.float64)
    counts = np.ones(len(array), np.int64) if counts is None else counts
    n = int(counts.sum())
    if not n:
        return None
    mean = float(array.sum() / n)
    _, which = np.unique(clusters, return_inverse=True)
    residuals = np.bincount(which, array - mean * counts)
    groups = len(residuals)
    if groups < 2:
        return Estimate.of(mean)
    variance = float((residuals**2).sum()) / n**2 * groups / (groups - 1)
    half = student_t_quantile(groups - 1) * sqrt(variance)
    return Estimate.of(mean, (mean - half, mean + half))


# Scores on many boards

RESAMPLES = 2000
PAIR_SCORES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # of the pairs that a pentanomial counts

_BOARDS_AT_ONCE = 1 << 18  # resampled boards, to limit memory


def bootstrap_boards(
    counts: npt.NDArray[np.int64],
    seed: int | Sequence[int],
    *,
    drawn: bool = True,
    resamples: int = RESAMPLES,
) -> npt.NDArray[np.float64]:
    """Return resampled scores on boards: boards are resampled first, then pairs within each.

    The mean score on a board varies by the board and by the chance outcomes of its pairs. Plain
    resampling of both would count the second twice. So the board means are first shrunk towards
    their mean: the resampled variance is then that of scores on new boards. Source: Davison and
    Hinkley 1997, "Bootstrap Methods and their Application", section 3.8.

    Args:
        counts: int64 (boards, 5), the number of pairs on each board with 0, 0.5, 1, 1.5 and 2
            points; the same number of pairs on each.
        seed: of the resamples.
        drawn: whether the boards are a sample; if they are all boards, only pairs are resampled.
        resamples: number of resamples.

    Returns:
        float64 (resamples, boards).
    """
    boards, pairs = len(counts), int(counts[0].sum())
    shares = counts / pairs
    means = shares @ PAIR_SCORES
    shrinkage = _shrinkage(shares, pairs) if drawn else 1.0
    centres = means.mean() + shrinkage * (means - means.mean())
    rng, parts = np.random.default_rng(seed), []
    # All boards first: so scores against several opponents have the same boards in a resample.
    every = rng.integers(boards, size=(resamples, boards)) if drawn else np.arange(boards)
    every = np.broadcast_to(every, (resamples, boards))
    size = max(_BOARDS_AT_ONCE // boards, 1)
    for first in range(0, resamples, size):
        chosen = every[first : first + size]
        noise = rng.multinomial(pairs, shares[chosen]) @ PAIR_SCORES / pairs - means[chosen]
        parts.append(centres[chosen] + noise)
    return np.concatenate(parts)


def _shrinkage(shares: npt.NDArray[np.float64], pairs: int) -> float:
    """Return the factor on the deviations of board means; 0 if the boards may all be equal."""
    boards, means = len(shares), shares @ PAIR_SCORES
    between = float(((means - means.mean()) ** 2).sum())
    within = float((shares @ PAIR_SCORES**2 - means**2).sum())
    if boards < 2 or not between:
        return 0.0
    noise = within / ((pairs - 1) * between) if pairs > 1 else 0.0
    return sqrt(max(boards / (boards - 1) - noise, 0.0))


def mean_over_seeds(scores: npt.NDArray[np.float64]) -> tuple[Estimate, float]:
    """Return the mean score of a method, for new training seeds, boards and games.

    Seeds and boards are crossed random effects, with the components of variance of the analysis of
    variance; the interval uses Student's t distribution with the degrees of freedom of
    Satterthwaite 1946, "An Approximate Distribution of Estimates of Variance Components".

    Args:
        scores: float64 (seeds, boards), the score of each training seed on each board, with two or
            more of both and the same games for all seeds.

    Returns:
        The mean with its 95 % interval, and the standard deviation between seeds.
    """
    seeds, boards = scores.shape
    rows, columns, mean = scores.mean(axis=1), scores.mean(axis=0), float(scores.mean())
    rest = scores - rows[:, None] - columns + mean
    free = seeds - 1, boards - 1, (seeds - 1) * (boards - 1)
    of_rest = float((rest**2).sum()) / free[2]
    of_seeds = max(boards * float(rows.var(ddof=1)), of_rest)  # mean squares, no component below 0
    of_boards = max(seeds * float(columns.var(ddof=1)), of_rest)
    square = of_seeds + of_boards - of_rest
    parts = sum(x**2 / n for x, n in zip((of_seeds, of_boards, of_rest), free, strict=True))
    if not square:  # all scores are equal
        return Estimate.of(mean, wilson_interval(mean, boards)), 0.0
    half = student_t_quantile(square**2 / parts) * sqrt(square / (seeds * boards))
    interval = max(mean - half, 0.0), min(mean + half, 1.0)
    return Estimate.of(mean, interval), sqrt((of_seeds - of_rest) / boards)


def percentile_interval(
    draws: npt.NDArray[np.float64], boards: int | None = None
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of resampled values: their percentiles.

    For means: the resamples of a share of boards may all lie on one side of it.

    Args:
        draws: float64 (resamples,).
        boards: number of resampled boards; None: boards were not resampled. With few boards the
            percentiles are further out, by Student's t distribution. Source: Hesterberg 2015, "What
            Teachers Should Know About the Bootstrap".
    """
    from scipy.special import ndtr

    tail = 0.025 if boards is None else float(ndtr(-student_t_quantile(boards - 1)))
    low, high = np.quantile(draws, [tail, 1 - tail])
    return float(low), float(high)


def interquartile_mean(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the mean of scores, float64 (…, boards), without the highest and lowest quarter."""
    quarter = scores.shape[-1] // 4
    middle: npt.NDArray[np.float64] = np.sort(scores, axis=-1)[
        ..., quarter : scores.shape[-1] - quarter
    ]
    return np.asarray(middle.mean(axis=-1))


def worst_tenth_mean(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the mean of the lowest tenth, at least one, of scores, float64 (…, boards)."""
    lowest = np.sort(scores, axis=-1)[..., : -(-scores.shape[-1] // 10)]
    return np.asarray(lowest.mean(axis=-1))


def share_above_even(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share above 0.5, which counts half, of scores, float64 (…, boards)."""
    sides = np.sign(np.round(scores - 0.5, 9))  # resampled scores have rounding errors
    return np.asarray((1 + sides).mean(axis=-1) / 2)
