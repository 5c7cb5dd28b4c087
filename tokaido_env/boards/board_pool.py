"""Pools of boards, for games on several boards (`board=` and `--board`).

    pool = BoardPool.load("family:train/1000")
    pool.board_of_seed(7)  # the board of `Game(board="family:train/1000", seed=7)`

With a drawn pool, the board of a game follows from its seed alone, by a separate random stream. It
is the same through every API.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.boards.procedural import PREFIX, family_numbers, is_family
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.rng import boards_of_seeds, episode_seeds
from tokaido_env.core.state import BOARD

CACHED_BOARDS = 4096  # generated boards


class BoardPool:
    """One board or more; `BoardPool.load` makes one from any spec.

    The pool generates boards of the family on first use.

    Attributes:
        name: the spec, or the name of the only board.
        drawn: whether the seed of a game determines its board; if not, game `i` of a batch is
            played on board `i % len(pool)`.
    """

    def __init__(self, name: str, boards: Sequence[Board] | range, *, drawn: bool) -> None:
        if not len(boards):
            raise BoardError(f"{name}: expected one board or more, got none")
        self.name = name
        self.drawn = drawn and len(boards) > 1
        self._boards = boards  # numbers for the family

    @classmethod
    def load(cls, boards: Boards = "shikoku") -> BoardPool:
        """Return the pool of a spec.

        Args:
            boards: the name of a built-in board, the path of a board file, `family:NUMBER`,
                `family:SPLIT` or `family:SPLIT/COUNT`, a `Board`, a pool, which is returned
                unchanged, or a sequence of names, paths and boards.

        Raises:
            BoardError: if there is no such board, or the sequence is empty.
        """
        if isinstance(boards, BoardPool):
            return boards
        if isinstance(boards, str) and not boards.endswith(".toml"):
            return _pool_of_name(boards)
        if isinstance(boards, str | Path | Board) or not isinstance(boards, Sequence):
            board = Board.load(boards)
            return cls(board.name, [board], drawn=False)
        if not boards:
            raise BoardError("board: expected one board or more, got an empty sequence")
        each = [Board.load(board) for board in boards]
        return cls(list_name([board.name for board in each]), each, drawn=False)

    def __len__(self) -> int:
        return len(self._boards)

    def __getitem__(self, index: int) -> Board:
        board = self._boards[index]
        return board if isinstance(board, Board) else _generated(board)

    def __iter__(self) -> Iterator[Board]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<BoardPool {repr_short(self.name)}, {len(self)} boards>"

    @property
    def records(self) -> npt.NDArray[np.void]:
        """The boards' lookup tables for the kernels, `BOARD` (b,)."""
        return self._compiled[0]

    @property
    def hashes(self) -> npt.NDArray[np.str_]:
        """The hash of each board, sixteen hex digits: str (b,)."""
        return self._compiled[1]

    @functools.cached_property
    def names(self) -> npt.NDArray[np.object_]:
        """The name of each board, str objects (b,)."""
        if isinstance(self._boards, range):
            return np.array([f"{PREFIX}{number}" for number in self._boards], np.object_)
        return np.array([board.name for board in self._boards], np.object_)

    @functools.cached_property
    def hash(self) -> str:
        """Sixteen hex digits of all boards' hashes; the board's own hash for one board."""
        if len(self) == 1:
            return self[0].hash
        return hashlib.sha256("".join(self.hashes.tolist()).encode()).hexdigest()[:16]

    def check_drawn(self) -> BoardPool:
        """Return the pool if a seed determines the board of its game.

        Raises:
            BoardError: for several boards that are not drawn.
        """
        if not self.drawn and len(self) > 1:
            raise BoardError(
                f"board: expected one board or a pool such as family:train/1000, got a sequence "
                f"of {len(self)} boards"
            )
        return self

    def indices_of_seeds(self, seeds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the index in the pool of the board of each seed's game, int64 (n,).

        Args:
            seeds: int64 (n,).

        Raises:
            BoardError: for several boards that are not drawn.
        """
        out = np.empty(len(seeds), np.int64)
        boards_of_seeds(np.ascontiguousarray(seeds, np.int64), len(self.check_drawn()), out)
        return out

    def indices_of_episodes(
        self, base_seeds: npt.NDArray[np.int64], episodes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the index in the pool of the board of each game's episode, int64 (n,).

        Args:
            base_seeds: int64 (n,), the seed of each game's episode 0.
            episodes: int64 (n,), the number of each game's episode.

        Raises:
            BoardError: for several boards that are not drawn.
        """
        seeds = np.empty(len(base_seeds), np.int64)
        episode_seeds(base_seeds, episodes, seeds)
        return self.indices_of_seeds(seeds)

    def board_of_seed(self, seed: int) -> Board:
        """Return the board of a seed's game; raise `BoardError` for boards that are not drawn."""
        first = self._boards[0]
        if len(self._boards) == 1:
            return first if isinstance(first, Board) else _generated(first)
        return self[int(self.indices_of_seeds(np.array([seed], np.int64))[0])]

    def index_of_name(self, name: str) -> int:
        """Return the index of the board with a name.

        Raises:
            BoardError: if no board has the name.
        """
        index = self._indices_by_name.get(name, -1)
        if isinstance(self._boards, range) and is_family(name):
            number = family_numbers(name)[0]
            is_board = number in self._boards and name == f"{PREFIX}{number}"  # not a pool
            index = number - self._boards[0] if is_board else -1
        if index < 0:
            raise BoardError(f"board: {repr_short(name)} is not in {repr_short(self.name)}")
        return index

    def indices_of_hashes(
        self, hashes: npt.NDArray[np.str_], expected: npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.int64]:
        """Return the indices of the boards with given hashes, int64 (k,), -1 for unknown ones.

        Args:
            hashes: str (k,), or (1,) for all.
            expected: integers (k,), the only allowed indices if the pool is a list, of which game
                i plays board i modulo its length, and not a sample (`drawn`).
        """
        if not self.drawn:
            return np.where(self.hashes[expected] == hashes, expected, -1).astype(np.int64)
        indices = {one: index for index, one in reversed([*enumerate(self.hashes.tolist())])}
        found = np.array([indices.get(one, -1) for one in hashes.tolist()], np.int64)
        return np.broadcast_to(found, len(expected)).copy()

    @functools.cached_property
    def _indices_by_name(self) -> dict[str, int]:
        boards = [] if isinstance(self._boards, range) else self._boards
        return {board.name: index for index, board in reversed([*enumerate(boards)])}

    @functools.cached_property
    def _compiled(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.str_]]:
        """Records and hashes of all boards, from one pass over them."""
        each = [(board.record.tobytes(), board.hash) for board in self]
        # Joining bytes is a hundred times faster than NumPy, which joins field by field.
        records = np.frombuffer(bytearray().join(one for one, _ in each), BOARD)
        return records, np.array([other for _, other in each])


def list_name(names: Sequence[str]) -> str:
    """Return the name of a list of boards: of many the first one and their number."""
    return ", ".join(names) if len(names) <= 9 else f"{names[0]}, … ({len(names)} boards)"


Boards = str | Path | Board | BoardPool | Sequence[str | Path | Board]
"""The argument of `BoardPool.load`."""


def board_by_name(name: str, boards: Boards | None = None) -> Board:
    """Return the board that a file names.

    Args:
        name: of a board.
        boards: the allowed boards; None allows built-in boards and the family. A single board is
            returned whatever its name.

    Raises:
        BoardError: if no allowed board has that name.
    """
    if boards is None:
        return Board.by_name(name)
    pool = BoardPool.load(boards)
    return pool[0] if len(pool) == 1 else pool[pool.index_of_name(name)]


@functools.lru_cache(maxsize=16)
def _pool_of_name(spec: str) -> BoardPool:
    """Return the pool of a built-in board or of the family; the cache keeps its boards."""
    if not is_family(spec):
        board = Board.load(spec)
        return BoardPool(board.name, [board], drawn=False)
    numbers = family_numbers(spec)
    single = spec.removeprefix(PREFIX).isdigit()
    name = f"{PREFIX}{numbers[0]}" if single else spec
    return BoardPool(name, numbers, drawn=True)


@functools.lru_cache(maxsize=CACHED_BOARDS)
def _generated(number: int) -> Board:
    return Board.generate(number)
