"""Tests of `benchmarks/regret_making.py` and `regret_set.py`: drawing positions, making a set."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT
from regrets import small_set

from tokaido_env.core.jit import INTERPRETED
from tokaido_env.study.regret_set import NOT_ROLLED, RegretSet

sys.path.insert(0, str(ROOT / "benchmarks"))

import regret_making
import regret_set


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
        options = ["--positions", "64", "--games", "12", "--blocks", "2"]
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
    with pytest.raises(ValueError, match="expected a plan for"):
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
    zeros = np.zeros(len(loaded), np.int64)
    choices = regret_making.Choices(loaded.states, zeros, strata, zeros)
    for n in (20, 1000):
        with pytest.raises(ValueError, match=f"positions: {n} are too few or too many for"):
            regret_making.sample_choices(choices, n, 0)
    some, shares = regret_making.sample_choices(choices, 34, 0)
    assert np.bincount(some.stratum).min() == 2
    assert shares.sum() == pytest.approx(1)
    again, _ = regret_making.sample_choices(choices, 34, 0)
    assert (again.states == some.states).all()
