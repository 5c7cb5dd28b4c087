"""Ratings: a formula, a naive solver, known strengths; and intervals that hold the truth."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import log, log10, pi, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest
from cases import rest_slow
from matches import KINDS, Kind, decided_by_skill, independent, with_draws

from tokaido_env.arena.intervals import chi2_sf
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.rating_models import RatingError, model_named
from tokaido_env.arena.ratings import (
    Rating,
    anchor_of,
    expected_score,
    goodness_of_fit,
    rate_adjacent,
    rate_against,
    rate_differences,
    rate_matches,
)

Floats = npt.NDArray[np.float64]
NORMAL = NormalDist()
# A point of Elo at 0: as near there on both scales.
SIGMA = 1600 / (log(10) * sqrt(2 * pi))
SHARES: dict[str, Callable[[float], float]] = {
    "logistic": lambda elo: 1 / (1 + 10 ** (-elo / 400)),
    "probit": lambda elo: NORMAL.cdf(elo / SIGMA),
}
APART: dict[str, Callable[[float], float]] = {
    "logistic": lambda p: 400 * log10(p / (1 - p)),
    "probit": lambda p: SIGMA * NORMAL.inv_cdf(p),
}
both = pytest.mark.parametrize("link", ["logistic", "probit"])
STRENGTHS = {"random": 0.0, "low": 150.0, "middle": 260.0, "high": 300.0}


@dataclass(frozen=True)
class Told:
    """A match of which only the pairs are known."""

    a: str
    b: str
    pairs: tuple[int, ...]

    @property
    def pentanomial(self) -> npt.NDArray[np.int64]:
        return np.array(self.pairs)

    @property
    def points(self) -> float:
        return float(self.pentanomial @ [0, 0.5, 1, 1.5, 2])

    def turned(self) -> "Told":
        return Told(self.b, self.a, self.pairs[::-1])


def counted(a: str, b: str, results: Floats) -> Told:
    twice = (2 * results.sum(axis=1)).astype(int)
    return Told(a, b, tuple(np.bincount(twice, minlength=5).tolist()))


def round_robin(
    rng: np.random.Generator,
    elo: dict[str, float],
    pairs: int,
    kind: Kind = independent,
    link: str = "probit",
) -> list[Told]:
    return [
        counted(a, b, kind(rng, pairs, SHARES[link](elo[a] - elo[b])))
        for a, b in combinations(elo, 2)
    ]


def by_agent(ratings: list[Rating]) -> dict[str, float]:
    return {rating.agent: rating.elo for rating in ratings}


def naive_ratings(matches: list[Told], anchor: str) -> dict[str, float]:
    """Hunter's MM algorithm (2004), in plain Python."""
    agents = sorted({agent for match in matches for agent in (match.a, match.b)})
    strength = dict.fromkeys(agents, 1.0)
    before: dict[str, float] = {}
    while any(abs(strength[x] / before.get(x, 0.5) - 1) > 1e-10 for x in agents):
        before = strength.copy()
        for agent in agents:
            points = weight = 0.0
            for m in matches:
                games = 2 * sum(m.pairs)
                if agent in (m.a, m.b):
                    points += m.points if m.a == agent else games - m.points
                    weight += games / (strength[m.a] + strength[m.b])
            strength[agent] = points / weight
    return {agent: 400 * log10(strength[agent] / strength[anchor]) for agent in agents}


# The greatest likelihood


@pytest.mark.parametrize("pairs", [(0, 0, 1, 0, 0), (0, 0, 1, 0, 499), (7, 1, 30, 4, 20)])
@both
def test_two_agents_have_the_difference_that_their_score_says(
    pairs: tuple[int, ...], link: str
) -> None:
    match = Told("x", "random", pairs)
    p = match.points / (2 * sum(pairs))
    for told in (match, match.turned()):
        elo = by_agent(rate_matches([told], model=link, resamples=10))
        assert elo == {"x": pytest.approx(APART[link](p), abs=1e-6), "random": 0.0}


@pytest.mark.parametrize("seed", range(3))
def test_ratings_agree_with_a_naive_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    elo = {"random": 0.0, "p": 300.0, "q": 250.0, "r": -200.0, "s": 500.0}
    matches = round_robin(rng, elo, 40, KINDS[seed])
    del matches[4]  # not everyone needs to meet, nor as often
    matches[1] = counted("random", "q", independent(rng, 200, 0.2))
    found = by_agent(rate_matches(matches, model="logistic", resamples=10))
    assert found == pytest.approx(naive_ratings(matches, "random"), abs=1e-4)


@both
def test_the_gradient_of_the_likelihood_is_zero_at_the_ratings(link: str) -> None:
    """With the logistic link: everyone scored what the ratings expect."""
    matches = round_robin(np.random.default_rng(0), STRENGTHS, 50)
    elo = by_agent(rate_matches(matches, model=link, resamples=10))
    for agent in STRENGTHS:
        excess = 0.0
        for m in matches:
            games, apart = 2 * sum(m.pairs), elo[m.a] - elo[m.b]
            p = expected_score(apart, link)
            assert p == pytest.approx(SHARES[link](apart))
            bend = 1.0 if link == "logistic" else NORMAL.pdf(apart / SIGMA) / (p * (1 - p))
            excess += (m.points - games * p) * bend * ((agent == m.a) - (agent == m.b))
        assert excess == pytest.approx(0.0, abs=1e-6)


def test_an_unknown_link_is_refused() -> None:
    with pytest.raises(ValueError, match="model: expected one of 'logistic', 'probit', got 'elo'"):
        rate_matches([Told("x", "random", (1, 0, 1, 0, 3))], model="elo")


@both
@pytest.mark.parametrize("anchor", ["low", "high"])
def test_the_anchor_moves_all_ratings_by_the_same(anchor: str, link: str) -> None:
    matches = round_robin(np.random.default_rng(1), STRENGTHS, 50)
    from_random = by_agent(rate_matches(matches, model=link, resamples=10))
    from_anchor = rate_matches(matches, model=link, anchor=anchor, resamples=10)
    moved = {agent: elo - from_random[anchor] for agent, elo in from_random.items()}
    assert by_agent(from_anchor) == pytest.approx(moved, abs=1e-6)
    assert [r.agent for r in from_anchor if r.ci95 == (0.0, 0.0)] == [anchor]


def test_neither_order_nor_side_makes_a_difference() -> None:
    matches = round_robin(np.random.default_rng(2), STRENGTHS, 50)
    turned = [match.turned() for match in reversed(matches)]
    there, back = (by_agent(rate_matches(m, resamples=10)) for m in (matches, turned))
    assert there == pytest.approx(back, abs=1e-6)


def test_a_match_of_an_agent_against_itself_says_nothing() -> None:
    match = Told("x", "random", (1, 0, 2, 0, 3))
    with_itself = [match, Told("x", "x", (0, 0, 50, 0, 0))]
    assert rate_matches(with_itself) == rate_matches([match])
    (alone,) = rate_matches(with_itself[1:])
    assert alone == Rating("x", 0.0, (0.0, 0.0), 0)


# The anchor


def test_without_the_anchor_the_first_agent_stands_for_it() -> None:
    match = Told("x", "y", (1, 0, 2, 0, 5))
    assert anchor_of([match]) == "x"
    assert anchor_of([match], "y") == "y"
    assert by_agent(rate_matches([match]))["x"] == 0.0
    with_search = [match, Told("y", "random", (1, 0, 2, 0, 5))]
    assert anchor_of(with_search) == "random"
    assert anchor_of([*with_search, Told("mcts:sims=400", "x", (1, 0, 2, 0, 5))]) == "mcts:sims=400"


# When one side won everything


@pytest.mark.parametrize("pairs", [1, 50, 2000])
@both
def test_a_perfect_score_counts_with_a_drawn_pair(pairs: int, link: str) -> None:
    (x, _) = rate_matches([Told("x", "random", (0, 0, 0, 0, pairs))], model=link)
    assert x.elo == pytest.approx(APART[link]((2 * pairs + 1) / (2 * pairs + 2)))
    assert x.ci95[0] < x.elo - 50
    assert x.ci95[1] > x.elo + 50


def test_a_perfect_match_between_agents_that_are_connected_otherwise_is_left_as_it_is() -> None:
    matches = [
        Told("random", "x", (30, 0, 0, 0, 0)),
        Told("random", "y", (20, 0, 6, 0, 4)),
        Told("x", "y", (5, 0, 9, 0, 16)),
    ]
    found = by_agent(rate_matches(matches, model="logistic", resamples=10))
    assert found == pytest.approx(naive_ratings(matches, "random"), abs=1e-4)


def test_drawn_pairs_are_added_between_groups_only() -> None:
    within = [Told("x", "y", (5, 0, 9, 0, 16)), Told("random", "low", (9, 0, 8, 0, 3))]
    between = [Told(b, w, (30, 0, 0, 0, 0)) for b in ("random", "low") for w in ("x", "y")]
    drawn = [Told(m.a, m.b, (30, 0, 1, 0, 0)) for m in between]
    found = by_agent(rate_matches(within + between, model="logistic", resamples=10))
    assert found == pytest.approx(naive_ratings(within + drawn, "random"), abs=1e-4)


# Intervals


@both
@pytest.mark.parametrize(
    ("pairs", "kind"), rest_slow((pairs, kind) for pairs in (30, 200) for kind in KINDS)
)
def test_95_of_100_intervals_hold_the_truth(kind: Kind, pairs: int, link: str) -> None:
    rng = np.random.default_rng(pairs)
    held = []
    for _ in range(200):
        matches = round_robin(rng, STRENGTHS, pairs, kind, link)
        for rating in rate_matches(matches, model=link, resamples=200):
            if rating.agent != "random":
                held.append(rating.ci95[0] <= STRENGTHS[rating.agent] <= rating.ci95[1])
    assert 0.91 <= np.mean(held) <= 0.98


@pytest.mark.parametrize(
    ("pairs", "kind"),
    rest_slow((pairs, kind) for pairs in (20, 100) for kind in (decided_by_skill, independent)),
)
def test_intervals_are_honest_where_nearly_all_games_are_won(kind: Kind, pairs: int) -> None:
    rng = np.random.default_rng(pairs)
    p, held = 0.99, []
    for _ in range(200):
        (x,) = (
            rating
            for rating in rate_matches([counted("x", "random", kind(rng, pairs, p))], resamples=100)
            if rating.agent == "x"
        )
        held.append(x.ci95[0] <= APART["probit"](p) <= x.ci95[1])
    assert np.mean(held) >= 0.93


def test_pairs_that_go_together_tell_half_as_much() -> None:
    """At the same score: each pair as one result twice, and as two results."""

    def width(pairs: tuple[int, ...]) -> float:
        (rating,) = (
            r for r in rate_matches([Told("x", "random", pairs)], resamples=8000) if r.elo > 0
        )
        return rating.ci95[1] - rating.ci95[0]

    together, apart = width((250, 0, 0, 0, 750)), width((62, 0, 376, 0, 562))
    assert together / apart == pytest.approx(np.sqrt(2), rel=0.05)


def with_seeds(a: str, b: str, results: Floats, first: int) -> Match:
    games = np.zeros(results.shape, GAME)
    games["result"] = results
    games["seed"] = np.arange(len(results))[:, None] + first
    return Match(a, b, games, np.zeros((*results.shape, 0), np.int8))


@pytest.mark.parametrize("others", [1, 4])
def test_the_same_luck_against_more_agents_tells_no_more(others: int) -> None:
    results = independent(np.random.default_rng(0), 200, 0.6)

    def width(seeds_apart: int) -> float:
        matches = [
            with_seeds("x", str(i), results, first=i * seeds_apart) for i in range(others)
        ] + [Told("random", str(i), (0, 0, 10**7, 0, 0)) for i in range(others)]
        (rating,) = (r for r in rate_matches(matches, resamples=4000) if r.agent == "x")
        return rating.ci95[1] - rating.ci95[0]

    assert width(0) / width(200) == pytest.approx(np.sqrt(others), rel=0.05)


def test_luck_that_is_not_shared_makes_no_difference() -> None:
    rng = np.random.default_rng(0)
    matches = [
        with_seeds(a, b, independent(rng, 200, 0.4), first=200 * i)
        for i, (a, b) in enumerate(combinations(STRENGTHS, 2))
    ]
    without_games = [Told(m.a, m.b, tuple(m.pentanomial.tolist())) for m in matches]
    there, without = (rate_matches(m, resamples=4000) for m in (matches, without_games))
    for one, other in zip(there, without, strict=True):
        assert one.elo == other.elo
        assert one.ci95 == pytest.approx(other.ci95, abs=3)


def test_an_interval_stays_open_where_all_pairs_were_shared() -> None:
    (x, _) = rate_matches([Told("x", "random", (0, 0, 50, 0, 0))])
    assert x.ci95[0] < -1 < 1 < x.ci95[1]


def test_the_same_seed_gives_the_same_intervals() -> None:
    matches = round_robin(np.random.default_rng(4), STRENGTHS, 20)
    assert rate_matches(matches) == rate_matches(matches, seed=0)
    assert rate_matches(matches) != rate_matches(matches, seed=1)


# One agent among known ones


def test_one_opponent_gives_its_rating_and_the_difference() -> None:
    known = round_robin(np.random.default_rng(5), STRENGTHS, 50)
    high = by_agent(rate_matches(known, resamples=10))["high"]
    match = Told("x", "high", (10, 0, 20, 0, 30))
    p = match.points / 120
    for told in (match, match.turned()):
        rating = rate_against("x", [told], known)
        assert rating.elo == pytest.approx(high + APART["probit"](p), abs=1e-6)
        assert rating.ci95[0] < rating.elo < rating.ci95[1]
        assert rating.games == 120


def test_the_agent_scored_what_its_rating_expects() -> None:
    known = round_robin(np.random.default_rng(6), STRENGTHS, 50)
    model = {"anchor": "low", "model": "logistic"}
    elo = by_agent(rate_matches(known, **model, resamples=10))
    matches = [Told("x", "high", (24, 0, 5, 0, 1)), Told("low", "x", (9, 2, 20, 0, 5))]
    rating = rate_against("x", matches, known, **model)
    expected = 60 * expected_score(rating.elo - elo["high"], "logistic")
    expected += 72 * expected_score(rating.elo - elo["low"], "logistic")
    assert expected == pytest.approx(matches[0].points + 72 - matches[1].points, abs=1e-6)


@pytest.mark.parametrize("kind", rest_slow([decided_by_skill, independent]))
def test_the_interval_of_one_agent_holds_the_doubt_about_the_others(kind: Kind) -> None:
    rng = np.random.default_rng(0)
    elo, held = 200.0, []
    for seed in range(200):
        known = round_robin(rng, STRENGTHS, 40, kind)
        matches = [
            counted("x", other, kind(rng, 60, expected_score(elo - STRENGTHS[other])))
            for other in ("low", "high")
        ]
        rating = rate_against("x", matches, known, seed=seed, known_seed=seed, resamples=200)
        held.append(rating.ci95[0] <= elo <= rating.ci95[1])
    assert 0.91 <= np.mean(held) <= 0.98


def test_one_agent_may_stand_on_either_side_of_its_games() -> None:
    known = round_robin(np.random.default_rng(8), STRENGTHS, 50)
    results = with_draws(np.random.default_rng(9), 50, 0.7)
    there = with_seeds("x", "middle", results, first=0)
    back = with_seeds("middle", "x", 1 - results[:, ::-1], first=0)
    assert rate_against("x", [there], known) == rate_against("x", [back], known)


@pytest.mark.parametrize("sign", [1, -1])
def test_one_agent_that_wins_or_loses_everything_has_a_rating(sign: int) -> None:
    known = round_robin(np.random.default_rng(7), STRENGTHS, 50)
    elo = by_agent(rate_matches(known, resamples=10))
    all_won = (0, 0, 0, 0, 50)[::sign]
    rating = rate_against("x", [Told("x", "low", all_won), Told("x", "high", all_won)], known)
    beyond = (rating.elo - max(elo.values())) if sign > 0 else (elo["low"] - rating.elo)
    assert 300 < beyond < 1500
    assert rating.ci95[0] < rating.elo < rating.ci95[1]


# What cannot be rated

WON = (1, 0, 1, 0, 3)
MATCH = Told("x", "random", WON)


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        ([], "no matches to rate"),
        ([MATCH, Told("y", "z", WON)], r"no match connects x, random with y, z"),
        ([MATCH, MATCH.turned()], r"two matches of 'x' and 'random': .* each agent once"),
    ],
)
def test_matches_that_give_no_ratings_are_refused(matches: list[Told], message: str) -> None:
    with pytest.raises(RatingError, match=message):
        rate_matches(matches)


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        ([], "no matches of 'x'"),
        *(
            ([Told(a, b, WON)], f"'{a}' against '{b}': expected 'x' against one of y")
            for a, b in (("x", "stranger"), ("x", "x"), ("y", "random"))
        ),
    ],
)
def test_matches_that_do_not_place_the_agent_are_refused(matches: list[Told], message: str) -> None:
    with pytest.raises(RatingError, match=message):
        rate_against("x", matches, [Told("y", "random", WON)])


# As JSON


def test_a_rating_as_json() -> None:
    told = Rating("x", -0.001, (-12.345678, 8.0), 40).to_dict()
    assert told == {"agent": "x", "elo": 0.0, "ci95": [-12.35, 8.0], "games": 40}
    assert str(told["elo"]) == "0.0"


def test_ratings_come_best_first_with_their_games() -> None:
    matches = [Told("x", "random", (1, 0, 1, 0, 3)), Told("y", "x", (0, 0, 1, 0, 3))]
    ratings = rate_matches(matches)
    assert [(r.agent, r.games) for r in ratings] == [("y", 8), ("x", 18), ("random", 10)]


def test_steps_are_free_of_the_doubt_about_the_anchor() -> None:
    rng = np.random.default_rng(3)
    few = counted("low", "random", independent(rng, 20, 0.75))
    many = counted("high", "low", independent(rng, 4000, 0.6))
    ratings = {rating.agent: rating for rating in rate_matches([few, many])}
    high, low = rate_adjacent([few, many])
    assert [high.agent, low.agent] == ["high", "low"]
    assert high.elo == pytest.approx(ratings["high"].elo - ratings["low"].elo)
    assert low.elo == pytest.approx(ratings["low"].elo)
    alone = next(r for r in rate_matches([many], anchor="low") if r.agent == "high")
    assert high.ci95 == pytest.approx(alone.ci95, abs=3)
    wide = ratings["high"].ci95[1] - ratings["high"].ci95[0]
    assert high.ci95[1] - high.ci95[0] < wide / 5


def test_differences_are_those_of_ratings_with_intervals_of_their_own() -> None:
    matches = round_robin(np.random.default_rng(3), STRENGTHS, 100)
    found = rate_differences(matches)
    ratings = rate_matches(matches)
    elo = [rating.elo for rating in ratings]
    assert list(found.agents) == [rating.agent for rating in ratings]
    assert found.elo == pytest.approx(np.subtract.outer(elo, elo))
    assert found.low == pytest.approx(-found.high.T)
    assert found.above + found.above.T == pytest.approx(np.ones((4, 4)))
    steps = rate_adjacent(matches)
    for i, step in enumerate(steps):
        told = (found.elo[i, i + 1], found.low[i, i + 1], found.high[i, i + 1])
        assert told == pytest.approx((step.elo, *step.ci95))
    for i, rating in enumerate(ratings):  # those above the anchor are ratings themselves
        last = found.agents.index("random")
        assert (found.low[i, last], found.high[i, last]) == pytest.approx(rating.ci95)
    some = found.among(["low", "random"])
    assert some.agents == ("low", "random")
    place = found.agents.index("low")
    assert some.elo[0, 1] == found.elo[place, last]
    assert some.to_dict() == [
        {
            "agent": "low",
            "other": "random",
            "elo": round(some.elo[0, 1], 2),
            "ci95": [round(some.low[0, 1], 2), round(some.high[0, 1], 2)],
            "above": round(some.above[0, 1], 4),
        }
    ]


# Whether the model fits


@both
@pytest.mark.parametrize("kind", rest_slow(KINDS))
def test_matches_of_the_model_are_rejected_as_often_as_they_should_be(
    kind: Kind, link: str
) -> None:
    rng = np.random.default_rng(0)
    elo = STRENGTHS | {"top": 420.0, "other": 100.0}
    found = [
        goodness_of_fit(round_robin(rng, elo, 200, kind, link), model=link) for _ in range(400)
    ]
    assert {one.df for one in found} == {10}
    assert np.mean([one.chi2 for one in found]) == pytest.approx(10, abs=0.75)
    assert 0.02 <= np.mean([one.p is not None and one.p < 0.05 for one in found]) <= 0.085


def test_matches_of_another_model_are_rejected() -> None:
    rng = np.random.default_rng(1)
    elo = {f"agent {i}": 150.0 * i for i in range(5)}
    matches = round_robin(rng, elo, 5000, independent, "probit")
    right, wrong = (
        goodness_of_fit(matches, model="probit"),
        goodness_of_fit(matches, model="logistic"),
    )
    assert right.p is not None
    assert right.p > 0.01
    assert wrong.p is not None
    assert wrong.p < 1e-4


def test_the_statistic_by_hand() -> None:
    """Three agents in a circle, games as if independent: all ratings are alike."""
    pairs = (4, 0, 8, 0, 4)  # mean 1/2, variance 1/8 a pair: two games each
    matches = [Told("x", "y", pairs), Told("y", "z", pairs), Told("z", "x", pairs)]
    assert goodness_of_fit(matches).chi2 == pytest.approx(0.0)
    ahead = [Told(a, b, (0, 0, 8, 0, 8)) for a, b in (("x", "y"), ("y", "z"), ("z", "x"))]
    variance = (16 / 15) / 16  # of a pair: scores 1/2 and 1
    games = 0.75 * 0.25 * 16 / variance
    found = goodness_of_fit(ahead)
    assert found.chi2 == pytest.approx(3 * 0.25**2 * games / 0.25)
    assert found.df == 1


def test_no_match_to_spare_tells_nothing_of_the_model() -> None:
    found = goodness_of_fit([Told("x", "random", (1, 0, 1, 0, 3))])
    assert (found.df, found.p) == (0, None)
    assert found.to_dict() == {"chi2": 0.0, "df": 0, "p": None}


@pytest.mark.parametrize(
    ("chi2", "df", "tail"),
    # Abramowitz and Stegun (1964), table 26.8.
    [(3.84146, 1, 0.05), (5.99147, 2, 0.05), (18.3070, 10, 0.05), (46.797, 21, 0.001), (0, 3, 1)],
)
def test_the_tail_of_chi_squared_is_that_of_the_tables(chi2: float, df: int, tail: float) -> None:
    assert chi2_sf(chi2, df) == pytest.approx(tail, rel=1e-3)


# The links


@both
def test_a_curve_is_the_logarithm_of_the_share_and_its_derivatives(link: str) -> None:
    z, step = np.linspace(-45, 12, 400), 1e-4
    z = z[np.abs(z + 30) > 0.1]  # where another series begins
    model = model_named(link)
    curve, after, before = (model.log_score(z + d) for d in (0, step, -step))
    near = np.abs(z) < 8
    assert np.exp(curve.value[near]) == pytest.approx(model.expected_score(z[near]))
    assert model.expected_score(z) + model.expected_score(-z) == pytest.approx(np.ones(len(z)))
    assert curve.slope == pytest.approx(
        (after.value - before.value) / (2 * step), rel=1e-5, abs=1e-9
    )
    bend = -(after.slope - before.slope) / (2 * step)
    assert curve.curvature == pytest.approx(bend, rel=2e-3, abs=1e-9)
    assert (curve.curvature > 0).all()
