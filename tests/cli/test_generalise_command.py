"""Tests of `tokaido generalise`."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from refusals import check_refused

from tokaido_env.__main__ import main
from tokaido_env.arena.result import Result
from tokaido_env.record import load

ROOT = Path(__file__).resolve().parents[2]
OPPONENT = "greedy:epsilon=0.2"
SMALL = ["--opponent", OPPONENT, "--boards", "3", "--pairs", "2"]

Output = pytest.CaptureFixture[str]


def results(path: Path, *arguments: str) -> dict[str, Any]:
    assert main(["generalise", *arguments, *SMALL, "--json", str(path)]) == 0
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


def test_generalise__writes_json_and_prints_a_table(tmp_path: Path, capsys: Output) -> None:
    written = results(tmp_path / "r.json", "greedy", "--seed", "3")
    found = Result.load(tmp_path / "r.json")
    assert (written["agents"], found.scores[0].b, found.seed) == (["greedy"], OPPONENT, 3)
    means = []
    for kind, first in (("test", 2_000_000), ("train", 0)):
        pool = f"family:{kind}/3"
        scores = found.scores_of(pool)
        assert [(one.board, one.n) for one in scores] == [
            (f"family:{first + i}", 4) for i in range(3)
        ]
        estimates = [one for one in found.estimates if one.group == pool and one.measure != "gap"]
        assert len(estimates) == 4
        means.append(estimates[0].value)
        assert means[-1] == pytest.approx(sum(one.value for one in scores) / 3, abs=2e-6)
    assert found.estimates_of("gap")[0].value == pytest.approx(means[0] - means[1], abs=2e-6)
    printed = capsys.readouterr()
    assert f"greedy against {OPPONENT}, seed 3" in printed.out
    value = f"{100 * means[0]:.1f} % ("
    (row,) = (line for line in printed.out.splitlines() if line.strip().startswith("mean score"))
    assert value in row
    assert "family:test/3" in printed.out
    assert "Gap, family:test/3 less family:train/3 (boards of train)" in printed.out


def test_generalise__resumes_from_records_of_both_splits(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "games.jsonl"
    first = results(tmp_path / "a", "greedy", "--records", str(file))
    whole = file.read_bytes()
    boards = [record.board for record in load(file)]
    assert boards == [f"family:{number}" for number in (2000000, 2000001, 2000002, 0, 1, 2)
                      for _ in range(4)]  # fmt: skip
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for size in (ends[5] + 9, ends[13]):
        file.write_bytes(whole[:size])
        capsys.readouterr()
        assert results(tmp_path / "b", "greedy", "--records", str(file)) == first
        assert f"{whole[:size].count(10)} recorded games" in capsys.readouterr().err
        assert file.read_bytes() == whole


# Comparison


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write results with 1, 10 and an unknown number of training boards; return their paths."""
    folder = tmp_path_factory.mktemp("several")
    files = [str(folder / f"{name}.json") for name in "abc"]
    for file, more in zip(files, (["--train", "1"], ["--train", "10"], []), strict=True):
        assert main(["generalise", "greedy", *SMALL, *more, "--json", file]) == 0
    return files


def test_compare__writes_a_table(several: list[str], tmp_path: Path, capsys: Output) -> None:
    table = tmp_path / "table.md"
    assert main(["generalise", "--compare", *several, "--markdown", str(table)]) == 0
    printed = capsys.readouterr().out
    assert f"Against {OPPONENT} on family:test/3: 3 boards, 2 pairs on each" in printed
    _, _, *lines = table.read_text(encoding="utf-8").splitlines()
    assert [line.count("|") for line in lines] == [10] * 5
    assert lines[0].split("|")[6].strip() == "worst tenth"
    for file, line in zip(several, lines[2:], strict=True):
        found = Result.load(file)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[:2] == ["greedy", found.trained_on or ""]
        for place, measure in {2: "mean score", 5: "worst tenth"}.items():
            one = found.estimate(measure, other=OPPONENT, group="family:test/3")
            value, low, high = (100 * x for x in (one.value, one.low, one.high))
            assert cells[place] == f"{value:.1f} % ({low:.1f} to {high:.1f})"
        assert cells[8][:6] == ("" if file == several[0] else "50.0 %")  # the same games
        gap = found.estimates_of("gap")[0].value
        assert cells[7].split(" ")[0].lstrip("+−") == f"{abs(100 * gap):.1f}"


def test_compare__combines_training_seeds(
    several: list[str], tmp_path: Path, capsys: Output
) -> None:
    table = tmp_path / "table.md"
    other = str(shutil.copy(several[2], tmp_path / "d.json"))
    command = ["generalise", "--compare", *several, other, "--markdown", str(table)]
    assert main([*command, "--runs", "2"]) == 0
    capsys.readouterr()
    rows = table.read_text(encoding="utf-8").splitlines()[4:]
    assert [row.split("|")[1].strip() for row in rows] == ["greedy, 2 seeds"] * 2
    check_refused(
        capsys,
        [*command, "--runs", "3"],
        "--runs: expected a divisor of 4, the number of files, got 3",
    )


def test_compare__refuses_another_seed(tmp_path: Path, capsys: Output) -> None:
    bot = f"python:{ROOT / 'agents' / 'temple_bot.py'}:TempleBot"
    command = ["generalise", "random", "--no-gap", "--boards", "2", "--pairs", "1"]
    files = [str(tmp_path / f"{seed}.json") for seed in (0, 1)]
    for seed, file in enumerate(files):
        assert main([*command, "--opponent", bot, "--seed", str(seed), "--json", file]) == 0
    assert main(["generalise", "--compare", *files]) == 1
    error = capsys.readouterr().err
    assert re.search("expected the protocol of .* with SHA-256 .*, seed 0; got .*, seed 1", error)


def opponents_of(written: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(score["b"] for score in written["scores"]))


def test_generalise__plays_several_opponents(tmp_path: Path, capsys: Output) -> None:
    written = results(tmp_path / "r.json", "random", "--opponents", "rusher", "hoarder")
    assert opponents_of(written) == [OPPONENT, "rusher", "hoarder"]
    printed = capsys.readouterr().out
    default = results(tmp_path / "s.json", "rusher", "--no-gap", "--opponents")
    others = [OPPONENT, "mcts:sims=400", "heuristic", "generalist", "hoarder"]  # not the agent
    assert opponents_of(default) == others
    for name in (OPPONENT, "rusher", "hoarder", "mean", "worst: "):
        assert any(line.strip().startswith(name) for line in printed.splitlines())
