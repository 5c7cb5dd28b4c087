"""Scores of agents on unseen boards and on boards of their training, with 95 % intervals.

The score on a board is the mean of its pairs of games. Over all boards, these are reported, with
intervals that resample boards and then pairs (`intervals.bootstrap_boards`):

- the mean of the scores;
- their interquartile mean, which a few unusual boards do not change (Agarwal et al. 2021, "Deep
  Reinforcement Learning at the Edge of the Statistical Precipice");
- the share of boards with a score above 0.5, and above each of `THRESHOLDS`: the performance
  profile (Dolan and Moré 2002, "Benchmarking optimization software with performance profiles");
- the mean score of the worst tenth of the boards;
- the gap: the mean on test boards minus the mean on training boards.

These describe measured scores, which contain the luck of the pairs. `over_seeds` combines the
training seeds of one method, `improvement` compares two methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.arena.intervals import (
    BoardEstimate,
    Estimate,
    bootstrap_boards,
    interquartile_mean,
    percentile_interval,
    score_interval,
    share_above_even,
    student_t_quantile,
    wilson_interval,
    worst_tenth_mean,
)
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.arena.verification import RecordsEntry
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import family_numbers, is_family
from tokaido_env.decoding import Name, Seed, Source, Struct

VERSION = 2
THRESHOLDS = tuple(percent / 100 for percent in range(5, 100, 5))
"""Scores at which the performance profile is measured."""

Floats = npt.NDArray[np.float64]


class ResultsError(ValueError):
    """A file cannot be read as results: the message names the expected content."""


class BoardScores(Struct, frozen=True):
    """The scores of an agent on several boards.

    Attributes:
        pool: name of the boards.
        hash: of the boards.
        boards: number of boards.
        pairs: of games, on each board.
        drawn: whether the boards are a sample; if not, they are all there are of their kind, and
            intervals contain the uncertainty of the games only.
        mean: of the scores on the boards.
        iqm: their interquartile mean.
        above_even: the share of boards with a score above 0.5; a score of 0.5 counts half.
        worst_tenth: the mean score on the worst tenth of the boards.
        profile: the share of boards with a score above each of `THRESHOLDS`.
        each: the boards, in their order.
    """

    pool: Name
    hash: str
    boards: int
    pairs: Annotated[int, Meta(ge=1, le=MAX_GAMES)]
    drawn: bool
    mean: Estimate
    iqm: Estimate
    above_even: Estimate
    worst_tenth: Estimate
    profile: Annotated[tuple[Estimate, ...], Meta(min_length=19, max_length=19)]
    each: Annotated[tuple[BoardEstimate, ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if self.boards != len(self.each):
            raise ValueError(f"boards: expected {len(self.each)}, as in each, got {self.boards}")
        estimates = self.mean, self.iqm, self.above_even, self.worst_tenth
        if not all(x.within(0, 1) for x in (*estimates, *self.profile, *self.each)):
            raise ValueError("expected scores and intervals within 0 and 1")

    @property
    def games(self) -> int:
        """The number of games on all boards."""
        return 2 * self.pairs * self.boards


class OpponentEstimate(Estimate, frozen=True):
    """The mean score against one opponent."""

    opponent: Name


class Generalisation(Struct, frozen=True):
    """The scores of an agent on unseen boards and on boards of its training.

    Attributes:
        version: of the file format.
        agent: its spec.
        opponent: spec of its opponent, the first if there are several.
        seed: of the games.
        trained_on: name of the board or pool that the agent was trained on. None if unknown: the
            boards of `train` are then as unseen as those of `test`.
        test: its scores on unseen boards.
        train: its scores on boards of its training; None without a second match.
        gap: the mean on `test` minus that on `train`, or None.
        records: the record file; None if there is none.
        opponents: its mean scores on `test` against each of several opponents, the first included.
        opponents_mean: the mean of these, None with one opponent.
    """

    version: int
    agent: Name
    opponent: Name
    seed: Seed
    trained_on: Name | None
    test: BoardScores
    train: BoardScores | None
    gap: Estimate | None
    records: RecordsEntry | None = None
    opponents: tuple[OpponentEstimate, ...] = ()
    opponents_mean: Estimate | None = None

    def __post_init__(self) -> None:
        if (self.train is None) != (self.gap is None):
            raise ValueError("gap: expected null where train is, and only there")
        if self.gap is not None and not self.gap.within(-1, 1):
            raise ValueError("gap: expected a value and an interval from -1 to 1")
        if not all(x.within(0, 1) for x in self.opponents):
            raise ValueError("opponents: expected scores and intervals within 0 and 1")
        if self.trained_on is not None and is_family(self.trained_on):
            family_numbers(self.trained_on)  # raises if there are no such boards

    @classmethod
    def load(cls, path: Path) -> Generalisation:
        """Read a file of `generalise --json`.

        Raises:
            ResultsError: naming the file and the place in it.
        """
        source = Source.json(path, "results", ResultsError)
        source.check_versions("measure again", version=VERSION)
        return source.decode(cls)

    @property
    def worst(self) -> OpponentEstimate | None:
        """The lowest of the scores against several opponents."""
        return min(self.opponents, key=lambda one: one.value, default=None)

    @property
    def boards_trained_on(self) -> int | None:
        """The number of boards of the family it was trained on, None if unknown."""
        name = self.trained_on
        return None if name is None or not is_family(name) else len(family_numbers(name))


def scores_on_boards(
    match: Match, pool: BoardPool, seed: int, kind: int, *, drawn: bool
) -> tuple[BoardScores, Floats]:
    """Return the scores of an agent on the boards of a match, and the resampled mean scores.

    Args:
        match: of agent `a`, the same number of pairs on each board, board after board.
        pool: the boards.
        seed: of the match.
        kind: 0 for test boards, 1 for training boards: the resamples are independent.
        drawn: as in `BoardScores`.
    """
    results = match.results.reshape(len(pool), -1, 2)
    boards, pairs, _ = results.shape
    draws = bootstrap_boards(match.pentanomials(boards), [seed, kind], drawn=drawn)
    means = results.mean(axis=(1, 2))

    def estimate(of: Callable[[Floats], Floats], independent: int) -> Estimate:
        value, resampled = float(of(means)), of(draws)
        low, high = percentile_interval(resampled, boards if drawn else None)
        if low == high:  # all results are equal: resamples have no variance
            low, high = wilson_interval(value, independent)
        return Estimate.of(value, (max(low, 0.0), min(high, 1.0)))

    scores = BoardScores(
        pool=pool.name,
        hash=pool.hash,
        boards=boards,
        pairs=pairs,
        drawn=drawn,
        mean=estimate(lambda x: np.asarray(x.mean(axis=-1)), boards * pairs),
        iqm=_ranked(interquartile_mean, means, draws, [seed, kind], drawn=drawn),
        above_even=estimate(share_above_even, boards),
        worst_tenth=_ranked(worst_tenth_mean, means, draws, [seed, kind], drawn=drawn),
        profile=tuple(
            Estimate.of(share, wilson_interval(share, boards))
            for share in (means > np.array(THRESHOLDS)[:, None]).mean(axis=1)
        ),
        each=tuple(
            BoardEstimate.of(mean, score_interval(one), str(name))
            for name, mean, one in zip(pool.names, means, results, strict=True)
        ),
    )
    return scores, np.asarray(draws.mean(axis=1))


def _ranked(
    of: Callable[[Floats], Floats],
    means: Floats,
    draws: Floats,
    seed: Sequence[int],
    *,
    drawn: bool,
) -> Estimate:
    """Return a mean of the boards at some ranks, such as the worst tenth, with its interval.

    The luck of the pairs moves boards to other ranks, so that only drawn boards are resampled.
    """
    boards, value = len(means), float(of(means))
    if drawn:
        draws = means[np.random.default_rng(seed).integers(boards, size=draws.shape)]
    half = student_t_quantile(boards - 1) * float(of(draws).std())
    if not half:
        return Estimate.of(value, wilson_interval(value, boards))
    return _with_half_widths(value, [half])


def mean_over_opponents(found: Sequence[tuple[BoardScores, Floats]]) -> Estimate:
    """Return the mean of the mean scores against several opponents.

    Args:
        found: as `scores_on_boards` returns it for each opponent, on the same boards.
    """
    scores = found[0][0]
    value = float(np.mean([one.mean.value for one, _ in found]))
    draws = np.mean([means for _, means in found], axis=0)
    low, high = percentile_interval(draws, scores.boards if scores.drawn else None)
    return Estimate.of(value, (max(low, 0.0), min(high, 1.0)))


def generalisation_gap(
    test: tuple[BoardScores, Floats], train: tuple[BoardScores, Floats]
) -> Estimate:
    """Return the mean score on `test` minus that on `train`, with its interval.

    Args:
        test: as `scores_on_boards` returns it.
        train: likewise; its resamples are independent of those of `test`.
    """
    (test_scores, test_means), (train_scores, train_means) = test, train
    on_test, on_train = test_scores.mean, train_scores.mean
    drawn = [scores.boards for scores in (test_scores, train_scores) if scores.drawn]
    low, high = percentile_interval(test_means - train_means, min(drawn, default=None))
    if low == high:
        low, high = on_test.ci95[0] - on_train.ci95[1], on_test.ci95[1] - on_train.ci95[0]
    return Estimate.of(on_test.value - on_train.value, (low, high))


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
    widths = np.array([run.ci95[1] - run.ci95[0] for run in runs])
    halves = _half_width(values), sqrt((widths**2).mean()) / 2
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
