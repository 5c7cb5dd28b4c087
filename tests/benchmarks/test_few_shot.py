"""Tests of benchmarks/few_shot.py: its commands, and the table of finished results."""

import json
import sys
from pathlib import Path

import pytest

from tokaido_env.agents.champion import GENERALIST

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import few_shot  # noqa: E402  needs the path above


def test_cases__play_the_stated_number_of_games_on_their_board(tmp_path: Path) -> None:
    found = few_shot.cases(tmp_path, 2)
    assert len(found) == 2 * (1 + 2 * 3)
    assert sorted({case.games for case in found}) == [0, 10, 100, 1000]
    for case in found:
        words = case.training(GENERALIST)
        assert bool(words) == (case.games > 0)
        assert f"family:{case.board}" in case.measuring(GENERALIST, 40)
        if words:
            options = dict(zip(words[1::2], words[2::2], strict=True))
            assert int(options["--games"]) * int(options["--updates"]) == case.games
            assert options["--board"] == f"family:{case.board}"
            assert ("--start-from" in options) == (case.method == "fine-tuned")


def test_table__has_means_over_boards_with_intervals(tmp_path: Path) -> None:
    found = few_shot.cases(tmp_path, 3)
    for case in found:
        score = (case.board - 2_000_000) / 10 + case.games / 10_000
        score += 0.5 * (case.method == "fine-tuned")
        case.result.write_text(json.dumps({"matches": [{"score": score}]}), encoding="utf-8")
    lines = few_shot.table(found).splitlines()
    half = 4.303 * 10 / 3**0.5  # Student's t with 2 degrees of freedom
    text = lines[2].split("|")[2].strip()
    assert text.startswith("60.0 % (")
    got = [float(x) for x in text[8:-1].split(" to ")]
    assert got == pytest.approx([60 - half, 60 + half], abs=0.1)
    assert lines[-1].split("|")[3].strip() == "+10.0 % (+10.0 to +10.0)"
