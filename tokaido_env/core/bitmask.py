"""Sets of actions as 64-bit masks, and their conversion to bytes and lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.constants import Mask
from tokaido_env.core.jit import entry, index, int64, kernel

MASK_BYTES = -(-N_ACTIONS // 8) * 8
"""Bytes of a mask with one byte per action, padded to whole 64-bit words."""

EACH_BYTE = np.uint64(0x0101010101010101)
"""The factor that repeats a byte in each byte of a word."""

_ONE = np.uint64(1)
_WORDS = MASK_BYTES // 8
_BITS_OF_BYTE = np.array([[byte >> bit & 1 for bit in range(8)] for byte in range(256)], np.int8)
_WORD_OF_BYTE = _BITS_OF_BYTE.view(np.uint64)[:, 0].copy()

# [byte, n]: the position of the n-th set bit.
_NTH_BIT = np.zeros((256, 8), np.int8)
for _byte in range(256):
    for _n, _position in enumerate(p for p in range(8) if _byte >> p & 1):
        _NTH_BIT[_byte, _n] = _position


@kernel
def lowest_action(mask: Mask) -> int:
    """Return the lowest action id of a mask that is not 0."""
    return count_bits((mask - _ONE) & ~mask)


@kernel
def highest_action(mask: Mask) -> int:
    """Return the highest action id of a mask that is not 0."""
    for half in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(half)
    return count_bits(mask) - 1


@kernel
def highest_score(mask: Mask, scores: Any) -> int:
    """Return the action of a non-empty mask with the highest score; ties go to the lowest id.

    Args:
        mask: actions as bits.
        scores: numbers (N_ACTIONS,).
    """
    choice = lowest_action(mask)
    while mask != np.uint64(0):
        action = lowest_action(mask)
        mask &= mask - _ONE
        if scores[index(action)] > scores[index(choice)]:
            choice = action
    return choice


@kernel
def select_bit(mask: Mask, n: int) -> int:
    """Return the position, 0 to 63, of the n-th set bit of a uint64, n from 0; it must exist."""
    position = 0
    for half in (32, 16, 8):
        below_half = mask & (_ONE << np.uint64(half)) - _ONE
        skip = int64(n >= count_bits(below_half))
        n -= skip * count_bits(below_half)
        position += skip * half
        mask >>= np.uint64(skip * half)
    return position + int64(_NTH_BIT[int64(mask & np.uint64(0xFF)), n & 7])


@kernel
def count_bits(mask: Mask) -> int:
    """Return the number of set bits of a uint64, 0 to 64."""
    mask = mask - (mask >> _ONE & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    mask = (mask & pairs) + (mask >> np.uint64(2) & pairs)
    mask = (mask + (mask >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int64(mask * np.uint64(0x0101010101010101) >> np.uint64(56))


@kernel
def expand_mask(mask: Mask, words: Any) -> None:
    """Write a mask as one byte per action, 1 = set, to uint64 (MASK_BYTES / 8,)."""
    for word in range(_WORDS):
        words[word] = byte_to_word(int64(mask & np.uint64(0xFF)))
        mask >>= np.uint64(8)


@kernel
def byte_to_word(byte: int) -> np.uint64:
    """Return the bits of a byte, 0 to 255, as the bytes of a uint64, lowest bit first."""
    return np.uint64(_WORD_OF_BYTE[index(byte)])


@kernel
def nonzero_bytes(word: np.uint64) -> np.uint64:
    """Return a word with 1 in each byte that is not 0 in the given one."""
    low_bits = np.uint64(0x7F7F7F7F7F7F7F7F)
    return (word | (word & low_bits) + low_bits) >> np.uint64(7) & EACH_BYTE


@entry
def unpack_mask(mask: int, out: Any) -> None:
    """Write a mask as one byte per action, 1 = set, to int8 (N_ACTIONS,)."""
    bits = np.uint64(mask)
    for action in range(len(out)):
        out[action] = bits >> np.uint64(action) & _ONE


def actions_of(mask: int) -> list[int]:
    """Return the action ids of a mask in ascending order.

    >>> actions_of(0b1000011)
    [0, 1, 6]
    """
    actions = []
    while mask:
        lowest_action = mask & -mask
        actions.append(lowest_action.bit_length() - 1)
        mask ^= lowest_action
    return actions
