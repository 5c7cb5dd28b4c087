"""What an agent scores on boards that it has not seen and on those it was trained on: as data.

The score on a board is the mean of its pairs of games. What is told of all boards, with intervals
of 95 % that resample boards and then pairs (`intervals.resampled_boards`):

- the mean of the scores;
- their interquartile mean, which a few odd boards do not move (Agarwal et al. 2021, "Deep
  Reinforcement Learning at the Edge of the Statistical Precipice");
- the share of boards on which the agent is better than even;
- the gap: the mean on boards to test on, less that on boards it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import (
    interquartile_mean,
    interval_of,
    resampled_boards,
    score_interval,
    share_above_even,
    wilson,
)
from tokaido_env.arena.match import Match
from tokaido_env.boards.pool import BoardPool

VERSION = 1
TEST, TRAIN = "test", "train"  # what `Scores` are of, as the resamples and the file call them

Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A value with its interval of 95 %."""

    value: float
    ci95: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {"value": round(self.value, 6), "ci95": [round(bound, 6) for bound in self.ci95]}


class OnBoard(NamedTuple):
    """The score of an agent on one board, with its interval."""

    board: str
    score: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {"board": self.board, **self.score.to_dict()}


@dataclass(frozen=True)
class Scores:
    """What an agent scores on some boards.

    Attributes:
        pool: name of the boards.
        hash: of the boards.
        pairs: of games, on each board.
        drawn: whether the boards are some of many; if not, they are all it was trained on, and
            intervals are about games only.
        mean: of the scores on the boards.
        iqm: their interquartile mean.
        above_even: the share of boards with a score above a half; one of a half counts half.
        each: the boards, in their order.
    """

    pool: str
    hash: str
    pairs: int
    drawn: bool
    mean: Estimate
    iqm: Estimate
    above_even: Estimate
    each: tuple[OnBoard, ...]

    @property
    def games(self) -> int:
        """How many games were played on all boards."""
        return 2 * self.pairs * len(self.each)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {
            "pool": self.pool,
            "hash": self.hash,
            "boards": len(self.each),
            "pairs": self.pairs,
            "drawn": self.drawn,
            "mean": self.mean.to_dict(),
            "iqm": self.iqm.to_dict(),
            "above_even": self.above_even.to_dict(),
            "each": [one.to_dict() for one in self.each],
        }


@dataclass(frozen=True)
class Generalisation:
    """What an agent scores on boards that it has not seen, and on those it was trained on.

    Attributes:
        agent: its spec.
        opponent: whom it played against.
        seed: of the games.
        trained_on: name of the board or pool that the agent was trained on, None if that is not
            known: then the boards of `train` are as new to it as those of `test`.
        test: its scores on boards it has not seen.
        train: its scores on boards of those it was trained on; None if they are the same.
        gap: the mean on `test` less that on `train`, or None.
    """

    agent: str
    opponent: str
    seed: int
    trained_on: str | None
    test: Scores
    train: Scores | None
    gap: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types, with no clock and no machine in them."""
        return {
            "version": VERSION,
            "agent": self.agent,
            "opponent": self.opponent,
            "seed": self.seed,
            "trained_on": self.trained_on,
            TEST: self.test.to_dict(),
            TRAIN: None if self.train is None else self.train.to_dict(),
            "gap": None if self.gap is None else self.gap.to_dict(),
        }


def scores_on_boards(
    match: Match, pool: BoardPool, seed: int, kind: int, *, drawn: bool
) -> tuple[Scores, Floats]:
    """Return what an agent scores on the boards of a match, and the mean score resampled.

    Args:
        match: of agent `a`, as many pairs on each board, board after board.
        pool: the boards.
        seed: of the match.
        kind: 0 for boards to test on, 1 for boards trained on: the resamples are others.
        drawn: as in `Scores`.
    """
    results = match.results.reshape(len(pool), -1, 2)
    boards, pairs, _ = results.shape
    twice = np.rint(2 * results.sum(axis=2)).astype(np.int64)
    counts = (twice[:, :, None] == np.arange(5)).sum(axis=1)
    draws = resampled_boards(counts, [seed, kind], drawn=drawn)
    means = results.mean(axis=(1, 2))

    def estimate(of: Callable[[Floats], Floats], independent: int) -> Estimate:
        value, resampled = float(of(means)), of(draws)
        low, high = interval_of(resampled, boards if drawn else None)
        if low == high:  # all games ended alike: no resample tells what else could have been
            low, high = wilson(value, independent)
        return Estimate(value, (max(low, 0.0), min(high, 1.0)))

    scores = Scores(
        pool=pool.name,
        hash=pool.hash,
        pairs=pairs,
        drawn=drawn,
        mean=estimate(lambda x: np.asarray(x.mean(axis=-1)), boards * pairs),
        iqm=estimate(interquartile_mean, boards * pairs),
        above_even=estimate(share_above_even, boards),
        each=tuple(
            OnBoard(str(name), Estimate(float(mean), score_interval(one)))
            for name, mean, one in zip(pool.names, means, results, strict=True)
        ),
    )
    return scores, np.asarray(draws.mean(axis=1))


def gap_between(test: tuple[Scores, Floats], train: tuple[Scores, Floats]) -> Estimate:
    """Return how much more an agent scores on `test` than on `train`, with its interval.

    Args:
        test: as `scores_on_boards` returns it.
        train: likewise; the resamples are independent of those of `test`.
    """
    (there, draws), (here, others) = test, train
    drawn = [len(scores.each) for scores in (there, here) if scores.drawn]
    low, high = interval_of(draws - others, min(drawn, default=None))
    if low == high:
        low, high = there.mean.ci95[0] - here.mean.ci95[1], there.mean.ci95[1] - here.mean.ci95[0]
    return Estimate(there.mean.value - here.mean.value, (low, high))
