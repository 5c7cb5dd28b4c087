"""Tests of `benchmarks/tokaido_100.py`: commands, resume and the page."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import pages  # noqa: E402  needs the path above
import tokaido_100  # noqa: E402

Output = pytest.CaptureFixture[str]
RUNS = "runs/tokaido-100"


def test_tokaido_100__trains_learners_before_measuring(capsys: Output) -> None:
    assert tokaido_100.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    trained = [line for line in lines if "tokaido train " in line]
    measured = [line for line in lines if "tokaido generalise " in line]
    assert (len(trained), len(measured)) == (12, 18)
    assert trained[4] == (
        f"tokaido train --run {RUNS}/train-10-seed-1 --board family:train/10 --steps 2000000 "
        "--seed 1"
    )
    place = lines.index(trained[4])
    assert lines[place + 1].startswith(f"tokaido generalise policy:{RUNS}/train-10-seed-1 ")
    specs = [line.split()[2] for line in measured]
    assert specs[:4] == ["greedy", "heuristic", "mcts:sims=100", "mcts:sims=4000"]
    assert specs[4:6] == ["champion", "generalist"]


def test_docs__contain_the_command() -> None:
    page = " ".join(tokaido_100.PAGE.read_text(encoding="utf-8").split())
    assert "python benchmarks/tokaido_100.py" in page
    assert pages.filled(page, "| x |\n").count("| x |") == 1


def test_train__resumes_a_started_run(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    assert tokaido_100.train(tmp_path, 10, 0, 5) == ["train", "--resume", str(tmp_path)]


def test_write_docs__has_means_of_the_learners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{pages.BEGIN}\nold\n{pages.END}\n")
    monkeypatch.setattr(tokaido_100, "PAGE", page)
    head = "| agent | score |\n| --- | --- |\n"
    (tmp_path / "table.md").write_text(f"{head}| greedy | 1 % |\n| policy:a | 2 % |\n")
    learner = tokaido_100.Agent("train-1-seed-0", "policy:a", ["train"])
    tokaido_100._write_docs(tmp_path, [tokaido_100.Agent("greedy", "greedy", []), learner])
    learners = f"\n{tokaido_100.learners_table(tmp_path)}"
    content = f"{head}| greedy | 1 % |\n{learners}"
    assert page.read_text() == f"{pages.BEGIN}\n{content}{pages.END}\n"


@pytest.mark.slow
def test_tokaido_100__measures_once_and_fills_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{pages.BEGIN}\nold\n{pages.END}\nafter\n")
    monkeypatch.setattr(tokaido_100, "PAGE", page)
    monkeypatch.setattr(tokaido_100, "AGENTS", {"greedy": "greedy", "random": "random"})
    results = tmp_path / "results"
    command = ["--results", str(results), "--boards", "2", "--pairs", "1"]
    command += ["--only", "greedy", "random", "--docs"]
    assert tokaido_100.main(command) == 0
    assert sorted(path.name for path in results.iterdir()) == [
        *("greedy.json", "random.json", "table.md")
    ]
    table = (results / "table.md").read_text(encoding="utf-8")
    assert table.count("\n") == 4
    assert page.read_text() == (f"before\n{pages.BEGIN}\n{table}{pages.END}\nafter\n")
    (results / "random.json").unlink()
    before = (results / "greedy.json").stat()
    capfd.readouterr()
    assert tokaido_100.main(command) == 0
    assert "generalise greedy" not in capfd.readouterr().out
    assert (results / "greedy.json").stat().st_mtime_ns == before.st_mtime_ns
    assert (results / "table.md").read_text(encoding="utf-8") == table
