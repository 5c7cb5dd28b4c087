"""Agents that play by the hand-written evaluation, one move ahead (`features.evaluation`).

Agents of another style have changed weights (`terms.STYLES`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.agent import Actions, Agent, BoardRows, Keys, Legal, States, check_agent_arguments
from tokaido_env.core.jit import index, pooled
from tokaido_env.features.evaluation import SCRATCH, best_action
from tokaido_env.features.terms import weights_of


class HeuristicAgent(Agent):
    """Takes the action with the best `evaluation.action_value`: after it and its best effect."""

    spec = style = "heuristic"
    may_fail = False

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return action ids, int64 (n,), which do not depend on the keys; see `Agent.act`."""
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        actions = np.empty(len(states), np.int64)
        _choose(len(states), actions, boards, states, legal, weights_of(self.style))
        return actions


class RusherAgent(HeuristicAgent):
    """A `heuristic` with other weights: gives paintings to end the game soon."""

    spec = style = "rusher"


class HoarderAgent(HeuristicAgent):
    """A `heuristic` with other weights: collects wares, coins and gold slabs."""

    spec = style = "hoarder"


@pooled(at_least=128)
def _choose(
    first: int, last: int, actions: Any, boards: Any, states: Any, masks: Any, weights: Any
) -> None:
    """Write `best_action` of the games from `first` to `last` - 1, int64 (n,)."""
    scratch = np.empty(1, SCRATCH)
    for i in range(first, last):
        which = index(i if len(boards) > 1 else 0)
        actions[i] = best_action(boards[which], states[i], masks[i], weights, scratch[0])
