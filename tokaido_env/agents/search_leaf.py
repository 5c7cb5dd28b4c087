"""The value of a leaf of a search: by a network, exactly, by the heuristic, or by a rollout."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.agents.inference import AFTERSTATE_LOGIT, forward, value_of
from tokaido_env.agents.opponent_model import opponent_decides
from tokaido_env.agents.search_config import SearchConfig
from tokaido_env.agents.search_tree import Tree, edge_mask
from tokaido_env.agents.selection import write_priors
from tokaido_env.agents.workspaces import PositionRow, Workspace
from tokaido_env.core.bots import random_action
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import int64, kernel, subroutine
from tokaido_env.core.rng import hash_bits, init_luck, resolve_chance
from tokaido_env.core.rules import apply, is_last_round, legal
from tokaido_env.core.state import NO_PLAYER, OVER
from tokaido_env.features.endings import UNSOLVED, best_ending
from tokaido_env.features.evaluation import evaluate, final_result
from tokaido_env.features.network_inputs import active_seat
from tokaido_env.features.terms import WEIGHTS

_ROLLOUT_ACTION = 22  # a purpose of random numbers

# Positions of an exact result; a leaf with more is evaluated by the network.
_LEAF_LIMIT = 1_000


@subroutine
def evaluate_leaf(
    network: Any,
    opponent: Any,
    config: SearchConfig,
    position: PositionRow,
    tree: Tree,
    at: int,
    edge: int,
    workspace: Workspace,
) -> np.float32:
    """Return the value of a node for player_0; with a network, write its edges' priors and values.

    Args:
        network: `Weights`; None: the heuristic's evaluation.
        opponent: an `Opponent`, or None.
        config: the settings of the search.
        position: the root of the search, for its board.
        tree: of the search.
        at: index of the node.
        edge: index of the edge that leads to it; not read at the root.
        workspace: as for `forward`.
    """
    s = tree.states[at]
    if network is None:
        return evaluate(position.board, s, WEIGHTS, workspace.scratch[0])
    node = tree.nodes[at]
    if int(node["over"]):
        return final_result(position.board, s)
    if config.exact_endings and opponent is None and at > 0 and is_last_round(position.board, s):
        value = _exact_value(position, tree, at, workspace)
        if value != UNSOLVED:
            node["over"] = 1  # its value is final
            return value
    if int(node["player"]) == NO_PLAYER:
        if not np.isnan(tree.values[edge]):
            return np.float32(tree.values[edge])
        leaf = PositionRow(position.board, s, np.uint64(0))
        return np.float32(1 - 2 * active_seat(s)) * value_of(network, leaf, workspace)
    mask = edge_mask(tree, node)
    leaf = PositionRow(position.board, s, mask)
    value = forward(network, leaf, workspace, workspace.logits)
    if not opponent_decides(opponent, tree, node):
        write_priors(tree, node, workspace.logits, np.float32(config.temperature))
        _write_values(tree, node, workspace.logits)
    return np.float32(1 - 2 * int64(node["player"])) * value


@kernel
def _write_values(tree: Tree, node: Row, logits: Any) -> None:
    """Write the values behind a node's edges for player_0, from the logits of `forward`."""
    unit = np.float32(1 - 2 * int64(node["player"])) / AFTERSTATE_LOGIT
    first = int64(node["first"])
    for k in range(first, first + int64(node["edges"])):
        tree.values[k] = unit * logits[int64(tree.edges[k]["move"])]


@subroutine
def _exact_value(position: PositionRow, tree: Tree, at: int, workspace: Workspace) -> np.float32:
    """Return the exact result for player_0 of a node after an end trigger, or `UNSOLVED`."""
    node, frames = tree.nodes[at], workspace.scratch[0]["frames"]
    frames[0]["state"] = tree.states[at]
    mask = np.uint64(0)
    if int(node["player"]) != NO_PLAYER:
        mask = edge_mask(tree, node)
    return best_ending(position.board, frames, mask, _LEAF_LIMIT)


@subroutine
def rollout(
    position: PositionRow, tree: Tree, at: int, bits: np.uint64, workspace: Workspace
) -> np.float32:
    """Return the result for player_0 of random play from a node to the end of the game.

    Args:
        position: the root of the search, for its board.
        tree: of the search; its luck is overwritten.
        at: index of the node.
        bits: 64 random bits.
        workspace: its scratch is overwritten.
    """
    board = position.board
    s = workspace.scratch[0]["states"][0]
    workspace.scratch[0]["states"][0] = tree.states[at]
    luck = tree.luck
    init_luck(luck, bits)
    mask = np.uint64(0)
    if int(s["phase"]) != OVER:
        mask = resolve_chance(board, s, luck, legal(board, s))
    number = 0
    while mask != np.uint64(0):
        action = random_action(mask, hash_bits(bits, _ROLLOUT_ACTION, 0, number))
        mask = resolve_chance(board, s, luck, apply(board, s, action))
        number += 1
    return final_result(board, s)
