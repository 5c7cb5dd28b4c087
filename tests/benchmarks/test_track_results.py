"""Tests of `benchmarks/track_results.py` and `tracks.py`: rows, refusals, tables and commands."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import pages  # noqa: E402  needs the path above
import track_results  # noqa: E402
import tracks  # noqa: E402

from tokaido_env.__main__ import main  # noqa: E402
from tokaido_env.arena.result import ResultError  # noqa: E402

ABOUT: dict[str, Any] = {"method": "mine", "track": "T100-2M", "decisions": 5, "hours": 0.5}
ABOUT |= {"command": "python mine.py", "by": "me"}


def test_page__has_the_tables_of_the_results_file() -> None:
    page = track_results.PAGE.read_text(encoding="utf-8")
    tables = track_results.tables(track_results.load())
    marks = track_results.BEGIN, track_results.END
    assert pages.filled(page, tables, *marks) == page
    assert tables.count("| `") == len(track_results.load().rows)


def row_of(count: int = 5, **changes: Any) -> dict[str, Any]:
    """A row of T100-2M with the score s / 10 + board / 1000 for seed s."""
    seeds = []
    for seed in range(count):
        boards = [round(0.1 * seed + board / 1000, 6) for board in range(100)]
        score = {"value": round(sum(boards) / 100, 6), "low": 0.0, "high": 1.0}
        one = {"seed": seed, "pairs": 10, "score": score, "boards": boards}
        seeds.append(one | {"records": f"{seed:064x}"})
    head = ABOUT | {"status": "reported", "version": "0.1.0", "date": "2026-11-26"}
    return head | {"hash": "aa542f77b09804c3", "seeds": seeds} | changes


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "results.json"
    track_results.write(rows, path)
    return path


def test_load__reads_what_write_wrote(tmp_path: Path) -> None:
    rows = [row_of(), row_of(3, track="incomplete", hours=None)]
    path = written(tmp_path, *rows)
    assert [row.to_dict() for row in track_results.load(path).rows] == rows
    assert max(map(len, path.read_text(encoding="utf-8").splitlines())) < 1500
    mean, spread = track_results.score_of(track_results.load(path).rows[0])
    assert mean.value == pytest.approx(0.2 + 0.0495)
    assert spread == "15.8"  # standard deviation of 0, 10, 20, 30, 40
    text = track_results.tables(track_results.load(path))
    assert "**T100-2M**\n\n| method" in text
    assert "| mine | 24.9 % (" in text


def other_seeds(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    row = row_of()
    change(row["seeds"][1])
    return row


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (row_of(hash="0" * 16), "hash"),
        (row_of(4), "seeds: expected 5"),
        (row_of(5, track="incomplete"), "seeds: expected fewer than 5"),
        (row_of(decisions=2_000_001), "decisions"),
        (other_seeds(lambda one: one.update(seed=0)), "each seed once"),
        (other_seeds(lambda one: one.update(records="0" * 64)), "different games of each seed"),
        (other_seeds(lambda one: one["boards"].pop()), "boards: expected 100"),
        (other_seeds(lambda one: one["score"].update(value=0.9)), "score: expected the mean"),
        (other_seeds(lambda one: one.update(pairs=9)), "pairs: expected 10"),
    ],
)
def test_load__refuses_a_wrong_row(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=message):
        track_results.load(written(tmp_path, row))


def submissions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Write five small submissions, and make their protocol that of the tracks."""
    for name, value in (("SPLIT", "test/2"), ("BOARDS", 2), ("OPPONENT", "random")):
        monkeypatch.setattr(track_results, name, value)
    monkeypatch.setitem(track_results.PAIRS, "T100-2M", 1)
    files = [folder / f"{seed}.json" for seed in range(5)]
    for seed, file in enumerate(files):
        command = (
            f"generalise greedy:epsilon=0.{seed} --opponent random --boards 2 --pairs 1 --no-gap"
        )
        files_of = ["--json", str(file), "--records", str(file.with_suffix(".jsonl"))]
        assert main([*command.split(), *files_of]) == 0
    return files


def test_add_row__compares_repeated_submissions_and_refuses_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = submissions(tmp_path, monkeypatch)
    path = written(tmp_path)
    track_results.add_row(files, path=path, **ABOUT)
    assert [row.status for row in track_results.load(path).rows] == ["reported"]
    track_results.add_row(files, files, path=path, **ABOUT)
    (row,) = track_results.load(path).rows
    assert (row.status, len(row.seeds)) == ("verified", 5)
    before = path.read_bytes()
    with pytest.raises(ResultError, match=r"0\.json: hash: expected"):
        track_results.add_row(files, files[::-1], path=path, **ABOUT)
    with pytest.raises(ResultError, match="row: seeds: expected 5 of T100-2M, got 2"):
        track_results.add_row(files[:2], path=path, **ABOUT)
    monkeypatch.setattr(track_results, "SPLIT", "test/3")
    with pytest.raises(ResultError, match=r"0\.json: boards: expected \w+ of family:test/3"):
        track_results.add_row(files, path=path, **ABOUT)
    assert path.read_bytes() == before


def test_tracks__commands_stay_within_the_budget() -> None:
    for method in tracks.METHODS:
        run = tracks.run_of(Path("runs"), method, 3, track_results.MOST_DECISIONS)
        assert 1_900_000 < run.decisions <= track_results.MOST_DECISIONS
        assert "family:train/1000" in run.training
        assert run.training[run.training.index("--seed") + 1] == "3"
