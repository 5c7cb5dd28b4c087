"""Ratings: what paired matches say about the strength of agents, on the Elo scale, with intervals.

The model is Bradley and Terry's (1952): an agent d Elo above another is expected to score
1 / (1 + 10**(-d / 400)) of the points. A draw counts as half a win for each (Elo 1978): a rating
then speaks of the score, the figure that a match reports, and needs no model of draws (as Davidson
1970). Ratings are those of the greatest likelihood over all matches at once.

Intervals come from resampling *pairs*: the two games of a pair share their luck, so they are not
two independent games. Where matches were played with the same seed, their n-th pairs share it too,
and are resampled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.arena.intervals import PAIR_SCORES
from tokaido_env.agents.arena.match import Match

ELO = 400 / log(10)  # a difference of 1 in the exponent of the logistic curve, in Elo
ANCHOR = "random"
RESAMPLES = 1000

Floats = npt.NDArray[np.float64]


class RatingError(ValueError):
    """Matches that give no ratings: the message says what is missing."""


class Paired(Protocol):
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
class Rating:
    """The strength of an agent.

    Attributes:
        agent: its spec.
        elo: above the anchor, which has 0.
        ci95: the 95 % interval of `elo`; of the anchor, and of nobody else, (0, 0).
        games: how many it played against others.
    """

    agent: str
    elo: float
    ci95: tuple[float, float]
    games: int

    def to_dict(self) -> dict[str, Any]:
        """Return the rating as plain JSON types; Elo to two decimals."""
        elo, low, high = (round(x, 2) + 0.0 for x in (self.elo, *self.ci95))  # never -0.0
        return {"agent": self.agent, "elo": elo, "ci95": [low, high], "games": self.games}


def rate_matches(
    matches: Sequence[Paired],
    *,
    anchor: str = ANCHOR,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Rating]:
    """Rate all agents of a set of matches together.

    A match of an agent against itself says nothing and is left out.

    Where one group of agents lost every game to another, the likelihood grows without end as the
    two part. Each match between such groups counts with one more pair, drawn; no other match does.
    Such a rating rests on how many games there were: read its interval, and let agents of strengths
    between play.

    Args:
        matches: at most one of every two agents; more could be the same games twice.
        anchor: the agent at 0; if it is not among them, `anchor_of` tells which is.
        seed: of the resamples.
        resamples: how many, for the intervals.

    Returns:
        A rating an agent, best first.

    Raises:
        RatingError: if there are no matches, two of the same agents, or agents that no chain of
            matches connects.
    """
    field = _Field.of(matches, anchor)
    skills = field.skills(field.pairs.resample(np.random.default_rng(seed), resamples))
    ratings = [
        _rating(agent, skills[:, i], games)
        for i, (agent, games) in enumerate(zip(field.agents, field.games, strict=True))
    ]
    return sorted(ratings, key=lambda rating: -rating.elo)


def rate_steps(
    matches: Sequence[Paired], *, seed: int = 0, resamples: int = RESAMPLES
) -> list[Rating]:
    """Return how far each agent is above the next one below, best first, the last left out.

    The doubt about the anchor, which the intervals of all ratings share, is not in these: they tell
    whether neighbours differ. Arguments and errors as for `rate_matches`.
    """
    field = _Field.of(matches, ANCHOR)
    skills = field.skills(field.pairs.resample(np.random.default_rng(seed), resamples))
    order = np.argsort(-skills[0], kind="stable")
    return [
        _rating(field.agents[i], skills[:, i] - skills[:, below], field.games[i])
        for i, below in pairwise(order)
    ]


def rate_against(
    agent: str,
    matches: Sequence[Paired],
    known: Sequence[Paired],
    *,
    anchor: str = ANCHOR,
    seed: int = 0,
    known_seed: int = 0,
    resamples: int = RESAMPLES,
) -> Rating:
    """Rate one agent among others whose ratings stay what their own matches made them.

    The interval holds both doubts: how the agent did, and how well the others are known. Each
    resample rates the others from a resample of their matches, and then the agent against those.
    An agent that won or lost every game is counted with one drawn pair a match more.

    Args:
        agent: the one to rate.
        matches: its matches, each against an agent of `known`.
        known: the matches among the others.
        anchor: as for `rate_matches`, among the others.
        seed: of the resamples of `matches`.
        known_seed: of the resamples of `known`.
        resamples: how many, for the interval.

    Raises:
        RatingError: if there is no match, or one against an agent that is not known.
    """
    field = _Field.of(known, anchor)
    turned, others = _against(agent, matches, field.agents)
    pairs = _Pairs.of(turned)
    won_or_lost_all = pairs.points.sum() in (0, pairs.played.sum())
    if won_or_lost_all:
        pairs = pairs.with_drawn_pairs(np.ones(len(matches), bool))
    # Apart from the stream of the others, also when the seeds are equal.
    points = pairs.resample(np.random.default_rng([seed, 1]), resamples)
    skills = field.skills(field.pairs.resample(np.random.default_rng(known_seed), resamples))
    one_column = np.ones((len(matches), 1))
    found = _maximise(one_column, -skills[:, others], points, pairs.played)
    games = sum(2 * int(match.pentanomial.sum()) for match in matches)
    return _rating(agent, found[:, 0], games)


def anchor_of(matches: Sequence[Paired], anchor: str = ANCHOR) -> str:
    """Return which agent ratings of the matches have at 0: `anchor`, or else the first named."""
    agents = _agents(matches)
    return anchor if anchor in agents else agents[0]


def expected_score(difference: float) -> float:
    """Return the share of points expected of an agent that is so many Elo above the other."""
    return float(1 / (1 + np.exp(-difference / ELO)))


@dataclass(frozen=True)
class _Pairs:
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
    def of(cls, matches: Sequence[Paired]) -> _Pairs:
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

    def with_drawn_pairs(self, where: npt.NDArray[np.bool_]) -> _Pairs:
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


@dataclass(frozen=True)
class _Field:
    """Agents and the matches between them, as arrays."""

    agents: list[str]
    anchor: int
    ends: npt.NDArray[np.int64]  # (matches, 2): a and b, as indices into agents
    games: list[int]  # of each agent
    pairs: _Pairs  # with those that keep ratings finite

    @classmethod
    def of(cls, matches: Sequence[Paired], anchor: str) -> _Field:
        agents = _agents(matches)
        counted = [match for match in matches if match.a != match.b]
        named = [[agents.index(m.a), agents.index(m.b)] for m in counted]
        ends = np.array(named, np.int64).reshape(-1, 2)
        _refuse_repeats(agents, ends)
        pairs = _Pairs.of(counted)
        played = pairs.played
        games = [int(played[(ends == i).any(axis=1)].sum()) for i in range(len(agents))]
        pairs = pairs.with_drawn_pairs(_parting(agents, ends, pairs))
        return cls(agents, agents.index(anchor_of(matches, anchor)), ends, games, pairs)

    def skills(self, points: Floats) -> Floats:
        """Return the likeliest skills (sets, agents), the anchor at 0, as `_maximise` does."""
        design = np.zeros((len(self.ends), len(self.agents)))
        rows = np.arange(len(self.ends))
        design[rows, self.ends[:, 0]] = 1.0
        design[rows, self.ends[:, 1]] = -1.0
        free = np.delete(np.arange(len(self.agents)), self.anchor)
        skills = np.zeros((len(points), len(self.agents)))
        offset = np.zeros_like(points)
        skills[:, free] = _maximise(design[:, free], offset, points, self.pairs.played)
        return skills


def _agents(matches: Sequence[Paired]) -> list[str]:
    """Return all agents in the order in which they are named."""
    if not matches:
        raise RatingError("no matches to rate: expected at least one")
    return list(dict.fromkeys(agent for match in matches for agent in (match.a, match.b)))


def _refuse_repeats(agents: list[str], ends: npt.NDArray[np.int64]) -> None:
    met = set()
    for one, other in np.sort(ends, axis=1).tolist():
        if (one, other) in met:
            raise RatingError(
                f"two matches of {agents[one]!r} and {agents[other]!r}: with the same seed they "
                "are the same games, which must not count twice: name each agent once, or play "
                "one longer match"
            )
        met.add((one, other))


def _parting(
    agents: list[str], ends: npt.NDArray[np.int64], pairs: _Pairs
) -> npt.NDArray[np.bool_]:
    """Return which matches are between groups of which one won everything.

    The likelihood has its greatest value at finite ratings if and only if between every two agents
    there are chains of "took a point from" both ways (Ford 1957).
    """
    scored = np.eye(len(agents), dtype=bool)
    won, lost = pairs.points > 0, pairs.points < pairs.played
    scored[ends[won, 0], ends[won, 1]] = True
    scored[ends[lost, 1], ends[lost, 0]] = True
    _refuse_islands(agents, _chains(scored | scored.T))
    chained = _chains(scored)
    both_ways = chained & chained.T
    return ~both_ways[ends[:, 0], ends[:, 1]]


def _chains(links: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which agents a chain of links leads to from each."""
    for _ in range(len(links).bit_length()):
        links = links @ links
    return links


def _refuse_islands(agents: list[str], connected: npt.NDArray[np.bool_]) -> None:
    if connected.all():
        return
    here = [agent for agent, same in zip(agents, connected[0], strict=True) if same]
    there = [agent for agent, same in zip(agents, connected[0], strict=True) if not same]
    raise RatingError(
        f"no match connects {', '.join(here)} with {', '.join(there)}: their ratings cannot be "
        "compared; play at least one match between them"
    )


def _against(
    agent: str, matches: Sequence[Paired], agents: list[str]
) -> tuple[list[Paired], npt.NDArray[np.int64]]:
    """Return the matches with the agent as `a`, and who the others are."""
    if not matches:
        raise RatingError(f"no matches of {agent!r} to rate it by: expected at least one")
    turned, others = [], []
    for match in matches:
        first = match.a == agent
        other = match.b if first else match.a
        if agent not in (match.a, match.b) or other == agent or other not in agents:
            known = ", ".join(agents)
            raise RatingError(
                f"{match.a!r} against {match.b!r}: expected {agent!r} against one of {known}"
            )
        turned.append(match if first else _turn(match))
        others.append(agents.index(other))
    return turned, np.array(others)


@dataclass(frozen=True)
class _Turned:
    a: str
    b: str
    pentanomial: npt.NDArray[np.int64]


def _turn(match: Paired) -> Paired:
    """Return a match as its `b` sees it."""
    if not isinstance(match, Match):
        return _Turned(match.b, match.a, match.pentanomial[::-1])
    games = match.games[:, ::-1].copy()
    games["result"] = 1 - games["result"]
    return Match(match.b, match.a, games, match.actions[:, ::-1])


def _maximise(design: Floats, offset: Floats, points: Floats, played: Floats) -> Floats:
    """Return the skills (sets, k) of the greatest likelihood for each set of points.

    In match m the expected score is logistic(offset[m] + design[m] @ skills). Newton's method, each
    step shortened as Sun and Tran-Dinh (2019) do for logistic likelihoods: with d the furthest that
    a step would move any match, log(1 + d) / d of it always gains.

    Args:
        design: (matches, k).
        offset: (sets, matches).
        points: (sets, matches), of `a`; within 0 and `played`.
        played: (matches,), games.
    """
    skills = np.zeros((len(points), design.shape[1]))
    if not skills.size:
        return skills
    for _ in range(200):
        expected = 1 / (1 + np.exp(-(offset + skills @ design.T)))
        gradient = (points - played * expected) @ design
        curvature = played * expected * (1 - expected)
        hessian = design.T @ (curvature[:, :, None] * design)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        furthest = np.maximum(np.abs(step @ design.T).max(axis=1, keepdims=True), 1e-300)
        skills += step * (np.log1p(furthest) / furthest)
        if furthest.max() < 1e-9:
            return skills
    raise RatingError("the ratings did not settle: scores too near 0 or 1 to rate")


def _rating(agent: str, skills: Floats, games: int) -> Rating:
    """Return a rating from skills: of the matches, then of each resample."""
    low, high = np.quantile(skills[1:], [0.025, 0.975])
    return Rating(agent, ELO * float(skills[0]), (ELO * float(low), ELO * float(high)), games)
