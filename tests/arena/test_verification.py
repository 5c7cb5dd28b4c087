"""Tests of arena/verification.py: ratings that are verified, and each reason to refuse one."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import finished_games
from msgspec import structs
from valid_files import with_hash

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.arena.ladder import Ladder, make_ladder
from tokaido_env.arena.match import Match
from tokaido_env.arena.placement import possible_matches, rate_on_ladder, submitted_rating
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.result import RecordsEntry, Result, ResultError, Score
from tokaido_env.arena.tournament import MatchState, play_match, play_remaining
from tokaido_env.arena.verification import (
    SubmissionError,
    repeat_decisions,
    verify,
)
from tokaido_env.core.actions import IDS
from tokaido_env.files import file_sha256
from tokaido_env.record import Forfeit, RecordError

BOARDS = "family:valid/3"

MatchStates = dict[str, MatchState]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a ladder of two agents."""

    def play(a: str, b: str, games: int, seed: int) -> Match:
        return play_match(make(a), make(b), games, seed, BOARDS)

    path = tmp_path_factory.mktemp("ladder") / "ladder.json"
    make_ladder(["random", "greedy"], lambda a, b: 40, 0, BOARDS, play, path)
    return path


def unplayed(ladder: Path) -> MatchStates:
    options: dict[str, Any] = {"seed": 0, "include_slow": False, "max_games": 12}
    return possible_matches("heuristic", Ladder.load(ladder), **options)


@pytest.fixture(scope="module")
def match_states(ladder: Path) -> MatchStates:
    match_states = unplayed(ladder)
    for match_state in match_states.values():
        play_remaining(match_state, make("heuristic"), make(match_state.b))
    return match_states


def rated(ladder: Path, match_states: MatchStates) -> Result:
    def played(a: str, b: str, games: int, seed: int) -> Match:
        return match_states[b].to_match()

    return rate_on_ladder("heuristic", Ladder.load(ladder), play=played)


def write_submission(folder: Path, ladder: Path, match_states: MatchStates) -> Path:
    """Write a rating and its records."""
    records = RecordFile(folder / "games.jsonl", [*match_states.values()])
    for match_state in match_states.values():
        records.append(match_state, finished_games(match_state))
    entry = RecordsEntry.of(folder / "games.jsonl", 24)
    structs.replace(rated(ladder, match_states), records=entry).save(folder / "mine.json")
    return folder / "mine.json"


@pytest.fixture
def path(tmp_path: Path, ladder: Path, match_states: MatchStates) -> Path:
    return write_submission(tmp_path, ladder, match_states)


def verified(path: Path, ladder: Path, **options: Any) -> tuple[int, int]:
    return verify(submitted_rating(path, ladder), make, **options)


def change_submission(path: Path, change: Callable[[Any], Any]) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(with_hash(data)), encoding="utf-8")


def recounted(data: Any, pairs: list[int]) -> None:
    """Replace the counts of the first score."""
    old = data["scores"][0]
    new = Score.of_pairs(old["a"], old["b"], old["board"], old["seed"], pairs).to_dict()
    data["scores"][0] = old | new


def change_records(path: Path, change: Callable[[list[str]], Any]) -> None:
    """Change the lines of a submission's records, and its hash of the file."""
    records = path.parent / "games.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines()
    change(lines)
    records.write_text("\n".join(lines) + "\n", encoding="utf-8")
    change_submission(path, lambda data: data["records"].update(sha256=file_sha256(records)))


def test_repeat_decisions__finds_the_recorded_actions(match_states: MatchStates) -> None:
    for match_state in match_states.values():
        numbers = np.array([0, 3])
        theirs = [repeat_decisions(match_state, numbers, make(match_state.b), 1) for _ in range(2)]
        ours = repeat_decisions(match_state, numbers, make("heuristic"), 0)
        assert [mismatch for _, mismatch in (*theirs, ours)] == [None] * 3
        assert theirs[0][0] + ours[0] == match_state.games["decisions"][numbers].sum()
        _, other = repeat_decisions(match_state, numbers, make("random"), 0)
        assert other is not None
        assert other.recorded == match_state.actions[other.game, other.decision]


def test_verify__accepts_a_correct_submission(
    path: Path, ladder: Path, match_states: MatchStates
) -> None:
    before = (path.parent / "games.jsonl").read_bytes()
    decisions = sum(int(one.games["decisions"].sum()) for one in match_states.values())
    agent = make("heuristic")
    assert verified(path, ladder, share=1.0, agent=agent) == (24, decisions)
    assert (path.parent / "games.jsonl").read_bytes() == before
    assert 0 < verified(path, ladder, share=0.01)[1] < decisions / 2
    assert verified(path, ladder, share=0.0) == (24, 0)
    with pytest.raises(ValueError, match="share: expected a number from 0 to 1"):
        verified(path, ladder, share=float("nan"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(ladder="0" * 16), r"ladder: expected \w{16} of .*ladder.json, g"),
        (lambda data: data.update(records=None), "records: expected a file of all games, got none"),
        (lambda data: data["records"].update(file="../x"), "file: expected the name of a file in"),
        (lambda data: data["records"].update(file="no"), "records: cannot be read: No such file"),
        (lambda data: data["records"].update(sha256="0"), "sha256: expected .* after it was subm"),
        (
            lambda data: data["estimates"][0].update(value=900.0),
            r"estimates\[0\]: expected .* of the games, got",
        ),
        (lambda data: data.update(anchor="greedy"), "anchor: expected 'random' of the games, got "),
        (lambda data: data["scores"].reverse(), r"scores\[0\]: expected .* of the games, got"),
        (lambda data: data["scores"].pop(), "line 13: .* is no game of these matches"),
        (lambda data: data["scores"].clear(), "protocol: expected rate, of one agent with scores"),
        (lambda data: data.update(protocol="generalise"), "protocol: expected rate, of one agent"),
        (lambda data: data["scores"][0].update(b="x"), r"scores\[0\]: expected 0 games of an opp"),
        (
            lambda data: recounted(data, [0, 0, 0, 0, 5]),
            r"scores\[0\]: expected 12 games of an opp",
        ),
        (
            lambda data: recounted(data, [0, 0, 0, 0, 6]),
            r"scores\[0\]: expected .* of the games, g",
        ),
        (lambda data: data.update(seed=1), "line 1: .* is no game of these matches"),
        (lambda data: data.update(agents=["greedy"]), r"scores\[\d\]: expected 0 games of an oppo"),
    ],
)
def test_verify__refuses_a_changed_submission(
    path: Path, ladder: Path, change: Callable[[Any], Any], message: str
) -> None:
    change_submission(path, change)
    with pytest.raises((ResultError, SubmissionError, RecordError), match=message) as caught:
        verified(path, ladder, share=0.0)
    assert len(str(caught.value)) <= 500


def test_verify__refuses_opponents_that_rate_does_not_choose(
    tmp_path: Path, ladder: Path, match_states: MatchStates
) -> None:
    first, second = (score.b for score in rated(ladder, match_states).scores)
    in_order = {second: match_states[second], first: match_states[first]}
    path = write_submission(tmp_path, ladder, in_order)
    change_submission(path, lambda data: data["scores"].pop(0))
    change_records(path, lambda lines: lines.__delitem__(slice(12, 24)))
    with pytest.raises(ResultError, match=f"scores: expected a match against {first} next"):
        verified(path, ladder, share=0.0)


def test_verify__names_the_game_and_event_of_a_changed_move(path: Path, ladder: Path) -> None:
    def change_move(lines: list[str]) -> None:
        game = json.loads(lines[6])
        place = next(i for i, event in enumerate(game["events"]) if i > 20 and event in IDS)
        game["events"][place] = next(event for event in IDS if event != game["events"][place])
        lines[6] = json.dumps(game)

    change_records(path, change_move)
    with pytest.raises(RecordError, match=r"games.jsonl, line 7: event \d+ of \d+"):
        verified(path, ladder)


def test_verify__refuses_moves_that_the_opponent_does_not_repeat(
    tmp_path: Path, ladder: Path
) -> None:
    """The games are legal, but `random` played in place of the opponents."""
    match_states = unplayed(ladder)
    for match_state in match_states.values():
        play_remaining(match_state, make("heuristic"), make("random"))
    path = write_submission(tmp_path, ladder, match_states)
    message = (
        r"game \d+ of 12 against 'greedy' on family:\d+, seed \d+, seat \d, decision \d+: 'greedy'"
    )
    with pytest.raises(SubmissionError, match=message):
        verified(path, ladder, share=1.0)


def test_verify__refuses_missing_and_cut_games(path: Path, ladder: Path) -> None:
    change_records(path, lambda lines: lines.pop())
    with pytest.raises(SubmissionError, match=r"holds 23 of 24 games: expected game 12 of 12 ag"):
        verified(path, ladder)
    records = path.parent / "games.jsonl"
    records.write_bytes(records.read_bytes()[:-2])
    with pytest.raises(RecordError, match="line 23: not a whole line of JSON"):
        verified(path, ladder)


def test_verify__refuses_forfeits_since_failures_cannot_be_verified(
    path: Path, ladder: Path
) -> None:
    def forfeit_game(lines: list[str]) -> None:
        data = json.loads(lines[6])
        game = Game(seed=data["seed"], board=data["board"])
        assert game.player is not None
        begun, forfeit = game.record(tuple(data["players"])), Forfeit(game.player, "illegal")
        lost = replace(begun, forfeit=forfeit, end="forfeit", winner=1 - game.player)
        lines[6] = lost.to_json()

    change_records(path, forfeit_game)
    with pytest.raises(SubmissionError, match=r"game 7 of 12 against '\w+' .* was forfeited"):
        verified(path, ladder)
