"""What follows from a board alone, kept by board: agents are handed boards, not their numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.jit import entry, index, int64, kernel
from tokaido_env.core.state import BOARD

MAX_BYTES = 256 << 20
"""Of a table and the boards it knows: more, and all are forgotten, but for those of a call that has
more by itself. A pool of 100,000 boards fits: 103 MB, and 74 MB of tables or 102 MB of what a
network of 256 units reads of them. It is taken as boards are met."""

_FIRST = 16
_SLOTS = 4  # of the hash table, for each board
_WORDS = BOARD.itemsize // 8

# The bytes of a board, most of them in words, which are hashed and compared faster.
_KEY = np.dtype([("words", "<u8", _WORDS), ("rest", "u1", BOARD.itemsize - 8 * _WORDS)])

# One odd factor for each word. A sum of products is the same hash whichever way it is summed.
_FACTORS = np.random.default_rng(0).integers(2**63, size=_WORDS, dtype=np.uint64) * 2 + 1
_FACTORS.flags.writeable = False

MakeRows = Callable[[npt.NDArray[np.void]], npt.NDArray[Any]]


class BoardCache:
    """A table with a row for each board that was met, made when it is met first.

    A row may follow from its board only, so that it is the same whatever else is kept.

    Args:
        make: returns the rows of boards, `BOARD` (b,): (b, *shape).
        shape: of a row.
        dtype: of the table.
    """

    def __init__(self, make: MakeRows, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._new = make, shape, dtype
        self._lock = threading.Lock()
        self._begin(_FIRST)

    def __reduce__(self) -> tuple[Any, ...]:
        return BoardCache, self._new  # a copy has a lock of its own, and begins anew

    def rows(self, boards: npt.NDArray[np.void]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return a table and which of its rows each board has.

        Args:
            boards: `BOARD` (b,).

        Returns:
            The table, whose rows of these boards stay as they are, and int64 (b,).
        """
        only = boards.tobytes() if len(boards) == 1 else None
        with self._lock:
            which = self._alone.get(only)
            if which is None:
                which = self._add(np.ascontiguousarray(boards).view(_KEY))
            if only is not None:
                self._alone[only] = which
            return self._table, which

    def _begin(self, capacity: int) -> None:
        _, shape, dtype = self._new
        self._known = np.zeros(capacity, _KEY)
        self._slots = np.full(_SLOTS * capacity, -1, np.int64)
        self._table = np.zeros((capacity, *shape), dtype)
        self._count = np.zeros(1, np.int64)
        self._made = 0  # rows: boards are known before
        self._alone: dict[bytes | None, npt.NDArray[np.int64]] = {}  # found faster, one by one

    def _add(self, keys: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        """Return which rows boards have, and make those that there are not."""
        which = np.empty(len(keys), np.int64)
        if not self._find(keys, which):
            self._make_room(len(keys))
            self._find(keys, which)
        if self._made < self._count[0]:
            self._make_rows()
        return which

    def _find(self, keys: npt.NDArray[np.void], which: npt.NDArray[np.int64]) -> bool:
        """Write which rows boards have; return False if there is no room for them all."""
        return _find_rows(keys, self._known, self._slots, _FACTORS, self._count, which)

    def _make_room(self, boards: int) -> None:
        """Make room for so many more: in new arrays, for the old ones may be read meanwhile."""
        known, table, made = self._known, self._table, self._made
        most = MAX_BYTES // self._bytes_a_board()
        wanted = made + boards
        if wanted > most:
            self._begin(max(most, boards))
            return
        self._begin(min(most, 2 ** (wanted - 1).bit_length()))
        self._find(known[:made], np.empty(made, np.int64))
        self._table[:made] = table[:made]
        self._made = made

    def _bytes_a_board(self) -> int:
        return _KEY.itemsize + _SLOTS * self._slots.itemsize + self._table[:1].nbytes

    def _make_rows(self) -> None:
        new = slice(self._made, int(self._count[0]))
        try:
            self._table[new] = self._new[0](self._known[new].view(BOARD))
        except BaseException:
            self._begin(_FIRST)
            raise
        self._made = new.stop


@entry
def _find_rows(keys: Any, known: Any, slots: Any, factors: Any, count: Any, which: Any) -> bool:
    """Write the place of each key among those that are known, where new ones are noted.

    Args:
        keys: `_KEY` (n,).
        known: `_KEY` (capacity,), the first `count` in use.
        slots: int64, more than there can be keys; -1 where free.
        factors: uint64 (words,).
        count: int64 (1,).
        which: int64 (n,), overwritten.

    Returns:
        Whether there was room for all.
    """
    for i in range(len(keys)):
        slot = _hash(keys[i]["words"], factors) % len(slots)
        while slots[slot] >= 0 and not _same_board(keys[i], known[slots[slot]]):
            slot = (slot + 1) % len(slots)
        if slots[slot] < 0:
            if count[0] == len(known):
                return False
            known[count[0]] = keys[i]
            slots[slot] = count[0]
            count[0] += 1
        which[i] = slots[slot]
    return True


@kernel
def _hash(words: Any, factors: Any) -> int:
    total = np.uint64(0)
    for k in range(len(factors)):
        total += words[k] * factors[index(k)]
    return int64(total >> np.uint64(32))  # low bits of a product tell of low bits only


@kernel
def _same_board(one: Any, other: Any) -> bool:
    for k in range(_WORDS):
        if one["words"][k] != other["words"][k]:
            return False
    alike = True
    for k in range(len(one["rest"])):
        alike &= one["rest"][k] == other["rest"][k]
    return alike
