"""What agents are shown of games: a vector, the board's block behind it, or entities.

Every API takes its observations from here: `Observer` writes those of many games, `GameObserver`
those of one.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import check_asked
from tokaido_env.batch_validation import checked_seats
from tokaido_env.core import batch_kernels
from tokaido_env.core.arguments import as_array, check_choice
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_blocks
from tokaido_env.core.entities import (
    N_ENTITY_NUMBERS,
    board_entities,
    encode_entities_of_game,
    entity_arrays,
)
from tokaido_env.core.observation import (
    N_FEATURES,
    OBSERVATION_DTYPES,
    check_fits,
    encode_game,
    quotients,
)
from tokaido_env.core.state import copy_rows
from tokaido_env.core.state_validation import first_fault
from tokaido_env.core.stepping import EPISODE_INFO
from tokaido_env.game import Game
from tokaido_env.position import PositionError

Observation = Literal["float32", "uint8", "entities"]
ENTITIES = "entities"
OBSERVATIONS = (*OBSERVATION_DTYPES, ENTITIES)

Seen = npt.NDArray[Any] | dict[str, npt.NDArray[Any]]
"""What agents are shown: vectors, or the arrays of entities by name."""


Here = tuple[Any, Any, Any, Any, Any]
"""Games, boards, states, infos and seats."""


def check_observation(
    observation: object, see_board: object, among: Sequence[object] = OBSERVATIONS
) -> None:
    """Raise `ValueError` unless there is such an observation, and it can have the board's block."""
    check_choice("observation", observation, among)
    check_choice("see_board", see_board, (True, False))
    if see_board and observation == ENTITIES:
        raise ValueError(
            "see_board: expected False with observation='entities', which have the board already"
        )
    if see_board and observation is None:
        raise ValueError("see_board: expected False with observation=None, nothing is shown then")


def row_width(observation: object, see_board: object) -> int:
    """Return how many numbers an observation of one game has."""
    if observation == ENTITIES:
        return N_ENTITY_NUMBERS
    return N_FEATURES + (N_BOARD_FEATURES if see_board else 0)


def observe(
    boards: npt.NDArray[np.void],
    states: npt.NDArray[np.void],
    seats: npt.ArrayLike | None = None,
    observation: Observation = "float32",
    see_board: bool = False,
) -> Seen:
    """Return what seats see of positions, as `Batch` shows games: for agents, who are handed both.

    Args:
        boards: `BOARD` (1,) or one for each position, as `Agent.act` gets them.
        states: `STATE` (n,), the positions.
        seats: integers (n,), who sees; by default who decides, player_0 where nobody does.
        observation, see_board: as for `Batch`.

    Returns:
        float32 or uint8 (n, N_FEATURES), with `see_board` N_BOARD_FEATURES more; of entities a
        dict of arrays.

    Raises:
        ValueError, TypeError: for arrays of another kind, or no such observation or seats.
        PositionError: for states in which no game stands.
    """
    n = len(states) if isinstance(states, np.ndarray) and states.ndim else 0
    check_asked(boards, states, np.zeros(n, np.uint64), np.zeros(n, np.uint64))
    which = np.arange(n) if len(boards) > 1 else np.zeros(n, np.int64)
    rows = copy_rows(states)
    wrong, fault = first_fault(boards, which, rows)
    if fault:
        raise PositionError(f"states: no game stands as number {wrong} of {n} says")
    infos = np.zeros(n, EPISODE_INFO)
    infos["board"] = which
    chosen = rows["player"] if seats is None else checked_seats(seats, n)
    here = np.arange(n), boards, rows, infos, np.ascontiguousarray(chosen)
    return Observer(boards, observation, see_board, 0).observe(here)


def masks(legal: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return legal actions that are given as bits, uint64 (n,), as bool (n, N_ACTIONS)."""
    bits = np.ascontiguousarray(as_array("legal", legal), np.uint64)
    return batch_kernels.mask_rows(np.arange(len(bits)), bits).view(np.bool_)


class Observer:
    """Shows the games of a batch.

    Args:
        boards: `BOARD` (b,), on which games are played.
        observation: as for `Batch`; None shows nothing until it is asked.
        see_board: put the block of its board behind the observation of each game.
        n: how many games there are.
        copy: show all games in arrays of their own, else in one buffer that is written again.

    Raises:
        ValueError: such an observation there is not, or not on one of the boards.
    """

    def __init__(
        self,
        boards: npt.NDArray[np.void],
        observation: Observation | None,
        see_board: bool,
        n: int,
        copy: bool = True,
    ) -> None:
        check_observation(observation, see_board, (*OBSERVATIONS, None))
        self._shows = observation is not None
        self._has_entities = observation == ENTITIES
        self._width = row_width(observation, see_board)
        dtype = "uint8" if observation == "uint8" else "float32"
        if self._shows:
            check_fits(boards, dtype)
        self._units = quotients(dtype)
        self._still: npt.NDArray[Any] | None = None
        if self._has_entities:
            self._still = board_entities(boards)
        elif see_board:
            self._still = board_blocks(boards, dtype)
        self._n = n
        self._pool = BufferPool((n, self._width), dtype)
        self._kept: npt.NDArray[Any] | None = None
        if self._shows and not copy:
            self._kept = aligned_zeros((n, self._width), dtype)
            self._standing = _nowhere(n)

    @property
    def kept(self) -> Seen | None:
        """Views of the buffer that `look` writes to each time, if there is one."""
        return None if self._kept is None else self._shown(self._kept)

    def look(self, here: Here) -> Seen | None:
        """Return what is seen of all games, None if nothing is shown.

        In the one buffer, what the board alone says is written only where a game's board is another
        than before; arrays of their own are written whole, for who had them may have changed them.

        Args:
            here: all games, the boards, and so on, as for `observe`.
        """
        if not self._shows:
            return None
        if self._kept is None:
            return self.observe(here)
        self._write(here, self._kept, self._standing)
        return self._shown(self._kept)

    def observe(self, here: Here) -> Seen:
        """Return what seats see of games, in arrays of their own.

        Args:
            here: games, boards, states and infos, as for `loops`, and seats: integers (k,), -1
                (nobody) standing for seat 0.
        """
        k = len(here[0])
        whole = k == self._n
        rows = self._pool.take() if whole else aligned_zeros((k, self._width), self._units.dtype)
        self._write(here, rows, _nowhere(k))
        return self._shown(rows)

    def _write(self, here: Here, rows: npt.NDArray[Any], standing: npt.NDArray[np.int32]) -> None:
        if self._has_entities:
            batch_kernels.observe_entities(*here, self._still, standing, rows)
        elif self._still is None:
            batch_kernels.observe(*here, self._units, rows)
        else:
            batch_kernels.observe_with_board(*here, self._units, self._still, standing, rows)

    def _shown(self, rows: npt.NDArray[Any]) -> Seen:
        return entity_arrays(rows) if self._has_entities else rows


def _nowhere(n: int) -> npt.NDArray[np.int32]:
    """Return whose board each row tells of, before it tells of any."""
    return np.full(n, -1, np.int32)


class GameObserver:
    """Shows one game at a time, whatever its board.

    Args:
        observation: "float32" or "entities".
        see_board: as for `Observer`.
    """

    def __init__(self, observation: Observation = "float32", see_board: bool = False) -> None:
        self._has_entities = observation == ENTITIES
        self._sees_board = see_board
        self._width = row_width(observation, see_board)
        self._known: tuple[Any, Any] = None, None  # a board and what is told of it

    def observe(self, game: Game, seat: int) -> Any:
        """Return what a seat sees, mover or not: an array, or arrays by name, of its own."""
        row = np.empty(self._width, np.float32)
        self.write(game, seat, row)
        return entity_arrays(row) if self._has_entities else row

    def row(self) -> npt.NDArray[np.float32]:
        """Return zeros for an observation."""
        return np.zeros(self._width, np.float32)

    def write(self, game: Game, seat: int, row: npt.NDArray[np.float32]) -> None:
        """Write what a seat sees to a row, as `row` makes them."""
        if self._has_entities:
            row[:] = self._still(game, board_entities)[0]
            flat = np.empty(N_FEATURES, np.float32)
            encode_entities_of_game(game.boards, game.states, 0, seat, flat, row)
        elif self._sees_board:
            encode_game(game.boards, game.states, 0, seat, row[:N_FEATURES])
            row[N_FEATURES:] = self._still(game, board_blocks)[0]
        else:
            encode_game(game.boards, game.states, 0, seat, row)

    def _still(self, game: Game, told: Any) -> Any:
        boards, still = self._known
        if boards is not game.boards:
            still = told(game.boards)
            self._known = game.boards, still
        return still


def seen_of(seen: Any, game: int) -> Any:
    """Return the observation of one of several games."""
    if isinstance(seen, dict):
        return {name: each[game] for name, each in seen.items()}
    one: npt.NDArray[Any] = seen[game]
    return one


# Arrays in aligned memory, for other libraries and for callers to keep

ALIGNMENT = 64
"""Bytes: of buffers that other libraries take without a copy, as JAX asks for on a CPU."""

_KEPT = 4  # buffers that a pool keeps, the last ones that it handed out


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros that begin at a multiple of `ALIGNMENT` bytes: `np.zeros` begins anywhere."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(kind).reshape(shape)


class BufferPool:
    """Arrays of one shape and dtype in memory that is used again once nobody holds it.

    Fresh memory of some megabytes costs a page fault for every 4 KiB, more than what is written.
    An array belongs to its caller, who may keep it and write to it. Views, tensors, capsules and
    memory views keep the memory from being used again, as they keep that of any array from being
    freed, so none of them ever changes.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._ring: list[tuple[weakref.ref[npt.NDArray[Any]], memoryview]] = []

    def take(self) -> npt.NDArray[Any]:
        """Return an array that begins at a multiple of `ALIGNMENT` bytes, with any contents."""
        free = [k for k, (owner, _) in enumerate(self._ring) if owner() is None]
        if free:
            memory = self._ring.pop(free[-1])[1]
        else:
            memory = aligned_zeros(self._shape, self._dtype).data
        # All views of an array refer to the first of their bases that rests on no array: to this
        # one. It is gone when the last of them is, and no garbage collection can revive it.
        owner = np.frombuffer(memory, self._dtype)
        self._ring = [*self._ring[1 - _KEPT :], (weakref.ref(owner), memory)]
        return owner.reshape(self._shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the buffers out: a copy of the pool begins without."""
        return BufferPool, (self._shape, self._dtype)
