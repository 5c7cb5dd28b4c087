"""The pairs of games of some matches, with the luck that they share, and resamples of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import PAIR_SCORES, effective_games
from tokaido_env.arena.match import Match

Floats = npt.NDArray[np.float64]


class PairedMatch(Protocol):
    """What ratings need of a match, as a ladder keeps it.

    Matches without games are taken to have luck of their own. Of a `Match`, the seeds of its games
    tell which luck it shared.
    """

    @property
    def a(self) -> str: ...  # noqa: D102

    @property
    def b(self) -> str: ...  # noqa: D102

    @property
    def pentanomial(self) -> npt.NDArray[np.int64]:
        """How many pairs gave `a` 0, 0.5, 1, 1.5 and 2 of two games: int64 (5,)."""
        ...


@dataclass(frozen=True)
class Pairs:
    """The pairs of some matches, with the luck that they share.

    Attributes:
        counts: (matches, 5), the pentanomials, with pairs that `with_drawn_pairs` added.
        alone: (matches, 5), those of them whose luck no other match shared.
        scores: (seeds, matches), what `a` scored in the pair of a common seed, within [0, 1].
        has: (seeds, matches), 1 where the match has a pair of that seed.
    """

    counts: Floats
    alone: Floats
    scores: Floats
    has: Floats

    @classmethod
    def of(cls, matches: Sequence[PairedMatch]) -> Pairs:
        """Return the pairs of some matches, of each that has games with the seeds of its games."""
        counts = np.array([match.pentanomial for match in matches], np.float64).reshape(-1, 5)
        alone = counts.copy()
        whole = [(m, match) for m, match in enumerate(matches) if isinstance(match, Match)]
        seeds = [match.games["seed"][:, 0] for _, match in whole]
        distinct, times = np.unique(
            np.concatenate([np.zeros(0, np.int64), *seeds]), return_counts=True
        )
        common = distinct[times > 1]
        scores = np.zeros((len(common), len(matches)))
        has = np.zeros_like(scores)
        for (m, match), own in zip(whole, seeds, strict=True):
            score, shared = match.results.mean(axis=1), np.isin(own, common)
            rows = np.searchsorted(common, own[shared])
            scores[rows, m] = score[shared]
            has[rows, m] = 1.0
            alone[m] = np.bincount(np.rint(4 * score[~shared]).astype(np.int64), minlength=5)
        return cls(counts, alone, scores, has)

    @classmethod
    def of_counts(cls, counts: npt.NDArray[np.int64]) -> Pairs:
        """Return the pairs of matches (matches, 5) of which each has luck of its own."""
        each = counts.astype(np.float64)
        none = np.zeros((0, len(each)))
        return cls(each, each, none, none)

    @property
    def points(self) -> Floats:
        """The points of `a` in each match."""
        points: Floats = 2 * self.counts @ PAIR_SCORES
        return points

    @property
    def played(self) -> Floats:
        """The games of each match."""
        played: Floats = 2 * self.counts.sum(axis=1)
        return played

    @property
    def effective_games(self) -> Floats:
        """As how many independent games each match counts."""
        pairs = self.counts.sum(axis=1)
        mean = self.counts @ PAIR_SCORES / pairs
        squares = self.counts @ PAIR_SCORES**2 - pairs * mean**2
        each = zip(mean, squares / np.maximum(pairs - 1, 1), pairs, strict=True)
        return np.array([effective_games(*one) for one in each])

    def with_drawn_pairs(self, where: npt.NDArray[np.bool_]) -> Pairs:
        """Return the pairs with one more, drawn, in some of the matches."""
        added = np.outer(where, [0, 0, 1, 0, 0])
        return replace(self, counts=self.counts + added, alone=self.alone + added)

    def resample(self, rng: np.random.Generator, resamples: int) -> Floats:
        """Return points of `a` (1 + resamples, matches): those scored, then those resampled.

        Rubin's Bayesian bootstrap (1981): every pair gets a weight from the exponential
        distribution, pairs of one seed the same. Unlike draws of whole pairs it never loses a kind
        of pair that was seen once, so that no resample is without finite ratings. One more pair,
        spread as two independent games with the score of the match would be, keeps an interval open
        where all pairs were alike. The weights are gamma variates a little smaller than exponential
        ones, such that the variance of a mean is that of the pairs over their number.
        """
        pairs = self.counts.sum(axis=1)
        size = np.maximum(pairs - 1, 1) / (pairs + 1)
        drawn = rng.standard_gamma(
            (self.alone + self._spread()) * size[:, None], (resamples, *self.alone.shape)
        )
        points, weights = drawn @ PAIR_SCORES, drawn.sum(axis=2)
        smallest = np.where(self.has > 0, size, 1.0).min(axis=1, initial=1.0)
        for i in range(resamples if len(smallest) else 0):
            shared = rng.standard_gamma(smallest)
            points[i] += shared @ self.scores
            weights[i] += shared @ self.has
        return np.vstack([self.points, self.played * points / weights])

    def _spread(self) -> Floats:
        """Return one pair a match: two independent games with its score, a half added to both."""
        score = (self.points + 1) / (self.played + 2)
        won, lost, none = score**2, (1 - score) ** 2, np.zeros_like(score)
        return np.stack([lost, none, 1 - won - lost, none, won], axis=1)
