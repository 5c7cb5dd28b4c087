"""The cache of arrays that follow from boards."""

import numpy as np
import numpy.typing as npt
import pytest

from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import MAX_BOARDS
from tokaido_env.features import board_cache
from tokaido_env.features.board_cache import BoardCache
from tokaido_env.features.eval_tables import EVAL_TABLES

POOL = BoardPool.load("family:train/40")


class CountedRows:
    """Makes a different row for each board, and counts the rows."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, boards: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        self.made += len(boards)
        return np.array([sum(board.tobytes()) for board in boards])


def sample_boards(seed: int, n: int) -> npt.NDArray[np.void]:
    return POOL.records[np.random.default_rng(seed).integers(len(POOL), size=n)]


def agrees(cache: BoardCache, boards: npt.NDArray[np.void]) -> bool:
    table, rows = cache.rows(boards)
    return bool((table[rows] == CountedRows()(boards)).all())


def test_board_cache__makes_one_row_for_each_board() -> None:
    make_rows = CountedRows()
    cache = BoardCache(make_rows, np.int64)
    assert agrees(cache, POOL.records[:1])
    sizes = enumerate((3, 1, 200, 1, 1000, 7))
    assert all(agrees(cache, sample_boards(seed, n)) for seed, n in sizes)
    assert make_rows.made == len(POOL)


def test_board_cache__separates_boards_that_differ_in_one_byte() -> None:
    one = POOL.records[:1]
    raw = np.repeat(one.view(np.uint8)[None], one.itemsize, axis=0)
    raw[np.arange(one.itemsize), np.arange(one.itemsize)] ^= 1
    cache = BoardCache(CountedRows(), np.int64)
    assert agrees(cache, raw.reshape(-1).view(one.dtype))


def test_board_cache__keeps_returned_rows_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    make_rows = CountedRows()
    cache = BoardCache(make_rows, np.int64)
    monkeypatch.setattr(board_cache, "MAX_BYTES", 20 * cache._bytes_per_board())
    boards = sample_boards(0, 15)
    table, rows = cache.rows(boards)
    assert all(agrees(cache, sample_boards(seed, 15)) for seed in range(1, 30))
    assert agrees(cache, POOL.records)  # more in one call than the cache can hold
    assert make_rows.made > len(POOL)
    assert (table[rows] == CountedRows()(boards)).all()


def test_board_cache__holds_the_largest_pool() -> None:
    cache = BoardCache(CountedRows(), EVAL_TABLES)
    assert MAX_BOARDS * cache._bytes_per_board() <= board_cache.MAX_BYTES


def test_board_cache__works_after_a_board_without_a_row() -> None:
    wrong = POOL.records[3:4].tobytes()

    def make_rows(boards: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        if any(board.tobytes() == wrong for board in boards):
            raise ValueError("no row")
        return CountedRows()(boards)

    cache = BoardCache(make_rows, np.int64)
    for _ in range(2):
        with pytest.raises(ValueError, match="no row"):
            cache.rows(POOL.records[:8])
        assert agrees(cache, POOL.records[:3])
        assert agrees(cache, POOL.records[:1])
