"""The positions and the memory of forward passes, as the kernels read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.weights import Floats, Whole
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import allocator
from tokaido_env.features.evaluation import SCRATCH
from tokaido_env.features.network_inputs import N_INPUTS

MAX_CHANGES = -(-N_INPUTS // 4) * 4
"""Length of the list of changed inputs: `N_INPUTS` up to a multiple of four, so that on a GPU each
row of changes starts at a whole word of 64 bits, as reading four at once needs."""


class PositionBatch(NamedTuple):
    """Positions to evaluate or search, n of them.

    Attributes:
        boards: `BOARD` (1,) for all positions, or (n,).
        states: `STATE` (n,).
        legal: uint64 (n,), the legal actions as bits, not 0.
    """

    boards: Any
    states: Any
    legal: Any

    def part(self, part: slice | npt.NDArray[np.int64]) -> PositionBatch:
        """Return the positions at a slice, or at indices, int64 (k,)."""
        each = part if len(self.boards) > 1 else slice(None)
        return PositionBatch(self.boards[each], self.states[part], self.legal[part])


class PositionRow(NamedTuple):
    """One position of a `PositionBatch`.

    Attributes:
        board: a row of `BOARD`.
        state: a row of `STATE`.
        legal: the legal actions as bits; 0 at chance.
    """

    board: Row
    state: Row
    legal: np.uint64


class Workspace(NamedTuple):
    """Memory of one thread for forward passes; overwritten.

    Attributes:
        scratch: `SCRATCH` (1,): compiled functions cannot return a row.
        layers: float32, one after the other: the inputs, the second layer.
        changed: int64, the inputs that differ from those of the seat's last position.
        changes: int16, the differences, in units.
        whole: int16 (2, N_INPUTS), the inputs of the last position of each seat, in units.
        sums: int16 (2, units), the first layer of these positions, without its bias.
        units: int64, the indices of a layer's units that are not 0.
        values: float32, their values.
        logits: float32 (N_ACTIONS or more,), for a position that nothing else stores.
    """

    scratch: Any
    layers: Floats
    changed: npt.NDArray[np.int64]
    changes: Whole
    whole: Whole
    sums: Whole
    units: npt.NDArray[np.int64]
    values: Floats
    logits: Floats


@allocator
def new_workspace(network: Any) -> Workspace:
    """Return a workspace for forward passes of a network.

    Args:
        network: `Weights`, the copy of one thread; None for the scratch alone.
    """
    units, second = 0, 0
    if network is not None:
        units, second = network.second.shape
    return Workspace(
        np.empty(1, SCRATCH),
        np.empty(N_INPUTS + second, np.float32),
        np.empty(MAX_CHANGES, np.int64),
        np.empty(MAX_CHANGES, np.int16),
        np.zeros((2, N_INPUTS), np.int16),
        np.zeros((2, units), np.int16),
        np.empty(units, np.int64),
        np.empty(units, np.float32),
        np.empty(N_ACTIONS, np.float32),
    )
