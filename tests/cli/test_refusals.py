"""Wrong arguments of all commands: one line that names them, no work, and no file."""

import shlex
import shutil
from pathlib import Path

import pytest

from tokaido_env.__main__ import main
from tokaido_env.arena.ladder import LADDER

GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"

USAGE = (
    ("nowhere", "nowhere"),
    ("replay g --gmae 1", "--gmae"),
    ("replay", "FILE"),
    ("evaluate a b --games x", "--games"),
    ("evaluate greedy", "AGENTS"),
    ("evaluate greedy random --json games.jsonl", "games.jsonl"),
    ("generalise", "AGENT"),
    ("play --seed=-1", "--seed"),
    ("replay g --gif y --html x", "--gif and --html"),
    ("train --run run --sims 3", "--sims"),
    ("train --run run --resume run", "--run and --resume"),
    ("train --run run --executor processes", "--executor"),
)
"""Words that the declarations refuse, with the status 2."""

ERRORS = (
    ("evaluate greedy nobody", "nobody"),
    ("evaluate greedy random --json /nowhere/r", "/nowhere"),
    ("evaluate greedy random --plots games.jsonl", "games.jsonl"),
    ("evaluate greedy random --json x --records x", "x"),
    ("evaluate greedy random --executor processes:0", "executor"),
    ("evaluate greedy random --error 0.1", "--error"),
    ("evaluate --from-records games.jsonl --seed 1", "--from-records"),
    (f"rate greedy --json {LADDER}", str(LADDER)),
    ("ladder greedy random --out /", "/"),
    ("generalise greedy --train 0", "family:train/0"),
    ("generalise greedy --json r --records x/r", "--records"),
    ("generalise greedy --markdown x.md", "--markdown"),
    ("generalise greedy --compare x.json", "--compare"),
    ("generalise --compare x.json --boards 3", "--compare"),
    ("generalise --compare x.json", "x.json"),
    ("regret greedy --positions 1", "positions"),
    ("replay games.jsonl --html x --value-agent genius", "genius"),
    ("replay games.jsonl --value-agent greedy", "--value-agent"),
    ("replay notes.txt", "notes.txt, line 1"),
    ("review games.jsonl --game 7", "--game"),
    ("review games.jsonl --data o.csv", "o.csv"),
    ("review games.jsonl --judge greedy --executor processes:1", "greedy"),
    ("train --run run --board family:train/0", "family:train/0"),
    ("train --run run --start-from nowhere", "nowhere"),
)
"""Arguments that a command refuses before it plays a game, with the status 1."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with recorded games and a file of another kind."""
    shutil.copy(GOLDEN, tmp_path / "games.jsonl")
    (tmp_path / "notes.txt").write_text("notes\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tokaido_env.arena.game_runner.Batch", None)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "name", "status"),
    [*((*case, 2) for case in USAGE), *((*case, 1) for case in ERRORS)],
)
def test_commands__refuse_wrong_arguments_in_one_line_and_write_nothing(
    words: str, name: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(shlex.split(words)) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert name in printed.err.partition(": ")[2]
    assert printed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
