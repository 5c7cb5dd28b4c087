"""Tests of `tokaido replay`: selection of games, and errors."""

from dataclasses import replace
from pathlib import Path

import pytest
from game_pages import games_of
from positions import other_board_data, write_board

from tokaido_env import Game
from tokaido_env.__main__ import main
from tokaido_env.record import Forfeit, Record, load, save
from tokaido_env.web.game_session import Session
from tokaido_env.web.replay_page import MAX_GAMES

GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def games() -> list[Record]:
    """Play games of two agents in both seats."""
    played = []
    for seed in range(6):
        names = ("greedy", "random") if seed % 2 else ("random", "greedy")
        session = Session(names, seed=seed)
        while session.waits_for == "agent":
            session.play_agent_move()
        played.append(session.record())
    return played


@pytest.fixture
def file(tmp_path: Path, games: list[Record]) -> Path:
    path = tmp_path / "games.jsonl"
    save(games, path)
    return path


def printed_numbers(capsys: Output) -> list[int]:
    lines = capsys.readouterr().out.splitlines()
    return [int(line.split(":")[0].split()[1]) for line in lines if line.startswith("game ")]


def test_replay__selects_games_by_line(file: Path, capsys: Output) -> None:
    asked = ["replay", str(file), "--quiet"]
    for options, numbers in (
        ([], [1, 2, 3, 4, 5, 6]),
        (["--game", "4"], [4]),
        (["--game", "2-4"], [2, 3, 4]),
    ):
        assert main([*asked, *options]) == 0
        assert printed_numbers(capsys) == numbers


def test_replay__refuses_a_page_of_too_many_games(
    tmp_path: Path, games: list[Record], capsys: Output
) -> None:
    file, out = tmp_path / "many.jsonl", tmp_path / "page.html"
    save(games * 20, file)
    assert main(["replay", str(file), "--html", str(out)]) == 1
    err = capsys.readouterr().err
    assert f"a page holds 1 to {MAX_GAMES} games, got 120" in err
    assert not out.exists()
    assert main(["replay", str(file), "--html", str(out), "--game", "119-120"]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: games 2, ")


# Output


def test_replay__prints_every_event_with_round_and_player(capsys: Output) -> None:
    assert main(["replay", str(GOLDEN), "--game", "4"]) == 0
    header, *lines, result = capsys.readouterr().out.splitlines()
    golden = load(GOLDEN)[3]
    assert header == "game 4: random against random, shikoku, seed 1003"
    assert [line.split()[2] for line in lines] == list(golden.events)
    rounds = [int(line.split()[0]) for line in lines]
    assert rounds == sorted(rounds)
    assert (rounds[0], rounds[-1]) == (0, golden.rounds)
    rolls = [number for number, line in zip(rounds, lines, strict=True) if "roll:" in line]
    assert rolls == list(range(1, golden.rounds + 1))
    assert {line.split()[1] for line in lines} == {"chance", "player_0", "player_1"}
    assert f"ended after round {golden.rounds}, won by player_{golden.winner}" in result
    assert all(str(score["total"]) in result for score in golden.scores)


def forfeited() -> Record:
    """Return a game forfeited at its first decision."""
    unfinished = Game(seed=1).record(["a", "b"])
    seat = Game(seed=1).player
    why = Forfeit(seat, "illegal", "it </script> failed")
    return replace(unfinished, forfeit=why, end="forfeit", winner=1 - seat)


def test_replay__prints_every_result(tmp_path: Path, capsys: Output) -> None:
    save([*load(GOLDEN), Game(seed=1).record(["a", "b"])], tmp_path / "games.jsonl")
    assert main(["replay", str(tmp_path / "games.jsonl"), "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[::2]] == [f"game {n}" for n in range(1, 8)]
    assert "reached the cap of 200 rounds, won by player_" in lines[-3]
    assert "unfinished in round 1" in lines[-1]


def test_replay__escapes_the_reason_of_a_forfeit(tmp_path: Path, capsys: Output) -> None:
    games = tmp_path / "games.jsonl"
    save([forfeited()], games)
    assert main(["replay", str(games)]) == 0
    printed = capsys.readouterr().out
    seat = Game(seed=1).player
    assert f"ended in round 1, player_{seat} forfeits (illegal: it </script> failed)" in printed
    page = tmp_path / "games.html"
    assert main(["replay", str(games), "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "it </script> failed" not in text
    assert f"{'ab'[seat]} forfeits (illegal: it " in text  # in the list
    assert "forfeits (illegal: it " in games_of(text)[0]["log"][-1][2]


def test_replay__takes_a_board_file(tmp_path: Path, capsys: Output) -> None:
    board = write_board(tmp_path / "other.toml", other_board_data())
    save([Game(board, seed=1).record()], tmp_path / "games.jsonl")
    assert main(["replay", str(tmp_path / "games.jsonl")]) == 1
    assert "line 1: board: unknown board 'other'" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "games.jsonl"), "--board", str(board)]) == 0
