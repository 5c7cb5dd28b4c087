"""Elo ratings of agents from paired matches, with bootstrap intervals and goodness of fit.

`rating_model` has the model of the expected score. A draw counts as half a win for each agent
(Elo 1978): ratings then predict the score that a match reports, and need no model of draws (as
Davidson 1970). Ratings maximise the likelihood of all matches at once; `goodness_of_fit` tests
whether the matches agree with the model.

Intervals resample *pairs*, since the two games of a pair share their chance outcomes and are not
independent. Matches of the same seed share them too: their n-th pairs are resampled together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import percentile_interval
from tokaido_env.arena.match import Match
from tokaido_env.arena.paired_games import PairedMatch, Pairs
from tokaido_env.arena.rating_model import ELO_PER_UNIT, RatingError, maximum_likelihood
from tokaido_env.arena.result import Measure

ANCHORS = ("mcts:sims=400", "random")  # the first of these that has played has rating 0
RESAMPLES = 1000

Floats = npt.NDArray[np.float64]


def rate_matches(
    matches: Sequence[PairedMatch],
    *,
    anchor: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Measure]:
    """Rate all agents of a set of matches together.

    A match of an agent against itself contains no information and is left out. Agents of one name
    count as one: give each of several objects of one class a `spec` of its own.

    Where one group of agents lost every game to another, the likelihood rises without limit as
    their ratings separate. Each match between such groups counts with one more pair, drawn; no
    other match does. These ratings depend on the number of games: read their intervals, and add
    agents of intermediate strength.

    Args:
        matches: at most one of every two agents; more could be the same games twice.
        anchor: the agent at 0; if it has not played, see `choose_anchor`.
        seed: of the resamples.
        resamples: number of resamples, for the intervals.

    Returns:
        The Elo of each agent, best first; that of the anchor has no interval.

    Raises:
        RatingError: if there are no matches, two of the same agents, or agents that no chain of
            matches connects.
    """
    agents, games, elo = _bootstrap(matches, anchor, seed, resamples)
    return [_rating(agent, elo[:, i], games[i]) for i, agent in enumerate(agents)]


def rate_differences(matches: Sequence[PairedMatch], *, seed: int = 0) -> list[Measure]:
    """Return the "Elo difference" of every two agents, the better first.

    The intervals do not contain the uncertainty of the anchor, which all ratings share. Arguments
    and errors as for `rate_matches`.
    """
    agents, _, elo = _bootstrap(matches, None, seed, RESAMPLES)
    found = []
    for i, j in combinations(range(len(agents)), 2):
        pair: dict[str, Any] = {"agent": agents[i], "other": agents[j]}
        differences = elo[:, i] - elo[:, j]
        ends = np.quantile(_centred(differences), [0.025, 0.975])
        value, low, high = (round(float(x), 4) for x in (differences[0], *ends))
        found.append(Measure.named("Elo difference", value=value, interval=(low, high), **pair))
    return found


def goodness_of_fit(matches: Sequence[PairedMatch]) -> list[Measure]:
    """Test matches against the rating model at the ratings of maximum likelihood (Pearson).

    A match adds the square of its score minus the expected score p, over the variance of a score.
    The variance is p (1 - p) over the effective number of games, since the two games of a pair
    share chance outcomes. Where fewer than about five wins are expected, the statistic is only
    roughly distributed as chi-squared. Arguments and errors as for `rate_matches`.

    Returns:
        The statistic "chi-squared", about its degrees of freedom `n`, matches less fitted
        strengths, if the model is right. With degrees of freedom also "p of chi-squared", the
        probability of such a statistic or a greater one if the model is right.
    """
    from scipy.special import chdtrc, ndtr

    arrays = _MatchArrays.of(matches, None)
    pairings, skills = arrays.pairings, arrays.skills(arrays.pairs.points[None])[0]
    pairs = Pairs.of([match for match in matches if match.a != match.b])  # without the drawn ones
    expected = ndtr(skills[pairings[:, 0]] - skills[pairings[:, 1]])
    excess = pairs.points / pairs.played - expected
    variance = np.maximum(expected * (1 - expected), 1e-9)
    chi2 = float((excess**2 * pairs.effective_games / variance).sum())
    df = len(pairings) - len(arrays.agents) + 1
    found = [Measure.named("chi-squared", "", round(chi2, 2), n=df)]
    if df > 0:
        p = float(f"{chdtrc(df, chi2):.3g}")
        found.append(Measure(p, p, p, "p of chi-squared", "", df))
    return found


def has_sweep(matches: Sequence[PairedMatch]) -> bool:
    """Whether a group of agents won every game against another: Elo across it is a bound."""
    return bool(_MatchArrays.of(matches, None).swept.any())


def rate_against(
    agent: str,
    matches: Sequence[PairedMatch],
    known: Sequence[PairedMatch],
    *,
    anchor: str | None = None,
    seed: int = 0,
    known_seed: int = 0,
    resamples: int = RESAMPLES,
) -> Measure:
    """Rate one agent against others; these keep the ratings of their own matches.

    The interval contains the uncertainty of the agent's results and of the others' ratings. Each
    resample rates the others from a resample of their matches, and then the agent against those.
    If the agent won or lost every game, each of its matches counts with one more pair, drawn.

    Args:
        agent: the agent to rate.
        matches: its matches, each against an agent of `known`.
        known: the matches among the others.
        anchor: the agent at 0, among the others; if it has not played, see `choose_anchor`.
        seed: of the resamples of `matches`.
        known_seed: of the resamples of `known`.
        resamples: number of resamples, for the interval.

    Raises:
        RatingError: if there is no match, or a match against an unknown agent.
    """
    arrays = _MatchArrays.of(known, anchor)
    as_first, others = _against(agent, matches, arrays.agents)
    pairs = Pairs.of(as_first)
    won_or_lost_all = pairs.points.sum() in (0, pairs.played.sum())
    if won_or_lost_all:
        pairs = pairs.with_drawn_pairs(np.ones(len(matches), bool))
    # [seed, 1] is not the stream of the others, even if the seeds are equal.
    points = pairs.bootstrap(np.random.default_rng([seed, 1]), resamples)
    known_points = arrays.pairs.bootstrap(np.random.default_rng(known_seed), resamples)
    known_skills = arrays.skills(known_points)[:, others]
    one_column = np.ones((len(matches), 1))
    skills = maximum_likelihood(one_column, -known_skills, points, pairs.played)
    games = sum(2 * int(match.pentanomial.sum()) for match in matches)
    return _rating(agent, ELO_PER_UNIT * skills[:, 0], games)


def anchor_of(matches: Sequence[PairedMatch]) -> str:
    """Return the agent that `choose_anchor` puts at rating 0 among those of some matches."""
    return choose_anchor(_agents(matches), None)


def choose_anchor(agents: Sequence[str], anchor: str | None = None) -> str:
    """Return `anchor` if it is among the agents, else the first of `ANCHORS`, else of `agents`."""
    return next((name for name in (anchor, *ANCHORS) if name in agents), None) or agents[0]


def expected_score(difference: float) -> float:
    """Return the expected score, 0 to 1, of an agent rated this many Elo points above another."""
    from scipy.special import ndtr

    return float(ndtr(difference / ELO_PER_UNIT))


@dataclass(frozen=True)
class _MatchArrays:
    """Agents and the matches between them, as arrays."""

    agents: list[str]
    anchor: int
    pairings: npt.NDArray[np.int64]  # (matches, 2): a and b, as indices into agents
    games: list[int]  # of each agent
    swept: npt.NDArray[np.bool_]  # (matches,): between groups of which one won every game
    pairs: Pairs  # with the drawn pairs that keep ratings finite, in swept matches

    @classmethod
    def of(cls, matches: Sequence[PairedMatch], anchor: str | None) -> _MatchArrays:
        agents = _agents(matches)
        counted = [match for match in matches if match.a != match.b]
        named = [[agents.index(m.a), agents.index(m.b)] for m in counted]
        pairings = np.array(named, np.int64).reshape(-1, 2)
        _refuse_repeats(agents, pairings)
        pairs = Pairs.of(counted)
        played = pairs.played
        games = [int(played[(pairings == i).any(axis=1)].sum()) for i in range(len(agents))]
        swept = _separable(agents, pairings, pairs)
        pairs, first = pairs.with_drawn_pairs(swept), agents.index(choose_anchor(agents, anchor))
        return cls(agents, first, pairings, games, swept, pairs)

    def skills(self, points: Floats) -> Floats:
        """Return the skills (sets, agents) of `maximum_likelihood`, the anchor's being 0."""
        design = np.zeros((len(self.pairings), len(self.agents)))
        rows = np.arange(len(self.pairings))
        design[rows, self.pairings[:, 0]] = 1.0
        design[rows, self.pairings[:, 1]] = -1.0
        free = np.delete(np.arange(len(self.agents)), self.anchor)
        skills = np.zeros((len(points), len(self.agents)))
        offset = np.zeros_like(points)
        skills[:, free] = maximum_likelihood(design[:, free], offset, points, self.pairs.played)
        return skills


def _bootstrap(
    matches: Sequence[PairedMatch], anchor: str | None, seed: int, resamples: int
) -> tuple[list[str], list[int], Floats]:
    """Return agents and their games, best first, and Elo (1 + resamples, agents).

    The first row of Elo is of the matches, the others are of the resamples.
    """
    arrays = _MatchArrays.of(matches, anchor)
    points = arrays.pairs.bootstrap(np.random.default_rng(seed), resamples)
    elo = ELO_PER_UNIT * arrays.skills(points)
    order = np.argsort(-elo[0], kind="stable")
    return [arrays.agents[i] for i in order], [arrays.games[i] for i in order], elo[:, order]


def _agents(matches: Sequence[PairedMatch]) -> list[str]:
    """Return all agents in the order of their first matches."""
    if not matches:
        raise RatingError("no matches to rate: expected at least one")
    return list(dict.fromkeys(agent for match in matches for agent in (match.a, match.b)))


def _refuse_repeats(agents: list[str], pairings: npt.NDArray[np.int64]) -> None:
    met = set()
    for one, other in np.sort(pairings, axis=1).tolist():
        if (one, other) in met:
            raise RatingError(
                f"two matches of {agents[one]!r} and {agents[other]!r}: with the same seed they "
                "are the same games, which must not count twice: name each agent once, or play "
                "one longer match"
            )
        met.add((one, other))


def _separable(
    agents: list[str], pairings: npt.NDArray[np.int64], pairs: Pairs
) -> npt.NDArray[np.bool_]:
    """Return the matches between groups of agents of which one won every game.

    The likelihood has its maximum at finite ratings if and only if every two agents are connected
    in both directions by chains of "took a point from" (Ford 1957).
    """
    scored = np.eye(len(agents), dtype=bool)
    won, lost = pairs.points > 0, pairs.points < pairs.played
    scored[pairings[won, 0], pairings[won, 1]] = True
    scored[pairings[lost, 1], pairings[lost, 0]] = True
    _refuse_unconnected(agents, _reachable(scored | scored.T)[0])
    chains = _reachable(scored)
    both_ways = chains & chains.T
    return ~both_ways[pairings[:, 0], pairings[:, 1]]


def _reachable(edges: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the transitive closure of edges, which include all loops."""
    for _ in range(len(edges).bit_length()):
        edges = edges @ edges
    return edges


def _refuse_unconnected(agents: list[str], connected: npt.NDArray[np.bool_]) -> None:
    """Refuse agents that no chain of matches connects with the first one."""
    if connected.all():
        return
    first, others = (
        ", ".join(agents[i] for i in np.flatnonzero(connected == same)) for same in (True, False)
    )
    raise RatingError(
        f"no match connects {first} with {others}: their ratings cannot be compared; play at "
        "least one match between them"
    )


def _against(
    agent: str, matches: Sequence[PairedMatch], agents: list[str]
) -> tuple[list[PairedMatch], npt.NDArray[np.int64]]:
    """Return the matches with the agent as `a`, and the indices of the others."""
    if not matches:
        raise RatingError(f"no matches of {agent!r} to rate it by: expected at least one")
    as_first, others = [], []
    for match in matches:
        first = match.a == agent
        other = match.b if first else match.a
        if agent not in (match.a, match.b) or other == agent or other not in agents:
            known = ", ".join(agents)
            raise RatingError(
                f"{match.a!r} against {match.b!r}: expected {agent!r} against one of {known}"
            )
        as_first.append(match if first else _swap_agents(match))
        others.append(agents.index(other))
    return as_first, np.array(others)


def in_order(matches: Iterable[PairedMatch]) -> list[PairedMatch]:
    """Return matches, to rate only, by agents' names: resamples do not depend on the order."""
    sorted_ = (match if match.a <= match.b else _swap_agents(match) for match in matches)
    return sorted(sorted_, key=lambda match: (match.a, match.b))


def _swap_agents(match: PairedMatch) -> PairedMatch:
    """Return a match with `a` and `b` swapped, as far as ratings read it."""
    if not isinstance(match, Match):
        return match.reversed()
    games = match.games[:, ::-1].copy()
    games["result"] = 1 - games["result"]
    return Match(match.b, match.a, games, match.actions[:, ::-1])


def _rating(agent: str, elo: Floats, games: int) -> Measure:
    """Return a rating from Elo: of the matches, then of each resample."""
    return Measure(float(elo[0]), *percentile_interval(_centred(elo)), "Elo", agent, games)


def _centred(elo: Floats) -> Floats:
    """Return the resamples, elo[1:], moved such that their median is the rating, elo[0].

    The added pair and the curve of the model can move all of them past the rating: median bias
    (Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans"). Percentiles of moved
    ones also cover the truth more often, at scores near 0 and 1 and in long chains of matches.
    """
    return np.asarray(elo[0] + (elo[1:] - np.median(elo[1:])))
