"""Tests of `tokaido replay`: selection of games, and errors."""

from pathlib import Path

import pytest

from tokaido_env import record
from tokaido_env.__main__ import main
from tokaido_env.web.game_session import Session
from tokaido_env.web.replay_page import MAX_GAMES

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def games() -> list[record.Record]:
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
def file(tmp_path: Path, games: list[record.Record]) -> Path:
    path = tmp_path / "games.jsonl"
    record.save(games, path)
    return path


def printed_numbers(capsys: Output) -> list[int]:
    lines = capsys.readouterr().out.splitlines()
    return [int(line.split(":")[0].split()[1]) for line in lines if line.startswith("game ")]


def test_replay__selects_games_by_line_and_loser(
    file: Path, games: list[record.Record], capsys: Output
) -> None:
    asked = ["replay", str(file), "--quiet"]
    for options, numbers in (
        ([], [1, 2, 3, 4, 5, 6]),
        (["--game", "4"], [4]),
        (["--games", "2-4"], [2, 3, 4]),
        (["--games", "6-6"], [6]),
    ):
        assert main([*asked, *options]) == 0
        assert printed_numbers(capsys) == numbers
    lost = [i for i, one in enumerate(games, 1) if one.winner == one.players.index("greedy")]
    assert main([*asked, "--lost-by", "random"]) == 0
    assert printed_numbers(capsys) == lost
    assert main([*asked, "--lost-by", "random", "--games", "2-3"]) == 0
    assert printed_numbers(capsys) == [number for number in lost if number in (2, 3)]


def test_replay__refuses_a_page_of_too_many_games(
    tmp_path: Path, games: list[record.Record], capsys: Output
) -> None:
    file, out = tmp_path / "many.jsonl", tmp_path / "page.html"
    record.save(games * 20, file)
    assert main(["replay", str(file), "--html", str(out)]) == 1
    err = capsys.readouterr().err
    assert f"expected up to {MAX_GAMES} games, got 120: choose some with --games A-B" in err
    assert not out.exists()
    assert main(["replay", str(file), "--html", str(out), "--games", "119-120"]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: games 2, ")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--games", "0-2"], "--games: expected A-B, lines from 1 to 6, got '0-2'"),
        (["--games", "3-2"], "--games: expected A-B"),
        (["--games", "x"], "--games: expected A-B"),
        (["--game", "7"], "--game: expected 1 to 6, got 7"),
        (["--lost-by", "nobody"], "--lost-by: expected one of greedy, random, got 'nobody'"),
        (["--html", "nowhere/games.html"], "nowhere/games.html: there is no folder"),
        (["--html", "x.html", "--board", "honshu"], "unknown board 'honshu'"),
        (["--html", "x.html", "--agent", "genius"], "genius"),
        (["--agent", "greedy"], "--agent: expected together with --html"),
    ],
)
def test_replay__refuses_wrong_options_and_writes_nothing(
    file: Path, options: list[str], error: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(file.parent)
    assert main(["replay", str(file), *options]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("replay: ")
    assert error in captured.err
    assert captured.err.count("\n") == 1
    assert list(file.parent.iterdir()) == [file]
