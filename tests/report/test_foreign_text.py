"""Tests that commands escape foreign text for terminals and pages.

Names of players and boards, and specs with the names of files, may hold anything.
"""

import re
from html import unescape
from pathlib import Path

import pytest
from networks import random_policy
from positions import shikoku_data, write_board

from tokaido_env import Game
from tokaido_env.__main__ import main as command
from tokaido_env.files import read_json

# The end of a rich style, a terminal title, colours, text direction, line ends, TeX, and formats.
HOSTILE = "[/x]\x1b]0;gone\x07\x1b[31m\u202eabc\u2066\r\n\x9b2J\x00$x_{y$<b>{0}%s"


@pytest.fixture
def board(tmp_path: Path) -> str:
    return str(write_board(tmp_path / "theirs.toml", shikoku_data() | {"name": HOSTILE}))


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Save a policy in the current folder; return its spec."""
    monkeypatch.chdir(tmp_path)
    name = HOSTILE.replace("/", "").replace("\x00", "")
    random_policy().save(name)
    return f"policy:{name}"


@pytest.fixture
def records(tmp_path: Path, board: str) -> str:
    game = Game(board=board, seed=0)
    for _ in range(8):
        game.play(game.legal_actions()[0])
    path = tmp_path / "games.jsonl"
    path.write_text(game.record([HOSTILE, "\u202e" * 1000]).to_json() + "\n", encoding="utf-8")
    return str(path)


def is_harmless(text: str) -> bool:
    """Return whether a text has only printable characters and short lines."""
    lines = text.split("\n")
    return all(line.isprintable() for line in lines) and max(map(len, lines)) < 500


def text_of(path: Path) -> str:
    """Return a page without styles and scripts."""
    page = re.sub(r"<(style|script)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.S)
    return unescape(page)


def test_replay__escapes_foreign_text(
    records: str, board: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = str(tmp_path / "page.html")
    for words in ([], ["--html", page]):
        assert command(["replay", records, "--board", board, *words]) == 0
    assert command(["replay", records]) == 1
    assert command(["export", records, str(tmp_path / "o.parquet"), "--board", board]) == 0
    captured = capsys.readouterr()
    assert is_harmless(captured.out)
    assert is_harmless(captured.err)
    assert r"[/x]\x1b]0;gone\x07\x1b[31m\u202eabc\u2066\r\n\x9b2J\x00$x_{y$<b>{0}%s" in captured.out
    assert text_of(tmp_path / "page.html").replace("\n", "").isprintable()


def test_evaluate__escapes_foreign_text(
    policy: str, board: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", "random", policy, "--games", "8", "--board", board, "--luck-adjusted"]
    files = ["--json", "r.json", "--records", "g.jsonl", "--report", "r.html", "--plots", "plots"]
    assert command([*words, *files]) == 0
    captured = capsys.readouterr()
    assert is_harmless(captured.out)
    assert is_harmless(captured.err)
    assert r"policy:[x]\x1b]0;gone" in captured.out
    assert read_json(Path("r.json"))["agents"] == ["random", policy]
    assert text_of(Path("r.html")).replace("\n", "").isprintable()
    for path in Path("plots").glob("*.svg"):
        assert text_of(path).replace("\n", "").isprintable()
