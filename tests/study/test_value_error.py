"""Value error: the measures on simulated truth, and an agent's values after actions."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from regrets import drawn_sums, small_set, truth_of

from tokaido_env import Game
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.constants import LAST_SLAB
from tokaido_env.position import to_dict
from tokaido_env.study.regret_set import RegretSet
from tokaido_env.study.value_error import (
    afterstate_values,
    summarize_values,
    trigger_distances,
)

SET = small_set()
Floats = npt.NDArray[np.float64]


class ByRound(Agent):
    """Expects a result that depends on the number of the round alone."""

    spec = "by round"

    def act(self, boards, states, legal, keys):
        return make("random").act(boards, states, legal, keys)

    def judge(self, boards, states, legal, keys):
        return np.zeros((len(states), N_ACTIONS), np.float32), states["round"] / np.float32(100)


def with_results(truth: Floats) -> RegretSet:
    return replace(SET, sums=drawn_sums(SET, truth, np.random.default_rng(3)))


def test_summarize_values__takes_off_noise() -> None:
    rng = np.random.default_rng(1)
    truth = truth_of(SET, rng, 0.3)
    regret_set = with_results(truth)
    shift = 0.1 * (-1.0) ** SET.action_positions
    exact, shifted = (summarize_values(regret_set, v) for v in (truth, truth + shift))
    for boards in exact:
        assert exact[boards]["all"]["error"]["mean"] < 0.03
        assert exact[boards]["all"]["explained"] > 0.95
        assert shifted[boards]["all"]["error"]["mean"] == pytest.approx(0.1, abs=0.03)
        # The same shift of all actions of a position changes no choice.
        assert shifted[boards]["all"]["explained"] == exact[boards]["all"]["explained"]


def test_summarize_values__find_the_bias_of_each_group() -> None:
    truth = truth_of(SET, np.random.default_rng(1), 0.3)
    distances = trigger_distances(SET.states)[SET.action_positions]
    found = summarize_values(with_results(truth), truth + 0.1 * (distances == 4))
    for part in found.values():
        assert part["rounds"]["1–"] == part["all"]
        for name, group in part["distance"].items():
            low, high = group["bias"]["ci95"]
            assert low <= group["bias"]["mean"] <= high
            assert group["bias"]["mean"] == pytest.approx(0.1 * (name == "4–"), abs=0.03)


def test_summarize_values__explain_nothing_by_a_constant() -> None:
    truth = truth_of(SET, np.random.default_rng(1), 0.3)
    found = summarize_values(with_results(truth), np.zeros(len(truth)))
    assert all(part["all"]["explained"] == pytest.approx(0) for part in found.values())


def test_afterstate_values__are_those_after_the_action() -> None:
    values = afterstate_values(ByRound(), SET)
    states = SET.states[SET.action_positions]
    for k in range(0, len(values), 7):
        board = SET.boards[SET.board[SET.action_positions[k]]]
        game = Game.from_dict(to_dict(board, states[k]), board=board)
        seat = int(game.state["player"][0])
        game.play(int(SET.actions[k]))
        while game.outcomes():
            game.play(game.outcomes()[0][0])
        expected = game.rounds / 100
        if game.is_over:
            expected = 0 if game.winner() is None else 1 - 2 * game.winner()
        assert values[k] == pytest.approx(expected * (1 - 2 * seat), abs=1e-6)


def test_trigger_distances__count_steps_of_both_players() -> None:
    states = SET.states[:3].copy()
    states["end_triggered"] = 0
    for name in ("temple", "garden", "gold", "gifted"):
        states[name] = 0
    states["gifted"][0] = (9, 3)
    states["gold"][1] = (0, LAST_SLAB - 2)
    states["end_triggered"][2] = 1
    assert trigger_distances(states).tolist() == [1, 2, 0]
