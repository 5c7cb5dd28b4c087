"""The afterstate observation: its tables, and its values and features of afterstates."""

from typing import Any

import numpy as np
from evaluated import best_leaf
from learner_games import as_lists, expected_afterstates
from networks import decisions, random_play
from numpy.lib.stride_tricks import sliding_window_view

from tokaido_env.agents import make
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import Phase
from tokaido_env.features.afterstate_observation import AFTERSTATE_INPUTS
from tokaido_env.features.network_inputs import INPUT_UNITS, N_INPUTS
from tokaido_env.observers import observe


def test_units__are_those_of_the_inputs() -> None:
    units = np.repeat([e.unit for e in AFTERSTATE_INPUTS], [e.size for e in AFTERSTATE_INPUTS])
    rounded = INPUT_UNITS == 1 / 64  # the forward pass rounds results, the observation does not
    assert np.array_equal(units[:N_INPUTS].astype(np.float32)[~rounded], INPUT_UNITS[~rounded])


def test_observation__no_column_chooses_as_the_heuristic_does() -> None:
    """The most or the least of one number of each action agrees in few real decisions.

    Candidates are the features of afterstates, and each 49 consecutive numbers of `observation`.
    """
    boards, states, legal = decisions(("shikoku",), games=128, most=320)
    own = make("heuristic").act(boards, states, legal, np.zeros(len(legal), np.uint64))
    seen: Any = observe(boards, states, None, "afterstates")
    windows = sliding_window_view(seen["observation"], N_ACTIONS, axis=1)
    numbers = np.concatenate([windows.transpose(0, 2, 1), seen["actions"]], axis=2)
    real = seen["action_mask"].sum(axis=1) > 2
    illegal = seen["action_mask"][real, :, None] == 0
    assert real.sum() > 300
    for sign in (1, -1):
        values = np.where(illegal, -np.inf, sign * numbers[real])
        for choices in (values.argmax(axis=1), N_ACTIONS - 1 - values[:, ::-1].argmax(axis=1)):
            assert (choices == own[real, None]).mean(axis=0).max() < 0.8


def test_observation__describes_the_afterstate_of_each_action() -> None:
    """In every phase, for both seats; some actions end the game by their effect."""
    phases, ended = set(), 0
    for game, rng in random_play():
        if rng.random() > 0.3:
            continue
        for seat in range(2):
            seen: Any = observe(game.boards, game.state, [seat], "afterstates")
            expected = expected_afterstates(game.boards, game.state, seat)
            assert as_lists({name: each[0] for name, each in seen.items()}) == as_lists(expected)
        if game.player is not None:
            ended += sum(best_leaf(game, action).is_over for action in game.legal_actions())
        phases.add(game.phase)
    assert phases == set(Phase) - {Phase.OVER}
    assert ended > 3
