"""Rollouts: positions played to the end many times, each action with the same luck, compiled.

Rollout `r` of a position has the same dice, wares and tiles whatever action it begins with and
whoever plays it on: what differs between two actions is then the actions' doing (common random
numbers). Who plays on takes one action a position and draws nothing: a network's likeliest, or
that of the heuristic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Keys
from tokaido_env.agents.heuristic import best_action
from tokaido_env.agents.inference import (
    SHARED_BIAS,
    Network,
    PositionBatch,
    PositionRow,
    Workspace,
    cached_workspaces,
    forward,
)
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import Mask, Row
from tokaido_env.core.jit import allocator, int64, kernel, pooled, subroutine, threads_for
from tokaido_env.core.rng import LUCK, hash_bits, init_luck, resolve_chance
from tokaido_env.core.rules import apply, reward
from tokaido_env.core.state import STATE
from tokaido_env.core.threads import fetch_add
from tokaido_env.study.regret_set import BLOCK

_ROLLOUT = 40  # purpose of random numbers


class Blocks(NamedTuple):
    """What is to be rolled out, a block of `BLOCK` rollouts each: int64 (m,)."""

    positions: npt.NDArray[np.int64]
    """Which of the positions."""
    actions: npt.NDArray[np.int64]
    """Taken there first; legal."""
    numbers: npt.NDArray[np.int64]
    """Of the block: rollouts `BLOCK` * number to `BLOCK` * (number + 1)."""


def roll_out(
    network: Network | None, positions: PositionBatch, keys: Keys, blocks: Blocks
) -> npt.NDArray[np.int64]:
    """Return the sum of the results of each block, int64 (m,): `BLOCK` if all were won.

    A result is 1, 0 or -1 for who decides in the position. The same arguments give the same sums
    on any number of threads.

    Args:
        network: whose likeliest action is played from then on; None for the heuristic's.
        positions: with a decision to take.
        keys: uint64 (n,), of the luck of each position.
        blocks: what to roll out.
    """
    weights, rows = (None, SHARED_BIAS) if network is None else network.for_boards(positions.boards)
    positions = positions._replace(bias_rows=rows)
    threads = threads_for(len(blocks.actions))
    sums = np.zeros(len(blocks.actions), np.int64)
    workspaces = cached_workspaces(threads, weights)
    taken = np.zeros(1, np.int64)
    _roll_each(threads, sums, blocks, weights, positions, keys, workspaces, taken)
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
    workspaces: Workspace,
    taken: Any,
) -> None:
    """Roll out what no other thread has taken, in the workspaces from `first` to `last`."""
    for w in range(first, last):
        workspace = Workspace(
            workspaces.copy[w],
            workspaces.scratch[w, 0],
            workspaces.layers[w],
            workspaces.afterstates[w],
            workspaces.units[w],
            workspaces.values[w],
            workspaces.logits[w],
        )
        _roll_share(sums, blocks, network, positions, keys, workspace, taken)


@allocator
def _roll_share(
    sums: Any,
    blocks: Blocks,
    network: Any,
    positions: PositionBatch,
    keys: Any,
    workspace: Workspace,
    taken: Any,
) -> None:
    """Roll out blocks that no other thread has taken, one after the other."""
    states, lucks = np.empty(1, STATE), np.empty(1, LUCK)
    j = fetch_add(taken, 1)
    while j < len(sums):
        i = blocks.positions[j]
        which = i if len(positions.boards) > 1 else 0
        position = PositionRow(
            positions.boards[which],
            positions.eval_tables[which],
            positions.states[i],
            positions.legal[i],
            positions.bias_rows[i if len(positions.bias_rows) > 1 else 0],
        )
        first = BLOCK * blocks.numbers[j]
        for rollout in range(first, first + BLOCK):
            init_luck(lucks[0], hash_bits(keys[i], _ROLLOUT, 0, rollout))
            states[0] = position.state
            action = int64(blocks.actions[j])
            sums[j] += _play_on(network, position, action, states[0], lucks[0], workspace)
        j = fetch_add(taken, 1)


@subroutine
def _play_on(
    network: Any, position: PositionRow, action: int, s: Row, luck: Row, workspace: Workspace
) -> int:
    """Play a state to the end, an action first; return the result for who took that."""
    board = position.board
    mover = int64(s["player"])
    mask = resolve_chance(board, s, luck, apply(board, s, action))
    while mask != np.uint64(0):
        action = _chosen(network, position, s, mask, workspace)
        mask = resolve_chance(board, s, luck, apply(board, s, action))
    return int64(reward(board, s, mover, False))


@kernel
def _chosen(network: Any, position: PositionRow, s: Row, mask: Mask, workspace: Workspace) -> int:
    """Return the action of who plays on; ties go to the lowest id, as the agents' do."""
    if mask & (mask - np.uint64(1)) == np.uint64(0):
        return lowest_action(mask)
    if network is None:
        return best_action(position.board, position.tables, s, mask, workspace.scratch)
    now = PositionRow(position.board, position.tables, s, mask, position.bias_row)
    forward(network, now, workspace, workspace.logits)
    best = lowest_action(mask)
    mask &= mask - np.uint64(1)
    while mask != np.uint64(0):
        action = lowest_action(mask)
        mask &= mask - np.uint64(1)
        if workspace.logits[action] > workspace.logits[best]:
            best = action
    return best
