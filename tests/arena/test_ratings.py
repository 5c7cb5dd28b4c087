"""Tests of arena/ratings.py: formulas, known strengths, coverage of intervals."""

from collections.abc import Callable, Sequence
from itertools import combinations
from math import log, pi, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from matches import (
    RESULT_MODELS,
    Floats,
    ResultModel,
    decided_by_skill,
    independent,
    match_of_results,
)
from slow_cases import slow_except_first

from tokaido_env.arena.rating_model import RatingError
from tokaido_env.arena.ratings import (
    expected_score,
    goodness_of_fit,
    rate_against,
    rate_differences,
    rate_matches,
)
from tokaido_env.arena.result import Measure, Score

NORMAL = NormalDist()
# One Elo point at a difference of 0 raises the expected score by ln(10) / 1600.
SIGMA = 1600 / (log(10) * sqrt(2 * pi))


def score_of_elo(elo: float) -> float:
    return NORMAL.cdf(elo / SIGMA)


def elo_of_score(p: float) -> float:
    return SIGMA * NORMAL.inv_cdf(p)


STRENGTHS = {"random": 0.0, "low": 150.0, "middle": 260.0, "high": 300.0}


def match_of_pairs(a: str, b: str, pairs: Sequence[int]) -> Score:
    """A match without games."""
    return Score.of_pairs(a, b, "", None, pairs)


def counts_of(a: str, b: str, results: Floats) -> Score:
    return match_of_pairs(a, b, match_of_results(results).pentanomial.tolist())


def round_robin(
    rng: np.random.Generator,
    elo: dict[str, float],
    pairs: int,
    results_of: ResultModel = independent,
) -> list[Score]:
    return [
        counts_of(a, b, results_of(rng, pairs, score_of_elo(elo[a] - elo[b])))
        for a, b in combinations(elo, 2)
    ]


def elo_by_agent(ratings: list[Measure]) -> dict[str, float]:
    return {rating.agent: rating.value for rating in ratings}


def width_of(rating: Measure) -> float:
    return rating.interval[1] - rating.interval[0]


# Maximum likelihood


@pytest.mark.parametrize("pairs", [(0, 0, 1, 0, 0), (0, 0, 1, 0, 499), (7, 1, 30, 4, 20)])
def test_rate_matches__gives_two_agents_the_difference_of_their_score(
    pairs: tuple[int, ...],
) -> None:
    match = match_of_pairs("x", "random", pairs)
    p = match.points / (2 * sum(pairs))
    for counts in (match, match.reversed()):
        elo = elo_by_agent(rate_matches([counts], resamples=10))
        assert elo == {"x": pytest.approx(elo_of_score(p), abs=1e-6), "random": 0.0}


@pytest.mark.parametrize("seed", range(3))
def test_rate_matches__makes_the_gradient_of_the_likelihood_zero(seed: int) -> None:
    """The likelihood is concave: this is its maximum."""
    rng = np.random.default_rng(seed)
    strengths = {"random": 0.0, "p": 300.0, "q": 250.0, "r": -200.0, "s": 500.0}
    matches = round_robin(rng, strengths, 40, RESULT_MODELS[seed])
    del matches[4]  # an incomplete round robin
    matches[1] = counts_of("random", "q", independent(rng, 200, 0.2))  # with more games
    elo = elo_by_agent(rate_matches(matches, resamples=10))
    for agent in strengths:
        gradient = 0.0
        for m in matches:
            games, difference = 2 * sum(m.pairs), elo[m.a] - elo[m.b]
            p = expected_score(difference)
            assert p == pytest.approx(score_of_elo(difference))
            weight = NORMAL.pdf(difference / SIGMA) / (p * (1 - p))
            gradient += (m.points - games * p) * weight * ((agent == m.a) - (agent == m.b))
        assert gradient == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("anchor", ["low", "high"])
def test_rate_matches__shifts_all_ratings_by_the_anchor(anchor: str) -> None:
    matches = round_robin(np.random.default_rng(1), STRENGTHS, 50)
    from_random = elo_by_agent(rate_matches(matches, resamples=10))
    from_anchor = rate_matches(matches, anchor=anchor, resamples=10)
    shifted = {agent: elo - from_random[anchor] for agent, elo in from_random.items()}
    assert elo_by_agent(from_anchor) == pytest.approx(shifted, abs=1e-6)
    assert [r.agent for r in from_anchor if r.interval == (0.0, 0.0)] == [anchor]


# Matches in which one side won every game


@pytest.mark.parametrize("pairs", [1, 50, 2000])
def test_rate_matches__adds_a_drawn_pair_to_a_perfect_score(pairs: int) -> None:
    (x, _) = rate_matches([match_of_pairs("x", "random", (0, 0, 0, 0, pairs))])
    assert x.value == pytest.approx(elo_of_score((2 * pairs + 1) / (2 * pairs + 2)))
    assert x.interval[0] < x.value - 50
    assert x.interval[1] > x.value + 50


def test_rate_matches__adds_drawn_pairs_between_separable_groups_only() -> None:
    connected = [
        match_of_pairs("random", "x", (30, 0, 0, 0, 0)),
        match_of_pairs("random", "y", (20, 0, 6, 0, 4)),
        match_of_pairs("x", "y", (5, 0, 9, 0, 16)),
    ]
    within = [
        match_of_pairs("x", "y", (5, 0, 9, 0, 16)),
        match_of_pairs("random", "low", (9, 0, 8, 0, 3)),
    ]
    groups = [(b, w) for b in ("random", "low") for w in ("x", "y")]
    between, with_drawn = (
        [match_of_pairs(*pair, (30, 0, drawn, 0, 0)) for pair in groups] for drawn in (0, 1)
    )
    for matches, counted in ((connected, connected), (within + between, within + with_drawn)):
        found, expected = (elo_by_agent(rate_matches(m, resamples=10)) for m in (matches, counted))
        assert found == pytest.approx(expected, abs=1e-6)


# Intervals


@pytest.mark.parametrize(
    ("pairs", "results_of"),
    slow_except_first((pairs, results_of) for pairs in (30, 200) for results_of in RESULT_MODELS),
)
def test_rate_matches__covers_the_true_ratings_95_of_100_times(
    results_of: ResultModel, pairs: int
) -> None:
    rng = np.random.default_rng(pairs)
    covered = []
    for _ in range(200):
        matches = round_robin(rng, STRENGTHS, pairs, results_of)
        for rating in rate_matches(matches, resamples=200):
            if rating.agent != "random":
                covered.append(rating.interval[0] <= STRENGTHS[rating.agent] <= rating.interval[1])
    assert 0.91 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize(
    ("p", "pairs", "results_of"),
    slow_except_first(
        (p, pairs, one)
        for p, pairs in ((0.995, 400), (0.99, 20), (0.99, 100))
        for one in (decided_by_skill, independent)
    ),
)
def test_rate_matches__covers_the_true_rating_at_a_score_near_1(
    results_of: ResultModel, pairs: int, p: float
) -> None:
    rng, covered = np.random.default_rng(pairs), []
    for _ in range(200):
        counts = counts_of("x", "random", results_of(rng, pairs, p))
        (x,) = (r for r in rate_matches([counts], resamples=400) if r.agent == "x")
        covered.append(x.interval[0] <= elo_of_score(p) <= x.interval[1])
    assert np.mean(covered) >= 0.93


@pytest.mark.slow
def test_rate_matches__gains_nothing_from_more_opponents_with_the_same_seeds() -> None:
    others, results = 4, independent(np.random.default_rng(0), 200, 0.6)

    def width(seed_step: int) -> float:
        matches = [
            *(match_of_results(results, i * seed_step, "x", str(i)) for i in range(others)),
            *(match_of_pairs("random", str(i), (0, 0, 10**7, 0, 0)) for i in range(others)),
        ]
        return width_of(next(r for r in rate_matches(matches, resamples=2000) if r.agent == "x"))

    assert width(0) / width(200) == pytest.approx(np.sqrt(others), rel=0.05)


def test_rate_matches__counts_pairs_of_one_seed_on_several_boards() -> None:
    """Half as many seeds with twice the pairs each: independent results give the same interval."""
    results, widths = independent(np.random.default_rng(0), 400, 0.6), []
    for seeds in (400, 200):
        match = match_of_results(results, a="greedy", b="random")
        match.games["seed"] %= seeds
        widths.append(width_of(rate_matches([match], resamples=2000)[0]))
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


# One agent against rated ones


def test_rate_against__makes_the_gradient_of_the_likelihood_zero() -> None:
    known = round_robin(np.random.default_rng(6), STRENGTHS, 50)
    elo = elo_by_agent(rate_matches(known, anchor="low", resamples=10))
    matches = [
        match_of_pairs("x", "high", (24, 0, 5, 0, 1)),
        match_of_pairs("low", "x", (9, 2, 20, 0, 5)),
    ]
    rating = rate_against("x", matches, known, anchor="low")
    assert rating.n == 132
    assert rating.interval[0] < rating.value < rating.interval[1]
    gradient = 0.0
    for other, points, games in (
        ("high", matches[0].points, 60),
        ("low", 72 - matches[1].points, 72),
    ):
        p = expected_score(rating.value - elo[other])
        weight = NORMAL.pdf((rating.value - elo[other]) / SIGMA) / (p * (1 - p))
        gradient += (points - games * p) * weight
    assert gradient == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("results_of", slow_except_first([decided_by_skill, independent]))
def test_rate_against__covers_the_true_rating_95_of_100_times(results_of: ResultModel) -> None:
    rng = np.random.default_rng(0)
    elo, covered = 200.0, []
    for seed in range(200):
        known = round_robin(rng, STRENGTHS, 40, results_of)
        matches = [
            counts_of("x", other, results_of(rng, 60, expected_score(elo - STRENGTHS[other])))
            for other in ("low", "high")
        ]
        rating = rate_against("x", matches, known, seed=seed, known_seed=seed, resamples=200)
        covered.append(rating.interval[0] <= elo <= rating.interval[1])
    assert 0.91 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize("sign", [1, -1])
def test_rate_against__gives_a_finite_rating_to_a_perfect_score(sign: int) -> None:
    known = round_robin(np.random.default_rng(7), STRENGTHS, 50)
    elo = elo_by_agent(rate_matches(known, resamples=10))
    pairs = (0, 0, 0, 0, 50)[::sign]
    rating = rate_against(
        "x", [match_of_pairs("x", "low", pairs), match_of_pairs("x", "high", pairs)], known
    )
    beyond = (rating.value - max(elo.values())) if sign > 0 else (elo["low"] - rating.value)
    assert 300 < beyond < 1500
    assert rating.interval[0] < rating.value < rating.interval[1]


# Errors

WON = (1, 0, 1, 0, 3)
MATCH = match_of_pairs("x", "random", WON)
KNOWN = [match_of_pairs("y", "random", WON)]


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (lambda: rate_matches([]), "no matches to rate"),
        (lambda: rate_matches([MATCH, match_of_pairs("y", "z", WON)]), "x, random with y, z"),
        (lambda: rate_matches([MATCH, MATCH.reversed()]), "two matches of 'x' and 'random'"),
        (lambda: rate_against("x", [], KNOWN), "no matches of 'x'"),
        (lambda: rate_against("x", [match_of_pairs("x", "z", WON)], KNOWN), "against 'z'"),
        (lambda: rate_against("x", KNOWN, KNOWN), "'y' against 'random'"),
    ],
)
def test_ratings__refuse_matches_that_determine_none(
    rate: Callable[[], object], message: str
) -> None:
    with pytest.raises(RatingError, match=message):
        rate()


# Output


def test_rate_differences__agree_with_ratings() -> None:
    matches = round_robin(np.random.default_rng(3), STRENGTHS, 100)
    ratings = rate_matches(matches)
    found = rate_differences(matches)
    assert [(x.agent, x.other) for x in found] == [
        (better.agent, other.agent) for better, other in combinations(ratings, 2)
    ]
    elo = {rating.agent: rating for rating in ratings}
    for difference in found:
        expected = elo[difference.agent].value - elo[difference.other].value
        assert difference.value == pytest.approx(expected, abs=1e-4)
        if difference.other == "random":  # differences to the anchor are ratings
            interval = elo[difference.agent].interval
            assert difference.interval == pytest.approx(interval, abs=1e-4)


# Goodness of fit


@pytest.mark.parametrize("results_of", slow_except_first(RESULT_MODELS))
def test_goodness_of_fit__rejects_the_true_model_5_of_100_times(results_of: ResultModel) -> None:
    rng = np.random.default_rng(0)
    elo = STRENGTHS | {"top": 420.0, "other": 100.0}
    found = [goodness_of_fit(round_robin(rng, elo, 200, results_of)) for _ in range(400)]
    assert {chi2.n for chi2, _ in found} == {10}
    assert np.mean([chi2.value for chi2, _ in found]) == pytest.approx(10, abs=0.75)
    assert 0.02 <= np.mean([p.value < 0.05 for _, p in found]) <= 0.085


def test_goodness_of_fit__agrees_with_hand_computed_values() -> None:
    """Three agents in a circle have equal ratings."""
    circle = (("x", "y"), ("y", "z"), ("z", "x"))
    even = [match_of_pairs(a, b, (4, 0, 8, 0, 4)) for a, b in circle]
    assert goodness_of_fit(even)[0].value == pytest.approx(0.0)
    ahead = [match_of_pairs(a, b, (0, 0, 8, 0, 8)) for a, b in circle]
    variance = (16 / 15) / 16  # of a pair: scores 1/2 and 1
    games = 0.75 * 0.25 * 16 / variance
    chi2, _ = goodness_of_fit(ahead)
    assert chi2.value == pytest.approx(3 * 0.25**2 * games / 0.25, abs=0.005)
    assert chi2.n == 1
    swept = [match_of_pairs(a, b, (0, 0, 0, 0, 500)) for a, b in (*circle[:2], ("x", "z"))]
    assert goodness_of_fit(swept)[0].value < 3.84  # the drawn pairs do not count
    one_match = goodness_of_fit([MATCH])
    assert [(x.measure, x.value, x.n) for x in one_match] == [("chi-squared", 0.0, 0)]
