"""Tests of `benchmarks/golden.py`: commands of generated files, and golden records."""

import json
import re
import sys
from typing import Any

import pytest
from golden_records import records, replayed
from processes import ROOT

from tokaido_env import ACTIONS, Game
from tokaido_env.__main__ import app

sys.path.insert(0, str(ROOT / "benchmarks"))

import golden
import pages
import reference_pages

FOLDER = ROOT / "tests" / "golden"


def games() -> list[dict[str, Any]]:
    text = (FOLDER / "games.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_golden_records__are_reproducible() -> None:
    made = records(FOLDER)
    assert set(made) == {path.name for path in FOLDER.iterdir()}
    for name, text in made.items():
        assert text == (FOLDER / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("line", [0, 5])
def test_replayed__continues_after_an_illegal_decision(line: int) -> None:
    """As after a change of a rule: here with the decisions of another game."""
    data, other = games()[line], games()[1]
    record = replayed(data | {"events": other["events"]})
    assert record.end in ("triggers", "cap")
    assert (record.seed, record.start) == (data["seed"], data["start"])
    game = Game(seed=record.seed)
    if record.start is not None:
        game = Game.from_dict(record.start, seed=record.seed, chance="sampled")
    for event in record.events:
        if event in ACTIONS:
            game.play(event)
    assert game.record(record.players) == record


def test_golden__lists_a_command_for_every_generated_file() -> None:
    """Figures, weights, results and pictures, found by their names."""
    patterns = (
        *("tokaido_env/**/*.json", "tokaido_env/**/*.npz", "tokaido_env/**/*.safetensors"),
        *("tokaido_env/agents/*.toml", "benchmarks/*.json", "docs/pictures/*", "tests/golden/*"),
        *("*.json",),
    )
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert len(found) > 25
    listed = [path for made in golden.derived_files() for path in golden.files_of(made)]
    assert found <= set(listed)
    assert len(listed) == len(set(listed)), "made twice"
    assert all(golden.files_of(made) for made in golden.derived_files())


def text_of(command: str, first: str) -> str:
    """Return the help of a command of the package, or the source of a program."""
    if command == "tokaido":
        return reference_pages.section(app()[first])
    shared = ROOT / "benchmarks" / "options.py"
    return (ROOT / first).read_text(encoding="utf-8") + shared.read_text(encoding="utf-8")


def test_golden__commands_exist_with_their_options() -> None:
    for made in golden.derived_files():
        words = made.command.split()
        text = text_of(*words[:2]) if words else ""
        for option in (word for word in words if word.startswith("--")):
            assert re.search(rf"{option}\b", text), (made.name, option)


@pytest.mark.parametrize("page", ["actions", "observation", "cli"])
def test_reference_pages__are_current(page: str) -> None:
    path = ROOT / "docs" / "reference" / f"{page}.md"
    text = path.read_text(encoding="utf-8")
    assert pages.filled(text, reference_pages.contents()[path]) == text
