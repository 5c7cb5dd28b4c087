"""Tests of `tokaido_env.learn.training_script`."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch

from tokaido_env.learn.training_script import Budget


def test_budget__counts_decisions_and_saves_each_tenth(tmp_path: Path) -> None:
    budget, layer, shares = Budget(100, curve=tmp_path / "curve"), torch.nn.Linear(1, 1), []
    while (left := budget.left) > 0:
        shares.append(left)
        budget.spend(15, layer)
    assert shares == pytest.approx([1, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1])
    files = sorted((tmp_path / "curve").iterdir())
    assert [int(file.name.partition("-")[0]) for file in files] == [15, 30, 45, 60, 75, 90, 105]
    weights = torch.load(files[-1], weights_only=True)
    assert torch.equal(weights["weight"], layer.weight)


def test_budget__of_nothing_or_of_minutes() -> None:
    assert Budget(0).left == 0
    assert 0.9 < Budget(minutes=10).left <= 1
    assert Budget(minutes=1e-9).left == 0
    with pytest.raises(ValueError, match="either decisions or minutes"):
        Budget()
