"""Tests of `benchmarks/tokaido_bench_1.py`: it measures once, and fills the page and the suite."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.arena.suite import Suite

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "tests" / "golden" / "small-suite.json"
sys.path.insert(0, str(ROOT / "benchmarks"))

import tokaido_bench_1  # noqa: E402  needs the path above

Output = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_tokaido_bench_1__measures_once_and_fills_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table -->\nold\n<!-- end of table -->\nafter\n")
    monkeypatch.setattr(tokaido_bench_1, "PAGE", page)
    monkeypatch.setattr(tokaido_bench_1, "AGENTS", {"greedy": "greedy"})
    results = tmp_path / "results"
    command = ["--results", str(results), "--suite", str(SMALL), "--docs"]
    assert tokaido_bench_1.main(command) == 0
    table = (results / "table.md").read_text(encoding="utf-8")
    assert table.count("\n") == 3
    assert page.read_text() == (f"before\n<!-- table -->\n{table}<!-- end of table -->\nafter\n")
    capfd.readouterr()
    assert tokaido_bench_1.main(command) == 0
    assert "suite greedy" not in capfd.readouterr().out


def test_write_suite__sets_the_ratings_of_opponents(tmp_path: Path) -> None:
    def ladder(name: str, **elo: float) -> Path:
        agents: list[dict[str, Any]] = [{"agent": spec, "elo": x} for spec, x in elo.items()]
        path = tmp_path / name
        path.write_text(json.dumps({"agents": agents}), encoding="utf-8")
        return path

    suite = tmp_path / "suite.json"
    shutil.copy(SMALL, suite)
    before = Suite.load(suite)
    one, other = ladder("a", random=-2.0, greedy=1.0, more=0.0), ladder("b", greedy=3.0, random=4.0)
    tokaido_bench_1.write_suite(suite, one, other)
    after = Suite.load(suite)
    assert (after.default.elo, after.test.elo) == ((1.0, -2.0), (3.0, 4.0))
    assert after.hash != before.hash
    assert after.test.pool.hash == before.test.pool.hash
