"""Replay buffer of `alphazero`: training samples of self-play games, and their files.

Files are .npz with states as raw bytes and nothing pickled. They may come from an untrusted source,
so that every array is checked before a kernel reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.batch_validation import check_states, first_wrong_mask
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.state import STATE, copy_rows
from tokaido_env.core.state_validation import NOT_FOUND
from tokaido_env.files import atomic_write
from tokaido_env.learn.safe_npz import read_arrays
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.observers import masks

MAX_BYTES = 4 << 30  # of a file of samples


class Samples(NamedTuple):
    """Training samples: decisions of finished games that had several legal actions.

    Attributes:
        states: `STATE` (n,).
        legal: uint64 (n,), the legal actions as bits.
        visits: uint16 (n, N_ACTIONS), visit counts; all 0 without a full search.
        values: float32 (n,), the search's value for the player to decide.
        results: float32 (n,), the final result for that player.
        actions: uint8 (n,), the played actions, which may be exploratory.
        boards: int32 (n,), index of each board in the pool.
    """

    states: npt.NDArray[np.void]
    legal: npt.NDArray[np.uint64]
    visits: npt.NDArray[np.uint16]
    values: npt.NDArray[np.float32]
    results: npt.NDArray[np.float32]
    actions: npt.NDArray[np.uint8]
    boards: npt.NDArray[np.int32]

    def take(self, rows: npt.NDArray[np.int64]) -> Samples:
        """Return the samples at these indices."""
        return Samples(*(copy_rows(column, rows) for column in self))

    @classmethod
    def join(cls, parts: list[Samples]) -> Samples:
        """Return the concatenation of samples."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class ReplayBuffer:
    """Collects positions of running games, and fills in the results when games end."""

    def __init__(self, games: int) -> None:
        self._parts: list[Samples] = []
        # Per running game: part, row and player to decide of each of its positions.
        self._pending: list[list[tuple[int, int, int]]] = [[] for _ in range(games)]

    def add(
        self,
        states: Any,
        legal: Any,
        visits: Any,
        values: Any,
        actions: Any,
        boards: Any,
        games: npt.NDArray[np.int64],
    ) -> None:
        """Add positions of some games; those with one legal action are left out."""
        chosen = np.flatnonzero(legal & (legal - np.uint64(1)))
        movers = states["player"][chosen].astype(np.int64)
        own = (values[chosen] * (1 - 2 * movers)).astype(np.float32)
        unknown = np.full(len(chosen), np.nan, np.float32)
        part = Samples(
            copy_rows(states, chosen),
            legal[chosen],
            visits[chosen].astype(np.uint16),
            own,
            unknown,
            actions[chosen].astype(np.uint8),
            boards[chosen].astype(np.int32),
        )
        own_games = games[chosen].tolist()
        for row, (game, mover) in enumerate(zip(own_games, movers.tolist(), strict=True)):
            self._pending[game].append((len(self._parts), row, mover))
        self._parts.append(part)

    def end(self, games: npt.NDArray[np.int64], rewards: npt.NDArray[np.float32]) -> None:
        """Fill in the results of games that have ended."""
        for game in games.tolist():
            for part, row, mover in self._pending[game]:
                self._parts[part].results[row] = rewards[game, mover]
            self._pending[game] = []

    def samples(self) -> Samples:
        """Return the samples of finished games."""
        whole = Samples.join(self._parts)
        return whole.take(np.flatnonzero(~np.isnan(whole.results)))


def save_samples(path: Path, samples: Samples) -> None:
    """Write samples to a file atomically."""
    arrays = samples._asdict() | {
        "states": samples.states.view(np.uint8).reshape(-1, STATE.itemsize)
    }
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def load_samples(path: Path, board: Boards) -> Samples:
    """Read samples, and check that they fit a board or a pool of boards.

    Raises:
        RunError: naming the file, the fault and the remedy.
    """
    try:
        pool = BoardPool.load(board)
        samples = _as_samples(read_arrays(path, MAX_BYTES))
        _check_samples(samples, pool)
        return samples
    except (OSError, ValueError) as error:
        reason = escape_text(str(error), 300)
        raise RunError(
            f"{path}: broken samples: {reason}: delete the file; training plays its games again"
        ) from None


def _as_samples(arrays: dict[str, npt.NDArray[Any]]) -> Samples:
    """Return arrays as samples after checking dtypes and shapes."""
    n = len(arrays["legal"]) if "legal" in arrays and arrays["legal"].ndim else 0
    formats: dict[str, tuple[Any, tuple[int, ...]]] = {
        "states": (np.uint8, (n, STATE.itemsize)),
        "legal": (np.uint64, (n,)),
        "visits": (np.uint16, (n, N_ACTIONS)),
        "values": (np.float32, (n,)),
        "results": (np.float32, (n,)),
        "actions": (np.uint8, (n,)),
        "boards": (np.int32, (n,)),
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
    wrong = first_wrong_mask(pool.records, which, samples.states, samples.legal)
    if wrong != NOT_FOUND:
        raise ValueError(f"game {wrong}: legal: expected the legal actions of its state")
    if not samples.legal.all():
        raise ValueError("legal: expected positions with legal actions")
    visits = samples.visits * masks(samples.legal)
    if (visits != samples.visits).any() or (len(visits) and not visits.any()):
        raise ValueError("visits: expected some, and of legal actions only")
    bits = np.uint64(1) << samples.actions.clip(max=63).astype(np.uint64)
    if not (samples.legal & bits).all():
        raise ValueError("actions: expected legal ones")
    for name in ("values", "results"):
        if not (np.abs(getattr(samples, name)) <= 1).all():
            raise ValueError(f"{name}: expected numbers from -1 to 1")
