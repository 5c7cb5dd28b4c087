"""Scores of agents on unseen boards and on boards of their training, with 95 % intervals.

The score on a board is the mean of its pairs of games. Over all boards, these are reported. The
intervals of means resample boards and then pairs (`intervals.bootstrap_boards`), those of shares
are Wilson's:

- the mean of the scores;
- their interquartile mean, which a few unusual boards do not change (Agarwal et al. 2021, "Deep
  Reinforcement Learning at the Edge of the Statistical Precipice");
- the share of boards with a score above 0.5;
- the mean score of the worst tenth of the boards;
- the gap: the mean on test boards minus the mean on training boards.

These describe measured scores, which contain the luck of the pairs. `over_seeds` combines the
training seeds of one method, `improvement` compares two methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import (
    PAIR_SCORES,
    Estimate,
    bootstrap_boards,
    effective_games,
    interquartile_mean,
    percentile_interval,
    share_above_even,
    student_t_quantile,
    wilson_interval,
    worst_tenth_mean,
)
from tokaido_env.arena.match import Match
from tokaido_env.arena.result import Measure, Score
from tokaido_env.boards.board_pool import BoardPool

FORFEITS = "share of forfeits"
FIGURES = "mean score", "interquartile mean", "better than even", "worst tenth"
"""The estimates of the scores on a pool of boards."""

Floats = npt.NDArray[np.float64]


class PoolScores(NamedTuple):
    """The scores of an agent against an opponent on the boards of a pool.

    Attributes:
        scores: one a board, in the order of the boards, of equally many pairs.
        drawn: whether the boards are a sample; if not, they are all there are of their kind.
        seed: of the measurement.
        kind: 0 for test boards, 1 for training boards: the resamples are independent.
    """

    scores: Sequence[Score]
    drawn: bool
    seed: int
    kind: int = 0

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The pairs on each board with 0, 0.5, 1, 1.5 and 2 points: int64 (boards, 5)."""
        return np.array([score.pairs for score in self.scores], np.int64)

    @property
    def means(self) -> Floats:
        """The score on each board, float64 (boards,) in [0, 1]."""
        return np.asarray(self.counts @ PAIR_SCORES / self.counts[0].sum())

    def resampled(self) -> Floats:
        """Return resampled scores on boards by `bootstrap_boards`: float64 (resamples, boards)."""
        return bootstrap_boards(self.counts, [self.seed, self.kind], drawn=self.drawn)


def pool_scores(
    match: Match, pool: BoardPool, seed: int, kind: int = 0, *, drawn: bool
) -> PoolScores:
    """Return the scores of a match with the same number of pairs on each board, in their order.

    Args:
        match: of agent `a`, board after board.
        pool: the boards.
        seed: of the measurement.
        kind: 0 for test boards, 1 for training boards.
        drawn: whether the boards are a sample of more boards.
    """
    half_points = np.rint(2 * match.results.reshape(len(pool), -1, 2).sum(axis=2))
    counts = (half_points[:, :, None] == np.arange(5)).sum(axis=1)
    scores = [
        Score.of_pairs(match.a, match.b, str(name), seed, own, group=pool.name)
        for name, own in zip(pool.names, counts.tolist(), strict=True)
    ]
    return PoolScores(scores, drawn, seed, kind)


def pool_estimates(found: PoolScores) -> list[Measure]:
    """Return the estimates named in `FIGURES` of the scores on a pool, with 95 % intervals."""
    means, draws, boards = found.means, found.resampled(), len(found.scores)
    first, pairs = found.scores[0], int(found.counts[0].sum())
    estimates = [_mean_estimate(float(means.mean()), draws.mean(axis=1), found)]
    if found.drawn:  # resampled pairs would move boards to other ranks and across one half
        rng = np.random.default_rng([found.seed, found.kind])
        draws = means[rng.integers(boards, size=draws.shape)]
    estimates += [
        _ranked(interquartile_mean, means, draws),
        _better_than_even(means, draws),
        _ranked(worst_tenth_mean, means, draws),
    ]
    where: dict[str, Any] = {"n": 2 * pairs * boards, "other": first.b, "group": first.group}
    return [
        Measure(one.value, one.low, one.high, measure, first.a, **where)
        for measure, one in zip(FIGURES, estimates, strict=True)
    ]


def _mean_estimate(value: float, draws: Floats, found: PoolScores) -> Estimate:
    """Return a mean score with the percentiles of its resamples, within 0 and 1."""
    low, high = percentile_interval(draws, len(found.scores) if found.drawn else None)
    if low == high:  # all results are equal: resamples have no variance
        low, high = wilson_interval(value, int(found.counts.sum()))
    return Estimate.of(value, (max(low, 0.0), min(high, 1.0)))


def _better_than_even(means: Floats, draws: Floats) -> Estimate:
    """Return the share of boards better than even, with its interval.

    Wilson's, by the variance of the resamples. Their percentiles could exclude the share, because
    boards near one half change sides.
    """
    value, boards = float(share_above_even(means)), len(means)
    n = effective_games(value, boards * float(share_above_even(draws).var()), boards)
    return Estimate.of(value, wilson_interval(value, n))


def _ranked(of: Callable[[Floats], Floats], means: Floats, draws: Floats) -> Estimate:
    """Return a mean of the boards at some ranks with an interval by Student's t distribution."""
    boards, value = len(means), float(of(means))
    half = student_t_quantile(boards - 1) * float(of(draws).std())
    if not half:
        return Estimate.of(value, wilson_interval(value, boards))
    return _with_half_widths(value, [half])


def mean_over_opponents(found: Sequence[PoolScores]) -> Estimate:
    """Return the mean score over several opponents on the same boards, with its 95 % interval."""
    value = float(np.mean([one.means.mean() for one in found]))
    draws = np.mean([one.resampled().mean(axis=1) for one in found], axis=0)
    return _mean_estimate(value, draws, found[0])


def generalisation_gap(test: PoolScores, train: PoolScores) -> Estimate:
    """Return the mean score on `test` minus that on `train`, with its 95 % interval."""
    drawn = [len(side.scores) for side in (test, train) if side.drawn]
    draws = [side.resampled().mean(axis=1) for side in (test, train)]
    on_test, on_train = (pool_estimates(side)[0] for side in (test, train))
    low, high = percentile_interval(draws[0] - draws[1], min(drawn, default=None))
    if low == high:
        low, high = on_test.low - on_train.high, on_test.high - on_train.low
    gap = float(test.means.mean() - train.means.mean())
    return Estimate.of(gap, (max(low, -1.0), min(high, 1.0)))


# Several results


def over_seeds(runs: Sequence[Estimate], lowest: float = 0.0) -> Estimate:
    """Return the mean of a figure over training seeds, which are a random effect.

    The half-widths by seeds, and by boards and pairs in one result, are added as squares: all seeds
    share their boards. The luck of pairs counts twice, so the interval is slightly too wide
    (`intervals.mean_over_seeds` has that of the mean score). One run has its own interval.

    Args:
        runs: the figure of each training seed, on the same boards.
        lowest: possible value of the figure.
    """
    if len(runs) == 1:
        return runs[0]
    values = np.array([run.value for run in runs])
    of_runs = np.array([max(run.high - run.value, run.value - run.low) for run in runs])
    halves = _half_width(values), sqrt((of_runs**2).mean())
    return _with_half_widths(float(values.mean()), halves, lowest)


def improvement(ours: Floats, theirs: Floats) -> Estimate:
    """Return the probability that one method scores higher than another on a board.

    For a random board and random training seeds of both; equal scores count half. Source: Agarwal
    et al. 2021. The half-widths by boards and by the seeds of each method are added as squares.

    Args:
        ours: measured scores of one method, float64 (seeds, boards).
        theirs: of the other, float64 (seeds, boards), on the same boards.
    """
    ahead = np.sign(ours[:, None] - theirs[None]) / 2 + 0.5
    # Means of our seeds, of their seeds, and of boards.
    effects = [ahead.mean(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
    halves = [_half_width(means) for means in effects if len(means) > 1]
    if not any(halves):  # all results are equal
        return Estimate.of(ahead.mean(), wilson_interval(ahead.mean(), ours.shape[1]))
    return _with_half_widths(float(ahead.mean()), halves)


def _half_width(values: Floats) -> float:
    """Return the half-width of the interval of the mean, by Student's t distribution."""
    return student_t_quantile(len(values) - 1) * float(values.std(ddof=1)) / sqrt(len(values))


def _with_half_widths(value: float, halves: Sequence[float], lowest: float = 0.0) -> Estimate:
    half = sqrt(sum(each**2 for each in halves))
    return Estimate.of(value, (max(value - half, lowest), min(value + half, 1.0)))
