"""Samples: positions with a choice, what a search found there, and how their games ended.

In a file the states are bytes and nothing is pickled. A file may come from anybody, so that what it
holds is looked at before a kernel reads it.
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
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import legal
from tokaido_env.core.state import STATE, copy_rows
from tokaido_env.core.state_validation import NOT_FOUND
from tokaido_env.files import atomic_write
from tokaido_env.learn.safe_npz import read_arrays
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.observers import masks

MOST_FILE = 4 << 30  # bytes of samples


class Samples(NamedTuple):
    """Positions with a choice, of games that ended.

    Attributes:
        states: `STATE` (n,).
        legal: uint64 (n,), the legal actions as bits.
        visits: uint16 (n, N_ACTIONS), by the search; none where it was too short to learn from.
        values: float32 (n,), what the search found for the player to decide.
        results: float32 (n,), the final result of that player.
        actions: uint8 (n,), that were played: not always what the search found best.
        boards: int32 (n,), the place in the pool of the board of each.
    """

    states: npt.NDArray[np.void]
    legal: npt.NDArray[np.uint64]
    visits: npt.NDArray[np.uint16]
    values: npt.NDArray[np.float32]
    results: npt.NDArray[np.float32]
    actions: npt.NDArray[np.uint8]
    boards: npt.NDArray[np.int32]

    def part(self, rows: npt.NDArray[np.int64]) -> Samples:
        """Return some of them."""
        return Samples(*(copy_rows(column, rows) for column in self))

    @classmethod
    def join(cls, parts: list[Samples]) -> Samples:
        """Return the samples of all parts, in order."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class ReplayBuffer:
    """Notes positions while games go on, and the results when they end."""

    def __init__(self, games: int) -> None:
        self.count = 0
        self.parts: list[Samples] = []
        self.open: list[list[tuple[int, int, int]]] = [[] for _ in range(games)]

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
        """Note positions of some games, those in which there is a choice."""
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
            self.open[game].append((len(self.parts), row, mover))
        self.parts.append(part)
        self.count += len(chosen)

    def end(self, games: npt.NDArray[np.int64], rewards: npt.NDArray[np.float32]) -> None:
        """Note the results of games that have ended."""
        for game in games.tolist():
            for part, row, mover in self.open[game]:
                self.parts[part].results[row] = rewards[game, mover]
            self.open[game] = []

    def samples(self) -> Samples:
        """Return the positions of games that ended."""
        whole = Samples.join(self.parts)
        return whole.part(np.flatnonzero(~np.isnan(whole.results)))


def save_samples(path: Path, samples: Samples) -> None:
    """Write samples whole or not at all; states as bytes, so that nothing is pickled."""
    arrays = samples._asdict() | {
        "states": samples.states.view(np.uint8).reshape(-1, STATE.itemsize)
    }
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def load_samples(path: Path, board: Boards) -> Samples:
    """Read samples, and check that they are of games on a board, or on those of a pool.

    Raises:
        RunError: naming the file, what is wrong and what helps.
    """
    try:
        pool = BoardPool.load(board)
        samples = _as_samples(read_arrays(path, MOST_FILE))
        _check_samples(samples, pool)
        return samples
    except (OSError, ValueError) as error:
        what = escape_text(str(error), 300)
        raise RunError(
            f"{path}: broken samples: {what}: delete it to have them played again"
        ) from None


def _as_samples(arrays: dict[str, npt.NDArray[Any]]) -> Samples:
    """Return arrays as samples, of the dtypes and shapes of these."""
    n = len(arrays["legal"]) if "legal" in arrays and arrays["legal"].ndim else 0
    like: dict[str, tuple[Any, tuple[int, ...]]]
    like = {"states": (np.uint8, (n, STATE.itemsize)), "legal": (np.uint64, (n,))}
    like |= {"visits": (np.uint16, (n, N_ACTIONS))}
    like |= {name: (np.float32, (n,)) for name in ("values", "results")}
    like |= {"actions": (np.uint8, (n,)), "boards": (np.int32, (n,))}
    for name, (dtype, shape) in like.items():
        array = arrays.get(name)
        if array is None or array.dtype != dtype or array.shape != shape:
            got = "none" if array is None else f"{array.dtype!s:.80} of shape {array.shape}"
            raise ValueError(f"{name}: expected {np.dtype(dtype)} of shape {shape}, got {got}")
    columns = {name: np.ascontiguousarray(arrays[name]) for name in like}
    return Samples(**columns | {"states": columns["states"].reshape(-1).view(STATE)})


def _check_samples(samples: Samples, pool: BoardPool) -> None:
    """Check that games on the boards can stand so, with such choices and results."""
    which = samples.boards
    if not ((which >= 0) & (which < len(pool))).all():
        raise ValueError(f"boards: expected numbers from 0 to {len(pool) - 1}")
    check_states(pool, pool.records, which.astype(np.int64), np.arange(len(which)), samples.states)
    wrong = first_wrong_mask(pool.records, which, samples.states, samples.legal)
    if wrong != NOT_FOUND:
        raise ValueError(f"game {wrong}: legal: expected what is legal in its state")
    visits = samples.visits * masks(samples.legal)
    if (visits != samples.visits).any() or (len(visits) and not visits.any()):
        raise ValueError("visits: expected some, of legal actions only")
    bits = np.uint64(1) << samples.actions.clip(max=63).astype(np.uint64)
    if not (samples.legal & bits).all():
        raise ValueError("actions: expected legal ones")
    for name in ("values", "results"):
        if not (np.abs(getattr(samples, name)) <= 1).all():
            raise ValueError(f"{name}: expected numbers from -1 to 1")


@entry
def first_wrong_mask(boards: Any, which: Any, states: Any, masks: Any) -> int:
    """Return the place of the first mask that is empty or not what is legal in its state, or -1."""
    for j in range(len(masks)):
        if masks[j] == 0 or masks[j] != legal(boards[which[j]], states[j]):
            return j
    return NOT_FOUND
