"""Check that agents and networks depend on the position and the key only."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Columns = tuple[npt.NDArray[Any], ...]


def check_repeatable(
    function: Callable[..., Any], boards: Any, states: Any, legal: Any, every: int = 1
) -> tuple[Any, npt.NDArray[np.uint64]]:
    """Check that n positions give the same results again, one by one, and on one thread.

    Args:
        function: takes `boards, states, legal, keys`; returns one array (n,) or several.
        boards: `BOARD` (n,), equal or different ones.
        states: `STATE` (n,), which must not change.
        legal: uint64 (n,).
        every: step between the positions that are evaluated one by one.

    Returns:
        The results, and the keys.
    """
    keys = np.random.default_rng(14).integers(2**64, size=len(states), dtype=np.uint64)
    arrays, before = (boards, states, legal, keys), states.copy()
    result = function(*arrays)
    assert _same(result, function(*arrays))
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        assert _same(result, function(*arrays))
    finally:
        numba.set_num_threads(threads)
    for i in range(0, len(states), every):
        row = slice(i, i + 1)
        single = function(*(array[row] for array in arrays))
        assert _same(tuple(column[row] for column in _columns(result)), single)
    if (boards == boards[0]).all():
        assert _same(result, function(boards[:1], states, legal, keys))
    assert (states == before).all()
    return result, keys


def _columns(result: Any) -> Columns:
    return result if isinstance(result, tuple) else (result,)


def _same(first: Any, second: Any) -> bool:
    pairs = zip(_columns(first), _columns(second), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
