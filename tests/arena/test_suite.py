"""Suites: what is played, what numbers it gives, and submissions that are replayed or refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from matches import finished_games

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.arena.ladder import LADDER, Ladder, content_hash, match_seed
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.rating_models import model_named
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.suite import (
    RecordsEntry as RecordsEntry,
    Submission,
    SubmissionError,
    Suite,
    SuitePart,
    file_sha256,
    strengths_by_board,
)
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.arena.verification import repeat_decisions, verify
from tokaido_env.core.actions import IDS
from tokaido_env.core.rng import arena_seed
from tokaido_env.record import Forfeit, RecordError

SMALL = Path(__file__).parents[1] / "golden" / "small-suite.json"
SIGMA = model_named("probit").elo_per_unit


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite.load(SMALL)


@pytest.fixture(scope="module")
def match_states(suite: Suite) -> list[MatchState]:
    match_states = suite.match_states("heuristic")
    for match_state in match_states:
        play_remaining(match_state, make("heuristic"), make(match_state.b))
    return match_states


def submission(suite: Suite, match_states: list[MatchState], records: Path) -> Any:
    return Submission.of(suite.result(match_states), RecordsEntry.of(records, 24)).to_dict()


@pytest.fixture
def path(tmp_path: Path, suite: Suite, match_states: list[MatchState]) -> Path:
    """A submission with its records."""
    records = RecordFile(tmp_path / "games.jsonl", match_states)
    for match_state in match_states:
        records.append(match_state, finished_games(match_state))
    data = submission(suite, match_states, tmp_path / "games.jsonl")
    (tmp_path / "mine.json").write_text(json.dumps(data), encoding="utf-8")
    return tmp_path / "mine.json"


# What is played


def test_tokaido_bench_1_is_what_the_page_says() -> None:
    suite = Suite.load()
    assert (suite.name, suite.seed) == ("tokaido-bench-1", 0)
    sims = tuple(f"mcts:sims={n}" for n in (100, 400, 4000))
    assert suite.opponents == ("greedy", "heuristic", *sims)
    assert (suite.default.pool.name, suite.default.pairs) == ("shikoku", 500)
    assert suite.test.pool.names.tolist() == [f"family:{2000000 + i}" for i in range(20)]
    assert suite.test.pairs == 50
    # What was cited stays: these are of the ladder before the present champion was played on it.
    assert suite.default.elo == (-565.04, -169.88, -57.3, 0.0, 45.35)
    ladder = {rating.agent: rating for rating in Ladder.load(LADDER).agents}
    for spec, elo in zip(suite.opponents, suite.default.elo, strict=True):
        low, high = ladder[spec].ci95
        assert low <= elo <= high
    assert suite.default.elo[3] == suite.test.elo[3] == 0.0
    page = Path(__file__).parents[2] / "docs" / "tokaido-bench-1.md"
    assert f"`{suite.hash}`" in page.read_text(encoding="utf-8")


def test_matches_of_a_suite_have_fixed_luck_of_their_own(suite: Suite) -> None:
    match_states = suite.match_states("x")
    assert [(match_state.a, match_state.b) for match_state in match_states] == [
        ("x", "greedy"),
        ("x", "random"),
    ] * 2
    assert [len(match_state) for match_state in match_states] == [4, 4, 8, 8]
    seeds = np.concatenate([match_state.games["seed"][::2] for match_state in match_states])
    assert len(set(seeds.tolist())) == len(seeds)
    last = match_seed(0, "small-suite", "random", "family:2000001")
    assert match_states[3].games["seed"].tolist()[4:] == [
        arena_seed(last, pair) for pair in (0, 0, 1, 1)
    ]
    assert (suite.match_states("y")[0].games == match_states[0].games).all()


# The numbers


def part(elo: tuple[float, ...], boards: int = 1) -> SuitePart:
    return SuitePart("shikoku" if boards == 1 else f"family:test/{boards}", "", 50, elo)


def played(opponent: str, shares: list[float], pairs: int, seed: int = 0) -> Match:
    """A match with as many pairs on each board, won by a share."""
    rng = np.random.default_rng([seed, *opponent.encode()])
    games = np.zeros((pairs * len(shares), 2), GAME)
    games["result"] = rng.random(games.shape) < np.repeat(shares, pairs)[:, None]
    return Match("x", opponent, games, np.zeros((*games.shape, 0), np.int8))


def test_the_strength_against_one_opponent_is_that_of_the_score_and_a_drawn_pair() -> None:
    match = played("y", [0.7], 50)
    (found,) = strengths_by_board(part((-100.0,)), [match], np.random.default_rng(0), 10)[0]
    p = (match.results.sum() + 1) / 102
    assert found == pytest.approx(-100 + SIGMA * NormalDist().inv_cdf(p), abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_strength_of_an_agent_that_won_or_lost_every_game_is_a_number(share: float) -> None:
    matches = [played("y", [share], 50), played("z", [share], 50)]
    draws = strengths_by_board(part((-100.0, 50.0)), matches, np.random.default_rng(0), 400)
    assert np.isfinite(draws).all()
    assert draws.std() > 5
    assert (draws[0] > 50) == (share == 1.0)


def test_a_known_strength_is_found_again_and_its_interval_holds_it() -> None:
    elo, truth, held, found = (-300.0, -50.0, 0.0, 80.0), 60.0, [], []
    for seed in range(100):
        shares = [NormalDist().cdf((truth - other) / SIGMA) for other in elo]
        matches = [played(str(i), [p], 50, seed) for i, p in enumerate(shares)]
        draws = strengths_by_board(part(elo), matches, np.random.default_rng(seed), 200)[:, 0]
        low, high = np.quantile(draws[1:], [0.025, 0.975])
        held.append(low <= truth <= high)
        found.append(draws[0])
    assert np.mean(found) == pytest.approx(truth, abs=8)
    assert 0.88 <= np.mean(held) <= 0.99


def test_boards_are_rated_apart() -> None:
    both = played("y", [0.2, 0.9], 50)
    rng = np.random.default_rng(0)
    found = strengths_by_board(part((0.0,), 2), [both], rng, 5)[0]
    for i in range(2):
        alone = replace(both, games=both.games[50 * i : 50 * (i + 1)])
        assert strengths_by_board(part((0.0,)), [alone], rng, 5)[0] == pytest.approx(found[i])


def test_a_result_says_what_its_games_do(suite: Suite, match_states: list[MatchState]) -> None:
    result = suite.result(match_states)
    assert result == suite.result(match_states)
    for found, one, other in zip(result.scores, match_states[:2], match_states[2:], strict=True):
        assert found.opponent == one.b
        wanted = (one.to_match().score, other.to_match().score)
        assert (found.default, found.test) == pytest.approx(wanted, abs=1e-6)
    values = [one.value for one in result.boards]
    assert [one.board for one in result.boards] == suite.test.pool.names.tolist()
    assert result.worst.value == min(values)
    assert result.tb_g.value == pytest.approx(
        np.mean(values), abs=0.02
    )  # of two boards all are the middle
    assert result.tb_g.ci95[0] < result.tb_g.value < result.tb_g.ci95[1]


# Decisions again


def test_agents_decide_again_what_they_decided(match_states: list[MatchState]) -> None:
    for match_state in match_states:
        numbers = np.array([0, 3])
        theirs = [repeat_decisions(match_state, numbers, make(match_state.b), 1) for _ in range(2)]
        ours = repeat_decisions(match_state, numbers, make("heuristic"), 0)
        assert [one.mismatch for one in (*theirs, ours)] == [None] * 3
        assert theirs[0].decisions + ours.decisions == match_state.games["decisions"][numbers].sum()
        other = repeat_decisions(match_state, numbers, make("random"), 0).mismatch
        assert other is not None
        assert other.recorded == match_state.actions[other.game, other.decision]


# Submissions


def test_a_submission_is_verified(path: Path, suite: Suite, match_states: list[MatchState]) -> None:
    before = (path.parent / "games.jsonl").read_bytes()
    found = verify(path, suite, make, share=1.0, agent=make("heuristic"))
    assert found.result == suite.result(match_states)
    assert found.games == 24
    assert found.repeated == sum(
        int(match_state.games["decisions"].sum()) for match_state in match_states
    )
    assert (path.parent / "games.jsonl").read_bytes() == before
    assert 0 < verify(path, suite, make, share=0.01).repeated < found.repeated / 2
    assert verify(path, suite, make, share=0.0).repeated == 0


def changed(path: Path, change: Callable[[Any], Any]) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: data.update(version=2),
            "version: expected 1, got 2: expected a submission",
        ),
        (lambda data: data.update(suite="x"), "suite: expected small-suite, got 'x'"),
        (lambda data: data.update(hash="0" * 16), r"hash: expected \w{16}, got '0"),
        (lambda data: data.pop("agent"), "expected the key agent"),
        (lambda data: data.update(records=None), "records: expected a file of all games, got none"),
        (lambda data: data["records"].update(file="../x"), "file: expected the name of a file in"),
        (lambda data: data["records"].update(file="no"), "records: cannot be read: No such file"),
        (lambda data: data["records"].update(sha256="0"), "sha256: expected .* after it was subm"),
        (lambda data: data["tb_1"].update(value=900.0), "tb_1: expected .* of the games, got .*90"),
        (lambda data: data["tb_g"].update(value="x"), r"tb_g\.value: expected a number, got 'x'"),
        (lambda data: data["scores"][0].update(test=2), r"scores\[0\]\.test: expected a number <="),
        (lambda data: data["worst"].update(board="x"), "worst: expected the board of the lowest"),
        (lambda data: data.update(agent="greedy"), "line 1: .* is no game of these matches"),
    ],
)
def test_a_submission_that_does_not_hold_is_refused(
    path: Path, suite: Suite, change: Callable[[Any], Any], message: str
) -> None:
    changed(path, change)
    with pytest.raises((SubmissionError, RecordError), match=message) as caught:
        verify(path, suite, make, share=0.0)
    assert len(str(caught.value)) <= 500


def test_one_altered_move_is_refused_naming_game_and_move(path: Path, suite: Suite) -> None:
    records = path.parent / "games.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines()
    game = json.loads(lines[6])
    place = next(i for i, event in enumerate(game["events"]) if i > 20 and event in IDS)
    before = game["events"][place]
    game["events"][place] = next(event for event in IDS if event != before)
    lines[6] = json.dumps(game)
    records.write_text("\n".join(lines) + "\n", encoding="utf-8")
    changed(path, lambda data: data["records"].update(sha256=file_sha256(records)))
    with pytest.raises(RecordError, match=r"games.jsonl, line 7: event \d+ of \d+"):
        verify(path, suite, make)


def test_a_move_that_the_opponent_does_not_make_is_refused(
    tmp_path: Path, suite: Suite, path: Path
) -> None:
    """Games that are sound but for the opponent, who played at random."""
    match_states = suite.match_states("heuristic")
    records = RecordFile(tmp_path / "games2.jsonl", match_states)
    for match_state in match_states:
        play_remaining(match_state, make("heuristic"), make("random"))
        records.append(match_state, finished_games(match_state))
    data = submission(suite, match_states, tmp_path / "games2.jsonl")
    path.write_text(json.dumps(data), encoding="utf-8")
    message = r"game \d of 4 against 'greedy' on shikoku, seed \d+, seat \d, decision \d+: 'greedy'"
    with pytest.raises(SubmissionError, match=message):
        verify(path, suite, make, share=1.0)


def test_records_that_lack_games_are_refused(path: Path, suite: Suite) -> None:
    records = path.parent / "games.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines(keepends=True)
    records.write_text("".join(lines[:-1]), encoding="utf-8")
    with pytest.raises(SubmissionError, match=r"holds 23 of 24 games: expected game 8 of 8 again"):
        verify(path, suite, make)
    records.write_text("".join(lines)[:-1], encoding="utf-8")
    with pytest.raises(RecordError, match="its last line is cut short"):
        verify(path, suite, make)


def test_games_that_were_forfeited_are_refused(path: Path, suite: Suite) -> None:
    """Nobody can verify how an opponent is said to have failed."""
    records = path.parent / "games.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines()
    game = Game(seed=json.loads(lines[6])["seed"], board=json.loads(lines[6])["board"])
    assert game.player is not None
    begun = game.record(tuple(json.loads(lines[6])["players"]))
    lost = replace(begun, forfeit=Forfeit(game.player, "crash"), end="forfeit")
    lines[6] = replace(lost, winner=1 - game.player).to_json()
    records.write_text("\n".join(lines) + "\n", encoding="utf-8")
    changed(path, lambda data: data["records"].update(sha256=file_sha256(records)))
    with pytest.raises(SubmissionError, match=r"game 3 of 4 against 'random' .* was forfeited"):
        verify(path, suite, make)


def test_a_share_is_from_0_to_1(path: Path, suite: Suite) -> None:
    with pytest.raises(ValueError, match="share: expected a number from 0 to 1"):
        verify(path, suite, make, share=float("nan"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(version=2), "version: expected 1, got 2: use the version"),
        (lambda data: data.update(rules=0), "rules: expected 1, got 0"),
        (lambda data: data.update(link="logistic"), "link: expected probit, got 'logistic'"),
        (lambda data: data.update(opponents=["python:os:x"]), "may not name code to be run"),
        (lambda data: data.update(opponents=["greedy"] * 2), "opponents: expected specs of agents"),
        (lambda data: data["default"].update(hash="0"), "default.hash: .*on another board"),
        (lambda data: data["test"].update(boards="nowhere"), "test.boards: .*unknown board"),
        (lambda data: data["test"].update(pairs=10**7), "test.pairs: expected at most 1,250,000"),
        (lambda data: data["test"].update(elo=[1.0]), "test.elo: expected a number for each opp"),
        (lambda data: data["test"].update(elo=[1, 2]), "hash: expected .* of its content"),
    ],
)
def test_a_suite_that_is_none_is_refused(
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


def test_what_is_read_is_what_was_written(
    path: Path, suite: Suite, match_states: list[MatchState]
) -> None:
    told = Submission.load(path, suite)
    assert told.to_dict() == submission(suite, match_states, path.parent / "games.jsonl")
    assert suite.to_dict() == json.loads(SMALL.read_text(encoding="utf-8"))
