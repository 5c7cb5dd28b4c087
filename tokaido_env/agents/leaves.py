"""What a new node of a search is worth: by the evaluation, by random play, or by a network."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.agents.heuristic import evaluate, final_result
from tokaido_env.agents.inference import Position, Workspace, forward, value_at_chance
from tokaido_env.agents.inputs import viewer
from tokaido_env.agents.opponent import decides
from tokaido_env.agents.plan import FULL, Plan
from tokaido_env.agents.selection import note_priors
from tokaido_env.agents.tree import Tree, mask_of
from tokaido_env.core.bots import random_action
from tokaido_env.core.jit import int64, subroutine
from tokaido_env.core.luck import begin_luck, hash_bits, settle
from tokaido_env.core.rules import apply, legal
from tokaido_env.core.state import NOBODY, OVER

_PICK = 22  # a purpose of random numbers


@subroutine
def judge(
    network: Any,
    opponent: Any,
    plan: Plan,
    position: Position,
    tree: Tree,
    at: int,
    workspace: Workspace,
) -> np.float32:
    """Return the value of a node for player_0; a network notes the priors of its edges."""
    s = tree.states[at]
    if network is None:
        return evaluate(position.board, position.guide, s, workspace.scratch)
    node = tree.nodes[at]
    if int(node["over"]):
        return final_result(position.board, s)
    if int(node["player"]) == NOBODY:
        asked = Position(position.board, position.guide, s, np.uint64(0), position.row)
        return np.float32(1 - 2 * viewer(s)) * value_at_chance(network, asked, workspace)
    asked = Position(position.board, position.guide, s, mask_of(tree, node), position.row)
    value = forward(network, asked, workspace, workspace.logits)
    if not decides(opponent, tree, node):
        note_priors(tree, node, workspace.logits, np.float32(plan.temperature))
    return np.float32(1 - 2 * int64(node["player"])) * value


@subroutine
def play_out(
    position: Position, tree: Tree, at: int, rollout: int, bits: np.uint64, workspace: Workspace
) -> np.float32:
    """Return the evaluation, for player_0, after some rounds of random play from a node."""
    board = position.board
    s = workspace.scratch["states"][0]
    workspace.scratch["states"][0] = tree.states[at]
    luck = tree.luck
    begin_luck(luck, bits)
    last = int64(s["round"]) + rollout
    mask = np.uint64(0)
    if int(s["phase"]) != OVER:
        mask = settle(board, s, luck, legal(board, s))
    number = 0
    while mask != np.uint64(0) and (int64(s["round"]) <= last or rollout == FULL):
        action = random_action(mask, hash_bits(bits, _PICK, 0, number))
        mask = settle(board, s, luck, apply(board, s, action))
        number += 1
    return evaluate(board, position.guide, s, workspace.scratch)
