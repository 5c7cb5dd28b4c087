"""Matches as record files: true games, taken over exactly, and nothing foreign touched."""

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import finished, play_recorded, same
from positions import shikoku_data, write_board
from processes import file_size_limit

from tokaido_env import Game
from tokaido_env.__main__ import main as command
from tokaido_env.agents import Agent, make
from tokaido_env.arena.records import RecordFile, records_of
from tokaido_env.arena.tournament import MatchState, games_as_completed, play_remaining
from tokaido_env.boards.board import Board
from tokaido_env.record import RecordError

BOARD = Board.load()


def match_state(games: int = 8, seed: int = 3, a: str = "greedy", b: str = "random") -> MatchState:
    return MatchState(a, b, games, seed, BOARD)


def played(*args: int) -> MatchState:
    filled = match_state(*args)
    play_remaining(filled, make(filled.a), make(filled.b))
    return filled


@pytest.fixture(scope="module")
def match() -> MatchState:
    return played()


@pytest.fixture
def file(match: MatchState, tmp_path: Path) -> Path:
    path = tmp_path / "games.jsonl"
    records = RecordFile(path, [match])
    for some in np.split(np.arange(len(match)), [3, 4]):
        records.append(match, finished(match, some))
    return path


def test_a_record_is_that_of_the_game_played_alone(match: MatchState) -> None:
    for number, record in enumerate(records_of(match, np.arange(len(match)))):
        game = Game(seed=int(match.games["seed"][number]))
        for action in match.actions[number].tolist():
            if action >= 0:
                game.play(action)
        swapped = number % 2
        assert record == game.record(("random", "greedy") if swapped else ("greedy", "random"))


def test_games_that_end_at_the_cap(tmp_path: Path) -> None:
    board = Board.load(write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 2}))
    capped = MatchState("greedy", "random", 4, 0, board)
    play_remaining(capped, make("greedy"), make("random"))
    for record in records_of(capped, np.arange(4)):
        assert (record.winner, record.end, record.rounds) == (None, "cap", 2)
    records = RecordFile(tmp_path / "games.jsonl", [capped])
    records.append(capped, finished(capped))
    assert command(["replay", str(tmp_path / "games.jsonl"), "--board", board.source]) == 0


def test_the_file_replays(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["replay", str(file), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("greedy against random") == shown.count("random against greedy") == 4


def test_a_file_can_be_cut_anywhere(match: MatchState, file: Path) -> None:
    """Whatever was written when the power went, the rest is played and the file is the same."""
    text = file.read_bytes()
    ends = [i + 1 for i, byte in enumerate(text) if byte == ord("\n")]
    cuts = {0, 1, 10, ends[0] - 1, ends[0], ends[0] + 1, ends[2] + 1000, ends[-1] - 1, len(text)}
    for cut in sorted(cuts):
        file.write_bytes(text[:cut])
        again = match_state()
        records = RecordFile(file, [again])
        whole = max((end for end in ends if end <= cut), default=0)
        assert (records.dropped_bytes, file.stat().st_size) == (cut - whole, whole)
        assert again.finished.sum() == records.loaded == text[:cut].count(b"\n")
        play_recorded(records, again, make("greedy"), make("random"))
        assert same(again, match)
        assert file.read_bytes() == text


def test_a_longer_match_takes_over_a_shorter_one_and_several_share_a_file(file: Path) -> None:
    longer, other = match_state(games=12), match_state(b="greedy")
    RecordFile(file, [other, longer])
    assert longer.finished.sum() == 8
    assert longer.finished[:8].all()
    assert not other.finished.any()


def test_an_agent_against_itself_has_each_game_twice(tmp_path: Path) -> None:
    mirror = match_state(4, 0, "random", "random")
    play_remaining(mirror, make("random"), make("random"))
    records = RecordFile(tmp_path / "games.jsonl", [mirror])
    records.append(mirror, finished(mirror, np.array([0, 2])))
    again = match_state(4, 0, "random", "random")
    assert RecordFile(tmp_path / "games.jsonl", [again]).loaded == 2
    assert again.finished.tolist() == [True, False, True, False]


def test_an_interrupted_write_is_written_over(match: MatchState, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records = RecordFile(path, [match])
    records.append(match, finished(match, np.array([0])))
    with path.open("ab") as file:
        file.write(b'{"format": "tokaido-duo", "ver')
    records.append(match, finished(match, np.array([1])))
    assert RecordFile(path, [match_state()]).loaded == 2


def test_games_are_in_the_file_while_others_are_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokaido_env.arena.game_runner.SECONDS", 0.0)
    seen: list[int] = []

    class Looks(Agent):
        spec = "greedy"

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
            seen.append(path.read_bytes().count(b"\n"))
            return make("greedy").act(boards, states, legal, keys)

    path, games = tmp_path / "games.jsonl", match_state(60)
    records = RecordFile(path, [games])
    play_recorded(records, games, Looks(), make("random"))
    assert seen == sorted(seen)
    assert len(set(seen)) > 10
    assert path.read_bytes().count(b"\n") == 60


@pytest.mark.parametrize("written", [False, True])
def test_ctrl_c_while_games_are_written_neither_loses_nor_repeats_one(
    match: MatchState, tmp_path: Path, written: bool
) -> None:
    path, games = tmp_path / "games.jsonl", match_state()
    records = RecordFile(path, [games])

    def record_and_interrupt() -> None:
        for some in games_as_completed(games, make("greedy"), make("random")):
            if not written:
                signal.raise_signal(signal.SIGINT)
            records.append(games, some)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        record_and_interrupt()
    assert same(games, match)
    assert RecordFile(path, [match_state()]).loaded == 8


def test_a_full_disk_is_told_with_the_file_and_the_games_that_found_room_stay(
    match: MatchState, file: Path, tmp_path: Path
) -> None:
    path, games = tmp_path / "part.jsonl", match_state()
    records = RecordFile(path, [games])
    with (
        file_size_limit(file.stat().st_size // 2),
        pytest.raises(OSError, match="too large") as error,
    ):
        play_recorded(records, games, make("greedy"), make("random"))
    assert error.value.filename == str(path)
    again = match_state()
    records = RecordFile(path, [again])
    assert 0 < records.loaded < 8
    assert records.dropped_bytes > 0
    play_recorded(records, again, make("greedy"), make("random"))
    assert path.read_bytes() == file.read_bytes()


def test_sorted_the_file_is_the_same_in_whatever_order_games_came(
    match: MatchState, file: Path, tmp_path: Path
) -> None:
    other = played(6, 3, "random", "greedy")
    whole = (
        file.read_bytes()
        + "".join(record.to_json() + "\n" for record in records_of(other, np.arange(6))).encode()
    )
    rng = np.random.default_rng(0)
    for name in "abc":
        path = tmp_path / name
        records = RecordFile(path, [match, other])
        for number in rng.permutation(14):
            games, first = (match, 0) if number < 8 else (other, 8)
            records.append(games, finished(games, np.array([number - first])))
        assert path.read_bytes() != whole
        records.sort()
        assert path.read_bytes() == whole
        records.sort()
        path.write_bytes(b"".join(rng.permutation(path.read_bytes().splitlines(keepends=True))))
        records = RecordFile(path, [match_state(), MatchState("random", "greedy", 6, 3, BOARD)])
        records.sort()
        assert path.read_bytes() == whole


def test_what_is_in_order_is_not_written_again(match: MatchState, file: Path) -> None:
    before = file.stat()
    RecordFile(file, [match_state()]).sort()
    assert file.stat().st_ino == before.st_ino


def edited(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "not a record\n" + text, "line 1: not a whole line of JSON"),
        (lambda text: text + "notes", "not a record file: it ends with b'notes'"),
        (lambda text: "\n" + text, "line 1: not a whole line"),
        (lambda text: text + text, "line 9: 'greedy' against 'random', seed .* or comes twice"),
        (lambda text: re.sub(r'"seed": \d+', '"seed": 5', text), "seed 5, is no game of these"),
        (edited('["greedy"', '["mcts"'), "line 1: 'mcts' against 'random', seed"),
        (edited('"board": "shikoku"', '"board": "honshu"'), "a game on board 'honshu'"),
        (edited(BOARD.hash, "0" * 16), "line 1: a game on board 'shikoku' .0000.*name another"),
        (edited('"roll:', '"roll:7'), "line 1: event .*no outcome"),
        (edited('"side:pilgrim=tr', '"side:pilgrim=x'), "line .: event 9 of .*no outcome"),
        (edited('"winner": 0', '"winner": 1'), "line 1: winner: expected 0"),
        (edited('"faith": ', '"faith": 1'), "line 1: scores: expected"),
        (edited('"boutique:C1=', '"boutique:C2='), "line 1: event 1 of"),
    ],
)
def test_what_is_not_of_these_matches_is_refused_and_left_alone(
    file: Path, change: Callable[[str], str], message: str
) -> None:
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    before = file.read_bytes()
    with pytest.raises(RecordError, match=message) as error:
        RecordFile(file, [match_state()])
    assert str(error.value).startswith(str(file))
    assert file.read_bytes() == before


def test_a_true_game_with_other_luck_is_refused(match: MatchState, file: Path) -> None:
    """Two games with their seeds changed about: each is a game, but not that of its seed."""
    text = file.read_text(encoding="utf-8")
    one, two = (str(match.games["seed"][number]) for number in (0, 2))
    text = text.replace(one, "X").replace(two, one).replace("X", two)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match="line 1: its outcomes are not those of its seed"):
        RecordFile(file, [match_state()])


def test_fewer_games_than_the_file_holds_are_refused(file: Path) -> None:
    with pytest.raises(RecordError, match="fewer --games"):
        RecordFile(file, [match_state(games=6)])


def test_a_file_that_cannot_be_text(file: Path) -> None:
    file.write_bytes(b"\x80PNG\n")
    with pytest.raises(RecordError, match="line 1: "):
        RecordFile(file, [match_state()])
