"""Replay buffer of `alphazero`: training samples of self-play games, and their files.

Files are safetensors with states as raw bytes. They may come from an untrusted source, so that
every array is checked before a kernel reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.batch_validation import check_states
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.jit import entry, index
from tokaido_env.core.rules import legal
from tokaido_env.core.state import OVER, SETUP, STATE, copy_rows
from tokaido_env.learn.settings import RunError
from tokaido_env.observers import masks
from tokaido_env.tensor_file import read_tensors, write_tensors

MAX_BYTES = 4 << 30  # of a file of samples


class Samples(NamedTuple):
    """Training samples: positions at decisions with several legal actions, and at chance nodes.

    Attributes:
        states: `STATE` (n,).
        targets: float32 (n,), the value target for `active_seat`.
        boards: int32 (n,), index of each board in the pool.
        visits: uint8 (n, N_ACTIONS), the share of the search's visits of each action, in units of
            1/255; all 0 at chance.
    """

    states: npt.NDArray[np.void]
    targets: npt.NDArray[np.float32]
    boards: npt.NDArray[np.int32]
    visits: npt.NDArray[np.uint8]

    def take(self, rows: npt.NDArray[np.int64]) -> Samples:
        """Return the samples at these indices, int64 (k,)."""
        return Samples(*(copy_rows(column, rows) for column in self))

    @classmethod
    def join(cls, parts: list[Samples]) -> Samples:
        """Return all samples of the parts, one part after the other."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class ReplayBuffer:
    """Collects positions of games, and mixes the results into their values when all have ended.

    Args:
        result_weight: the share of the result in a value target.
    """

    def __init__(self, result_weight: float) -> None:
        self._result_weight = result_weight
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []
        types = np.float32, np.int8, np.int32, np.int64
        self.add(np.zeros(0, STATE), *(np.zeros(0, one) for one in types))  # without searches too

    def add(
        self, states: Any, values: Any, seats: Any, boards: Any, games: Any, visits: Any = None
    ) -> None:
        """Add n positions.

        Args:
            states: `STATE` (n,).
            values: float (n,), the expected results of player_0; nan for the result alone.
            seats: int (n,), the seats that the value targets are for.
            boards: int (n,), indices in the pool.
            games: int64 (n,), the games of the positions.
            visits: int (n, N_ACTIONS), of a search; None at chance.
        """
        shares = np.zeros((len(states), N_ACTIONS), np.uint8)
        if visits is not None:
            shares = np.rint(255 * visits / visits.sum(axis=1, keepdims=True)).astype(np.uint8)
        self._parts.append((copy_rows(states), values, seats, boards, games, shares))

    def samples(self, results: npt.NDArray[np.float32]) -> Samples:
        """Return all positions as samples.

        Args:
            results: float32 (games,), of player_0.
        """
        parts = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        states, values, seats, boards, games, visits = parts
        weights = np.where(np.isnan(values), 1.0, self._result_weight)
        values = (1 - weights) * np.nan_to_num(values) + weights * results[games]
        targets = (values * (1 - 2 * seats.astype(np.int64))).astype(np.float32)
        return Samples(states.view(STATE), targets, boards.astype(np.int32), visits)


def save_samples(path: Path, samples: Samples) -> None:
    """Write samples to a file, whole or not at all.

    Raises:
        OSError: if the file cannot be written.
        InUseError: if another process writes it.
    """
    states = samples.states.view(np.uint8).reshape(-1, STATE.itemsize)
    write_tensors(path, samples._asdict() | {"states": states}, {})


def load_samples(path: Path, board: Boards) -> Samples:
    """Read samples, and check that they fit a board or a pool of boards.

    Raises:
        RunError: naming the file, the fault and the remedy.
    """
    try:
        pool = BoardPool.load(board)
        samples = _as_samples(read_tensors(path, MAX_BYTES).arrays)
        _check_samples(samples, pool)
        return samples
    except (OSError, ValueError) as error:
        reason = escape_text(str(error), 300)
        raise RunError(
            f"{path}: broken samples: {reason}: delete the file; training plays its games again"
        ) from None


def _as_samples(arrays: dict[str, npt.NDArray[Any]]) -> Samples:
    """Return arrays as samples after checking dtypes and shapes."""
    n = len(arrays["targets"]) if "targets" in arrays and arrays["targets"].ndim else 0
    formats: dict[str, tuple[Any, tuple[int, ...]]] = {
        "states": (np.uint8, (n, STATE.itemsize)),
        "targets": (np.float32, (n,)),
        "boards": (np.int32, (n,)),
        "visits": (np.uint8, (n, N_ACTIONS)),
    }
    for name, (dtype, shape) in formats.items():
        array = arrays.get(name)
        if array is None or array.dtype != dtype or array.shape != shape:
            got = "none" if array is None else f"{array.dtype!s:.80} of shape {array.shape}"
            raise ValueError(f"{name}: expected {np.dtype(dtype)} of shape {shape}, got {got}")
    columns = {name: np.ascontiguousarray(arrays[name]) for name in formats}
    return Samples(**columns | {"states": columns["states"].reshape(-1).view(STATE)})


def _check_samples(samples: Samples, pool: BoardPool) -> None:
    """Raise `ValueError` unless the samples are possible on the pool's boards."""
    which = samples.boards.astype(np.int64)
    if not ((which >= 0) & (which < len(pool))).all():
        raise ValueError(f"boards: expected numbers from 0 to {len(pool) - 1}")
    check_states(pool, pool.records, which, np.arange(len(which)), samples.states)
    if np.isin(samples.states["phase"], (SETUP, OVER)).any():
        raise ValueError("states: expected positions at decisions or at chance")
    if not (np.abs(samples.targets) <= 1).all():
        raise ValueError("targets: expected numbers from -1 to 1")
    mask = legal_of(pool.records, which, samples.states)
    if (samples.visits.any(axis=1) != (mask != 0)).any() or samples.visits[~masks(mask)].any():
        raise ValueError("visits: expected shares of the legal actions of each decision")


def legal_of(
    boards: npt.NDArray[np.void], which: npt.NDArray[np.int64], states: npt.NDArray[np.void]
) -> npt.NDArray[np.uint64]:
    """Return the legal actions of positions as bits, uint64 (n,); 0 at chance.

    Args:
        boards: `BOARD` (b,).
        which: int64 (n,), the index of each position's board.
        states: `STATE` (n,).
    """
    found = np.empty(len(states), np.uint64)
    _write_legal(found, boards, which, states)
    return found


@entry
def _write_legal(out: Any, boards: Any, which: Any, states: Any) -> None:
    for i in range(len(out)):
        out[i] = legal(boards[index(which[i])], states[i])
