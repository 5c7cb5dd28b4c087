"""Tests of `tokaido evaluate regret`, and of the program that makes a regret set."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT
from refusals import check_refused
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.cli.evaluate import main
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.study.regret_set import NOT_ROLLED, RegretSet

sys.path.insert(0, str(ROOT / "benchmarks"))

import regret_making
import regret_set


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["greedy", "--set", "missing.npz"], "missing.npz: expected a file"),
        (["greedy", "--json", "no/where.json"], "no/where.json"),
    ],
)
def test_regret__refuses_wrong_files_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refused(capsys, ["evaluate", "regret", *words], message)


# Making one


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "JUDGES": ("mcts:sims=8",),
        "REFERENCES": ("greedy", "heuristic"),
        "SOURCES": ("heuristic", "greedy"),
        "POLICIES": ("heuristic", "heuristic"),
        "LAST_ROUNDS": (),
        "FEW": 1,
    }.items():
        monkeypatch.setattr(regret_making, name, value)


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="thousands of games")
def test_regret_set__is_made_and_resumed(
    cheap: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(work: str, *words: str) -> tuple[int, Path]:
        out = tmp_path / f"{work}.npz"
        options = ["--positions", "64", "--games", "12", "--blocks", "2", "--threads", "1"]
        folder = "--work", str(tmp_path / work)
        return regret_set.main([*options, *folder, "--out", str(out), *words]), out

    status, out = make("one")
    assert status == 0
    loaded = RegretSet.load(out)
    assert len(loaded) == 64
    assert loaded.card["rollouts"] == 128
    assert "python benchmarks/regret_set.py --positions 64" in loaded.card["command"]
    rolled = (loaded.sums[:, 0] != NOT_ROLLED).all(axis=1)
    for i, (a, b) in enumerate(zip(loaded.starts, loaded.starts[1:], strict=False)):
        assert min(5, b - a) <= rolled[a:b].sum() <= 7, i
    assert {stratum["phase"] for stratum in loaded.card["strata"]} == {*regret_making.PHASES}
    assert loaded.shares.sum() == pytest.approx(1)
    capsys.readouterr()
    (tmp_path / "one" / "heuristic-00020.npy").unlink()
    assert make("one") == (0, out)
    assert capsys.readouterr().out.count("rollouts/s") == 1
    assert RegretSet.load(out).hash == loaded.hash
    for rolled_out in (tmp_path / "one").glob("heuristic-*.npy"):
        rolled_out.unlink()
    assert make("one", "--executor", "processes:2") == (0, out)
    assert RegretSet.load(out).hash == loaded.hash
    with pytest.raises(ValueError, match="made for"):
        make("one", "--seed", "1")


def test_apportion__sums_to_the_total() -> None:
    rng: Any = np.random.default_rng(0)
    for n in (10, 97, 1000):
        weights = rng.random(7)
        found = regret_making.apportion(weights, n)
        assert found.sum() == n
        assert np.abs(found - weights / weights.sum() * n).max() < 1


def test_drawn__has_two_positions_per_stratum() -> None:
    loaded = small_set()
    strata = np.arange(len(loaded)) % 16
    choices = regret_making.Choices(loaded.states, np.zeros(len(loaded), np.int64), strata)
    for n in (20, 1000):
        with pytest.raises(ValueError, match=f"positions: {n} are too few or too many for"):
            regret_making.sample_choices(choices, n, 0)
    some, shares = regret_making.sample_choices(choices, 34, 0)
    assert np.bincount(some.stratum).min() == 2
    assert shares.sum() == pytest.approx(1)
    again, _ = regret_making.sample_choices(choices, 34, 0)
    assert (again.states == some.states).all()
