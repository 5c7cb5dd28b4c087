"""Tests of refused arguments of all commands, in one line and before any work."""

import shlex
import shutil
from pathlib import Path

import pytest

from tokaido_env.__main__ import main
from tokaido_env.arena.ladder import LADDER

GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"

USAGE = (
    (
        "replay g --gmae 1",
        "unknown option '--gmae': the nearest is '--game'; tokaido replay --help",
    ),
    (
        "generalise --comparee=x",
        "unknown option '--comparee': the nearest is '--compare'; tokaido ",
    ),
    ("actions all", "unexpected argument 'all'; tokaido actions --help lists all arguments\n"),
    ("replay", "FILE: expected a value, got none; tokaido replay --help lists all arguments\n"),
    ("evaluate a b --games", "--games: expected a value, got none; tokaido evaluate --help"),
    ("train --run", "--run: expected a value, got none; tokaido train --help"),
    ("evaluate a b --games x", "--games: expected an integer, got 'x'\n"),
    ("evaluate a b --error x", "--error: expected a number, got 'x'\n"),
    ("evaluate greedy", "AGENTS: expected two or more, got 1; tokaido evaluate --help"),
    ("generalise", "AGENT: expected an agent, or --compare with files, got none; tokaido "),
    ("play --seed=-1", "--seed: expected an integer from 0, got '-1'\n"),
    ("review g --seed 1.0", "--seed: expected an integer from 0, got '1.0'\n"),
    ("play --seat 2", "--seat: expected one of 0, 1, got '2'\n"),
    ("export a b --rows x", "--rows: expected one of 'decisions', 'games', got 'x'\n"),
    ("evaluate --from-records x --luck-adjusted=3", "--luck-adjusted: expected no value, or true "),
    ("replay g --game 1 --lines 1-2", "--game and --lines: expected one of them; tokaido replay "),
    ("replay g --summary --html x", "--summary and --html: expected one of them; tokaido replay "),
    ("evaluate a b --records -", "--records: expected a file, got the pipe -\n"),
    ("train --run run --rounds 3", "--rounds is for alphazero; td has --updates; tokaido train "),
    ("train --run run --sims 3", "--sims is for alphazero, not for td; tokaido train --help"),
    ("train --run run --updates many", "--updates: expected an integer, got 'many'\n"),
    ("train --run run --resume run", "--run and --resume: expected one of them; tokaido train "),
    ("train --run run --checkpoint-minutes -1", "--checkpoint-minutes: expected a number from 0, "),
    ("train", "expected --run FOLDER to begin a run, or --resume FOLDER to continue one; tokaido "),
)
"""Wrong arguments, which the declarations refuse."""

ERRORS = (
    ("evaluate greedy nobody", "unknown agent 'nobody': expected one of random, greedy"),
    ("evaluate greedy policy:nowhere", "nowhere: no such policy file"),
    ("evaluate greedy random --replays 2", "--replays: expected together with --report"),
    ("evaluate greedy random --json /nowhere/r", "/nowhere/r: there is no folder"),
    ("evaluate greedy random --records /nowhere/g", "/nowhere/g: there is no folder"),
    ("evaluate greedy random --report /nowhere/g", "/nowhere/g: there is no folder"),
    ("evaluate greedy random --plots games.jsonl", "expected a folder, got a file"),
    ("evaluate greedy random --json x --records x", "expected a different file"),
    (
        "evaluate greedy random --executor processes:0",
        "executor: expected serial, processes[:N] or",
    ),
    ("evaluate greedy random --error 0.1", "--error: expected together with --until-dec"),
    ("evaluate greedy --from-records games.jsonl", "--from-records: expected only files"),
    ("evaluate --from-records nowhere", "nowhere"),
    ("rate greedy --ladder no.json", "no.json: no such ladder"),
    ("rate greedy --json r --records x/r", "--records: expected a file in "),
    (f"rate greedy --json {LADDER}", f"{LADDER}: is read too: expected another"),
    ("ladder greedy random --out /", "/: expected a file or nothing"),
    ("generalise greedy --train 0", "family:train/0: expected 1 to"),
    ("generalise greedy --plots games.jsonl", "expected a folder, got a file"),
    ("generalise greedy --json x --records x", "expected a different file"),
    ("generalise greedy --json r --records x/r", "--records: expected a file in the folder of r"),
    ("generalise greedy --markdown x.md", "--markdown: expected together with --compare"),
    ("generalise greedy --compare x.json", "--compare: expected only result files"),
    ("generalise --compare x.json", "x.json: no such result"),
    ("generalise --compare x.json --markdown x.json", "x.json: is read too"),
    ("regret greedy --set missing.npz", "missing.npz: not a regret set (.npz): "),
    ("regret greedy --json no/where.json", "no/where.json"),
    ("play --terminal --save no/such/folder.jsonl", "there is no folder"),
    ("replay games.jsonl --lines 0-2", "--lines: expected A-B, lines from 1 to 6, got '0-2'"),
    ("replay games.jsonl --game 7", "--game: expected 1 to 6, got 7"),
    ("replay games.jsonl --lost-by nobody", "--lost-by: expected one of random, got 'nobody'"),
    ("replay games.jsonl --html no/games.html", "no/games.html: there is no folder"),
    ("replay games.jsonl --html games.jsonl", "games.jsonl: is read too: expected another file"),
    ("replay games.jsonl --gif games.jsonl --game 1", "games.jsonl: is read too"),
    ("replay games.jsonl --html x --value-agent genius", "genius"),
    ("replay games.jsonl --value-agent greedy", "--value-agent: expected together with --html"),
    ("replay nowhere.jsonl", "nowhere.jsonl"),
    ("replay notes.txt", "line 1: not a whole line of JSON"),
    ("review games.jsonl --game 7", "--game: expected 1 to 6, got 7"),
    ("review games.jsonl --json games.jsonl", "is read too"),
    ("review games.jsonl --data o.csv", "o.csv: expected a name that ends in .parquet"),
    ("review games.jsonl --html o --json o", "expected a different file for each output"),
    ("review games.jsonl --executor nobody", "executor: expected serial, processes[:N] or ray["),
    ("review games.jsonl --judge greedy --executor processes:1", "got 'greedy': use champion"),
    ("train --run run --board family:train/0", "family:train/0: expected 1 to"),
    ("train --run run --config nowhere.toml", "nowhere.toml"),
    ("train --run run --start-from nowhere", "nowhere: no such policy file"),
)
"""Arguments that a command refuses, before it plays a game or writes a file."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with recorded games and a file of another kind."""
    shutil.copy(GOLDEN, tmp_path / "games.jsonl")
    (tmp_path / "notes.txt").write_text("notes\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tokaido_env.arena.game_runner.Batch", None)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [*((*case, 2) for case in USAGE), *((*case, 1) for case in ERRORS)],
)
def test_commands__refuse_wrong_arguments_in_one_line_and_write_nothing(
    words: str, message: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(shlex.split(words)) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{words.split()[0]}: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        ("--nowhere", "expected one of play"),
        ("evalute", "the nearest is 'evaluate'"),
        ("ex" * 300, "expected one of play, replay, "),
    ],
)
def test_main__names_the_nearest_command(
    capsys: pytest.CaptureFixture[str], command: str, remedy: str
) -> None:
    assert main([command, "greedy"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tokaido: unknown command '{command[:40]}")
    assert remedy in error
    assert error.count("\n") == 1
    assert len(error) < 350
