"""Regret: the estimator on simulated truth, what agents are asked, and who fails."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from processes import ROOT
from regrets import drawn_sums, small_set, truth_of
from twice import Twice

from tokaido_env import IllegalMove
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.study.regret import (
    ERROR,
    Measured,
    difference,
    estimates,
    figures,
    losses,
    measure,
)
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, RegretSet

sys.path.insert(0, str(ROOT / "benchmarks"))

from regret_agreement import agreement

TOLD = small_set()
Floats = npt.NDArray[np.float64]


def with_results(truth: Floats, seed: int, few: int = 0) -> RegretSet:
    return replace(TOLD, sums=drawn_sums(TOLD, truth, np.random.default_rng(seed), few))


def best_rows(truth: Floats, told: RegretSet = TOLD) -> npt.NDArray[np.int64]:
    pairs = zip(told.starts, told.starts[1:], strict=False)
    return np.array([a + truth[a:b].argmax() for a, b in pairs])


def by_hand(told: RegretSet, i: int, row: int) -> tuple[float, float]:
    """What a choice loses, as the definition says it, in plain Python."""
    blocks = told.sums.shape[2]
    rows = range(told.starts[i], told.starts[i + 1])
    value = {
        r: [sum(told.sums[r, p, k] / BLOCK for p in (0, 1)) / 2 for k in range(blocks)]
        for r in rows
    }
    rolled = {r: [told.sums[r, 0, k] != NOT_ROLLED for k in range(blocks)] for r in rows}
    full = [r for r in rows if all(rolled[r])]
    least, most = [], []
    top = max(full, key=lambda r: sum(value[r]))
    for k in range(blocks):
        if rolled[row][k]:
            best = max(full, key=lambda r: sum(value[r]) - value[r][k])
            least.append(value[best][k] - value[row][k])
            most.append(value[top][k] - value[row][k])
    return sum(least) / len(least), sum(most) / len(most)


@pytest.mark.parametrize("few", [0, 2])
def test_losses_are_what_the_definition_says(few: int) -> None:
    rng = np.random.default_rng(1)
    told = with_results(truth_of(TOLD, rng, 0.3), 2, few)
    rows = np.array(
        [rng.integers(a, b) for a, b in zip(told.starts, told.starts[1:], strict=False)]
    )
    found = losses(told, rows)
    for i, row in enumerate(rows.tolist()):
        least, most = by_hand(told, i, row)
        assert (found.least[i], found.most[i]) == (pytest.approx(least), pytest.approx(most))


def test_intervals_hold_the_mean_of_the_strata_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    centres = rng.exponential(0.05, len(TOLD.card["strata"]))
    real, hits = float(centres @ TOLD.shares), 0
    for _ in range(200):
        values = centres[TOLD.stratum] + rng.normal(0, 0.05, len(TOLD))
        low, high = estimates({"x": values}, TOLD)["x"]["ci95"]
        hits += low <= real <= high
    assert 180 <= hits <= 199


def test_strata_count_by_their_share_among_choices() -> None:
    values = TOLD.stratum.astype(float)
    strata = TOLD.card["strata"]
    assert estimates({"x": values}, TOLD)["x"]["mean"] == pytest.approx(
        sum(k * stratum["share"] for k, stratum in enumerate(strata)), abs=1e-6
    )
    moves = [stratum["phase"] == "MOVE" for stratum in strata]
    shares = TOLD.shares * moves
    mean = (shares @ np.arange(len(strata))) / shares.sum()
    assert estimates({"x": values}, TOLD, moves)["x"]["mean"] == pytest.approx(mean, abs=1e-6)


def test_figures_of_an_agent() -> None:
    truth = truth_of(TOLD, np.random.default_rng(0), 0.2)
    told = with_results(truth, 0)
    measured = measure(make("greedy"), told)
    batch = told.batch()
    every = batch.all_games
    asked = batch.boards_of(every), batch.states, batch.legal, batch.keys(every)
    assert (measured.choices == make("greedy").act(*asked)).all()
    found = figures(told, measured)
    least = losses(told, told.rows(measured.choices)).least
    assert found["regret"] == estimates({"x": least}, told)["x"]
    assert found["errors"] == estimates({"x": (least >= ERROR).astype(float)}, told)["x"]
    assert found["regret"]["mean"] <= found["at_most"]["mean"]
    both = (found["by_champion"]["mean"] + found["by_heuristic"]["mean"]) / 2
    assert both == pytest.approx(found["regret"]["mean"], abs=0.03)
    assert list(found["boards"]) == ["shikoku", "family:2000003"]
    assert "core_seconds" not in found
    assert figures(told, measured, timed=True)["core_seconds"] > 0
    assert figures(told, measure(make("greedy"), told)) == found  # the same bytes again


def test_whoever_asks_the_choices_are_the_same() -> None:
    for spec in ("greedy", "mcts:sims=4", "random"):
        executor = Twice()
        found = measure(make(spec), TOLD, executor)
        assert (found.choices == measure(make(spec), TOLD).choices).all()
        assert found.seconds > 0
        assert len(executor.units) > executor.workers
        assert executor.units[-1].endswith(f"positions that '{spec}' is asked about")


def test_differences_are_paired() -> None:
    truth = truth_of(TOLD, np.random.default_rng(0), 0.2)
    told = with_results(truth, 0)
    best = Measured("best", told.actions[best_rows(truth)].astype(np.int64), 0.0)
    first = Measured("first", told.actions[told.starts[:-1]].astype(np.int64), 0.0)
    found = difference(told, first, best)
    assert found["ci95"][0] > 0.05
    back = difference(told, best, first)
    assert back["mean"] == pytest.approx(-found["mean"])


def test_how_far_two_policies_agree() -> None:
    truth = truth_of(TOLD, np.random.default_rng(0), 0.4)
    same = agreement(with_results(truth, 0))
    assert same["correlation_without_noise"] == pytest.approx(1.0, abs=0.02)
    assert same["correlation"] < same["correlation_without_noise"]
    assert same["same_best"]["mean"] > 0.8
    assert abs(same["lost_by_champion"]["mean"]) < 0.02
    told = with_results(truth, 0)
    told.sums[:, 1] = drawn_sums(told, -truth, np.random.default_rng(1))[:, 1]
    other = agreement(told)
    assert other["correlation"] < -0.9
    assert other["lost_by_champion"]["mean"] > 0.3


# Agents that fail


class Wrong(Agent):
    """Fails in one position, in a way that is told it."""

    spec = "wrong"

    def __init__(self, at: int, fail: Callable[[], int]) -> None:
        self.at, self.fail = TOLD.states[at].tobytes(), fail

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        lowest = [int(mask) & -int(mask) for mask in legal]
        actions = np.array([bit.bit_length() - 1 for bit in lowest])
        for i, state in enumerate(states):
            if state.tobytes() == self.at:
                actions[i] = self.fail()
        return actions


def fail() -> int:
    raise KeyError("no idea")


@pytest.mark.parametrize("executor", [None, Twice()])
def test_an_agent_that_fails_is_named_with_the_position(executor: Twice | None) -> None:
    where = r"'wrong': position 7 of \d+ of the set: "
    with pytest.raises(AgentFailed, match=f"{where}KeyError"):
        measure(Wrong(7, fail), TOLD, executor)
    with pytest.raises(IllegalMove, match=f"{where}illegal action 48"):
        measure(Wrong(7, lambda: 48), TOLD, executor)
