"""Tests of arena/records.py, RecordFile: resuming after stops, verification, order, forfeits."""

import json
import re
import signal
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import finished_games, play_recorded, played_match, same_games
from positions import shikoku_data, write_board
from processes import file_size_limit

from tokaido_env import Game
from tokaido_env.__main__ import main as command
from tokaido_env.agents import Agent, make
from tokaido_env.arena.records import RecordFile, records_of
from tokaido_env.arena.tournament import MatchState, games_as_completed, play_remaining
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.record import RecordError, load

BOARD = Board.load()
FAMILY = "family:test/5"


def unplayed(games: int = 8, seed: int = 3, a: str = "greedy", b: str = "random") -> MatchState:
    return MatchState(a, b, games, seed, BOARD)


@pytest.fixture(scope="module")
def match() -> MatchState:
    return played_match("greedy", "random", 8, 3)


@pytest.fixture(scope="module")
def family_match() -> MatchState:
    return played_match("greedy", "random", 40, 3, FAMILY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "games.jsonl"


@pytest.fixture
def file(match: MatchState, path: Path) -> Path:
    """The record file of the match, written in three parts."""
    records = RecordFile(path, [match])
    for some in np.split(np.arange(len(match)), [3, 4]):
        records.append(match, finished_games(match, some))
    return path


def test_records_of__agree_with_single_games(match: MatchState) -> None:
    for number, record in enumerate(records_of(match, np.arange(len(match)))):
        game = Game(seed=int(match.games["seed"][number]))
        for action in match.actions[number].tolist():
            if action >= 0:
                game.play(action)
        swapped = number % 2
        assert record == game.record(("random", "greedy") if swapped else ("greedy", "random"))


def test_records_of__agree_with_games_on_the_boards_of_a_pool(
    family_match: MatchState, path: Path
) -> None:
    RecordFile(path, [family_match]).append(family_match, finished_games(family_match))
    records = load(path)
    assert records == load(path, FAMILY)
    for record, game in zip(records, family_match.games, strict=True):
        board = family_match.pool[int(game["board"])]
        assert (record.board, record.board_hash) == (board.name, board.hash)
        again = Game(board=FAMILY, seed=record.seed)
        assert again.board.hash == record.board_hash
        for event in record.events:
            if event in set(again.legal_labels()):
                again.play(event)
        assert again.record(record.players) == record
    assert len({record.board for record in records}) == 5


def test_record_file__replays_including_games_that_end_at_the_cap(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["replay", str(file), "--quiet"]) == 0
    output = capsys.readouterr().out
    assert output.count("greedy against random") == output.count("random against greedy") == 4
    board = Board.load(write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 2}))
    capped = played_match("greedy", "random", 4, 0, board)
    for record in records_of(capped, np.arange(4)):
        assert (record.end, record.rounds) == ("cap", 2)
    records = RecordFile(tmp_path / "capped.jsonl", [capped])
    records.append(capped, finished_games(capped))
    assert command(["replay", str(tmp_path / "capped.jsonl"), "--board", board.source]) == 0


# Resuming


@pytest.mark.parametrize("zeros", [0, 100])  # a power cut may leave some
def test_record_file__resumes_to_the_same_bytes_after_a_cut_anywhere(
    match: MatchState, file: Path, zeros: int
) -> None:
    text = file.read_bytes()
    ends = [i + 1 for i, byte in enumerate(text) if byte == ord("\n")]
    lengths = {0, 1, 10, ends[0] - 1, ends[0], ends[0] + 1, ends[2] + 1000, ends[-1] - 1, len(text)}
    for length in sorted(lengths):
        file.write_bytes(text[:length] + bytes(zeros))
        again = unplayed()
        records = RecordFile(file, [again])
        whole = max((end for end in ends if end - 1 <= length), default=0)  # but for the "\n"
        size = file.stat().st_size
        assert (records.dropped_bytes, size) == (max(length - whole, 0) + zeros, whole)
        assert again.finished.sum() == records.loaded == text[:whole].count(b"\n")
        play_recorded(records, again, make("greedy"), make("random"))
        records.sort()  # on a busy machine games are written as they finish
        assert same_games(again, match)
        assert file.read_bytes() == text


def test_record_file__resumes_from_lines_that_another_program_wrote(
    match: MatchState, file: Path
) -> None:
    text, (first, *lines) = file.read_bytes(), file.read_text(encoding="utf-8").splitlines()
    changed = [json.dumps(json.loads(line), sort_keys=True) for line in lines]
    file.write_text("\ufeff\n" + first + "\r\n\n" + "\n \n".join(changed), encoding="utf-8")
    foreign, again = file.read_bytes(), unplayed()
    records = RecordFile(file, [again])
    assert (records.loaded, records.dropped_bytes) == (len(match), 0)
    assert same_games(again, match)
    records.sort()
    assert file.read_bytes() == foreign + b"\n"  # its lines are as they were
    file.write_bytes(b"\r\n".join(foreign.splitlines()[:5:-1]))
    RecordFile(file, [unplayed()]).sort()
    assert file.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in changed[2:])
    spaced = text.replace(b"\n", b"\n\n", 3)
    file.write_bytes(spaced[: len(text) - 100])
    again = unplayed()
    play_recorded(RecordFile(file, [again]), again, make("greedy"), make("random"))
    assert file.read_bytes() == spaced


def test_record_file__loads_games_of_a_shorter_match_and_holds_several_matches(file: Path) -> None:
    longer, other = unplayed(games=12), unplayed(b="greedy")
    RecordFile(file, [other, longer])
    assert longer.finished.tolist() == [True] * 8 + [False] * 4
    assert not other.finished.any()


def test_record_file__counts_equal_games_of_an_agent_against_itself(path: Path) -> None:
    mirror = played_match("random", "random", 4, 0)
    records = RecordFile(path, [mirror])
    records.append(mirror, finished_games(mirror, np.array([0, 2])))
    again = unplayed(4, 0, "random", "random")
    assert RecordFile(path, [again]).loaded == 2
    assert again.finished.tolist() == [True, False, True, False]


def test_append__overwrites_the_remains_of_an_interrupted_write(
    match: MatchState, path: Path
) -> None:
    records = RecordFile(path, [match])
    records.append(match, finished_games(match, np.array([0])))
    with path.open("ab") as file:
        file.write(b'{"format": "tokaido-duo", "ver')
    records.append(match, finished_games(match, np.array([1])))
    assert RecordFile(path, [unplayed()]).loaded == 2


def test_append__writes_games_while_others_are_played(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokaido_env.arena.game_runner.SECONDS", 0.0)
    lines: list[int] = []

    class LineCounter(Agent):
        spec = "greedy"

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
            lines.append(path.read_bytes().count(b"\n"))
            return make("greedy").act(boards, states, legal, keys)

    games = unplayed(60)
    play_recorded(RecordFile(path, [games]), games, LineCounter(), make("random"))
    assert lines == sorted(lines)
    assert len(set(lines)) > 10
    assert path.read_bytes().count(b"\n") == 60


@pytest.mark.parametrize("before_append", [False, True])
def test_append__neither_loses_nor_repeats_a_game_at_ctrl_c(
    match: MatchState, path: Path, before_append: bool
) -> None:
    games = unplayed()
    records = RecordFile(path, [games])

    def record_and_interrupt() -> None:
        for some in games_as_completed(games, make("greedy"), make("random")):
            if before_append:
                signal.raise_signal(signal.SIGINT)
            records.append(games, some)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        record_and_interrupt()
    assert same_games(games, match)
    assert RecordFile(path, [unplayed()]).loaded == 8


def test_append__names_the_file_on_a_full_disk_and_keeps_whole_games(
    file: Path, tmp_path: Path
) -> None:
    path, games = tmp_path / "part.jsonl", unplayed()
    records = RecordFile(path, [games])
    with (
        file_size_limit(file.stat().st_size // 2),
        pytest.raises(OSError, match="too large") as error,
    ):
        play_recorded(records, games, make("greedy"), make("random"))
    assert error.value.filename == str(path)
    again = unplayed()
    records = RecordFile(path, [again])
    assert 0 < records.loaded < 8
    assert records.dropped_bytes > 0
    play_recorded(records, again, make("greedy"), make("random"))
    assert path.read_bytes() == file.read_bytes()


# Order


def test_sort__gives_the_same_bytes_for_games_in_any_order(
    match: MatchState, file: Path, tmp_path: Path
) -> None:
    other = played_match("random", "greedy", 6, 3)
    lines = [record.to_json() + "\n" for record in records_of(other, np.arange(6))]
    whole = file.read_bytes() + "".join(lines).encode()
    rng = np.random.default_rng(0)
    for name in "abc":
        path = tmp_path / name
        records = RecordFile(path, [match, other])
        for number in rng.permutation(14):
            games, first = (match, 0) if number < 8 else (other, 8)
            records.append(games, finished_games(games, np.array([number - first])))
        assert path.read_bytes() != whole
        records.sort()
        assert path.read_bytes() == whole
        inode = path.stat().st_ino
        records.sort()
        assert path.stat().st_ino == inode  # a sorted file is not written again
        path.write_bytes(b"".join(rng.permutation(path.read_bytes().splitlines(keepends=True))))
        RecordFile(path, [unplayed(), unplayed(6, 3, "random", "greedy")]).sort()
        assert path.read_bytes() == whole


def test_record_file__refuses_games_of_other_players(path: Path) -> None:
    play(path, "A", "B", "C")
    whole = path.read_bytes()
    with pytest.raises(RecordError, match=r"line 1: 'A' against 'B' .* is no game of these"):
        play(path, "C", "A")
    assert path.read_bytes() == whole
    play(path, "A", "B", "C", "D")  # more matches
    assert len(path.read_bytes().splitlines()) == 24
    with pytest.raises(RecordError, match="is no game of these matches"):
        RecordFile(path, [MatchState("A", "B", 2, 0, BOARD)])  # has fewer games


def play(path: Path, *names: str) -> None:
    """Play all matches of these players at random, and sort their record file."""
    match_states = [MatchState(a, b, 4, 0, BOARD) for a, b in combinations(names, 2)]
    records = RecordFile(path, match_states)
    for match_state in match_states:
        play_recorded(records, match_state, make("random"), make("random"))
    records.sort()


# Errors


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "not a record\n" + text, "line 1: not a whole line of JSON"),
        (lambda text: text + "notes", "line 9: not a whole line of JSON"),
        (lambda text: "\n\n{\n" + text, "line 3: not a whole line"),
        (lambda text: text[:-2] + ', "x": "\\ud800"}', "line 8: not a whole line of JSON"),
        (lambda text: '{"version": 2}', "line 1: record: format: expected tokaido-duo, got None"),
        (lambda text: "\u0080PNG\n", "line 1: "),
        (lambda text: re.sub(r'"seed": \d+', '"seed": 5', text), "seed 5, is no game of these"),
        (replaced('["greedy"', '["mcts"'), "line 1: 'mcts' against 'random' "),
        (replaced('"board": "shikoku"', '"board": "honshu"'), "on 'honshu' "),
        (replaced(BOARD.hash, "0" * 16), "line 1: .* on 'shikoku' .0000.*name another"),
        (replaced('"roll:', '"roll:7'), "line 1: event .*no outcome"),
        (replaced('"side:pilgrim=tr', '"side:pilgrim=x'), "line .: event 9 of .*no outcome"),
        (replaced('"winner": 0', '"winner": 1'), "line 1: winner: expected 0"),
        (replaced('"faith": ', '"faith": 1'), "line 1: scores: expected"),
        (replaced('"boutique:C1=', '"boutique:C2='), "line 1: event 1 of"),
    ],
)
def test_record_file__refuses_a_wrong_file_and_leaves_it_unchanged(
    file: Path, change: Callable[[str], str], message: str
) -> None:
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="latin-1")
    before = file.read_bytes()
    with pytest.raises(RecordError, match=message) as error:
        RecordFile(file, [unplayed()])
    assert str(error.value).startswith(str(file))
    assert file.read_bytes() == before


def test_record_file__counts_equal_lines_once_and_refuses_another_game_of_their_seed(
    match: MatchState, file: Path
) -> None:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join([lines[0], *lines, lines[5]]), encoding="utf-8")
    found = unplayed()
    records = RecordFile(file, [found])
    assert records.loaded == len(match)
    assert same_games(found, match)
    other = json.loads(lines[0]) | {"events": json.loads(lines[0])["events"][:-1]}
    file.write_text("".join([*lines, json.dumps(other) + "\n"]), encoding="utf-8")
    with pytest.raises(RecordError, match="line 9: "):
        RecordFile(file, [unplayed()])


def test_record_file__refuses_games_with_the_chance_outcomes_of_another_seed(
    match: MatchState, file: Path
) -> None:
    """Two games with their seeds exchanged are both legal games."""
    text = file.read_text(encoding="utf-8")
    one, two = (str(match.games["seed"][number]) for number in (0, 2))
    text = text.replace(one, "X").replace(two, one).replace("X", two)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match="line 1: its outcomes are not those of its seed"):
        RecordFile(file, [unplayed()])


def test_record_file__refuses_a_game_on_another_board_of_the_pool_than_its_seed_draws(
    family_match: MatchState, path: Path
) -> None:
    game = family_match.games[0]
    other = family_match.pool[(int(game["board"]) + 1) % 5]
    wrong_board = MatchState.from_pairs(
        *("greedy", "random", BoardPool.load(other)),
        seeds=game["seed"].reshape(1),
        board_index=np.zeros(1, np.int64),
    )
    play_remaining(wrong_board, make("greedy"), make("random"))
    (record,) = records_of(wrong_board, np.array([0]))
    path.write_text(record.to_json() + "\n", encoding="utf-8")
    with pytest.raises(RecordError, match=f"on '{other.name}' .*, seed .* is no game of these"):
        RecordFile(path, [MatchState("greedy", "random", 40, 3, FAMILY)])
