"""Observations: a vector, a vector with board features, or afterstates.

All environments take their observations from here. `Observer` writes those of many games and
`GameObserver` those of one.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import check_agent_arguments, check_masks
from tokaido_env.batch_validation import checked_seats
from tokaido_env.core import batch_kernels
from tokaido_env.core.arguments import check_choice
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_features_of
from tokaido_env.core.observation import (
    N_FEATURES,
    OBSERVATION_DTYPES,
    check_fits,
    encode_game,
    quotient_table,
)
from tokaido_env.core.state import copy_rows
from tokaido_env.core.state_validation import first_fault
from tokaido_env.core.stepping import EPISODE_INFO
from tokaido_env.features.afterstate_observation import (
    AFTERSTATE_ROW,
    afterstate_arrays,
    observe_afterstates,
    observe_geometry,
)
from tokaido_env.features.afterstates import AfterstateInputs, Afterstates, afterstates_of
from tokaido_env.features.geometry_features import N_GEOMETRY
from tokaido_env.game import Game
from tokaido_env.position import PositionError

ObservationFormat = Literal["float32", "uint8", "geometry", "afterstates"]
GEOMETRY, AFTERSTATES = "geometry", "afterstates"
OBSERVATION_FORMATS = (*OBSERVATION_DTYPES, GEOMETRY, AFTERSTATES)

Observation = npt.NDArray[Any] | dict[str, npt.NDArray[Any]]
"""An array with one vector per game, or a dict of arrays."""

ObserveArgs = tuple[Any, Any, Any, Any, Any]
"""Arguments of the observation kernels: games, boards, states, episode info and seats."""


def check_observation(
    observation: object, see_board: object, allowed: Sequence[object] = OBSERVATION_FORMATS
) -> None:
    """Check the arguments `observation` and `see_board`, also against each other.

    Raises:
        ValueError: for an unknown format, or `see_board` with a format that has no room for it.
    """
    check_choice("observation", observation, allowed)
    check_choice("see_board", see_board, (True, False))
    if see_board and observation in (GEOMETRY, AFTERSTATES):
        raise ValueError(
            f"see_board: expected False with observation='{observation}', got True: the look-ahead "
            "features describe the board"
        )
    if see_board and observation is None:
        raise ValueError("see_board: needs an observation, got observation=None")


def observation_size(observation: object, see_board: object) -> int:
    """Return how many numbers one game's observation has, of a format and `see_board`."""
    if observation == AFTERSTATES:
        return AFTERSTATE_ROW
    if observation == GEOMETRY:
        return N_GEOMETRY
    return N_FEATURES + (N_BOARD_FEATURES if see_board else 0)


def observe(
    boards: npt.NDArray[np.void],
    states: npt.NDArray[np.void],
    seats: npt.ArrayLike | None = None,
    observation: ObservationFormat = "float32",
    see_board: bool = False,
) -> Observation:
    """Return the observations of positions for the given seats.

    Agents can call this with the arrays that `Agent.act` receives. The result equals the
    observations of a `Batch`.

    Args:
        boards: `BOARD` (1,) for all positions, or (n,).
        states: `STATE` (n,), the positions.
        seats: integers (n,), the observing seats; by default the player to decide, or player_0 at
            chance and at the end.
        observation: "float32", "uint8", "geometry" or "afterstates".
        see_board: append the board features to each vector.

    Returns:
        float32 or uint8 (n, N_FEATURES), N_BOARD_FEATURES wider with `see_board`; with
        "geometry" float32 (n, N_GEOMETRY), with "afterstates" a dict of arrays.

    Raises:
        TypeError: for an argument of a wrong type or dtype.
        ValueError: for wrong shapes or seats, or an unknown format.
        PositionError: for a state that no game can reach.
    """
    n = len(states) if isinstance(states, np.ndarray) and states.ndim else 0
    boards, board_index, rows = _checked_positions(boards, states, np.zeros(n, np.uint64))
    info = np.zeros(n, EPISODE_INFO)
    info["board"] = board_index
    chosen = batch_kernels.DECIDING if seats is None else checked_seats(seats, n)
    args = np.arange(n), boards, rows, info, np.ascontiguousarray(chosen)
    return Observer(boards, observation, see_board, 0).observe(args)


def afterstates(
    boards: npt.NDArray[np.void],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
    inputs: AfterstateInputs | None = "afterstates",
) -> Afterstates:
    """Return the afterstates of positions at decisions, as `Batch.afterstates` with reward "win".

    Agents can call this with the arrays that `Agent.act` receives.

    Args:
        boards: `BOARD` (1,) for all positions, or (n,).
        states: `STATE` (n,), the positions.
        legal: uint64 (n,), the legal actions as bits.
        inputs: "afterstates" for the networks' inputs, "geometry", "float32" or None.

    Raises:
        TypeError: for an argument of a wrong type or dtype.
        ValueError: for wrong shapes, or unknown `inputs`.
        PositionError: for a state that no game can reach.
    """
    boards, board_index, rows = _checked_positions(boards, states, legal)
    checked = legal.copy()
    check_masks(boards, board_index, rows, checked)
    return afterstates_of(boards, board_index, rows, checked, inputs, False)


def _checked_positions(
    boards: npt.NDArray[np.void], states: npt.NDArray[np.void], legal: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64], npt.NDArray[np.void]]:
    """Return boards and board index (n,) of checked positions, and a copy of their states."""
    given = boards, states, legal, np.zeros_like(legal)
    boards, states, *_ = check_agent_arguments(*given, deciding=False)
    board_index = np.arange(len(states)) if len(boards) > 1 else np.zeros(len(states), np.int64)
    rows = copy_rows(states)
    wrong, fault = first_fault(boards, board_index, rows)
    if fault:
        raise PositionError(f"states[{wrong}]: expected a state that a game can reach")
    return boards, board_index, rows


def masks(legal: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return legal actions as bool (n, N_ACTIONS).

    Args:
        legal: uint64 (n,), the legal actions as bits.
    """
    bits = np.ascontiguousarray(legal, np.uint64)
    return batch_kernels.mask_rows(np.arange(len(bits)), bits).view(np.bool_)


class Observer:
    """Writes the observations of a batch of games.

    Args:
        boards: `BOARD` (b,), the boards of the games.
        observation: "float32", "uint8", "geometry", "afterstates"; None disables `update`.
        see_board: append the board features to each vector.
        n: number of games.
        copy: return new arrays; otherwise `update` writes one buffer again each time.

    Raises:
        ValueError: for an unknown format, or one that cannot represent the numbers of a board.
    """

    def __init__(
        self,
        boards: npt.NDArray[np.void],
        observation: ObservationFormat | None,
        see_board: bool,
        n: int,
        copy: bool = True,
    ) -> None:
        check_observation(observation, see_board, (*OBSERVATION_FORMATS, None))
        self._enabled = observation is not None
        self._observation = observation
        self._size = observation_size(observation, see_board)
        dtype = "uint8" if observation == "uint8" else "float32"
        if self._enabled and len(boards):
            check_fits(boards, dtype)
        self._units = quotient_table(dtype)
        # What depends on the board only, one row per board: numbers of each observation.
        self._static_part: npt.NDArray[Any] = np.zeros((len(boards), 0), dtype)
        if see_board:
            self._static_part = board_features_of(boards, dtype)
        self._n = n
        self._pool = BufferPool((n, self._size), dtype)
        self._rows: npt.NDArray[Any] | None = None
        if self._enabled and not copy:
            self._rows = aligned_zeros((n, self._size), dtype)
            self._cached_board = _no_boards(n)

    @property
    def buffer(self) -> Observation | None:
        """Views of the buffer that `update` writes; None if it returns new arrays."""
        return None if self._rows is None else self._as_observation(self._rows)

    def update(self, args: ObserveArgs) -> Observation | None:
        """Return the observations of all games, or None if they are disabled.

        In the buffer, a row's static part is written only if the game's board has changed. New
        arrays are written in full, because callers may have changed the memory that they reuse.

        Args:
            args: as for `observe`, with all games.
        """
        if not self._enabled:
            return None
        if self._rows is None:
            return self.observe(args)
        self._write(args, self._rows, self._cached_board)
        return self._as_observation(self._rows)

    def observe(self, args: ObserveArgs) -> Observation:
        """Return observations of games in new arrays.

        Args:
            args: k games, boards, states and episode info as for `core.batch_kernels`, and seats:
                int8 (k,), where -1 (nobody) stands for seat 0, or
                `batch_kernels.DECIDING`.
        """
        k = len(args[0])
        if k == self._n:
            rows = self._pool.take()
        else:
            rows = aligned_zeros((k, self._size), self._units.dtype)
        self._write(args, rows, _no_boards(k))
        return self._as_observation(rows)

    def _write(
        self, args: ObserveArgs, rows: npt.NDArray[Any], cached_board: npt.NDArray[np.int32]
    ) -> None:
        if self._observation == AFTERSTATES:
            observe_afterstates(*args, rows)
        elif self._observation == GEOMETRY:
            observe_geometry(*args, rows)
        else:
            batch_kernels.observe(*args, self._units, self._static_part, cached_board, rows)

    def _as_observation(self, rows: npt.NDArray[Any]) -> Observation:
        return afterstate_arrays(rows) if self._observation == AFTERSTATES else rows


def _no_boards(n: int) -> npt.NDArray[np.int32]:
    """Return the cached board index of n rows that hold no static part yet: -1."""
    return np.full(n, -1, np.int32)


_FIRST, _NO_INFO = np.zeros(1, np.int64), np.zeros(1, EPISODE_INFO)  # of one game alone


class GameObserver:
    """Writes the observations of one game at a time, on any board.

    Args:
        observation: "float32", "geometry" or "afterstates".
        see_board: append the board features to the vector.
    """

    def __init__(self, observation: ObservationFormat = "float32", see_board: bool = False) -> None:
        self._observation = observation
        self._sees_board = see_board
        self._size = observation_size(observation, see_board)
        self._cached_board: Any = None
        self._static_part: Any = None  # of the cached board

    def observe(self, game: Game, seat: int) -> Any:
        """Return the observation of a seat, float32 (size,), or a dict of arrays; all are new."""
        row = np.empty(self._size, np.float32)
        self.write(game, seat, row)
        return afterstate_arrays(row) if self._observation == AFTERSTATES else row

    def new_row(self) -> npt.NDArray[np.float32]:
        """Return zeros for one observation, float32 (size,)."""
        return np.zeros(self._size, np.float32)

    def write(self, game: Game, seat: int, row: npt.NDArray[np.float32]) -> None:
        """Write the observation of a seat to a row, float32 (size,), as `new_row` returns it."""
        if self._observation in (GEOMETRY, AFTERSTATES):
            seats = np.array([seat], np.int8)
            write = observe_geometry if self._observation == GEOMETRY else observe_afterstates
            write(_FIRST, game.boards, game.states, _NO_INFO, seats, row[None])
        elif self._sees_board:
            encode_game(game.boards, game.states, 0, seat, row[:N_FEATURES])
            if self._cached_board is not game.boards:
                self._static_part = board_features_of(game.boards)[0]
                self._cached_board = game.boards
            row[N_FEATURES:] = self._static_part
        else:
            encode_game(game.boards, game.states, 0, seat, row)


def observation_at(observations: Any, game: int) -> Any:
    """Return one game's observation, by index, out of arrays or a dict of arrays (n, …)."""
    if isinstance(observations, dict):
        return {name: array[game] for name, array in observations.items()}
    row: npt.NDArray[Any] = observations[game]
    return row


# Buffers for observations

ALIGNMENT = 64
"""Bytes. JAX takes CPU memory without a copy only if it is aligned to 64 bytes."""

_POOL_SIZE = 4  # buffers that a pool reuses; not tuned


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros of a shape and dtype, aligned to `ALIGNMENT` bytes."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(kind).reshape(shape)


class BufferPool:
    """Arrays of one shape and dtype, in memory that is reused once nobody refers to it.

    New memory of some megabytes costs a page fault per 4 KiB, which takes longer than writing it.
    An array belongs to its caller, who may keep it and write to it. Views, tensors, DLPack
    capsules and memory views keep the memory in use, so its contents never change under them.

    Args:
        shape: of all arrays.
        dtype: of all arrays.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._ring: list[tuple[weakref.ref[npt.NDArray[Any]], memoryview]] = []

    def take(self) -> npt.NDArray[Any]:
        """Return an array of the pool's shape and dtype, aligned to `ALIGNMENT` bytes.

        Its contents are not initialised.
        """
        free = [k for k, (owner, _) in enumerate(self._ring) if owner() is None]
        if free:
            memory = self._ring.pop(free[-1])[1]
        else:
            memory = aligned_zeros(self._shape, self._dtype).data
        # All views of an array refer to the first of their bases that rests on no array: `owner`.
        # It is freed with the last of them, and no garbage collection can revive it.
        owner = np.frombuffer(memory, self._dtype)
        self._ring = [*self._ring[1 - _POOL_SIZE :], (weakref.ref(owner), memory)]
        return owner.reshape(self._shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the pool without its buffers."""
        return BufferPool, (self._shape, self._dtype)
