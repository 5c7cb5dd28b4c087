"""The positions and the memory of forward passes, as the kernels read them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.weights import Floats, Weights, Whole
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import kernel
from tokaido_env.core.threads import padded_rows
from tokaido_env.features.evaluation import SCRATCH
from tokaido_env.features.network_inputs import N_INPUTS

T = TypeVar("T")

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
    """Memory for a forward pass of one thread; for several threads with one more axis, first.

    Attributes:
        copy: the copy of the network that the thread reads, an integer.
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

    copy: Any
    scratch: Any
    layers: Floats
    changed: npt.NDArray[np.int64]
    changes: Whole
    whole: Whole
    sums: Whole
    units: npt.NDArray[np.int64]
    values: Floats
    logits: Floats


def cached_workspaces(
    threads: int, weights: Weights | None, *, of_opponent: bool = False
) -> Workspace:
    """Return a workspace for each thread.

    Equal calls of one Python thread get the same memory. A search needs one for its own network and
    one for the opponent's.

    Args:
        threads: number of threads.
        weights: of the network; None: workspaces with the scratch only.
        of_opponent: whether the network is that of an opponent model.
    """
    if weights is None:
        return _make_workspaces(of_opponent, threads, 1, None)
    copies, sizes = len(weights.first), workspace_sizes(weights)
    return _make_workspaces(of_opponent, threads, copies, sizes)


def workspace_sizes(weights: Weights) -> tuple[int, int]:
    """Return the lengths of a workspace's layers and of its first layer."""
    _, first, second = weights.second.shape
    return weights.first.shape[1] + second, first


def cached_by_thread(size: int, make: Callable[..., T]) -> Callable[..., T]:
    """Return a function with a cache of so many results for each Python thread, until it ends."""

    class Own(threading.local):
        def __init__(self) -> None:
            self.make = lru_cache(size)(make)

    own = Own()
    return lambda *arguments: own.make(*arguments)


@partial(cached_by_thread, 8)
def _make_workspaces(
    of_opponent: bool, threads: int, copies: int, sizes: tuple[int, int] | None
) -> Workspace:
    layers, units = sizes or (0, 0)
    return Workspace(
        copy=np.arange(threads) % copies,
        scratch=padded_rows(threads, 1, SCRATCH),
        layers=padded_rows(threads, layers, np.float32),
        changed=padded_rows(threads, MAX_CHANGES, np.int64),
        changes=padded_rows(threads, MAX_CHANGES, np.int16),
        whole=padded_rows(threads, 2, np.dtype((np.int16, N_INPUTS))),
        sums=padded_rows(threads, 2, np.dtype((np.int16, max(units, 1)))),
        units=padded_rows(threads, units, np.int64),
        values=padded_rows(threads, units, np.float32),
        logits=padded_rows(threads, N_ACTIONS, np.float32),
    )


@kernel
def workspace_at(workspaces: Workspace, thread: int) -> Workspace:
    """Return the workspace of one thread; callers must not count references (`jit.kernel`)."""
    return Workspace(
        workspaces.copy[thread],
        workspaces.scratch[thread],
        workspaces.layers[thread],
        workspaces.changed[thread],
        workspaces.changes[thread],
        workspaces.whole[thread],
        workspaces.sums[thread],
        workspaces.units[thread],
        workspaces.values[thread],
        workspaces.logits[thread],
    )


@kernel
def forget_positions(workspace: Workspace) -> None:
    """Prepare a workspace for another network: all inputs are 0, and so is the first layer."""
    for seat in range(2):
        workspace.whole[seat, :] = 0
        workspace.sums[seat, :] = 0
