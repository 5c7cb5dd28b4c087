"""Value error: the measures on simulated truth, and an agent's values after actions."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from regrets import drawn_sums, small_set, truth_of

from tokaido_env import Game
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.arena.result import Measure
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.constants import LAST_SLAB
from tokaido_env.position import to_dict
from tokaido_env.study.regret_set import RegretSet
from tokaido_env.study.value_error import afterstate_values, trigger_distances, value_measures

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


def values_of(regret_set: RegretSet, values: Floats) -> dict[tuple[str, str, str], Measure]:
    """The measures of values by name, boards and group."""
    found = value_measures(regret_set, "agent", values)
    return {(one.measure, one.other, one.group): one for one in found}


KINDS = ("shikoku", "family:2000003")


def test_value_measures__take_off_noise() -> None:
    rng = np.random.default_rng(1)
    truth = truth_of(SET, rng, 0.3)
    regret_set = with_results(truth)
    shift = 0.1 * (-1.0) ** SET.action_positions
    exact, shifted = (values_of(regret_set, v) for v in (truth, truth + shift))
    for boards in KINDS:
        assert exact["value error", boards, ""].value < 0.03
        assert exact["share explained", boards, ""].value > 0.95
        assert shifted["value error", boards, ""].value == pytest.approx(0.1, abs=0.03)
        # The same shift of all actions of a position changes no choice.
        explained = shifted["share explained", boards, ""]
        assert explained == exact["share explained", boards, ""]


def test_value_measures__have_no_noise_in_solved_positions() -> None:
    solved = RegretSet.load("solved").sample(100, 0)
    truth, shift = solved.sums[:, 0, 0], 0.1 * (-1.0) ** solved.action_positions
    found = values_of(solved, truth + shift)
    assert found["value error", "family:test", ""].value == pytest.approx(0.1)
    assert found["share explained", "family:test", ""].value == 1


def test_value_measures__find_the_bias_of_each_group() -> None:
    truth = truth_of(SET, np.random.default_rng(1), 0.3)
    distances = trigger_distances(SET.states)[SET.action_positions]
    found = values_of(with_results(truth), truth + 0.1 * (distances == 4))
    for boards in KINDS:
        assert (
            found["value bias", boards, "rounds 1–"].value == found["value bias", boards, ""].value
        )
        groups = [key for key in found if key[:2] == ("value bias", boards) and "dist" in key[2]]
        assert groups
        for key in groups:
            assert found[key].low <= found[key].value <= found[key].high
            assert found[key].value == pytest.approx(0.1 * key[2].endswith("4–"), abs=0.03)


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
