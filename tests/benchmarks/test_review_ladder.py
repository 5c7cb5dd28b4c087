"""Tests of `benchmarks/review_ladder.py` on a small ladder."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT

from tokaido_env.record import load

sys.path.insert(0, str(ROOT / "benchmarks"))

import review_ladder
from review_ladder import Choices

LADDER = {
    "hash": "abc",
    "board": "shikoku",
    "agents": [
        {"agent": name, "elo": elo} for name, elo in (("x", 9.0), ("y", -8.0), ("z", -70.0))
    ],
}


def choices(**losses: list[float]) -> Choices:
    """Return decisions of agents against "y", two per pair of games."""
    agents = [name for name, values in losses.items() for _ in values]
    values = np.array([value for each in losses.values() for value in each])
    pairs = np.arange(len(values)) // 2
    agreed, are_open = values == 0, np.arange(len(values)) % 2 == 0
    return Choices(np.array(agents), np.full(len(agents), "y"), pairs, values, agreed, are_open)


def test_tables_of__have_means_by_agent_and_opponent() -> None:
    sample = choices(z=[0.1, 0.3, 0.2, 0.0], y=[0.0, 0.02, 0.0, 0.02], x=[0.0, 0.0, 0.0, -0.01])
    first, against, while_open = review_ladder.tables_of({"judge": sample}, LADDER)
    assert [row[0] for row in first.rows] == ["x", "y", "z"]
    # Pairs of z lose 0.4 and 0.2 on two choices each: a spread of 0.05 about 0.15, and 1.96 of it.
    assert first.rows[2] == ("z", "−70", "4", "15.00% ± 9.80%", "15.00% ± 9.80%", "25%")
    assert first.rows[1][3:] == ("1.00% ± 0.00%", "0.00% ± 0.00%", "50%")
    assert first.rows[0][3].startswith("−0.25%")
    assert against.headers == ("loss of", "x", "y", "z")
    assert against.rows[2] == ("z", "–", "15.00% ± 9.80%", "–")
    assert while_open.rows[1] == ("y", "–", "0.00% ± 0.00%", "–")


def test_orders_of__counts_pairs_ordered_like_the_ladder() -> None:
    right = choices(z=[0.3, 0.3], y=[0.2, 0.2], x=[0.1, 0.1])
    wrong = choices(z=[0.3, 0.3], y=[0.1, 0.1], x=[0.2, 0.2])
    text = review_ladder.orders_of({"one": right, "other": wrong}, LADDER)
    assert "by `one` orders 3 as their ratings do, while both could win 3." in text
    assert "by `other` orders 2 as their ratings do, while both could win 2." in text


@pytest.mark.slow
def test_review_ladder__plays_once_and_fills_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, results = tmp_path / "page.md", tmp_path / "results"
    page.write_text("before\n<!-- table -->\nold\n<!-- end of table -->\nafter\n")
    monkeypatch.setattr(review_ladder, "PAGE", page)
    monkeypatch.setattr(review_ladder, "AGENTS", ("random", "greedy"))
    options = ["--results", str(results), "--pairs", "1", "--judges", "mcts:sims=20", "champion"]
    assert review_ladder.main([*options, "--docs"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- table -->\n")
    assert text.endswith("<!-- end of table -->\nafter\n")
    assert "old" not in text
    rows = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert rows == ["greedy", "random"] * 3
    games = sorted(results.glob("*.jsonl"))
    players = {load(path)[0].players for path in games}
    assert players == {("random", "random"), ("random", "greedy"), ("greedy", "greedy")}
    assert len({record.seed for path in games for record in load(path)}) == 3  # one of each pair
    assert len(list(results.glob("*.parquet"))) == 6
    capsys.readouterr()

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(review_ladder, "play_remaining", never)
    monkeypatch.setattr(review_ladder, "review_games", never)
    assert review_ladder.main([*options, "--docs"]) == 0
    assert page.read_text(encoding="utf-8") == text
