"""Tests of `tokaido regret`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.__main__ import main
from tokaido_env.arena.result import BoardsEntry, Result
from tokaido_env.study.regret_set import RegretSet


@pytest.fixture
def path(tmp_path: Path) -> str:
    rng, loaded = np.random.default_rng(0), small_set()
    replace(loaded, sums=drawn_sums(loaded, truth_of(loaded, rng, 0.3), rng)).save(
        tmp_path / "set.npz"
    )
    return str(tmp_path / "set.npz")


def test_regret__prints_and_writes_agents_with_differences(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, table = tmp_path / "r.json", tmp_path / "t.md"
    words = ["regret", "greedy", "random", "--set", path]
    assert main([*words, "--json", str(results), "--markdown", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "regret per choice, in 1/1000" in printed
    assert "core-seconds" in printed
    assert all(word in printed for word in ("by boards", "by phase", "by rounds", "paired"))
    found, loaded = Result.load(results), RegretSet.load(path)
    assert found.boards == (BoardsEntry("small", loaded.hash, len(loaded), drawn=True),)
    assert found.agents == ("greedy", "random")
    assert [(x.agent, x.other) for x in found.estimates_of("regret difference")] in (
        *([("greedy", "random")], [("random", "greedy")]),
    )
    assert not found.estimates_of("core-seconds")
    _, _, *lines = table.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "| agent | regret | at most | errors | blunders |"
    assert sum("---" in line for line in lines) == 5  # tables
    first = results.read_bytes()
    for executor in ("serial", "processes:1"):
        assert main([*words, "--json", str(results), "--executor", executor]) == 0
        assert results.read_bytes() == first
    assert main([*words, "--json", str(results), "--timed"]) == 0
    assert len(Result.load(results).estimates_of("core-seconds")) == 2


def test_regret__measures_exact_losses_in_solved_positions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "r.json"
    words = ["regret", "greedy", "random", "--set", "solved", "--json", str(results)]
    assert main([*words, "--markdown", str(tmp_path / "t.md")]) == 0
    found = Result.load(results)
    assert found.boards[0].name == "tokaido-solved-1"
    greedy, random = ({x.agent: x for x in found.estimates_of("optimal")}[a] for a in found.agents)
    assert random.value < 0.5 < greedy.low < greedy.value < greedy.high
    lines = (tmp_path / "t.md").read_text(encoding="utf-8").splitlines()
    assert lines[2] == "| agent | regret | optimal | errors | blunders |"
    assert lines[4].startswith("| greedy |")
    assert "optimal" in capsys.readouterr().out
