"""Compiled rollouts of positions, with common random numbers for all actions.

Rollout `r` of a position has the same dice, wares and tiles for every first action and every agent.
So a difference between two actions is their effect, not luck. The agent that plays on is
deterministic: the likeliest action of a network, or the heuristic's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Keys
from tokaido_env.agents.inference import choose_action, forward
from tokaido_env.agents.weights import Weights, thread_copy
from tokaido_env.agents.workspaces import PositionBatch, PositionRow, Workspace, new_workspace
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import Mask, Row
from tokaido_env.core.jit import int64, kernel, pooled, subroutine, threads_for
from tokaido_env.core.rng import LUCK, hash_bits, init_luck, resolve_chance
from tokaido_env.core.rules import apply, reward
from tokaido_env.core.state import STATE
from tokaido_env.core.threads import fetch_add
from tokaido_env.features.evaluation import best_action
from tokaido_env.features.terms import WEIGHTS
from tokaido_env.study.regret_set import BLOCK

_ROLLOUT = 40  # purpose number of the random stream


class Blocks(NamedTuple):
    """m blocks of `BLOCK` rollouts each: int64 (m,)."""

    positions: npt.NDArray[np.int64]
    """Indices of the positions."""
    actions: npt.NDArray[np.int64]
    """First actions, legal."""
    numbers: npt.NDArray[np.int64]
    """Block numbers: a block has the rollouts `BLOCK` * number to `BLOCK` * (number + 1)."""


def roll_out(
    network: Weights | None, positions: PositionBatch, keys: Keys, blocks: Blocks
) -> npt.NDArray[np.int64]:
    """Return the sum of results of each block, int64 (m,): `BLOCK` for all games won.

    A result is 1, 0 or -1 for the player to decide. The same arguments give the same sums
    on any number of threads.

    Args:
        network: plays on with its likeliest action; None for the heuristic.
        positions: each at a decision.
        keys: uint64 (n,), of the luck of each position.
        blocks: to roll out.
    """
    sums, taken = np.zeros(len(blocks.actions), np.int64), np.zeros(1, np.int64)
    _roll_each(threads_for(len(sums)), sums, blocks, network, positions, keys, taken, BLOCK)
    return sums


@pooled(at_least=2)
def _roll_each(
    first: int,
    last: int,
    sums: Any,
    blocks: Blocks,
    network: Any,
    positions: PositionBatch,
    keys: Any,
    taken: Any,
    size: int,
) -> None:
    """Roll out blocks of `size` rollouts, each thread in its own workspace."""
    for w in range(first, last):
        net = thread_copy(network, w)
        workspace = new_workspace(net)
        state, luck = np.empty(1, STATE), np.empty(1, LUCK)
        _roll_share(sums, blocks, net, positions, keys, workspace, state, luck, taken, size)


@subroutine
def _roll_share(
    sums: Any,
    blocks: Blocks,
    network: Any,
    positions: PositionBatch,
    keys: Any,
    workspace: Workspace,
    state: Any,
    luck: Any,
    taken: Any,
    size: int,
) -> None:
    """Roll out one block after another until the threads have taken all."""
    j = fetch_add(taken, 1)
    while j < len(sums):
        i = blocks.positions[j]
        which = i if len(positions.boards) > 1 else 0
        position = PositionRow(
            positions.boards[which],
            positions.states[i],
            positions.legal[i],
        )
        first = size * blocks.numbers[j]
        for rollout in range(first, first + size):
            init_luck(luck[0], hash_bits(keys[i], _ROLLOUT, 0, rollout))
            state[0] = position.state
            action = int64(blocks.actions[j])
            sums[j] += _play_on(network, position, action, state[0], luck[0], workspace)
        j = fetch_add(taken, 1)


@subroutine
def _play_on(
    network: Any, position: PositionRow, action: int, s: Row, luck: Row, workspace: Workspace
) -> int:
    """Play an action and the rest of the game; return the result for the action's player."""
    board = position.board
    mover = int64(s["player"])
    mask = resolve_chance(board, s, luck, apply(board, s, action))
    while mask != np.uint64(0):
        action = _chosen(network, position, s, mask, workspace)
        mask = resolve_chance(board, s, luck, apply(board, s, action))
    return int64(reward(board, s, mover, False))


@kernel
def _chosen(network: Any, position: PositionRow, s: Row, mask: Mask, workspace: Workspace) -> int:
    """Return the action of the agent that plays on; ties go to the lowest id."""
    if mask & (mask - np.uint64(1)) == np.uint64(0):
        return lowest_action(mask)
    if network is None:
        return best_action(position.board, s, mask, WEIGHTS, workspace.scratch[0])
    now = PositionRow(position.board, s, mask)
    forward(network, now, workspace, workspace.logits)
    return choose_action(workspace.logits, mask, np.uint64(0), 0.0)
