"""Work and memory for threads."""

import itertools
from typing import Any

import numpy as np
import pytest
from numba import prange

from tokaido_env.core import jit, threads


def _fill(out: Any, taken: Any, count: int) -> None:
    """Count how often each number is taken, a few at a time."""
    for _ in prange(count):
        first = threads.take(taken, 3)
        while first < len(out):
            for i in range(first, min(first + 3, len(out))):
                out[i] += 1
            first = threads.take(taken, 3)


def test_threads_take_each_piece_of_work_once() -> None:
    fill: Any = jit.parallel(_fill, at_least=2)
    out = np.zeros(100_000, np.int64)
    fill(out, np.zeros(1, np.int64), 4)
    assert (out == 1).all()


@pytest.mark.parametrize("dtype", ["<f4", "<i8", [("a", "<i8"), ("b", "u1", 300)], ("<f4", 32)])
@pytest.mark.parametrize("length", [0, 1, 77])
def test_no_two_threads_write_to_one_cache_line(dtype: Any, length: int) -> None:
    rows = threads.rows_apart(3, length, np.dtype(dtype))
    begins = [rows[i].__array_interface__["data"][0] for i in range(3)]
    used = length * np.dtype(dtype).itemsize
    for one, following in itertools.pairwise(begins):
        assert following - (one + used) >= 128  # a pair of lines: some processors fetch two
