"""Tests of `tokaido regret`."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.__main__ import main
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
    data, loaded = json.loads(results.read_text(encoding="utf-8")), RegretSet.load(path)
    assert data["set"] == {"name": "small", "hash": loaded.hash, "positions": len(loaded)}
    assert [one["agent"] for one in data["agents"]] == ["greedy", "random"]
    assert len(data["agents"][0]["choices"]) == data["set"]["positions"]
    lines = table.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "| agent | regret | at most | errors | blunders |"
    assert len(lines) == 4
    first = results.read_bytes()
    for executor in ("serial", "processes:2"):
        assert main([*words, "--json", str(results), "--executor", executor]) == 0
        assert results.read_bytes() == first
    assert main([*words, "--json", str(results), "--timed"]) == 0
    assert "core_seconds" in json.loads(results.read_text(encoding="utf-8"))["agents"][0]


def test_regret__prints_and_writes_the_bias_of_values(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "r.json"
    assert main(["regret", "mcts:sims=8", "--set", path, "--json", str(results)]) == 0
    (agent,) = json.loads(results.read_text(encoding="utf-8"))["agents"]
    for measured in agent["values"].values():
        low, high = measured["all"]["bias"]["ci95"]
        assert low <= measured["all"]["bias"]["mean"] <= high
        assert measured["rounds"]["1–"]["bias"] == measured["all"]["bias"]
    assert capsys.readouterr().out.count("value bias") == len(agent["values"])
