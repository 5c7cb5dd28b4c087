"""Tests of arena/verification.py: submissions that are verified, and each reason to refuse one."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import finished_games

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.suite import (
    RecordsEntry,
    Submission,
    SubmissionError,
    Suite,
    file_sha256,
)
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.arena.verification import Claim, repeat_decisions, verify
from tokaido_env.core.actions import IDS
from tokaido_env.record import Forfeit, RecordError

SMALL = Path(__file__).parents[1] / "golden" / "small-suite.json"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite.load(SMALL)


@pytest.fixture(scope="module")
def match_states(suite: Suite) -> list[MatchState]:
    match_states = suite.match_states("heuristic")
    for match_state in match_states:
        play_remaining(match_state, make("heuristic"), make(match_state.b))
    return match_states


def write_submission(folder: Path, suite: Suite, match_states: list[MatchState]) -> Path:
    """Write a submission and its records."""
    records = RecordFile(folder / "games.jsonl", match_states)
    for match_state in match_states:
        records.append(match_state, finished_games(match_state))
    entry = RecordsEntry.of(folder / "games.jsonl", 24)
    data = Submission.of(suite.result(match_states), entry).to_dict()
    (folder / "mine.json").write_text(json.dumps(data), encoding="utf-8")
    return folder / "mine.json"


@pytest.fixture
def path(tmp_path: Path, suite: Suite, match_states: list[MatchState]) -> Path:
    return write_submission(tmp_path, suite, match_states)


def change_submission(path: Path, change: Callable[[Any], Any]) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def change_records(path: Path, change: Callable[[list[str]], Any]) -> None:
    """Change the lines of a submission's records, and its hash of the file."""
    records = path.parent / "games.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines()
    change(lines)
    records.write_text("\n".join(lines) + "\n", encoding="utf-8")
    change_submission(path, lambda data: data["records"].update(sha256=file_sha256(records)))


def test_repeat_decisions__finds_the_recorded_actions(match_states: list[MatchState]) -> None:
    for match_state in match_states:
        numbers = np.array([0, 3])
        theirs = [repeat_decisions(match_state, numbers, make(match_state.b), 1) for _ in range(2)]
        ours = repeat_decisions(match_state, numbers, make("heuristic"), 0)
        assert [one.mismatch for one in (*theirs, ours)] == [None] * 3
        assert theirs[0].decisions + ours.decisions == match_state.games["decisions"][numbers].sum()
        other = repeat_decisions(match_state, numbers, make("random"), 0).mismatch
        assert other is not None
        assert other.recorded == match_state.actions[other.game, other.decision]


def test_verify__accepts_a_correct_submission(
    path: Path, suite: Suite, match_states: list[MatchState]
) -> None:
    before = (path.parent / "games.jsonl").read_bytes()
    found = verify(Claim.of_suite(path, suite), make, share=1.0, agent=make("heuristic"))
    assert found.result == suite.result(match_states)
    assert found.games == 24
    assert found.repeated == sum(int(one.games["decisions"].sum()) for one in match_states)
    assert (path.parent / "games.jsonl").read_bytes() == before
    assert 0 < verify(Claim.of_suite(path, suite), make, share=0.01).repeated < found.repeated / 2
    assert verify(Claim.of_suite(path, suite), make, share=0.0).repeated == 0
    with pytest.raises(ValueError, match="share: expected a number from 0 to 1"):
        verify(Claim.of_suite(path, suite), make, share=float("nan"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(version=2), "version: expected 1, got 2: expected a submission"),
        (lambda data: data.update(suite="x"), "suite: expected small-suite, got 'x'"),
        (lambda data: data.update(hash="0" * 16), r"hash: expected \w{16}, got '0"),
        (lambda data: data.update(records=None), "records: expected a file of all games, got none"),
        (lambda data: data["records"].update(file="../x"), "file: expected the name of a file in"),
        (lambda data: data["records"].update(file="no"), "records: cannot be read: No such file"),
        (lambda data: data["records"].update(sha256="0"), "sha256: expected .* after it was subm"),
        (lambda data: data["tb_1"].update(value=900.0), "tb_1: expected .* of the games, got .*90"),
        (lambda data: data["scores"][0].update(test=2), r"scores\[0\]\.test: expected a number <="),
        (lambda data: data["worst"].update(board="x"), "worst: expected the board of the lowest"),
        (lambda data: data.update(agent="greedy"), "line 1: .* is no game of these matches"),
    ],
)
def test_verify__refuses_a_changed_submission(
    path: Path, suite: Suite, change: Callable[[Any], Any], message: str
) -> None:
    change_submission(path, change)
    with pytest.raises((SubmissionError, RecordError), match=message) as caught:
        verify(Claim.of_suite(path, suite), make, share=0.0)
    assert len(str(caught.value)) <= 500


def test_verify__names_the_game_and_event_of_a_changed_move(path: Path, suite: Suite) -> None:
    def change_move(lines: list[str]) -> None:
        game = json.loads(lines[6])
        place = next(i for i, event in enumerate(game["events"]) if i > 20 and event in IDS)
        game["events"][place] = next(event for event in IDS if event != game["events"][place])
        lines[6] = json.dumps(game)

    change_records(path, change_move)
    with pytest.raises(RecordError, match=r"games.jsonl, line 7: event \d+ of \d+"):
        verify(Claim.of_suite(path, suite), make)


def test_verify__refuses_moves_that_the_opponent_does_not_repeat(
    tmp_path: Path, suite: Suite
) -> None:
    """The games are legal, but `random` played in place of the opponents."""
    match_states = suite.match_states("heuristic")
    for match_state in match_states:
        play_remaining(match_state, make("heuristic"), make("random"))
    path = write_submission(tmp_path, suite, match_states)
    message = r"game \d of 4 against 'greedy' on shikoku, seed \d+, seat \d, decision \d+: 'greedy'"
    with pytest.raises(SubmissionError, match=message):
        verify(Claim.of_suite(path, suite), make, share=1.0)


def test_verify__refuses_missing_and_cut_games(path: Path, suite: Suite) -> None:
    change_records(path, lambda lines: lines.pop())
    with pytest.raises(SubmissionError, match=r"holds 23 of 24 games: expected game 8 of 8 again"):
        verify(Claim.of_suite(path, suite), make)
    records = path.parent / "games.jsonl"
    records.write_bytes(records.read_bytes()[:-2])
    with pytest.raises(RecordError, match="line 23: not a whole line of JSON"):
        verify(Claim.of_suite(path, suite), make)


def test_verify__refuses_forfeits_since_failures_cannot_be_verified(
    path: Path, suite: Suite
) -> None:
    def forfeit_game(lines: list[str]) -> None:
        data = json.loads(lines[6])
        game = Game(seed=data["seed"], board=data["board"])
        assert game.player is not None
        begun, forfeit = game.record(tuple(data["players"])), Forfeit(game.player, "crash")
        lost = replace(begun, forfeit=forfeit, end="forfeit", winner=1 - game.player)
        lines[6] = lost.to_json()

    change_records(path, forfeit_game)
    with pytest.raises(SubmissionError, match=r"game 3 of 4 against 'random' .* was forfeited"):
        verify(Claim.of_suite(path, suite), make)
