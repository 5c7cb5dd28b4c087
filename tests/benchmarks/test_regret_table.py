"""Tests of `benchmarks/regret_table.py`: tables of regret and the cost of games."""

import sys
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.agents.registry import make
from tokaido_env.report import regret as report
from tokaido_env.report.tables import markdown
from tokaido_env.study.regret import choose_actions, regret_difference, summarize
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


def test_costs__follow_from_the_errors(regret_set: RegretSet, found: list[dict[str, Any]]) -> None:
    """Pairs that put the score two standard errors from a half, and positions for the same."""
    counts = [60, 10, 20, 5, 5]
    order = [one["agent"] for one in report.in_order(found)]
    ladder = {
        "board": "shikoku",
        "agents": [{"agent": name} for name in (order[0], "heuristic", order[1])],
        "matches": [{"a": order[1], "b": order[0], "pairs": counts}],
    }
    (cost,) = regret_table.costs(regret_set, found, ladder)
    scores = np.repeat([0, 0.25, 0.5, 0.75, 1], counts)
    assert abs(scores.mean() - 0.5) == pytest.approx(2 * scores.std() / sqrt(cost.pairs))
    assert [cost.better, cost.worse] == order
    one, other = (choose_actions(make(spec), regret_set) for spec in order)
    more = regret_difference(regret_set, other, one, "shikoku")
    there = regret_table.positions_on(regret_set, "shikoku")
    assert 0 < there < len(regret_set)
    error = (more["ci95"][1] - more["ci95"][0]) / 2 / 1.959964
    assert abs(more["mean"]) == pytest.approx(2 * error * sqrt(there / cost.positions), rel=1e-4)
    assert cost.seconds[0] / cost.seconds[1] == pytest.approx(151 * cost.pairs / cost.positions)
    (row,) = regret_table.costs_table([cost], 10**9).rows
    assert row[-1] != "–"
    (row,) = regret_table.costs_table([cost], 1).rows
    assert row[-3:] == ("more than 1", f"{report.seconds(cost.seconds[0])} / –", "–")
    assert regret_table.costs(regret_set, found, ladder | {"matches": []}) == []


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
