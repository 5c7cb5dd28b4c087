"""Tests of `tokaido evaluate suite` and `verify`, and of their benchmark program."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from refusals import check_refused

from tokaido_env.arena.suite import Suite
from tokaido_env.cli.evaluate import main

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "tests" / "golden" / "small-suite.json"
sys.path.insert(0, str(ROOT / "benchmarks"))

import tokaido_bench_1  # noqa: E402  needs the path above

Output = pytest.CaptureFixture[str]


def measured(folder: Path, agent: str = "heuristic", *more: str) -> dict[str, bytes]:
    """The submission of an agent and its records."""
    files = [f"--{key}={folder / name}" for key, name in NAMES.items()]
    assert main(["suite", agent, f"--suite={SMALL}", *files, *more]) == 0
    return {key: (folder / name).read_bytes() for key, name in NAMES.items() if key != "timing"}


NAMES = {"json": "mine.json", "records": "mine.jsonl", "timing": "mine.timing.json"}


def test_suite__resumes_to_the_same_bytes(tmp_path: Path, capsys: Output) -> None:
    first = measured(tmp_path)
    printed = capsys.readouterr().out
    for text in ("TB-1, the default board", "TB-G, the test boards", "core-seconds per move"):
        assert text in printed
    lines = first["records"].splitlines(keepends=True)
    (tmp_path / "mine.jsonl").write_bytes(b"".join(lines[10:14]) + b"".join(lines[:5]))
    (tmp_path / "mine.json").unlink()
    assert measured(tmp_path, "heuristic", "--executor", "serial") == first
    assert "9 recorded games" in capsys.readouterr().err
    timing = json.loads((tmp_path / "mine.timing.json").read_text(encoding="utf-8"))
    assert timing["suite"] == Suite.load(SMALL).hash
    assert timing["moves"] > 100
    assert 0 < timing["seconds_a_move"] < 1


def test_verify__accepts_a_submission_that_compare_tabulates(
    tmp_path: Path, capsys: Output
) -> None:
    measured(tmp_path)
    path = str(tmp_path / "mine.json")
    verify = ["verify", path, "--suite", str(SMALL), "--share", "1", "--agent", "heuristic"]
    assert main(verify) == 0
    assert "verified: 24 games replayed, " in capsys.readouterr().out
    other = tmp_path / "other.json"
    shutil.copy(path, other)
    markdown = tmp_path / "table.md"
    table = ["suite", "--suite", str(SMALL), "--compare", path, str(other)]
    assert main([*table, "--markdown", str(markdown)]) == 0
    rows = markdown.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "| agent | TB-1 | TB-G | worst board | core-seconds per move |"
    timed, untimed = (row.split(" | ") for row in rows[2:])
    assert timed[:4] == untimed[:4]
    assert timed[4] != untimed[4] == " |"
    assert main([*verify[:2], "--share", "0"]) == 1  # of tokaido-bench-1 it is not
    assert "suite: expected tokaido-bench-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("suite", "greedy", "--suite", "no.json"), "no.json: no such suite"),
        (("suite", "greedy", "--markdown", "x.md"), "--markdown: expected together with --compare"),
        (
            ("suite", "greedy", "--compare", "x.json"),
            "--compare: expected only result files",
        ),
        (("verify", "no.json"), "no.json: no such submission"),
        (("verify", str(SMALL)), "suite: expected tokaido-bench-1, got None: expected a submis"),
    ],
)
def test_suite__refuses_wrong_options_in_one_line(
    capsys: Output, arguments: tuple[str, ...], message: str
) -> None:
    check_refused(capsys, ["evaluate", *arguments], message)


# The script


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
