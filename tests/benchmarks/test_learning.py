"""Tests of `benchmarks/learning.py`: commands, rows, tables, and a short run."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import learning  # noqa: E402  needs the path above
import learning_report  # noqa: E402
import pages  # noqa: E402

from tokaido_env.core.rules import RULES_VERSION  # noqa: E402


def test_list__has_every_method_track_and_budget(capsys: pytest.CaptureFixture[str]) -> None:
    budgets = list(learning.TRAINED)
    words = ["--list", "--budget", *budgets, "--seeds", "3", "--results", "runs/unused"]
    assert learning.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    trained, rated = lines[::2], lines[1::2]
    cells = list(learning.cells(list(learning.METHODS), budgets))
    assert len(trained) == len(rated) == len(cells) == len(set(trained))
    for cell, line in zip(cells, trained, strict=True):
        assert f"runs/unused/{cell.method}-{cell.track}-{cell.budget}-seed-3" in line
        assert " --seed 3 " in line
        script = learning.METHODS[cell.method]
        if isinstance(script, learning.Script):
            assert (ROOT / script.file).is_file()
            assert f" --track {cell.track} " in line
    assert all(" rate " in line for line in rated)


def seed(elo: float, pairs: str) -> dict[str, Any]:
    one = {"elo": elo, "elo_ci95": [elo - 9, elo + 9], "ci95": [0.1, 0.9], "pairs": pairs}
    cost = {"decisions": 2_000_000, "seconds": 90.0, "wall": 100.0}
    return one | cost | {"curve": [[1_000_000, 45.0, elo - 50], [2_000_000, 90.0, elo]]}


def test_write_docs__adds_rows_and_keeps_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(learning_report, "FIGURES", tmp_path)
    file, page = tmp_path / "learning.json", tmp_path / "learning.md"
    other = {"method": "rllib", "track": "raw", "budget": "2m", "tried": "does not start"}
    file.write_text(json.dumps({"version": 1, "rows": [other]}), encoding="utf-8")
    page.write_text(f"{pages.BEGIN}\n{pages.END}\n", encoding="utf-8")
    head = {"method": "td", "track": "raw", "budget": "2m", "rules": RULES_VERSION}
    for number, elo in ((0, -400), (1, -300), (0, -100)):  # the last replaces the first
        row = head | {"runs": {str(number): seed(elo, "0242" * 3)}}
        learning_report.write_docs([row], file, page)
    text = page.read_text(encoding="utf-8")
    assert "| `td` | raw | −200 (−1471 to 1071) | 50.0 % (" in text
    assert " | 0.0 | 2,000,000 | 1.5 | 2 |" in text
    assert text.count("| `td` |") == 1
    assert "| `rllib` (rules 1) | raw | does not start |" in text
    assert (tmp_path / "learning.svg").is_file()
    learning_report.write_docs([], file, page)
    assert page.read_text(encoding="utf-8") == text


def test_page__has_the_tables_of_the_results_file() -> None:
    rows = json.loads(learning_report.RESULTS.read_text(encoding="utf-8"))["rows"]
    page = learning_report.PAGE.read_text(encoding="utf-8")
    assert pages.filled(page, learning_report.content(rows)) == page


@pytest.mark.slow
def test_main__trains_and_measures_on_each_track(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = learning.rate
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(learning, "GAMES", 20)
    monkeypatch.setattr(learning, "CURVE_GAMES", 4)
    monkeypatch.setattr(learning, "rate", lambda run: [*rate(run), "--games", "4"])
    monkeypatch.setitem(learning.BUDGETS, "2m", 20_000)
    words = ["--only", "one_file_td", "td", "--budget", "2m", "--seeds", "0"]
    assert learning.main([*words, "--results", str(tmp_path)]) == 0
    found = list(learning.cells(["one_file_td", "td"], ["2m"]))
    rows = [learning_report.measured(row) for row in learning.rows(found, tmp_path, [0])]
    assert [row["track"] for row in rows] == ["raw", "geometry", "afterstates", "afterstates"]
    assert all(row["decisions"] >= 20_000 and row["curves"][0] for row in rows)
