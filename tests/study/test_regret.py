"""Regret: the estimator on simulated truth, and agents' actions in a set."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from regrets import drawn_sums, small_set, truth_of
from reversed_executor import ReversedExecutor

from tokaido_env import IllegalMove
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.study.regret import (
    ERROR,
    AgentChoices,
    choose_actions,
    losses,
    regret_difference,
    regret_measures,
    seconds_measure,
    stratified_means,
)
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, RegretSet

SET = small_set()
Floats = npt.NDArray[np.float64]


def with_results(truth: Floats, seed: int, few: int = 0) -> RegretSet:
    return replace(SET, sums=drawn_sums(SET, truth, np.random.default_rng(seed), few))


def best_rows(truth: Floats) -> npt.NDArray[np.int64]:
    pairs = zip(SET.starts, SET.starts[1:], strict=False)
    return np.array([a + truth[a:b].argmax() for a, b in pairs])


def defined_losses(regret_set: RegretSet, i: int, row: int) -> tuple[float, float]:
    """The low and the high estimate of a loss by definition, in plain Python."""
    blocks = regret_set.sums.shape[2]
    rows = range(regret_set.starts[i], regret_set.starts[i + 1])
    value = {
        r: [sum(regret_set.sums[r, p, k] / BLOCK for p in (0, 1)) / 2 for k in range(blocks)]
        for r in rows
    }
    rolled = {r: [regret_set.sums[r, 0, k] != NOT_ROLLED for k in range(blocks)] for r in rows}
    full = [r for r in rows if all(rolled[r])]
    low, high = [], []
    top = max(full, key=lambda r: sum(value[r]))
    for k in range(blocks):
        if rolled[row][k]:
            best = max(full, key=lambda r: sum(value[r]) - value[r][k])
            low.append(value[best][k] - value[row][k])
            high.append(value[top][k] - value[row][k])
    return sum(low) / len(low), sum(high) / len(high)


@pytest.mark.parametrize("few", [0, 2])
def test_losses__match_the_definition(few: int) -> None:
    rng = np.random.default_rng(1)
    regret_set = with_results(truth_of(SET, rng, 0.3), 2, few)
    rows = np.array(
        [rng.integers(a, b) for a, b in zip(regret_set.starts, regret_set.starts[1:], strict=False)]
    )
    found = losses(regret_set, rows)
    for i, row in enumerate(rows.tolist()):
        low, high = defined_losses(regret_set, i, row)
        assert (found.low[i], found.high[i]) == (pytest.approx(low), pytest.approx(high))


def test_stratified_means__have_intervals_that_cover_95_percent() -> None:
    rng = np.random.default_rng(11)
    centres = rng.exponential(0.05, len(SET.card["strata"]))
    real, hits = float(centres @ SET.shares), 0
    for _ in range(200):
        values = centres[SET.stratum] + rng.normal(0, 0.05, len(SET))
        low, high = stratified_means({"x": values}, SET)["x"].interval
        hits += low <= real <= high
    assert 180 <= hits <= 199


def test_stratified_means__weight_strata_by_their_share() -> None:
    values = SET.stratum.astype(float)
    strata = SET.card["strata"]
    assert stratified_means({"x": values}, SET)["x"].value == pytest.approx(
        sum(k * stratum["share"] for k, stratum in enumerate(strata)), abs=1e-6
    )
    moves = [stratum["phase"] == "MOVE" for stratum in strata]
    shares = SET.shares * moves
    mean = (shares @ np.arange(len(strata))) / shares.sum()
    assert stratified_means({"x": values}, SET, moves)["x"].value == pytest.approx(mean, abs=1e-6)


def test_regret_measures__have_the_means_of_an_agents_losses() -> None:
    truth = truth_of(SET, np.random.default_rng(0), 0.2)
    regret_set = with_results(truth, 0)
    chosen = choose_actions(make("greedy"), regret_set)
    batch = regret_set.batch()
    every = batch.all_games
    asked = batch.boards_of(every), batch.states, batch.legal, batch.keys(every)
    assert (chosen.choices == make("greedy").act(*asked)).all()
    found = regret_measures(regret_set, chosen)
    low = losses(regret_set, regret_set.action_rows(chosen.choices)).low
    by = {(one.measure, one.group): one for one in found}
    means = stratified_means({"low": low, "errors": (low >= ERROR).astype(float)}, regret_set)
    for name, measure in (("low", "regret"), ("errors", "errors")):
        assert by[measure, ""].value == means[name].value
        assert by[measure, ""].n == len(regret_set)
    assert by["regret", ""].value <= by["regret at most", ""].value
    policies = [by["regret", f"policy {name}"].value for name in ("champion", "heuristic")]
    assert sum(policies) / 2 == pytest.approx(by["regret", ""].value, abs=0.03)
    boards = [group for _, group in by if group.startswith("boards ")]
    assert boards == ["boards shikoku", "boards family:2000003"]
    assert sum(by["regret", group].n for group in boards) == len(regret_set)
    assert seconds_measure(chosen).value > 0
    again = choose_actions(make("greedy"), regret_set)
    assert regret_measures(regret_set, again) == found  # the same bytes again


def test_losses__are_exact_in_solved_positions() -> None:
    solved = RegretSet.load("solved").sample(100, 0)
    values, firsts = solved.sums[:, 0, 0], solved.starts[:-1].astype(np.int64)
    pairs = zip(firsts, solved.starts[1:], strict=True)
    bests = np.array([a + int(np.argmax(values[a:b])) for a, b in pairs])
    top = values[bests]
    for rows, lost in ((bests, np.zeros(len(solved))), (firsts, top - values[firsts])):
        choices = AgentChoices("agent", solved.actions[rows].astype(np.int64), 0.0)
        low, high = losses(solved, solved.action_rows(choices.choices))
        assert low == pytest.approx(lost, abs=1e-12)
        assert (high == low).all()
        by = {x.measure: x for x in regret_measures(solved, choices) if not x.group}
        assert "regret at most" not in by
        assert by["regret"].value == stratified_means({"x": lost}, solved)["x"].value
        optimal = stratified_means({"x": (lost < 1e-9).astype(float)}, solved)["x"]
        assert by["optimal"].value == optimal.value
    forfeits = losses(solved, np.full(len(solved), -1))
    assert forfeits.low == pytest.approx(top + 1)


def test_choose_actions__is_the_same_with_every_executor() -> None:
    for spec in ("greedy", "mcts:sims=4", "random"):
        executor = ReversedExecutor()
        found = choose_actions(make(spec), SET, executor)
        assert (found.choices == choose_actions(make(spec), SET).choices).all()
        assert found.seconds > 0
        assert len(executor.tasks) > executor.workers
        assert executor.tasks[-1].startswith(f"actions of '{spec}' in ")


def test_regret_difference__is_paired() -> None:
    truth = truth_of(SET, np.random.default_rng(0), 0.2)
    regret_set = with_results(truth, 0)
    best = AgentChoices("best", regret_set.actions[best_rows(truth)].astype(np.int64), 0.0)
    first = AgentChoices("first", regret_set.actions[regret_set.starts[:-1]].astype(np.int64), 0.0)
    found = regret_difference(regret_set, first, best)
    assert found.low > 0.05
    back = regret_difference(regret_set, best, first)
    assert back.value == pytest.approx(-found.value)


def test_choose_actions__names_the_position_of_an_illegal_action() -> None:
    class Wrong(Agent):
        spec = "wrong"

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
            actions = np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in legal])
            return np.where(states == SET.states[7], 48, actions)

    with pytest.raises(IllegalMove, match=r"'wrong': position 7 of \d+ of the set: .* 48"):
        choose_actions(Wrong(), SET)
