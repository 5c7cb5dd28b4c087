"""Scores of an agent on unseen boards and on boards of its training, with 95 % intervals.

The score on a board is the mean of its pairs of games. Over all boards, these are reported, with
intervals that resample boards and then pairs (`intervals.bootstrap_boards`):

- the mean of the scores;
- their interquartile mean, which a few unusual boards do not change (Agarwal et al. 2021, "Deep
  Reinforcement Learning at the Edge of the Statistical Precipice");
- the share of boards with a score above 0.5;
- the gap: the mean on test boards minus the mean on training boards.
"""

from __future__ import annotations

from collections.abc import Callable
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
    wilson_interval,
)
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.arena.suite import RecordsEntry
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import family_numbers, is_family
from tokaido_env.core.arguments import repr_short
from tokaido_env.decoding import Name, Seed, Source, Struct

VERSION = 1

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
        drawn: whether the boards are a sample; if not, they are all boards of the training, and
            intervals contain the uncertainty of the games only.
        mean: of the scores on the boards.
        iqm: their interquartile mean.
        above_even: the share of boards with a score above 0.5; a score of 0.5 counts half.
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
    each: Annotated[tuple[BoardEstimate, ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if self.boards != len(self.each):
            raise ValueError(f"boards: expected {len(self.each)}, as in each, got {self.boards}")
        if not all(x.within(0, 1) for x in (self.mean, self.iqm, self.above_even, *self.each)):
            raise ValueError("expected scores and intervals within 0 and 1")

    @property
    def games(self) -> int:
        """The number of games on all boards."""
        return 2 * self.pairs * self.boards


class Generalisation(Struct, frozen=True):
    """The scores of an agent on unseen boards and on boards of its training.

    Attributes:
        version: of the file format.
        agent: its spec.
        opponent: spec of its opponent.
        seed: of the games.
        trained_on: name of the board or pool that the agent was trained on. None if unknown: the
            boards of `train` are then as unseen as those of `test`.
        test: its scores on unseen boards.
        train: its scores on boards of its training; None without a second match.
        gap: the mean on `test` minus that on `train`, or None.
        records: the record file; None if there is none.
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

    def __post_init__(self) -> None:
        if (self.train is None) != (self.gap is None):
            raise ValueError("gap: expected null where train is, and only there")
        if self.gap is not None and not self.gap.within(-1, 1):
            raise ValueError("gap: expected a value and an interval from -1 to 1")
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
    def boards_trained_on(self) -> int | None:
        """The number of boards of the family it was trained on, None if unknown."""
        name = self.trained_on
        return None if name is None or not is_family(name) else len(family_numbers(name))


def pool_of(scores: BoardScores) -> BoardPool:
    """Return the boards of scores; raise `ResultsError` for boards of another version or a file."""
    if not is_family(scores.pool):
        raise ResultsError(f"pool: expected boards of the family, got {repr_short(scores.pool)}")
    pool = BoardPool.load(scores.pool)
    if (pool.hash, len(pool)) != (scores.hash, scores.boards):
        raise ResultsError(
            f"hash: expected {pool.hash} of the {len(pool)} boards of {pool.name}, got "
            f"{repr_short(scores.hash)} of {scores.boards}: measure again"
        )
    return pool


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
        iqm=estimate(interquartile_mean, boards * pairs),
        above_even=estimate(share_above_even, boards),
        each=tuple(
            BoardEstimate.of(mean, score_interval(one), str(name))
            for name, mean, one in zip(pool.names, means, results, strict=True)
        ),
    )
    return scores, np.asarray(draws.mean(axis=1))


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
