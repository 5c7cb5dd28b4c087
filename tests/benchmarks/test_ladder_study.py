"""Tests of `benchmarks/ladder_study.py`: models of a ladder, voting methods and the first move.

OpenSpiel's voting methods are the independent check of ours; its maximal lotteries need cvxpy.
"""

import json
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import match_of_results
from processes import ROOT

from tokaido_env.arena.ladder import FAMILY_LADDER, LADDER, Ladder
from tokaido_env.arena.match import GAME
from tokaido_env.arena.rating_models import PROBIT, RATING_MODELS, model_named
from tokaido_env.arena.ratings import goodness_of_fit, rate_matches

sys.path.insert(0, str(ROOT / "benchmarks"))

import cyclic_ratings as cyclic
import ladder_study

PROBIT_MODEL = model_named(PROBIT)
CYCLE = np.array([[0, 0.3, -0.3], [-0.3, 0, 0.3], [0.3, -0.3, 0]])  # rock, paper, scissors


def results_of(z: Any, games: float = 4000.0) -> cyclic.Results:
    """Results of all pairs of agents with exactly the expected scores of differences (n, n)."""
    pairings = np.array(list(combinations(range(len(z)), 2)))
    scores = PROBIT_MODEL.expected_score(z[tuple(pairings.T)])
    names = tuple("abcdefgh"[: len(z)])
    return cyclic.Results(names, pairings, scores, np.full(len(scores), games))


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    return Ladder.load(LADDER)


@pytest.fixture(scope="module")
def results(ladder: Ladder) -> cyclic.Results:
    return cyclic.Results.of([rating.agent for rating in ladder.agents], ladder.matches)


@pytest.mark.parametrize("model", RATING_MODELS)
def test_fit_model__without_a_disc_has_the_ratings_of_the_package(
    ladder: Ladder, results: cyclic.Results, model: str
) -> None:
    link = model_named(model)
    fit = cyclic.fit_model(results, link)
    rated = {r.agent: r.elo for r in rate_matches(ladder.matches, model=model, resamples=2)}
    elo = np.array([rated[agent] for agent in results.agents])
    # Ours weights a match by its effective games, the package by its games.
    own = link.elo_per_unit * fit.ratings
    np.testing.assert_allclose(own, elo - elo.mean(), atol=8)
    chi2 = goodness_of_fit(ladder.matches, model=model).chi2
    assert results.chi2(link.expected_score(fit.z)) == pytest.approx(chi2, rel=0.02)
    shifts = cyclic.leave_one_out(results, link)
    without = [m for m in ladder.matches if "greedy" not in (m.a, m.b)]
    rated = {r.agent: r.elo for r in rate_matches(without, model=model, resamples=2)}
    left = results.agents.index("greedy")
    rest = [i for i in range(len(elo)) if i != left]
    change = np.array([rated[results.agents[i]] - elo[i] for i in rest])
    np.testing.assert_allclose(
        link.elo_per_unit * shifts[left, rest], change - change.mean(), atol=8
    )
    assert np.isnan(shifts[left, left])


def test_disc__finds_a_cycle_and_only_a_cycle() -> None:
    ratings = np.array([0.0, 0.2, 0.5])
    ordered = ratings[:, None] - ratings
    for truth, has_cycle in ((ordered, False), (ordered + CYCLE, True)):
        results = results_of(truth)
        additive = cyclic.fit_model(results, PROBIT_MODEL)
        disc = cyclic.fit_model(results, PROBIT_MODEL, disc=1e-3)
        gain = 2 * (disc.objective - additive.objective)
        part = cyclic.cyclic_part(results, PROBIT_MODEL, disc)
        if has_cycle:
            assert gain > 100
            one, other, back = part.by_match  # a against b, c against a, b against c
            assert one - other + back == pytest.approx(0.9, abs=1e-3)
            np.testing.assert_allclose(disc.z, truth[tuple(results.pairings.T)], atol=1e-3)
            assert 0.2 < part.share < 0.9
        else:
            assert gain < 1e-3
            assert part.share < 1e-4
            np.testing.assert_allclose(additive.ratings, ratings - ratings.mean(), atol=1e-3)
        assert cyclic.cyclic_part(results, PROBIT_MODEL, additive).share < 1e-9


def test_bent_link__explains_a_wrong_link_and_no_cycle() -> None:
    ratings = np.linspace(-1.2, 1.2, 6)
    d = ratings[:, None] - ratings
    for truth, bends in ((d + 0.05 * d**3, True), (d, False)):
        results = results_of(truth)
        additive, bent = (cyclic.fit_model(results, PROBIT_MODEL, bent=on) for on in (False, True))
        gain = 2 * (bent.objective - additive.objective)
        assert (gain > 10) == bends
        assert bent.bend == pytest.approx(0.05 if bends else 0.0, abs=1e-3)
    results = results_of(CYCLE)
    assert cyclic.fit_model(results, PROBIT_MODEL, bent=True).objective == pytest.approx(
        cyclic.fit_model(results, PROBIT_MODEL).objective, abs=0.05
    )


def test_held_out_losses__are_less_with_the_model_that_made_the_results() -> None:
    rng = np.random.default_rng(4)
    ratings, disc = rng.normal(0, 0.5, 8), rng.normal(0, 0.7, (2, 8))
    d = ratings[:, None] - ratings
    cycle = np.outer(disc[0], disc[1]) - np.outer(disc[1], disc[0])
    for truth, has_cycle in ((d, False), (d + cycle, True)):
        results = results_of(truth)
        additive, with_disc = (
            cyclic.held_out_losses(results, PROBIT_MODEL, disc=lam).mean() for lam in (None, 1.0)
        )
        assert additive >= 0
        assert (with_disc < additive - 0.05) == has_cycle
        assert with_disc < 1e-5


def test_with_first_move__has_the_derivatives_of_its_log_score() -> None:
    z, h = np.linspace(-3, 3, 13), 1e-4
    mixed = cyclic.with_first_move(PROBIT_MODEL, 0.4)
    np.testing.assert_allclose(np.exp(mixed.log_score(z).value), mixed.expected_score(z))
    np.testing.assert_allclose(mixed.expected_score(z) + mixed.expected_score(-z), 1)
    low, mid, high = (mixed.log_score(z + step).value for step in (-h, 0, h))
    np.testing.assert_allclose(mixed.log_score(z).slope, (high - low) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(
        mixed.log_score(z).curvature, -(high - 2 * mid + low) / h**2, rtol=1e-3
    )


# Voting


def random_wins(seed: int, size: int = 5) -> Any:
    """Random results of 21 votes for every two agents: no match is drawn."""
    votes = np.random.default_rng(seed).integers(0, 22, (size, size))
    return np.triu(votes, 1) + np.tril(21 - votes.T, -1)


def profile_of(wins: Any) -> Any:
    """The votes as OpenSpiel's profile: two agents a vote."""
    base = pytest.importorskip("open_spiel.python.voting.base")
    size = len(wins)
    votes = [
        base.WeightedVote(int(wins[i, j]), [i, j])
        for i in range(size)
        for j in range(size)
        if wins[i, j]
    ]
    return base.PreferenceProfile(votes, alternatives=list(range(size)))


def test_maximal_lottery__is_not_beaten() -> None:
    np.testing.assert_allclose(cyclic.maximal_lottery(CYCLE), 1 / 3, atol=0.01)
    for seed in range(10):
        wins = random_wins(seed)
        margins = (wins - wins.T) / 21
        assert (margins @ cyclic.maximal_lottery(margins)).max() < 0.01
    d = np.arange(4)[:, None] - np.arange(4.0)
    assert cyclic.lottery_order(d / 4) == [[3], [2], [1], [0]]
    assert cyclic.lottery_order(CYCLE) == [[0, 1, 2]]


def test_maximal_lottery__is_that_of_openspiel() -> None:
    pytest.importorskip("cvxpy")
    lotteries = pytest.importorskip("open_spiel.python.voting.maximal_lotteries")
    for seed in range(5):
        wins = random_wins(seed)
        vote = lotteries.MaximalLotteriesVoting(iterative=False)
        outcome = vote.run_election(profile_of(wins))
        theirs = dict(zip(outcome.ranking, outcome.scores, strict=True))
        own = cyclic.maximal_lottery((wins - wins.T) / 21)
        assert own.tolist() == pytest.approx([theirs[i] for i in range(len(own))], abs=0.03)


def test_soft_condorcet__has_the_ratings_of_openspiel() -> None:
    optimiser = pytest.importorskip("open_spiel.python.voting.soft_condorcet_optimization")
    wins = random_wins(3)
    theirs = optimiser.SoftCondorcetOptimizer(
        profile_of(wins), rating_upper_bound=100.0, temperature=5.0
    )
    ratings, ranking = theirs.run_solver(60, learning_rate=50.0)
    own, _ = cyclic.soft_condorcet(wins.astype(float), rate=50.0, rounds=60)
    np.testing.assert_allclose(own, ratings, atol=0.05)
    assert np.argsort(-own).tolist() == ranking


@pytest.mark.parametrize("path", [LADDER, FAMILY_LADDER])
def test_soft_condorcet__of_the_ladders_is_the_best_of_many_starts(path: Path) -> None:
    """From equal ratings, an agent that plays strong ones only can stay too low."""
    own = Ladder.load(path)
    votes = cyclic.Results.of([rating.agent for rating in own.agents], own.matches).votes()
    starts = np.random.default_rng(0).random((6, len(votes))) * 100
    least = min(cyclic.soft_condorcet(votes, start, rounds=4000)[1] for start in starts)
    rank = {row["agent"]: row["soft_condorcet"] for row in study_of(own)["agents"]}
    order = np.array([-rank[rating.agent] for rating in own.agents])
    start = 100 * (order - order.min()) / np.ptp(order)
    assert cyclic.soft_condorcet(votes, start, rounds=4000)[1] <= least + 1e-5


@pytest.mark.parametrize("path", [LADDER, FAMILY_LADDER])
def test_lotteries__of_the_ladders_order_agents_as_openspiel(path: Path) -> None:
    """Both methods put first an agent that beats all others, then one that beats the rest."""
    voting = pytest.importorskip("open_spiel.python.voting.ranked_pairs")
    own = Ladder.load(path)
    results = cyclic.Results.of([rating.agent for rating in own.agents], own.matches)
    votes = profile_of(np.rint(1000 * results.votes()))
    ranked = voting.RankedPairsVoting().run_election(votes).ranking
    study = study_of(own)
    by_lottery = sorted(study["agents"], key=lambda row: row["lottery"])
    assert [row["agent"] for row in by_lottery] == [results.agents[i] for i in ranked]


# The study


def study_of(ladder: Ladder) -> dict[str, Any]:
    """The last study of a ladder."""
    found = json.loads(ladder_study.RESULTS.read_text(encoding="utf-8"))["ladders"]
    return next(study for study in found if study["ladder"] == ladder.hash)


@pytest.mark.slow
def test_study__tests_a_ladder(ladder: Ladder) -> None:
    found = ladder_study.study(LADDER, 50.0, simulations=5)
    assert found["ladder"] == ladder.hash
    assert [row["model"] for row in found["models"]][:2] == list(RATING_MODELS)
    assert found["disc"]["p"] >= 1 / 6
    assert {row["agent"] for row in found["agents"]} == {r.agent for r in ladder.agents}
    text = ladder_study.tables({"ladders": [found], "first_move": [], "package": "x"})
    assert f"`{ladder.hash}`" in text


def play_with_advantage(advantage: float) -> Callable[..., Any]:
    """A function that simulates matches of three agents, with a first-move term in Elo points."""
    strengths = {"greedy": 0.0, "heuristic": 150.0, "champion": 200.0}
    rng = np.random.default_rng(1)

    def play(a: Any, b: Any, games: int, seed: int, board: str) -> Any:
        d = strengths[a.spec] - strengths[b.spec]
        sides = np.array([d + advantage, d - advantage]) / PROBIT_MODEL.elo_per_unit
        won = rng.random((games // 2, 2)) < PROBIT_MODEL.expected_score(sides)
        return match_of_results(won.astype(float), a=a.spec, b=b.spec)

    return play


@pytest.mark.parametrize("advantage", [-40.0, 60.0])
def test_first_move__finds_the_term_of_simulated_games(
    monkeypatch: pytest.MonkeyPatch, advantage: float
) -> None:
    monkeypatch.setattr(ladder_study, "play_match", play_with_advantage(advantage))
    firsts = np.zeros(4000, GAME)
    firsts["result"][:2400] = 1
    monkeypatch.setattr(ladder_study, "play_selfplay", lambda *asked: (firsts, None))
    found = ladder_study.first_move("shikoku", games=4000)
    assert found["self"][0] == 0.6
    assert found["elo"] == pytest.approx(advantage, abs=12)
    share, low, high = found["equal"]
    assert low < share < high
    assert (share > 0.5) == (advantage > 0)
    assert high - low < 0.05
    assert found["df"] == 3
    assert found["p"] > 0.001


def test_page__has_the_tables_of_the_last_run_on_the_present_ladders() -> None:
    data = json.loads(ladder_study.RESULTS.read_text(encoding="utf-8"))
    assert ladder_study.tables(data) in ladder_study.PAGE.read_text(encoding="utf-8")
    hashes = [Ladder.load(path).hash for path in (LADDER, FAMILY_LADDER)]
    assert [one["ladder"] for one in data["ladders"]] == hashes
