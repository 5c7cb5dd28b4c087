"""Kernels of the random and the greedy bot, for opponents and rollouts in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.actions import PASS
from tokaido_env.core.bitmask import count_bits, lowest_action, select_bit
from tokaido_env.core.constants import Action, BoardRow, Mask, Seat, StateRow
from tokaido_env.core.jit import entry, int64, kernel, subroutine
from tokaido_env.core.rng import random_below
from tokaido_env.core.rules import apply, legal, total
from tokaido_env.core.state import EFFECT

_ONE = np.uint64(1)

NO_BOT, RANDOM, GREEDY = range(3)
BOTS = {"random": RANDOM, "greedy": GREEDY}


@kernel
def random_action(mask: Mask, bits: np.uint64) -> Action:
    """Return a uniformly random legal action.

    Args:
        mask: the legal actions as bits, not 0.
        bits: 64 random bits.
    """
    return select_bit(mask, random_below(bits, count_bits(mask)))


@subroutine
def greedy_action(
    board: BoardRow, s: StateRow, mask: Mask, bits: np.uint64, scratch: Any
) -> Action:
    """Return a random one of the actions that increase the score margin most at once.

    A move counts with its best effect, unless chance comes between. Ties go to more coins, then to
    using an effect.

    Args:
        mask: the legal actions as bits, not 0.
        bits: 64 random bits.
        scratch: `STATE` (2,), overwritten.
    """
    best = 0
    ties = np.uint64(0)
    first = True
    rest = mask
    while rest != np.uint64(0):
        action = lowest_action(rest)
        rest &= rest - _ONE
        value = _value_of_action(board, s, action, scratch)
        if first or value > best:
            best = value
            ties = np.uint64(0)
            first = False
        if value == best:
            ties |= _ONE << np.uint64(action)
    return random_action(ties, bits)


@kernel
def _value_of_action(board: BoardRow, s: StateRow, action: Action, scratch: Any) -> int:
    """Return the value of an action and its best effect to the mover."""
    scratch[0] = s
    after = scratch[0]
    mover = int64(s["player"])
    apply(board, after, action)
    value = _value(board, after, mover)
    if int(s["phase"]) == EFFECT:
        return value + (0 if action == PASS else 1)
    if int(after["phase"]) != EFFECT:
        return value
    best = value
    effects = legal(board, after)
    while effects != np.uint64(0):
        effect = lowest_action(effects)
        effects &= effects - _ONE
        if effect != PASS:
            scratch[1] = after
            apply(board, scratch[1], effect)
            best = max(best, _value(board, scratch[1], mover) + 1)
    return best


@kernel
def _value(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """Return a seat's margin: a point outweighs all coins, and a coin the use of an effect."""
    coins = int(s["coins"][seat]) - int(s["coins"][1 - seat])
    return 256 * (total(board, s, seat) - total(board, s, 1 - seat)) + 2 * coins


@entry
def random_actions(legal_masks: Any, keys: Any, out: Any) -> None:
    """Write an action for each of n games: `random_action` with the games' keys.

    Args:
        legal_masks: uint64 (n,), not 0.
        keys: uint64 (n,).
        out: int64 (n,).
    """
    for i in range(len(out)):
        out[i] = random_action(legal_masks[i], keys[i])


@entry
def greedy_actions(
    boards: Any, states: Any, legal_masks: Any, keys: Any, scratch: Any, out: Any
) -> None:
    """Write an action for each of n games: `greedy_action` with the games' keys.

    Args:
        boards: `BOARD` (1,) or (n,).
        states: `STATE` (n,).
        legal_masks: uint64 (n,), not 0.
        keys: uint64 (n,).
        scratch: `STATE` (2,), overwritten.
        out: int64 (n,).
    """
    for i in range(len(out)):
        board = boards[i if len(boards) > 1 else 0]
        out[i] = greedy_action(board, states[i], legal_masks[i], keys[i], scratch)
