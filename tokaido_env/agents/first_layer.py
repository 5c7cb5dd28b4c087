"""The first layer of a network in 16-bit integers: exact in any order, and fast.

Inputs are whole numbers of their unit (`network_inputs.INPUT_UNITS`), results after rounding. The
weights and the bias of an output are rounded to multiples of its scale, so that its
sum is a sum of integers, which processors add sixteen at a time.

The scale of an output gives its largest sum in sample positions a quarter of the range of 16 bits:
the margin is for boards and positions that the samples lack. With it, the value of the champion of
2026-11-25 changes by 0.008 (root mean square), a twentieth of its error.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.batch import Batch
from tokaido_env.core.state import copy_rows
from tokaido_env.features.eval_tables import eval_tables_of
from tokaido_env.features.network_inputs import INPUT_UNITS, encode_positions

Floats = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int16]

MARGIN = 4
"""The range of 16 bits is this many times the largest sum in the sample positions."""

_LARGEST = 2**15 - 1
_BOARDS = "shikoku", *(f"family:{number}" for number in range(15))
_GAMES, _MOVES, _EVERY = 32, 130, 8  # sample positions: games, decisions of each, one of so many


class FirstLayer(NamedTuple):
    """A first layer as integers."""

    weights: Whole
    """(inputs, outputs), for inputs in whole numbers of their unit, in multiples of `scale`."""
    scale: Floats
    """(outputs,)."""


def quantize(weights: Floats, bias: Floats) -> FirstLayer:
    """Return a first layer as integers.

    Args:
        weights: float32 (inputs, outputs).
        bias: float32 (outputs,).
    """
    # Libraries and processors add products in different orders: in 64 bits, with the scale rounded
    # to 32 before its use, all get the same scale.
    sums = _sample_inputs().astype(np.float64) @ weights.astype(np.float64) + bias
    largest = np.maximum(np.abs(sums).max(axis=0), np.abs(bias))
    scale = (largest * (MARGIN / _LARGEST) + 1e-30).astype(np.float32)
    whole = np.rint(weights * INPUT_UNITS[:, None] / scale).clip(-_LARGEST, _LARGEST)
    return FirstLayer(whole.astype(np.int16), scale)


def whole_bias(bias: Floats, scale: Floats) -> Whole:
    """Return biases as integers, int16 (…, outputs); those beyond half of the range are cut off.

    Args:
        bias: float32 (…, outputs).
        scale: float32 (outputs,), of the integers.
    """
    whole = np.rint(bias / scale).clip(-_LARGEST // 2, _LARGEST // 2)
    return np.asarray(whole, np.int16)


@functools.cache
def _sample_inputs() -> Floats:
    """Return the inputs (n, N_INPUTS) of positions of played games."""
    batch = Batch(_GAMES, list(_BOARDS), observation=None)
    batch.reset(seed=np.arange(_GAMES))
    inputs = []
    for move in range(_MOVES):
        if move % _EVERY == 0:
            at = np.flatnonzero(batch.legal)
            boards, which = batch.boards_of(at), np.arange(len(at))
            states = copy_rows(batch.states, at)
            inputs.append(encode_positions(boards, eval_tables_of(boards), which, states))
        batch.play("random" if move % 10 == 9 else "greedy")
    return np.concatenate(inputs)
