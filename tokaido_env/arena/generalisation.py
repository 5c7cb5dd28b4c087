"""What an agent scores on boards that it has not seen and on those it was trained on: as data.

The score on a board is the mean of its pairs of games. What is reported of all boards, with 95 %
intervals that resample boards and then pairs (`intervals.resampled_boards`):

- the mean of the scores;
- their interquartile mean, which a few odd boards do not move (Agarwal et al. 2021, "Deep
  Reinforcement Learning at the Edge of the Statistical Precipice");
- the share of boards on which the agent is better than even;
- the gap: the mean on boards to test on, less that on boards it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.arena.intervals import (
    Estimate,
    bootstrap_boards,
    interquartile_mean,
    percentile_interval,
    score_interval,
    share_above_even,
    wilson_interval,
)
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.arena.protocol import BoardEstimate, pentanomials_by_board
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import is_family, numbers_of
from tokaido_env.decoding import Name, Seed, Source, Struct

VERSION = 1

Floats = npt.NDArray[np.float64]


class ResultsError(ValueError):
    """A file that does not hold such results: the message says what was expected."""


class BoardScores(Struct, frozen=True):
    """What an agent scores on some boards.

    Attributes:
        pool: name of the boards.
        hash: of the boards.
        boards: how many.
        pairs: of games, on each board.
        drawn: whether the boards are some of many; if not, they are all it was trained on, and
            intervals are about games only.
        mean: of the scores on the boards.
        iqm: their interquartile mean.
        above_even: the share of boards with a score above a half; one of a half counts half.
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
            raise ValueError("expected scores from 0 to 1, with intervals within")

    @property
    def games(self) -> int:
        """How many games were played on all boards."""
        return 2 * self.pairs * self.boards


class Generalisation(Struct, frozen=True):
    """What an agent scores on boards that it has not seen, and on those it was trained on.

    Attributes:
        version: of the file.
        agent: its spec.
        opponent: whom it played against.
        seed: of the games.
        trained_on: name of the board or pool that the agent was trained on, None if that is not
            known: then the boards of `train` are as new to it as those of `test`.
        test: its scores on boards it has not seen.
        train: its scores on boards of those it was trained on; None if they are the same.
        gap: the mean on `test` less that on `train`, or None.
    """

    version: int
    agent: Name
    opponent: Name
    seed: Seed
    trained_on: Name | None
    test: BoardScores
    train: BoardScores | None
    gap: Estimate | None

    def __post_init__(self) -> None:
        if (self.train is None) != (self.gap is None):
            raise ValueError("gap: expected null where train is, and only there")
        if self.gap is not None and not self.gap.within(-1, 1):
            raise ValueError("gap: expected a value and an interval from -1 to 1")
        if self.trained_on is not None and is_family(self.trained_on):
            numbers_of(self.trained_on)  # refused if there are no such boards

    @classmethod
    def load(cls, path: Path) -> Generalisation:
        """Read what `generalise --json` wrote.

        Raises:
            ResultsError: naming the file and the place in it.
        """
        source = Source.json(path, "results", ResultsError)
        source.check_versions("measure anew", version=VERSION)
        return source.decode(cls)

    @property
    def boards_trained_on(self) -> int | None:
        """On how many boards of the family it was trained, None if on none that we know of."""
        name = self.trained_on
        return None if name is None or not is_family(name) else len(numbers_of(name))


def scores_on_boards(
    match: Match, pool: BoardPool, seed: int, kind: int, *, drawn: bool
) -> tuple[BoardScores, Floats]:
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
    draws = bootstrap_boards(pentanomials_by_board(match, boards), [seed, kind], drawn=drawn)
    means = results.mean(axis=(1, 2))

    def estimate(of: Callable[[Floats], Floats], independent: int) -> Estimate:
        value, resampled = float(of(means)), of(draws)
        low, high = percentile_interval(resampled, boards if drawn else None)
        if low == high:  # all games ended alike: no resample tells what else could have been
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
    """Return how much more an agent scores on `test` than on `train`, with its interval.

    Args:
        test: as `scores_on_boards` returns it.
        train: likewise; the resamples are independent of those of `test`.
    """
    (there, draws), (here, others) = test, train
    drawn = [scores.boards for scores in (there, here) if scores.drawn]
    low, high = percentile_interval(draws - others, min(drawn, default=None))
    if low == high:
        low, high = there.mean.ci95[0] - here.mean.ci95[1], there.mean.ci95[1] - here.mean.ci95[0]
    return Estimate.of(there.mean.value - here.mean.value, (low, high))
