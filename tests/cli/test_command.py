"""Tests of cli/command.py: pipes and the home folder."""

import io
import json
import os
import re
import sys
import threading
from pathlib import Path

import pytest

from tokaido_env.__main__ import main
from tokaido_env.learn.settings import PpoSettings

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "games.jsonl"

Output = pytest.CaptureFixture[str]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes with a path")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("games") / "games.jsonl"
    assert main(["evaluate", "greedy", "random", "--games", "4", "--records", str(path)]) == 0
    return path


def piped(data: bytes) -> str:
    """Return the path of a pipe with some data, as `<(cat file)` gives it."""
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(data)

    threading.Thread(target=write, daemon=True).start()
    return f"/dev/fd/{reader}"


def test_write_path__writes_to_any_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """That of a notebook takes no bytes; without any, the command is refused before it plays."""
    command = ["evaluate", "greedy", "random", "--games", "2", "--json", "-"]
    notebook = io.StringIO()
    monkeypatch.setattr(sys, "stdout", notebook)
    assert main(command) == 0
    assert json.loads(notebook.getvalue())["agents"] == ["greedy", "random"]
    monkeypatch.setattr(sys, "stdout", None)
    capsys.readouterr()
    assert main(command) == 2
    error = "evaluate: --json: expected a file, got -: there is no standard output\n"
    assert capsys.readouterr().err == error


@POSIX
def test_read_path__takes_pipes_and_standard_input(
    games: Path, tmp_path: Path, capfd: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also commands that read a file twice; the copies of pipes are removed."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    board = (ROOT / "tokaido_env" / "boards" / "shikoku.toml").read_bytes()
    data, text = games.read_bytes(), "evaluate --from-records FILE --json -"
    for command in (text, "replay FILE --board BOARD", f"export FILE {tmp_path / 'out.parquet'}"):
        printed = []
        for file in (str(games), piped(data), "-"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            name = "shikoku" if file == str(games) else piped(board)
            assert main(command.replace("FILE", file).replace("BOARD", name).split()) == 0
            printed.append(re.sub('"command": .*', "", capfd.readouterr().out))
        assert printed[0]
        assert printed == printed[:1] * 3
    assert main(["replay", piped(data + b"notes\n")]) == 1
    assert capfd.readouterr().err.startswith("replay: /dev/fd/")
    assert list((tmp_path / "temporary").iterdir()) == []


@POSIX
def test_write_path__takes_pipes_and_standard_output(tmp_path: Path, capfd: Output) -> None:
    command = ["evaluate", "greedy", "random", "--games", "2", "--json"]
    assert main([*command, str(tmp_path / "results.json")]) == 0
    table, expected = capfd.readouterr().out, json.loads((tmp_path / "results.json").read_text())
    assert main([*command, "-"]) == 0
    printed = capfd.readouterr()
    assert (json.loads(printed.out), printed.err) == (expected, table)
    reader, writer = os.pipe()
    assert main([*command, f"/dev/fd/{writer}"]) == 0
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert json.load(pipe) == expected
    assert capfd.readouterr().out == table


def test_paths__may_begin_with_the_home_folder(
    games: Path, tmp_path: Path, capfd: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(games.parent))
    monkeypatch.setenv("USERPROFILE", str(games.parent))
    monkeypatch.chdir(tmp_path)
    assert main(["export", "~/games.jsonl", "~/out.parquet"]) == 0
    assert main(["evaluate", "--from-records", "~/games.jsonl", "--json", "~/out.json"]) == 0
    assert {"out.parquet", "out.json"} < {path.name for path in games.parent.iterdir()}
    assert list(tmp_path.iterdir()) == []
    assert main(["replay", "~nobody-at-all/games.jsonl"]) == 1
    assert "~nobody-at-all/games.jsonl: No such file" in capfd.readouterr().err
    for name in ("board", "ladder", "start_from"):
        assert PpoSettings.checked(name, "~/a b") == str(games.parent / "a b")
