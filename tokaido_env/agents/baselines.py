"""The agents `random` and `greedy`, on the kernels of `tokaido_env.core.bots`."""

from __future__ import annotations

import numpy as np

from tokaido_env.agent import Actions, Agent, BoardRows, Keys, Legal, States, check_agent_arguments
from tokaido_env.core.bots import GREEDY, RANDOM, greedy_actions, random_actions
from tokaido_env.core.state import STATE

_LOWER_HALF = np.uint64(2**32 - 1)


class RandomAgent(Agent):
    """Takes each legal action with equal probability."""

    spec = "random"
    bot = RANDOM
    may_fail = False

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return action ids, int64 (n,); arguments and errors are those of `Agent.act`."""
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        actions = np.empty(len(states), np.int64)
        random_actions(legal, keys, actions)
        return actions


class GreedyAgent(Agent):
    """Takes the action with the best immediate change in score margin (`bots.greedy_action`).

    Args:
        epsilon: the probability of a random action instead. It gives epsilon baselines, weaker
            agents between `random` and `greedy`.
    """

    may_fail = False

    def __init__(self, epsilon: float = 0.0) -> None:
        self.epsilon = epsilon
        self.spec = f"greedy:epsilon={epsilon}" if epsilon else "greedy"
        if not epsilon:
            self.bot = GREEDY

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return action ids, int64 (n,); arguments and errors are those of `Agent.act`."""
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        actions = np.empty(len(states), np.int64)
        greedy_actions(boards, states, legal, keys, np.empty(2, STATE), actions)
        if self.epsilon:
            at_random = np.empty(len(states), np.int64)
            random_actions(legal, keys, at_random)
            # The upper half of the key chooses the action.
            chance = (keys & _LOWER_HALF) / 2.0**32
            actions = np.where(chance < self.epsilon, at_random, actions)
        return actions
