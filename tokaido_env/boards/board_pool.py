"""Pools of boards: what `board=` and `--board` take where games may be played on several.

    pool = BoardPool.load("family:train/1000")
    pool.of_seed(7)  # the board of `Game(board="family:train/1000", seed=7)`

With a pool that is drawn from, the board of a game follows from its seed alone, by a luck stream
of its own: the same through every API.
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
from tokaido_env.boards.procedural import PREFIX, is_family, numbers_of
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.rng import boards_of_seeds
from tokaido_env.core.state import BOARD

KEPT = 4096  # boards of the family, made when they are asked for


class BoardPool:
    """One board or more; `BoardPool.load` makes one from any spec.

    Boards of the family are made when they are asked for.

    Attributes:
        name: the spec, or the name of the only board.
        drawn: whether the board of a game is drawn from its seed; if not, game `i` of a batch is
            played on board `i % len(pool)`.
    """

    def __init__(self, name: str, boards: Sequence[Board] | range, *, drawn: bool) -> None:
        if not len(boards):
            raise BoardError(f"{name}: expected one board or more, got an empty pool")
        self.name = name
        self.drawn = drawn and len(boards) > 1
        self._boards = boards  # of the family only the numbers

    @classmethod
    def load(cls, boards: Boards = "shikoku") -> BoardPool:
        """Return the boards of a spec.

        Args:
            boards: the name of a built-in board, the path of a board file, `family:NUMBER`,
                `family:SPLIT` or `family:SPLIT/COUNT`, a `Board`, a pool, which is returned as it
                is, or a sequence of what names one board.

        Raises:
            BoardError: if there is no such board, or none at all.
        """
        if isinstance(boards, BoardPool):
            return boards
        if is_family(boards):
            return _of_family(boards)
        if isinstance(boards, str | Path | Board) or not isinstance(boards, Sequence):
            board = Board.load(boards)
            return cls(board.name, [board], drawn=False)
        if not boards:
            raise BoardError("board: expected one board or more, got an empty sequence")
        each = [Board.load(board) for board in boards]
        return cls(", ".join(board.name for board in each), each, drawn=False)

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
        """The boards as kernels read them: `BOARD` (b,)."""
        return self._compiled[0]

    @property
    def hashes(self) -> npt.NDArray[np.str_]:
        """The hash of each board: text (b,)."""
        return self._compiled[1]

    @functools.cached_property
    def names(self) -> npt.NDArray[np.object_]:
        """The name of each board: texts (b,)."""
        if isinstance(self._boards, range):
            return np.array([f"{PREFIX}{number}" for number in self._boards], np.object_)
        return np.array([board.name for board in self._boards], np.object_)

    @functools.cached_property
    def hash(self) -> str:
        """Sixteen hex digits that change when one of the boards does; of one board its own."""
        if len(self) == 1:
            return self[0].hash
        return hashlib.sha256("".join(self.hashes.tolist()).encode()).hexdigest()[:16]

    def check_drawn(self) -> BoardPool:
        """Return the pool if a seed is enough to know the board of its game.

        Raises:
            BoardError: if the boards are several that are not drawn.
        """
        if not self.drawn and len(self) > 1:
            raise BoardError(
                f"board: expected one board, or a pool such as family:train/1000, got {len(self)} "
                "boards that are not drawn"
            )
        return self

    def indices(self, seeds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the board of the game of each seed, int64 (n,): an index into the pool.

        Raises:
            BoardError: as `check_drawn`.
        """
        out = np.empty(len(seeds), np.int64)
        boards_of_seeds(np.ascontiguousarray(seeds, np.int64), len(self.check_drawn()), out)
        return out

    def of_seed(self, seed: int) -> Board:
        """Return the board of the game of a seed, or raise as `check_drawn`."""
        if len(self) == 1:
            return self[0]
        return self[int(self.indices(np.array([seed], np.int64))[0])]

    def index(self, name: str) -> int:
        """Return which of the boards has a name.

        Raises:
            BoardError: if none has.
        """
        index = self._index.get(name, -1)
        if isinstance(self._boards, range) and is_family(name):
            number = numbers_of(name)[0]
            own = number in self._boards and name == f"{PREFIX}{number}"  # not the name of a pool
            index = number - self._boards[0] if own else -1
        if index < 0:
            raise BoardError(f"{repr_short(name)} is no board of {repr_short(self.name)}")
        return index

    def found(
        self, hashes: npt.NDArray[np.str_], otherwise: npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.int64]:
        """Return which boards have hashes, int64 (k,), -1 where none has.

        Args:
            hashes: text (k,), or (1,) for all.
            otherwise: integers (k,), the boards that they must be where none are drawn.
        """
        if not self.drawn:
            return np.where(self.hashes[otherwise] == hashes, otherwise, -1).astype(np.int64)
        places = {one: index for index, one in reversed([*enumerate(self.hashes.tolist())])}
        each = np.array([places.get(one, -1) for one in hashes.tolist()], np.int64)
        return np.broadcast_to(each, len(otherwise)).copy()

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        boards = [] if isinstance(self._boards, range) else self._boards
        return {board.name: index for index, board in reversed([*enumerate(boards)])}

    @functools.cached_property
    def _compiled(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.str_]]:
        """Return the records and hashes of all boards, in one pass over them."""
        each = [(board.record.tobytes(), board.hash) for board in self]
        # As bytes: NumPy joins records field by field, a hundred times slower.
        records = np.frombuffer(bytearray().join(one for one, _ in each), BOARD)
        return records, np.array([other for _, other in each])


Boards = str | Path | Board | BoardPool | Sequence[str | Path | Board]
"""What `BoardPool.load` takes."""


def board_named(name: str, boards: Boards | None = None) -> Board:
    """Return the board that a file names.

    Args:
        name: of a board.
        boards: on which it may be; None: the built-in ones and the family. One board alone is
            taken for it whatever its name.

    Raises:
        BoardError: if none of them has that name.
    """
    if boards is None:
        return Board.named(name)
    pool = BoardPool.load(boards)
    return pool[0] if len(pool) == 1 else pool[pool.index(name)]


@functools.lru_cache(maxsize=8)
def _of_family(spec: str) -> BoardPool:
    """Return the pool of a spec: the same object, so that its boards are made once."""
    numbers = numbers_of(spec)
    single = spec.removeprefix(PREFIX).isdigit()
    name = f"{PREFIX}{numbers[0]}" if single else spec
    return BoardPool(name, numbers, drawn=True)


@functools.lru_cache(maxsize=KEPT)
def _generated(number: int) -> Board:
    return Board.generate(number)
