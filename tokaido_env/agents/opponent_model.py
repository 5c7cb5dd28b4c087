"""A model of an opponent that is known: with what odds it takes which action.

What the model holds is the opponent's own play, its network or its kernel, not something learned
from its games. An agent that always takes the same action in a position has odds of 1 for it. What
others draw from their keys is shared out: ties of `greedy` evenly, `policy` of a temperature by its
softmax. A search that goes by these odds (`exploiter`) has agents of this package only as
opponents: what is written in Python, or searches, has none that compiled code could ask for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tokaido_env.agent import Agent, BoardRows
from tokaido_env.agents.baselines import GreedyAgent, RandomAgent
from tokaido_env.agents.heuristic import HeuristicAgent, best_action
from tokaido_env.agents.inference import (
    SHARED_BIAS,
    Network,
    PositionRow,
    Workspace,
    cached_workspaces,
    forward,
)
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.search_tree import Tree, edge_mask
from tokaido_env.agents.selection import write_priors
from tokaido_env.core.bitmask import count_bits, lowest_action
from tokaido_env.core.bots import GREEDY, NO_BOT, RANDOM, greedy_choices
from tokaido_env.core.constants import Mask, Row
from tokaido_env.core.jit import int64, kernel, subroutine

_HEURISTIC = 1 + max(RANDOM, GREEDY)  # beside the bots


class OpponentModel(NamedTuple):
    """How an agent plays."""

    network: Network | None = None
    """Of its policy; None if it plays by a kernel."""
    temperature: float = 0.0
    """Of its policy: 0 takes the likeliest action, above the odds are softmax(logits / it)."""
    bot: int = NO_BOT
    """The number of its kernel, if it has no network."""
    epsilon: float = 0.0
    """How often it takes a random action instead."""

    def for_boards(self, boards: BoardRows, threads: int) -> OpponentArrays:
        """Return it as the kernels read it, with memory for so many threads."""
        weights, rows = (
            (None, SHARED_BIAS) if self.network is None else self.network.for_boards(boards)
        )
        memory = cached_workspaces(threads, weights)
        return OpponentArrays(weights, rows, memory, self.temperature, self.bot, self.epsilon)


class OpponentArrays(NamedTuple):
    """How an opponent decides in some positions, and with what memory."""

    network: Any  # Weights, or None
    bias_rows: Any  # int64 (1,) or (n,), of the first bias of its network
    workspaces: Workspace  # of several threads
    temperature: float
    bot: int
    epsilon: float

    def part(self, part: slice) -> OpponentArrays:
        """Return it for some of the positions."""
        return self._replace(bias_rows=self.bias_rows[part]) if len(self.bias_rows) > 1 else self


class OpponentRow(NamedTuple):
    """How an opponent decides in one position, and with what memory."""

    network: Any  # Weights, or None
    bias_row: int  # of the first bias
    workspace: Workspace  # of one thread, the scratch an array
    temperature: float
    bot: int
    epsilon: float


def make_opponent_model(agent: Agent) -> OpponentModel | None:
    """Return how an agent of this package plays, None if nothing compiled tells its replies."""
    if type(agent) is PolicyAgent:
        return OpponentModel(network=agent.network, temperature=float(agent.temperature))
    if type(agent) is GreedyAgent:
        return OpponentModel(bot=GREEDY, epsilon=float(agent.epsilon))
    if type(agent) is RandomAgent:
        return OpponentModel(bot=RANDOM)
    if type(agent) is HeuristicAgent:
        return OpponentModel(bot=_HEURISTIC)
    return None


@kernel
def opponent_at(opponents: Any, thread: int, i: int) -> Any:
    """Return the opponent of position `i` for one thread; None if there is none."""
    if opponents is None:
        return None
    own = opponents.workspaces
    return OpponentRow(
        opponents.network,
        opponents.bias_rows[i if len(opponents.bias_rows) > 1 else 0],
        Workspace(
            own.copy[thread],
            own.scratch[thread],  # not a row: compiled functions cannot return one
            own.layers[thread],
            own.afterstates[thread],
            own.units[thread],
            own.values[thread],
            own.logits[thread],
        ),
        opponents.temperature,
        opponents.bot,
        opponents.epsilon,
    )


@kernel
def opponent_decides(opponent: Any, tree: Tree, node: Row) -> bool:
    """Return whether a node is the opponent's: the root is not."""
    if opponent is None:
        return False
    return int(node["player"]) == 1 - int(tree.nodes[0]["player"])


@subroutine
def write_reply_odds(opponent: Any, position: PositionRow, tree: Tree, at: int) -> None:
    """Write with what odds the opponent takes the actions of a node, as the priors of its edges."""
    mask = edge_mask(tree, tree.nodes[at])
    asked = PositionRow(position.board, position.tables, tree.states[at], mask, opponent.bias_row)
    _write_reply(opponent.network, opponent, asked, tree, tree.nodes[at])


@kernel
def _write_reply(network: Any, opponent: Any, asked: PositionRow, tree: Tree, node: Row) -> None:
    if network is None:
        _write_even_odds(tree, node, _bot_choices(opponent, asked), opponent.epsilon)
        return
    if asked.legal & (asked.legal - np.uint64(1)) == np.uint64(0):
        _write_even_odds(tree, node, asked.legal, 0.0)
        return
    own = opponent.workspace
    logits = own.logits
    scratch, layers, results = own.scratch[0], own.layers, own.afterstates
    workspace = Workspace(own.copy, scratch, layers, results, own.units, own.values, logits)
    forward(network, asked, workspace, logits)
    if opponent.temperature > 0:
        write_priors(tree, node, logits, opponent.temperature)
    else:
        _write_even_odds(tree, node, _likeliest(asked.legal, logits), 0.0)


@kernel
def _bot_choices(opponent: Any, asked: PositionRow) -> Mask:
    """Return the actions that a kernel takes in a position, each as often."""
    scratch = opponent.workspace.scratch[0]
    if opponent.bot == GREEDY:
        return greedy_choices(asked.board, asked.state, asked.legal, scratch["states"])
    if opponent.bot == RANDOM:
        return asked.legal
    best = best_action(asked.board, asked.tables, asked.state, asked.legal, scratch)
    return np.uint64(1) << np.uint64(best)


@kernel
def _likeliest(mask: Mask, logits: Any) -> Mask:
    """Return the action of the highest logit, the lowest of equals, as a bit."""
    choice = lowest_action(mask)
    while mask != np.uint64(0):
        action = lowest_action(mask)
        mask &= mask - np.uint64(1)
        if logits[action] > logits[choice]:
            choice = action
    return np.uint64(1) << np.uint64(choice)


@kernel
def _write_even_odds(tree: Tree, node: Row, choices: Mask, epsilon: float) -> None:
    """Give some of a node's actions even odds, but `epsilon` of them to all."""
    first, edges = int64(node["first"]), int64(node["edges"])
    each = (1.0 - epsilon) / count_bits(choices)
    for k in range(first, first + edges):
        chosen = int64(choices >> np.uint64(tree.edges[k]["move"]) & np.uint64(1))
        tree.priors[k] = np.float32(each * chosen + epsilon / edges)
