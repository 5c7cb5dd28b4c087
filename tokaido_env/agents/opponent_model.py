"""Opponent models: the odds with which a known agent takes each action.

A model contains the agent's own network or kernel; it is not learned from games. An agent that
always takes the same action in a position has odds of 1 for it. For random choices the model has
the probabilities: ties of `greedy` are even, `policy` with a temperature has its softmax. Only
agents of this package that do not search have a model, because compiled code cannot ask others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.agents.baselines import GreedyAgent, RandomAgent
from tokaido_env.agents.ending_actions import LIMIT, exact_action
from tokaido_env.agents.heuristic import HeuristicAgent
from tokaido_env.agents.inference import forward
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.search_tree import Tree, edge_mask
from tokaido_env.agents.selection import write_priors
from tokaido_env.agents.weights import Weights, thread_copy
from tokaido_env.agents.workspaces import (
    PositionRow,
    Workspace,
    new_workspace,
)
from tokaido_env.core.bitmask import count_bits, highest_score
from tokaido_env.core.bots import GREEDY, NO_BOT, RANDOM, greedy_choices
from tokaido_env.core.constants import Mask, Row
from tokaido_env.core.jit import allocator, int64, kernel, subroutine
from tokaido_env.features.evaluation import best_action
from tokaido_env.features.terms import WEIGHTS

_HEURISTIC = 1 + max(RANDOM, GREEDY)  # a number that no bot has


class OpponentModel(NamedTuple):
    """The policy of an agent."""

    network: Weights | None = None
    """Its network; None if it plays by a kernel."""
    temperature: float = 0.0
    """0 takes the likeliest action; above, the odds are softmax(logits / temperature)."""
    bot: int = NO_BOT
    """The number of its kernel, without a network."""
    epsilon: float = 0.0
    """The probability of a random action instead."""
    exact_endings: bool = False
    """Whether it takes better actions by exact results (`endings`); only with a network."""


class Opponent(NamedTuple):
    """An opponent model and its memory, as the kernels read it.

    Attributes:
        model: the model.
        workspace: of one thread, for its network.
    """

    model: OpponentModel
    workspace: Workspace


def make_opponent_model(agent: Agent) -> OpponentModel | None:
    """Return the model of an agent, None for one that searches or is not of this package."""
    if type(agent) is PolicyAgent:
        return OpponentModel(
            agent.network, float(agent.temperature), exact_endings=agent.exact_endings
        )
    if type(agent) is GreedyAgent:
        return OpponentModel(bot=GREEDY, epsilon=float(agent.epsilon))
    if type(agent) is RandomAgent:
        return OpponentModel(bot=RANDOM)
    if type(agent) is HeuristicAgent:
        return OpponentModel(bot=_HEURISTIC)
    return None


@allocator
def new_opponent(model: Any, thread: int) -> Any:
    """Return the `Opponent` of a model with memory for one thread, None without a model."""
    if model is None:
        return None
    network = thread_copy(model.network, thread)
    own = OpponentModel(network, model.temperature, model.bot, model.epsilon, model.exact_endings)
    return Opponent(own, new_workspace(network))


@kernel
def opponent_decides(opponent: Any, tree: Tree, node: Row) -> bool:
    """Return whether the modelled opponent, who is not the player at the root, decides a node.

    Args:
        opponent: an `Opponent`, or None.
        tree: of the search.
        node: a row of `NODE`.
    """
    if opponent is None:
        return False
    return int(node["player"]) == 1 - int(tree.nodes[0]["player"])


@subroutine
def write_reply_odds(opponent: Any, position: PositionRow, tree: Tree, at: int) -> None:
    """Write the odds of the opponent's actions as the priors of a node's edges, if it decides.

    Args:
        opponent: an `Opponent`, or None.
        position: the root of the search, for its board.
        tree: of the search; its priors are written.
        at: index of the node.
    """
    if opponent is None:
        return
    if not opponent_decides(opponent, tree, tree.nodes[at]):
        return
    mask = edge_mask(tree, tree.nodes[at])
    row = PositionRow(position.board, tree.states[at], mask)
    _write_reply(opponent.model.network, opponent, row, tree, tree.nodes[at])


@kernel
def _write_reply(network: Any, opponent: Any, row: PositionRow, tree: Tree, node: Row) -> None:
    model = opponent.model
    if network is None:
        _write_even_odds(tree, node, _bot_choices(opponent, row), model.epsilon)
        return
    if row.legal & (row.legal - np.uint64(1)) == np.uint64(0):
        _write_even_odds(tree, node, row.legal, 0.0)
        return
    logits = opponent.workspace.logits
    forward(network, row, opponent.workspace, logits)
    if model.temperature > 0:
        write_priors(tree, node, logits, model.temperature)
        return
    choice = highest_score(row.legal, logits)
    if model.exact_endings:
        frames = opponent.workspace.scratch[0]["frames"]
        choice = exact_action(*(row.board, row.state, row.legal, choice, logits, frames, LIMIT))
    _write_even_odds(tree, node, np.uint64(1) << np.uint64(choice), 0.0)


@kernel
def _bot_choices(opponent: Any, row: PositionRow) -> Mask:
    """Return the actions, as bits, that a kernel takes in a position with equal probability."""
    scratch = opponent.workspace.scratch[0]
    if opponent.model.bot == GREEDY:
        return greedy_choices(row.board, row.state, row.legal, scratch["states"])
    if opponent.model.bot == RANDOM:
        return row.legal
    best = best_action(row.board, row.state, row.legal, WEIGHTS, scratch)
    return np.uint64(1) << np.uint64(best)


@kernel
def _write_even_odds(tree: Tree, node: Row, choices: Mask, epsilon: float) -> None:
    """Write even odds for the chosen actions of a node, with `epsilon` shared by all actions."""
    first, edges = int64(node["first"]), int64(node["edges"])
    each = (1.0 - epsilon) / count_bits(choices)
    for k in range(first, first + edges):
        chosen = int64(choices >> np.uint64(tree.edges[k]["move"]) & np.uint64(1))
        tree.priors[k] = np.float32(each * chosen + epsilon / edges)
