"""Exact values of actions in the last round: expectimax with a table of solved positions.

Both players choose the best action, and chance has its odds (Michie 1966). Only the verbs of the
rules are used, none of the searches of the agents, because the values measure those agents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import BoardRows, Legal, States
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import ARTIST, MERCHANT, Mask, Row
from tokaido_env.core.jit import int64, kernel, pooled, subroutine
from tokaido_env.core.rules import apply, apply_outcome, is_chance, outcome_weight, reward
from tokaido_env.core.state import MOVE, OVER, STATE

SLOTS = 2**21  # of a table, a power of two
_LONGEST = 64  # line of a round
_KINDS = 4  # of wares and of icons
_WORDS = -(-STATE.itemsize // 8)
_FRAME = np.dtype({"names": ["state"], "formats": [STATE], "itemsize": 8 * _WORDS})


class _Table(NamedTuple):
    """Solved positions and the line that is searched; `owners` says for which position."""

    frames: npt.NDArray[np.void]
    words: npt.NDArray[np.uint64]  # the frames as numbers
    keys: npt.NDArray[np.uint64]
    results: npt.NDArray[np.float64]
    owners: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def exact_values(
    boards: BoardRows, states: States, legal: Legal
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the exact result of each action, and the number of positions below each.

    Args:
        boards: `BOARD` (n,).
        states: `STATE` (n,), at decisions of the last round: at the cap, or after a trigger.
        legal: uint64 (n,), the legal actions as bits.

    Returns:
        float64 (n, N_ACTIONS), -1 to 1 for the player to decide, nan for illegal actions; and
        int64 (n,).

    Raises:
        ValueError: if a position has too many below it for the table.
    """
    values, counts = np.full((len(states), N_ACTIONS), np.nan), np.zeros(len(states), np.int64)
    _solve_each(len(states), values, counts, boards, states, legal)
    if (counts > SLOTS // 2).any():
        raise ValueError(f"position {counts.argmax()}: expected a last round, with less below it")
    return values, counts


@pooled(at_least=2)
def _solve_each(
    first: int, last: int, values: Any, counts: Any, boards: Any, states: Any, legal: Any
) -> None:
    frames = np.zeros(_LONGEST, _FRAME)
    words = frames.view(np.uint64).reshape(_LONGEST, _WORDS)
    keys, owners = np.empty((SLOTS, _WORDS), np.uint64), np.full(SLOTS, -1)
    table = _Table(frames, words, keys, np.empty(SLOTS), owners, counts)
    for i in range(first, last):
        frames[0]["state"] = states[i]
        sign, mask = 1 - 2 * int64(states[i]["player"]), legal[i]
        while mask != np.uint64(0):
            action = lowest_action(mask)
            mask &= mask - np.uint64(1)
            frames[1] = frames[0]
            after = apply(boards[i], frames[1]["state"], action)
            values[i, action] = sign * _result(boards[i], table, i, 1, after)


@subroutine
def _result(board: Row, table: _Table, i: int, depth: int, mask: Mask) -> float:
    """Return the expected result of player_0 under best play from `table.frames[depth]`."""
    frames = table.frames
    s = frames[depth]["state"]
    if int64(s["phase"]) == OVER:
        return float(reward(board, s, 0, False))
    if int64(s["phase"]) == MOVE:
        _forget(s)
    slot = _slot(table, i, depth)
    if table.owners[slot] == i:
        return float(table.results[slot])
    table.counts[i] += 1
    if table.counts[i] > SLOTS // 2:
        return 0.0
    value, weights, sign = 0.0, 0, 1 - 2 * int64(s["player"])
    if is_chance(s):
        for outcome in range(_KINDS):
            weight = int64(outcome_weight(board, s, outcome))
            if weight > 0:
                frames[depth + 1] = frames[depth]
                after = apply_outcome(board, frames[depth + 1]["state"], outcome)
                value += weight * _result(board, table, i, depth + 1, after)
                weights += weight
        value /= weights
    else:
        value = -1.0 * sign
        while mask != np.uint64(0) and value != sign:  # a won position needs no other action
            frames[depth + 1] = frames[depth]
            after = apply(board, frames[depth + 1]["state"], lowest_action(mask))
            mask &= mask - np.uint64(1)
            value = sign * max(sign * value, sign * _result(board, table, i, depth + 1, after))
    slot = _slot(table, i, depth)  # again: the table has more positions now
    table.owners[slot], table.results[slot] = i, value
    for k in range(_WORDS):
        table.keys[slot, k] = table.words[depth, k]
    return value


@kernel
def _forget(s: Row) -> None:
    """Empty what only a die that is taken can use: nothing in the rest of the round needs it."""
    for k in range(4):
        if int64(s["dice_left"]) >> MERCHANT & 1 == 0:
            s["wares"][0, k] = s["wares"][1, k] = s["bag"][k] = 0
        if int64(s["dice_left"]) >> ARTIST & 1 == 0:
            s["hidden"][0, k] = s["hidden"][1, k] = 0
            s["easel"][k & 1] = s["easel_size"][k & 1] = 0


@kernel
def _slot(table: _Table, i: int, depth: int) -> int:
    """Return the slot of the position at a depth, or the free slot for it."""
    bits, words = np.uint64(0), table.words[depth]
    for word in words:
        bits = (bits ^ word) * np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(29)
    slot = int64(bits & np.uint64(SLOTS - 1))
    while table.owners[slot] == i:
        same = True
        for k in range(_WORDS):
            same = same and table.keys[slot, k] == words[k]
        if same:
            break
        slot = (slot + 1) & (SLOTS - 1)
    return slot
