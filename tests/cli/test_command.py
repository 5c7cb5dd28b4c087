"""Tests of cli/command.py: pipes and the home folder."""

import io
import json
import os
import random
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.__main__ import main
from tokaido_env.cli.command import CLOSED_PIPE
from tokaido_env.learn.settings import TdSettings

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


class Notebook(io.TextIOBase):
    """A stream of text as that of a notebook: without bytes, descriptor or terminal."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def read(self, size: int | None = -1) -> str:
        return self.text


REVIEW = "review FILE --game 1 --judge mcts:sims=4 --value-agent mcts:sims=4 --chance-samples 4"
WRITING = [
    *("evaluate --from-records FILE --json", "replay FILE --game 1 --html"),
    *(f"{REVIEW} --json", f"{REVIEW} --html"),
]


@pytest.mark.parametrize("command", WRITING)
def test_write_path__writes_to_any_standard_output(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, command: str
) -> None:
    """That of a notebook takes no bytes; without any, the command is refused before it reads."""
    words, out = command.replace("FILE", str(games)).split(), tmp_path / "out"
    assert main([*words, str(out)]) == 0
    expected = out.read_text(encoding="utf-8")
    for stream in (io.StringIO(), Notebook(), io.TextIOWrapper(io.BytesIO(), "ascii")):
        monkeypatch.setattr(sys, "stdout", stream)
        assert main([*words, "-"]) == 0
        written = stream.text if isinstance(stream, Notebook) else ""
        if isinstance(stream, io.StringIO):
            written = stream.getvalue()
        if isinstance(stream, io.TextIOWrapper):
            stream.seek(0)
            written = stream.buffer.read().decode()
        assert written == expected
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdout", None)
    assert main([*command.replace("FILE", "missing").split(), "-"]) == 2
    error = "expected a file, got -: there is no standard output\n"
    assert capsys.readouterr().err == f"{words[0]}: {words[-1]}: {error}"


READING = [
    *("replay FILE", "evaluate --from-records FILE", "replay GAMES --board FILE", REVIEW),
    *("play --from FILE --terminal", "export FILE OUT", "rate greedy --ladder FILE --games 2"),
    "regret greedy --set FILE",
]


@pytest.mark.parametrize("seed", range(3))
def test_read_path__takes_any_standard_input(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, seed: int
) -> None:
    """That of a notebook gives no bytes; without any, the command is refused."""
    rng, texts = random.Random(seed), [games.read_text("utf-8"), "", "notes\n", "\udcff\0"]
    monkeypatch.setattr("builtins.input", lambda prompt: "q")
    for command in READING:
        words = command.replace("OUT", str(tmp_path / "out.parquet"))
        words = words.replace("GAMES", str(games))
        text, stream = rng.choice(texts), rng.choice([io.StringIO, Notebook])
        path = tmp_path / "in.toml"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        printed = []
        for file in (str(path), "-"):
            monkeypatch.setattr(sys, "stdin", stream(text))
            status = main(words.replace("FILE", file).split())
            shown = capsys.readouterr()
            printed.append((status, shown.out, shown.err.replace(str(path), "-")))
        assert printed[0] == printed[1]
        assert printed[0][0] == 0 or len(printed[0][2].splitlines()) == 1
        monkeypatch.setattr(sys, "stdin", None)
        assert main(words.replace("FILE", "-").split()) == 2
        error = "expected a file, got -: there is no standard input\n"
        assert capsys.readouterr().err.endswith(error)


@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_terminal__without_a_console_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: Output, name: str
) -> None:
    monkeypatch.setattr(sys, name, None)
    assert main(["play", "--terminal"]) == 1
    error = f"play: --terminal: expected a console, got none: input(): lost sys.{name}\n"
    assert capsys.readouterr().err == error


@POSIX
@pytest.mark.parametrize("stream", [io.StringIO(), Notebook(), None])
def test_write_path__ends_at_a_closed_pipe_with_any_standard_output(
    games: Path, monkeypatch: pytest.MonkeyPatch, stream: Any
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(sys, "stdout", stream)
    command = ["evaluate", "--from-records", str(games), "--json", f"/dev/fd/{writer}"]
    assert main(command) == CLOSED_PIPE
    os.close(writer)


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
        assert TdSettings.checked(name, "~/a b") == str(games.parent / "a b")
