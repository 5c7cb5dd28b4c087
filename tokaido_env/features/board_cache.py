"""A cache of arrays that follow from boards: agents get boards, not their numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.jit import entry, index, int64, kernel
from tokaido_env.core.state import BOARD

MAX_BYTES = 256 << 20
"""The memory of a cache. When it is full the cache forgets all boards; one call may need more.

100,000 boards take 103 MB, and 74 MB for their `EVAL_TABLES`. Memory is taken as boards come.
"""

_FIRST_CAPACITY = 16
_SLOTS_PER_BOARD = 4  # of the hash table
_WORDS = BOARD.itemsize // 8

# Words are hashed and compared faster than bytes.
_KEY = np.dtype([("words", "<u8", _WORDS), ("rest", "u1", BOARD.itemsize - 8 * _WORDS)])

# One odd factor for each word. The order of summation does not change a sum of products.
_FACTORS = np.random.default_rng(0).integers(2**63, size=_WORDS, dtype=np.uint64) * 2 + 1
_FACTORS.flags.writeable = False

MakeRows = Callable[[npt.NDArray[np.void]], npt.NDArray[Any]]


class BoardCache:
    """A table with a row for each board, made when the board first comes.

    A row must follow from its board alone, so that it does not depend on the cache.

    Args:
        make: makes the rows (b,) of boards, `BOARD` (b,).
        dtype: the dtype of the table.
    """

    def __init__(self, make: MakeRows, dtype: npt.DTypeLike) -> None:
        self._make, self._dtype = make, dtype
        self._lock = threading.Lock()
        self._reset(_FIRST_CAPACITY)

    def rows(self, boards: npt.NDArray[np.void]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the table and the row of each board, int64 (b,); these rows will not change.

        Args:
            boards: `BOARD` (b,).
        """
        single = boards.tobytes() if len(boards) == 1 else None
        with self._lock:
            rows = self._single_rows.get(single)
            if rows is None:
                rows = self._find_or_add(np.ascontiguousarray(boards).view(_KEY))
            if single is not None:
                self._single_rows[single] = rows
            return self._table, rows

    def _reset(self, capacity: int) -> None:
        self._keys = np.zeros(capacity, _KEY)
        self._hash_table = np.full(_SLOTS_PER_BOARD * capacity, -1, np.int64)
        self._table = np.zeros(capacity, self._dtype)
        self._count = np.zeros(1, np.int64)  # of boards
        self._made = 0  # rows of the table that are made
        self._single_rows: dict[bytes | None, npt.NDArray[np.int64]] = {}  # faster for one board

    def _find_or_add(self, keys: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        """Return the rows of boards; make those that are missing."""
        rows = np.empty(len(keys), np.int64)
        if not self._find(keys, rows):
            self._grow(len(keys))
            self._find(keys, rows)
        if self._made < self._count[0]:
            self._make_rows()
        return rows

    def _find(self, keys: npt.NDArray[np.void], rows: npt.NDArray[np.int64]) -> bool:
        """Write the rows of boards; return False if they do not all fit."""
        return _find_rows(keys, self._keys, self._hash_table, _FACTORS, self._count, rows)

    def _grow(self, boards: int) -> None:
        """Make room for more boards in new arrays, because other threads may read the old ones."""
        keys, table, made = self._keys, self._table, self._made
        most = MAX_BYTES // self._bytes_per_board()
        needed = made + boards
        if needed > most:
            self._reset(max(most, boards))
            return
        self._reset(min(most, 2 ** (needed - 1).bit_length()))
        self._find(keys[:made], np.empty(made, np.int64))
        self._table[:made] = table[:made]
        self._made = made

    def _bytes_per_board(self) -> int:
        return _KEY.itemsize + _SLOTS_PER_BOARD * np.int64().itemsize + self._table[:1].nbytes

    def _make_rows(self) -> None:
        new = slice(self._made, int(self._count[0]))
        try:
            self._table[new] = self._make(self._keys[new].view(BOARD))
        except BaseException:
            self._reset(_FIRST_CAPACITY)
            raise
        self._made = new.stop


@entry
def _find_rows(keys: Any, known: Any, table: Any, factors: Any, count: Any, rows: Any) -> bool:
    """Write the index of each key among the known keys; append new keys.

    Args:
        keys: `_KEY` (n,).
        known: `_KEY` (capacity,), of which the first `count` are in use.
        table: int64, longer than `known`, indices into it by hash; -1 where free.
        factors: uint64 (words,).
        count: int64 (1,).
        rows: int64 (n,), overwritten.

    Returns:
        Whether all keys fit.
    """
    for i in range(len(keys)):
        slot = _hash(keys[i]["words"], factors) % len(table)
        while table[slot] >= 0 and not _same_board(keys[i], known[table[slot]]):
            slot = (slot + 1) % len(table)
        if table[slot] < 0:
            if count[0] == len(known):
                return False
            known[count[0]] = keys[i]
            table[slot] = count[0]
            count[0] += 1
        rows[i] = table[slot]
    return True


@kernel
def _hash(words: Any, factors: Any) -> int:
    total = np.uint64(0)
    for k in range(len(factors)):
        total += words[k] * factors[index(k)]
    return int64(total >> np.uint64(32))  # low bits of a product depend on low bits only


@kernel
def _same_board(one: Any, other: Any) -> bool:
    for k in range(_WORDS):
        if one["words"][k] != other["words"][k]:
            return False
    same = True
    for k in range(len(one["rest"])):
        same &= one["rest"][k] == other["rest"][k]
    return same
