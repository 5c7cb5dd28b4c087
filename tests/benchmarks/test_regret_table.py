"""Tests of `benchmarks/regret_table.py`: tables of regret, and the order of ratings."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.agents.registry import make
from tokaido_env.report import regret as report
from tokaido_env.report.tables import markdown
from tokaido_env.study.regret import choose_actions, summarize
from tokaido_env.study.regret_set import RegretSet

sys.path.insert(0, str(ROOT / "benchmarks"))

import regret_table


@pytest.fixture(scope="module")
def regret_set() -> RegretSet:
    rng, made = np.random.default_rng(0), small_set()
    return replace(made, sums=drawn_sums(made, truth_of(made, rng, 0.3), rng))


@pytest.fixture(scope="module")
def found(regret_set: RegretSet) -> list[dict[str, Any]]:
    agents = [make(spec) for spec in ("greedy", "random")]
    return [
        summarize(regret_set, choose_actions(agent, regret_set), timed=True) for agent in agents
    ]


def test_order_of__counts_pairs_ordered_like_the_ladder() -> None:
    names = {"a": 3.0, "b": 2.0, "c": 1.0, "d": -5.0}
    ladder = {"board": "x", "agents": [{"agent": n, "elo": elo} for n, elo in names.items()]}

    def measured(**regret: float) -> str:
        found = [{"agent": n, "boards": {"x": {"mean": r}}} for n, r in regret.items()]
        return regret_table.order_of(found, ladder)

    assert "Of the 6 pairs" in (same := measured(a=1, b=2, c=3, d=9, unrated=0))
    assert "orders 6 as their ratings do; rank correlation 1.00, linear 1.000." in same
    assert "orders 5 as their ratings do; rank correlation 0.80, " in measured(a=2, b=1, c=3, d=9)
    assert "orders 0 as their ratings do; rank correlation -1.00" in measured(d=1, c=2, b=3, a=9)


def test_regret_table__writes_tables_and_a_reproducible_figure(
    found: list[dict[str, Any]], regret_set: RegretSet, tmp_path: Path
) -> None:
    table = report.main_table("set", found)
    assert len({len(row) for row in (table.headers, *table.rows)}) == 1
    lines = markdown(table, code=True).splitlines()
    assert lines[2].startswith("| `")
    files = regret_table.write_plot("set", found, tmp_path)
    first = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in regret_table.write_plot("set", found, tmp_path)] == first
    for key in ("boards", "phase", "rounds"):
        assert len(report.groups_table(key, found).rows) == 2
