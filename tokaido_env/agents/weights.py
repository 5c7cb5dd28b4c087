"""The weights of a network as the kernels read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tokaido_env.agents.first_layer import Whole

Floats = npt.NDArray[np.float32]

_MAX_COPIES = 16  # of a network, about a megabyte each; more threads share them


class Weights(NamedTuple):
    """A network as the kernels read it: float32 but for int16 in the first layer.

    Each thread has a copy. Processors that share weights fetch them from each other whenever the
    weights fall out of a cache, which makes a forward pass a third longer. Widths are those of
    `LayerSizes`.

    Attributes:
        first: int16 (copies, N_INPUTS, first).
        first_scale: (copies, first), of these integers.
        first_bias: int16 (copies, first).
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


def copy_for_threads(weights: Weights) -> Weights:
    """Return weights with an axis of copies, first, from weights without it."""
    copies = min(numba.config.NUMBA_NUM_THREADS, _MAX_COPIES)
    arrays: tuple[Any, ...] = weights
    return Weights(*(np.stack([array] * copies) for array in arrays))
