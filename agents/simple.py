"""The simplest agents; their play is the kernels of `tokaido_env.bots`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokaido_env.bots import GREEDY, RANDOM, greedy_actions, random_actions
from tokaido_env.state import STATE


class RandomAgent:
    """Each legal action with equal probability."""

    spec = "random"
    bot = RANDOM

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        actions = np.empty(len(states), np.int64)
        random_actions(legal, keys, actions)
        return actions


class GreedyAgent:
    """The best immediate change in score margin (`bots.greedy_action`)."""

    spec = "greedy"
    bot = GREEDY

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        actions = np.empty(len(states), np.int64)
        greedy_actions(boards, states, legal, keys, np.empty(2, STATE), actions)
        return actions
