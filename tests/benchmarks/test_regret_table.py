"""Tests of `benchmarks/regret_table.py`: tables of regret, and the order of ratings."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from processes import ROOT
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.agents.registry import make
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.arena.result import Measure, Result
from tokaido_env.report.tables import markdown
from tokaido_env.study.regret import choose_actions, regret_measures, seconds_measure, set_entry
from tokaido_env.study.regret_set import RegretSet

sys.path.insert(0, str(ROOT / "benchmarks"))

import regret_table


@pytest.fixture(scope="module")
def regret_set() -> RegretSet:
    rng, made = np.random.default_rng(0), small_set()
    return replace(made, sums=drawn_sums(made, truth_of(made, rng, 0.3), rng))


@pytest.fixture(scope="module")
def found(regret_set: RegretSet) -> Result:
    estimates: list[Measure] = []
    for spec in ("greedy", "random"):
        chosen = choose_actions(make(spec), regret_set)
        estimates += [*regret_measures(regret_set, chosen), seconds_measure(chosen)]
    boards = (set_entry(regret_set),)
    agents = ("greedy", "random")
    return Result.made(
        "regret", agents=agents, boards=boards, seed=None, estimates=tuple(estimates)
    )


def test_order_of__counts_pairs_ordered_like_the_ladder() -> None:
    ladder = Ladder.load(LADDER)
    a, b, c, d = (ladder.agents[place].agent for place in (0, 3, 6, 9))

    def measured(regret: dict[str, float]) -> str:
        estimates = [
            Measure(r, r, r, "regret", name, group="boards shikoku") for name, r in regret.items()
        ]
        result = Result.made("regret", agents=(), boards=(), seed=None, estimates=tuple(estimates))
        return regret_table.order_of(result, ladder)

    same = measured({a: 1, b: 2, c: 3, d: 9, "unrated": 0})
    assert "Of the 6 pairs" in same
    assert "orders 6 as their ratings do; rank correlation 1.00, " in same
    assert "orders 5 as their ratings do; rank correlation 0.80, " in measured(
        {a: 2, b: 1, c: 3, d: 9}
    )
    assert "orders 0 as their ratings do; rank correlation -1.00" in measured(
        {d: 1, c: 2, b: 3, a: 9}
    )


def test_regret_table__writes_a_reproducible_figure(found: Result, tmp_path: Path) -> None:
    lines = markdown(regret_table.regret_table(found), code=True).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| `")
    files = regret_table.write_plot(found, tmp_path)
    first = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in regret_table.write_plot(found, tmp_path)] == first
