"""Tests of arena/suite.py: the shipped suite, the matches, and the strengths of an agent."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from matches import match_of_results

from tokaido_env.agents import make
from tokaido_env.arena.ladder import LADDER, Ladder, content_hash
from tokaido_env.arena.match import Match, match_seed
from tokaido_env.arena.rating_model import ELO_PER_UNIT
from tokaido_env.arena.suite import SubmissionError, Suite, SuitePart, strengths_by_board
from tokaido_env.arena.tournament import play_remaining
from tokaido_env.core.rng import arena_seed

SMALL = Path(__file__).parents[1] / "golden" / "small-suite.json"
SIGMA = ELO_PER_UNIT


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite.load(SMALL)


def test_tokaido_bench_1__is_the_suite_of_its_page() -> None:
    suite = Suite.load()
    assert (suite.name, suite.seed) == ("tokaido-bench-1", 0)
    sims = tuple(f"mcts:sims={n}" for n in (100, 400, 4000))
    assert suite.opponents == ("greedy", "heuristic", *sims)
    assert (suite.default.pool.name, suite.default.pairs) == ("shikoku", 500)
    assert suite.test.pool.names.tolist() == [f"family:{2000000 + i}" for i in range(20)]
    assert suite.test.pairs == 50
    # Published ratings stay: these are of the ladder before the present champion joined it.
    assert suite.default.elo == (-565.04, -169.88, -57.3, 0.0, 45.35)
    ladder = {rating.agent: rating for rating in Ladder.load(LADDER).agents}
    for spec, elo in zip(suite.opponents, suite.default.elo, strict=True):
        low, high = ladder[spec].ci95
        assert low <= elo <= high
    assert suite.default.elo[3] == suite.test.elo[3] == 0.0
    page = Path(__file__).parents[2] / "docs" / "benchmarks" / "tokaido-bench-1.md"
    assert f"`{suite.hash}`" in page.read_text(encoding="utf-8")


def test_match_states__have_fixed_seeds_of_their_own(suite: Suite) -> None:
    matches = suite.match_states("x")
    assert [(match.a, match.b) for match in matches] == [("x", "greedy"), ("x", "random")] * 2
    assert [len(match) for match in matches] == [4, 4, 8, 8]
    seeds = np.concatenate([match.games["seed"][::2] for match in matches])
    assert len(set(seeds.tolist())) == len(seeds)
    last = match_seed(0, "small-suite", "random", "family:2000001")
    expected = [arena_seed(last, pair) for pair in (0, 0, 1, 1)]
    assert matches[3].games["seed"].tolist()[4:] == expected
    assert (suite.match_states("y")[0].games == matches[0].games).all()


def test_result__agrees_with_the_matches(suite: Suite) -> None:
    match_states = suite.match_states("heuristic")
    for match_state in match_states:
        play_remaining(match_state, make("heuristic"), make(match_state.b))
    result = suite.result(match_states)
    assert result == suite.result(match_states)
    for found, one, other in zip(result.scores, match_states[:2], match_states[2:], strict=True):
        assert found.opponent == one.b
        expected = (one.to_match().score, other.to_match().score)
        assert (found.default, found.test) == pytest.approx(expected, abs=1e-6)
    values = [one.value for one in result.boards]
    assert [one.board for one in result.boards] == suite.test.pool.names.tolist()
    assert result.worst.value == min(values)
    # Both of two boards are within the interquartile range.
    assert result.tb_g.value == pytest.approx(np.mean(values), abs=0.02)
    assert result.tb_g.ci95[0] < result.tb_g.value < result.tb_g.ci95[1]


# Strengths


def part(elo: tuple[float, ...], boards: int = 1) -> SuitePart:
    return SuitePart("shikoku" if boards == 1 else f"family:test/{boards}", "", 50, elo)


def random_match(opponent: str, shares: list[float], seed: int = 0) -> Match:
    """Return a match of 50 pairs on each board, with the given probabilities to win."""
    rng = np.random.default_rng([seed, *opponent.encode()])
    results = rng.random((50 * len(shares), 2)) < np.repeat(shares, 50)[:, None]
    return match_of_results(results.astype(float), 0, "x", opponent)


def test_strengths_by_board__of_one_opponent_follows_from_the_score_and_a_drawn_pair() -> None:
    match = random_match("y", [0.7])
    (found,) = strengths_by_board(part((-100.0,)), [match], np.random.default_rng(0), 10)[0]
    p = (match.results.sum() + 1) / 102
    assert found == pytest.approx(-100 + SIGMA * NormalDist().inv_cdf(p), abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_strengths_by_board__are_finite_for_perfect_scores(share: float) -> None:
    matches = [random_match("y", [share]), random_match("z", [share])]
    draws = strengths_by_board(part((-100.0, 50.0)), matches, np.random.default_rng(0), 400)
    assert np.isfinite(draws).all()
    assert draws.std() > 5
    assert (draws[0] > 50) == (share == 1.0)


def test_strengths_by_board__are_unbiased_and_cover_the_true_strength() -> None:
    elo, truth, covered, found = (-300.0, -50.0, 0.0, 80.0), 60.0, [], []
    for seed in range(100):
        shares = [NormalDist().cdf((truth - other) / SIGMA) for other in elo]
        matches = [random_match(str(i), [p], seed) for i, p in enumerate(shares)]
        draws = strengths_by_board(part(elo), matches, np.random.default_rng(seed), 200)[:, 0]
        low, high = np.quantile(draws[1:], [0.025, 0.975])
        covered.append(low <= truth <= high)
        found.append(draws[0])
    assert np.mean(found) == pytest.approx(truth, abs=8)
    assert 0.88 <= np.mean(covered) <= 0.99


def test_strengths_by_board__rate_each_board_by_its_own_games() -> None:
    both = random_match("y", [0.2, 0.9])
    rng = np.random.default_rng(0)
    found = strengths_by_board(part((0.0,), 2), [both], rng, 5)[0]
    for i in range(2):
        alone = replace(both, games=both.games[50 * i : 50 * (i + 1)])
        assert strengths_by_board(part((0.0,)), [alone], rng, 5)[0] == pytest.approx(found[i])


# The file


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(version=2), "version: expected 1, got 2: use the version"),
        (lambda data: data.update(rules=0), "rules: expected 1, got 0"),
        (lambda data: data.update(link="logistic"), "link: expected probit, got 'logistic'"),
        (lambda data: data.update(opponents=["python:os:x"]), "may not name code to run"),
        (lambda data: data.update(opponents=["greedy"] * 2), "opponents: expected specs of agents"),
        (lambda data: data["default"].update(hash="0"), "default.hash: .*on another board"),
        (lambda data: data["test"].update(boards="nowhere"), "test.boards: .*unknown board"),
        (lambda data: data["test"].update(pairs=10**7), "test.pairs: expected at most 1,250,000"),
        (lambda data: data["test"].update(elo=[1.0]), "test.elo: expected a number for each opp"),
        (lambda data: data["test"].update(elo=[1, 2]), "hash: expected .* of its content"),
    ],
)
def test_load__refuses_a_wrong_suite(
    tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    path = tmp_path / "suite.json"
    data = json.loads(SMALL.read_text(encoding="utf-8"))
    change(data)
    del data["hash"]
    path.write_text(json.dumps(data | {"hash": content_hash(data)}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Suite.load(path)
    path.write_text(json.dumps(data | {"hash": "0" * 16}), encoding="utf-8")
    with pytest.raises(SubmissionError, match="expected"):
        Suite.load(path)


def test_suite__saves_what_it_loads(suite: Suite) -> None:
    assert suite.to_dict() == json.loads(SMALL.read_text(encoding="utf-8"))
