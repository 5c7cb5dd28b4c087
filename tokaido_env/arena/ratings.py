"""Ratings: what paired matches say about the strength of agents, on the Elo scale, with intervals.

What share of points a difference in strength is worth is a choice, the link (`rating_models`). A
draw counts as half a win for each (Elo 1978): a rating then speaks of the score, the figure that a
match reports, and needs no model of draws (as Davidson 1970). Ratings are those of the greatest
likelihood over all matches at once; `fit` tells whether the matches look like the model.

Intervals come from resampling *pairs*: the two games of a pair share their luck, so they are not
two independent games. Where matches were played with the same seed, their n-th pairs share it too,
and are resampled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.arena.intervals import chi2_sf, percentile_interval
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.arena.paired_games import PairedMatch, Pairs
from tokaido_env.arena.rating_models import (
    PROBIT,
    RatingError,
    RatingModel,
    maximum_likelihood,
    model_named,
)
from tokaido_env.decoding import Name, Number, Share, Struct

DEFAULT_MODEL = PROBIT
ANCHORS = ("mcts:sims=400", "random")  # the first that plays is at 0
RESAMPLES = 1000

Floats = npt.NDArray[np.float64]


class Rating(Struct, frozen=True):
    """The strength of an agent, as files hold it too.

    Attributes:
        agent: its spec.
        elo: above the anchor, which has 0.
        ci95: the 95 % interval of `elo`; of the anchor, and of nobody else, (0, 0).
        games: how many it played against others.
    """

    agent: Name
    elo: Number
    ci95: tuple[Number, Number]
    games: Annotated[int, Meta(ge=0, le=MAX_GAMES)]

    def to_dict(self) -> dict[str, Any]:
        """Return the rating as plain JSON types; Elo to two decimals."""
        elo, low, high = (round(x, 2) + 0.0 for x in (self.elo, *self.ci95))  # never -0.0
        return {"agent": self.agent, "elo": elo, "ci95": [low, high], "games": self.games}


class GoodnessOfFit(Struct, frozen=True):
    """How far matches are from what a model expects of them: Pearson's statistic.

    Attributes:
        chi2: about `df` if the model is right.
        df: degrees of freedom: matches less strengths that were fitted.
        p: how often a right model gives so much or more; None without a degree of freedom.
    """

    chi2: Annotated[float, Meta(ge=0, le=1e12)]
    df: Annotated[int, Meta(ge=0, le=MAX_GAMES)]
    p: Share | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types; p to three digits that count."""
        p = None if self.p is None else float(f"{self.p:.3g}")
        return {"chi2": round(self.chi2, 2), "df": self.df, "p": p}


class RatingDifferences(NamedTuple):
    """How far each agent is above each other.

    Attributes:
        agents: best first.
        elo: (agents, agents), row above column.
        low, high: likewise, the 95 % intervals.
        above: likewise, the share of resamples in which row is above column.
    """

    agents: tuple[str, ...]
    elo: Floats
    low: Floats
    high: Floats
    above: Floats

    def among(self, agents: Sequence[str]) -> RatingDifferences:
        """Return the differences between some of the agents."""
        chosen = [i for i, agent in enumerate(self.agents) if agent in agents]
        some = (matrix[np.ix_(chosen, chosen)] for matrix in self[1:])
        return RatingDifferences(tuple(self.agents[i] for i in chosen), *some)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return every two agents once, the better first, as plain JSON types."""
        return [
            {
                "agent": self.agents[i],
                "other": self.agents[j],
                "elo": round(float(self.elo[i, j]), 2) + 0.0,
                "ci95": [round(float(x[i, j]), 2) + 0.0 for x in (self.low, self.high)],
                "above": round(float(self.above[i, j]), 4),
            }
            for i, j in combinations(range(len(self.agents)), 2)
        ]


def rate_matches(
    matches: Sequence[PairedMatch],
    *,
    model: str = DEFAULT_MODEL,
    anchor: str | None = None,
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
        link: name of the link.
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
    elo = field.resampled(model_named(model), seed, resamples)
    ratings = [
        _rating(agent, elo[:, i], games)
        for i, (agent, games) in enumerate(zip(field.agents, field.games, strict=True))
    ]
    return sorted(ratings, key=lambda rating: -rating.elo)


def rate_adjacent(
    matches: Sequence[PairedMatch],
    *,
    model: str = DEFAULT_MODEL,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Rating]:
    """Return how far each agent is above the next one below, best first, the last left out.

    The doubt about the anchor, which the intervals of all ratings share, is not in these: they tell
    whether neighbours differ. Arguments and errors as for `rate_matches`.
    """
    field = _Field.of(matches, None)
    elo = field.resampled(model_named(model), seed, resamples)
    order = np.argsort(-elo[0], kind="stable")
    return [
        _rating(field.agents[i], elo[:, i] - elo[:, below], field.games[i])
        for i, below in pairwise(order)
    ]


def rate_differences(
    matches: Sequence[PairedMatch],
    *,
    model: str = DEFAULT_MODEL,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> RatingDifferences:
    """Return how far each agent is above each other: no anchor is in it.

    Arguments and errors as for `rate_matches`.
    """
    field = _Field.of(matches, None)
    elo = field.resampled(model_named(model), seed, resamples)
    order = np.argsort(-elo[0], kind="stable")
    elo = elo[:, order]
    apart = elo[:, :, None] - elo[:, None, :]
    low, high = np.quantile(apart[1:], [0.025, 0.975], axis=0)
    above = (apart[1:] > 0).mean(axis=0) + (apart[1:] == 0).mean(axis=0) / 2
    agents = tuple(field.agents[i] for i in order)
    return RatingDifferences(agents, apart[0], low, high, above)


def goodness_of_fit(matches: Sequence[PairedMatch], *, model: str = DEFAULT_MODEL) -> GoodnessOfFit:
    """Return how far matches are from what a link expects at the ratings that fit them best.

    A match adds the square of its score less the one expected, over the variance of a score. As
    the two games of a pair share their luck, this is p (1 - p) over the effective number of games
    that the spread between its pairs shows, as in the interval of a score, with p the score
    expected. Where less than about five wins are expected, the statistic is only roughly
    distributed as chi-squared. Arguments and errors as for `rate_matches`.
    """
    field, rating_model = _Field.of(matches, None), model_named(model)
    pairs = field.pairs
    skills = field.skills(rating_model, pairs.points[None])[0]
    expected = rating_model.share(skills[field.ends[:, 0]] - skills[field.ends[:, 1]])
    excess = pairs.points / pairs.played - expected
    chi2 = float((excess**2 * pairs.effective_games / (expected * (1 - expected))).sum())
    df = len(field.ends) - len(field.agents) + 1
    return GoodnessOfFit(chi2, df, chi2_sf(chi2, df) if df > 0 else None)


def rate_against(
    agent: str,
    matches: Sequence[PairedMatch],
    known: Sequence[PairedMatch],
    *,
    model: str = DEFAULT_MODEL,
    anchor: str | None = None,
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
        link, anchor: as for `rate_matches`, among the others.
        seed: of the resamples of `matches`.
        known_seed: of the resamples of `known`.
        resamples: how many, for the interval.

    Raises:
        RatingError: if there is no match, or one against an agent that is not known.
    """
    field, rating_model = _Field.of(known, anchor), model_named(model)
    turned, others = _against(agent, matches, field.agents)
    pairs = Pairs.of(turned)
    won_or_lost_all = pairs.points.sum() in (0, pairs.played.sum())
    if won_or_lost_all:
        pairs = pairs.with_drawn_pairs(np.ones(len(matches), bool))
    # Apart from the stream of the others, also when the seeds are equal.
    points = pairs.resample(np.random.default_rng([seed, 1]), resamples)
    skills = field.skills(
        rating_model, field.pairs.resample(np.random.default_rng(known_seed), resamples)
    )
    one_column = np.ones((len(matches), 1))
    found = maximum_likelihood(rating_model, one_column, -skills[:, others], points, pairs.played)
    games = sum(2 * int(match.pentanomial.sum()) for match in matches)
    return _rating(agent, rating_model.points * found[:, 0], games)


def anchor_of(matches: Sequence[PairedMatch], anchor: str | None = None) -> str:
    """Return which agent ratings of the matches have at 0: see `anchor_among`."""
    return choose_anchor(_agents(matches), anchor)


def choose_anchor(agents: Sequence[str], anchor: str | None = None) -> str:
    """Return which agent is at 0: `anchor`, else the first of `ANCHORS` there, else the first."""
    return next((name for name in (anchor, *ANCHORS) if name in agents), None) or agents[0]


def expected_score(difference: float, model: str = DEFAULT_MODEL) -> float:
    """Return the share of points expected of an agent that is so many Elo above the other."""
    rating_model = model_named(model)
    return float(rating_model.share(np.array([difference / rating_model.points]))[0])


@dataclass(frozen=True)
class _Field:
    """Agents and the matches between them, as arrays."""

    agents: list[str]
    anchor: int
    ends: npt.NDArray[np.int64]  # (matches, 2): a and b, as indices into agents
    games: list[int]  # of each agent
    pairs: Pairs  # with those that keep ratings finite

    @classmethod
    def of(cls, matches: Sequence[PairedMatch], anchor: str | None) -> _Field:
        agents = _agents(matches)
        counted = [match for match in matches if match.a != match.b]
        named = [[agents.index(m.a), agents.index(m.b)] for m in counted]
        ends = np.array(named, np.int64).reshape(-1, 2)
        _refuse_repeats(agents, ends)
        pairs = Pairs.of(counted)
        played = pairs.played
        games = [int(played[(ends == i).any(axis=1)].sum()) for i in range(len(agents))]
        pairs = pairs.with_drawn_pairs(_parting(agents, ends, pairs))
        return cls(agents, agents.index(anchor_of(matches, anchor)), ends, games, pairs)

    def resampled(self, model: RatingModel, seed: int, resamples: int) -> Floats:
        """Return Elo (1 + resamples, agents): of the matches, then of each resample."""
        points = self.pairs.resample(np.random.default_rng(seed), resamples)
        return model.points * self.skills(model, points)

    def skills(self, model: RatingModel, points: Floats) -> Floats:
        """Return the likeliest skills (sets, agents), the anchor at 0, as `maximise` does."""
        design = np.zeros((len(self.ends), len(self.agents)))
        rows = np.arange(len(self.ends))
        design[rows, self.ends[:, 0]] = 1.0
        design[rows, self.ends[:, 1]] = -1.0
        free = np.delete(np.arange(len(self.agents)), self.anchor)
        skills = np.zeros((len(points), len(self.agents)))
        offset = np.zeros_like(points)
        skills[:, free] = maximum_likelihood(
            model, design[:, free], offset, points, self.pairs.played
        )
        return skills


def _agents(matches: Sequence[PairedMatch]) -> list[str]:
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


def _parting(agents: list[str], ends: npt.NDArray[np.int64], pairs: Pairs) -> npt.NDArray[np.bool_]:
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
    agent: str, matches: Sequence[PairedMatch], agents: list[str]
) -> tuple[list[PairedMatch], npt.NDArray[np.int64]]:
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


def _turn(match: PairedMatch) -> PairedMatch:
    """Return a match as its `b` sees it."""
    if not isinstance(match, Match):
        return _Turned(match.b, match.a, match.pentanomial[::-1])
    games = match.games[:, ::-1].copy()
    games["result"] = 1 - games["result"]
    return Match(match.b, match.a, games, match.actions[:, ::-1])


def _rating(agent: str, elo: Floats, games: int) -> Rating:
    """Return a rating from Elo: of the matches, then of each resample."""
    return Rating(agent, float(elo[0]), percentile_interval(elo[1:]), games)
