"""Pairs of games of several matches, with the seeds that matches share, and their bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import PAIR_SCORES, effective_games
from tokaido_env.arena.match import Match
from tokaido_env.arena.result import Score

Floats = npt.NDArray[np.float64]


PairedMatch = Match | Score
"""A match that ratings are computed from; only those with games are known to share seeds."""


@dataclass(frozen=True)
class Pairs:
    """The pairs of several matches, all arrays float64.

    Attributes:
        counts: (matches, 5), the pentanomials, with pairs that `with_drawn_pairs` added.
        unshared: (matches, 5), the counts of pairs with a seed that no other pair has.
        scores: (seeds, matches), the sum of the scores of `a`, each within [0, 1], in the pairs of
            a seed that occurs several times: in several matches, or in one on several boards.
        has: (seeds, matches), the number of these pairs.
    """

    counts: Floats
    unshared: Floats
    scores: Floats
    has: Floats

    @classmethod
    def of(cls, matches: Sequence[PairedMatch]) -> Pairs:
        """Return the pairs of matches; seeds are known of a `Match` only, not of a `Score`."""
        counts = np.array([match.pentanomial for match in matches], np.float64).reshape(-1, 5)
        unshared = counts.copy()
        with_games = [(m, match) for m, match in enumerate(matches) if isinstance(match, Match)]
        seeds = [match.games["seed"][:, 0] for _, match in with_games]
        distinct, times = np.unique(
            np.concatenate([np.zeros(0, np.int64), *seeds]), return_counts=True
        )
        common = distinct[times > 1]
        scores = np.zeros((len(common), len(matches)))
        has = np.zeros_like(scores)
        for (m, match), own in zip(with_games, seeds, strict=True):
            score, shared = match.results.mean(axis=1), np.isin(own, common)
            rows = np.searchsorted(common, own[shared])
            np.add.at(scores[:, m], rows, score[shared])
            np.add.at(has[:, m], rows, 1.0)
            unshared[m] = np.bincount(np.rint(4 * score[~shared]).astype(np.int64), minlength=5)
        return cls(counts, unshared, scores, has)

    @property
    def points(self) -> Floats:
        """The points of `a` in each match, 1 a win and 0.5 a draw: (matches,)."""
        points: Floats = 2 * self.counts @ PAIR_SCORES
        return points

    @property
    def played(self) -> Floats:
        """The number of games of each match, (matches,)."""
        played: Floats = 2 * self.counts.sum(axis=1)
        return played

    @property
    def effective_games(self) -> Floats:
        """The effective number of independent games (Kish 1965) of each match, (matches,)."""
        pairs = self.counts.sum(axis=1)
        mean = self.counts @ PAIR_SCORES / pairs
        squares = self.counts @ PAIR_SCORES**2 - pairs * mean**2
        columns = zip(mean, squares / np.maximum(pairs - 1, 1), pairs, strict=True)
        return np.array([effective_games(*column) for column in columns])

    def with_drawn_pairs(self, where: npt.NDArray[np.bool_]) -> Pairs:
        """Return the pairs with one more, drawn, in some of the matches.

        Args:
            where: bool (matches,).
        """
        added = np.outer(where, [0, 0, 1, 0, 0])
        return replace(self, counts=self.counts + added, unshared=self.unshared + added)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Floats:
        """Return points of `a` (1 + resamples, matches): the scored ones, then the resampled.

        The Bayesian bootstrap (Rubin 1981): every pair gets a weight from the exponential
        distribution, pairs of one seed the same. Unlike draws of whole pairs it never loses a rare
        outcome of a pair, so that every resample has finite ratings. One more pair is added, which
        has the distribution of two independent games. It gives the interval a positive width where
        all pairs are equal. The weights are gamma variates a little smaller than exponential ones,
        such that the variance of a mean is that of the pairs over their number.
        """
        pairs = self.counts.sum(axis=1)
        size = np.maximum(pairs - 1, 1) / (pairs + 1)
        drawn = rng.standard_gamma(
            (self.unshared + self._prior_pair()) * size[:, None], (resamples, *self.counts.shape)
        )
        points, weights = drawn @ PAIR_SCORES, drawn.sum(axis=2)
        smallest = np.where(self.has > 0, size, 1.0).min(axis=1, initial=1.0)
        for i in range(resamples if len(smallest) else 0):
            shared = rng.standard_gamma(smallest)
            points[i] += shared @ self.scores
            weights[i] += shared @ self.has
        return np.vstack([self.points, self.played * points / weights])

    def _prior_pair(self) -> Floats:
        """Return one pair for each match: two independent games with its smoothed score."""
        score = (self.points + 1) / (self.played + 2)
        won, lost, none = score**2, (1 - score) ** 2, np.zeros_like(score)
        return np.stack([lost, none, 1 - won - lost, none, won], axis=1)
