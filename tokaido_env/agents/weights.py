"""The weights of a network as the kernels read them, and its part that depends on the board."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tokaido_env.agents.first_layer import Whole, whole_bias
from tokaido_env.agents.sparse_layers import apply_layer, list_nonzero
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_features_of
from tokaido_env.core.jit import entry
from tokaido_env.features.board_cache import BoardCache

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
        first_bias: int16 (rows, first): one row for all boards, or one a board.
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


SHARED_BIAS = np.zeros(1, np.int64)
"""The row of the first bias that all boards share, where a network reads no board."""


class BoardWeights(NamedTuple):
    """The part of the first layer that reads the board; widths are those of `LayerSizes`.

    Attributes:
        weights: float32 (N_BOARD_FEATURES, first).
        bias: float32 (first,), without a board.
        scale: float32 (first,), of the integers of the first layer.
    """

    weights: Floats
    bias: Floats
    scale: Floats


class Network:
    """A network for the kernels, on any boards.

    Args:
        weights: the weights without an axis of copies.
        board: the part of the board in the first layer, None for a network that does not read it.
    """

    def __init__(self, weights: Weights, board: BoardWeights | None = None) -> None:
        bias = weights.first_bias
        copies = min(numba.config.NUMBA_NUM_THREADS, _MAX_COPIES)
        arrays: tuple[Any, ...] = weights
        copied = Weights(*(np.stack([array] * copies) for array in arrays))
        self._weights = copied._replace(first_bias=bias[None])
        self._biases: BoardCache | None = None
        if board is not None:
            self._biases = BoardCache(functools.partial(_make_biases, board), bias.shape, np.int16)

    def for_boards(self, boards: npt.NDArray[np.void]) -> tuple[Weights, npt.NDArray[np.int64]]:
        """Return the weights for b boards, and the row of the first bias for each.

        Args:
            boards: `BOARD` (b,).

        Returns:
            The weights, and int64 (b,), or (1,) if the network reads no board.
        """
        if self._biases is None:
            return self._weights, SHARED_BIAS
        table, rows = self._biases.rows(boards)
        return self._weights._replace(first_bias=table), rows


_BOARD_FEATURES = BoardCache(board_features_of, (N_BOARD_FEATURES,), np.float32)  # for all networks


def _make_biases(board: BoardWeights, boards: npt.NDArray[np.void]) -> Whole:
    """Return the first bias with the features of each board, `BOARD` (b,), added: (b, units)."""
    table, which = _BOARD_FEATURES.rows(boards)
    features = table[which]
    biases = np.empty((len(boards), len(board.bias)), np.float32)
    units, values = np.empty(N_BOARD_FEATURES, np.int64), np.empty(N_BOARD_FEATURES, np.float32)
    _fill_biases(biases, features, board.weights, board.bias, units, values)
    return whole_bias(biases, board.scale)


@entry
def _fill_biases(out: Any, features: Any, weights: Any, bias: Any, units: Any, values: Any) -> None:
    for i in range(len(out)):
        active = list_nonzero(features[i], units, values)
        apply_layer(weights, bias, units, values, active, out[i])
