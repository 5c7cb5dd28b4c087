"""The weights of a network as the kernels read them.

The first layer computes in 16-bit integers: exact in any order, and fast. Inputs are whole numbers
of their unit (`network_inputs.INPUT_UNITS`), results after rounding. The weights and the bias of an
output are rounded to multiples of its scale, so that its sum is a sum of integers, which processors
add sixteen at a time.

The scale of an output gives its largest sum in sample positions a quarter of the range of 16 bits:
the margin is for boards and positions that the samples lack. With it, the value of the champion of
2026-11-25 changes by 0.008 (root mean square), a twentieth of its error.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tokaido_env.core.jit import allocator, index
from tokaido_env.features.network_inputs import INPUT_UNITS

Floats = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int16]

MARGIN = 4
"""The range of 16 bits is this many times the largest sum in the sample positions."""

SAMPLE_INPUTS = Path(__file__).resolve().parent / "sample_inputs.npz"
"""Inputs of positions of played games, which `benchmarks/sample_inputs.py` makes."""

_LARGEST = 2**15 - 1
_MAX_COPIES = 16  # of a network, about a megabyte each; more threads share them


class Weights(NamedTuple):
    """A network as the kernels read it: float32 but for int16 in the first layer.

    Each thread has a copy. Processors that share weights fetch them from each other whenever the
    weights fall out of a cache, which makes a forward pass a third longer. Widths are those of
    `LayerSizes`.

    Attributes:
        first: int16 (copies, N_INPUTS, first), for inputs in units, in multiples of `first_scale`.
        first_scale: (copies, first).
        first_bias: int16 (copies, first), cut off at half of the range.
        second: (copies, first, second).
        second_bias: (copies, second).
        out: (copies, second).
        out_bias: (copies, 1).
    """

    first: Whole
    first_scale: Floats
    first_bias: Whole
    second: Floats
    second_bias: Floats
    out: Floats
    out_bias: Floats


def weights_of(tensors: dict[str, Floats]) -> Weights:
    """Return the weights of a network, a copy for each thread.

    Args:
        tensors: float32, with the names and shapes of `policy.tensor_shapes`.
    """
    first, bias = tensors["first.weight"].T, tensors["first.bias"]
    scale = _scale(first, bias)
    whole = np.rint(first * INPUT_UNITS[:, None] / scale).clip(-_LARGEST, _LARGEST)
    arrays = (
        whole.astype(np.int16),
        scale,
        np.rint(bias / scale).clip(-_LARGEST // 2, _LARGEST // 2).astype(np.int16),
        tensors["second.weight"].T,
        tensors["second.bias"],
        tensors["value.weight"][0],
        tensors["value.bias"],
    )
    copies = min(numba.config.NUMBA_NUM_THREADS, _MAX_COPIES)
    return Weights(*(np.stack([np.ascontiguousarray(array)] * copies) for array in arrays))


def _scale(first: Floats, bias: Floats) -> Floats:
    """Return the scale of each output, (outputs,), of weights (inputs, outputs)."""
    # Libraries and processors add products in different orders: in 64 bits, with the scale rounded
    # to 32 before its use, all get the same scale.
    sums = _sample_inputs().astype(np.float64) @ first.astype(np.float64) + bias
    largest = np.maximum(np.abs(sums).max(axis=0), np.abs(bias))
    return np.asarray(largest * (MARGIN / _LARGEST) + 1e-30, np.float32)


# No kernel: the entries that call it count the references of what it returns.
@allocator
def thread_copy(network: Any, thread: int) -> Any:
    """Return the copy of a network that a thread reads, without the axis of copies; None of None.

    Args:
        network: `Weights`, or None.
        thread: the number of the thread.
    """
    if network is None:
        return None
    copy = index(thread % len(network.first))
    return Weights(
        network.first[copy],
        network.first_scale[copy],
        network.first_bias[copy],
        network.second[copy],
        network.second_bias[copy],
        network.out[copy],
        network.out_bias[copy],
    )


@functools.cache
def _sample_inputs() -> Floats:
    with np.load(SAMPLE_INPUTS) as file:
        return np.asarray(file["inputs"], np.float32)
