"""Answers of agents and networks that depend on the position and the key alone."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Columns = tuple[npt.NDArray[Any], ...]


def check_repeatable(
    ask: Callable[..., Any], boards: Any, states: Any, legal: Any, every: int = 1
) -> tuple[Any, npt.NDArray[np.uint64]]:
    """Check that n positions are answered as each alone, again, and on one thread.

    Args:
        ask: answers `boards, states, legal, keys`, as an array (n,) or several.
        boards: `BOARD` (n,), all alike or not.
        states: `STATE` (n,), which are not to be changed.
        legal: uint64 (n,).
        every: which positions are asked about alone: one of so many.

    Returns:
        What was answered, and the keys.
    """
    keys = np.random.default_rng(14).integers(2**64, size=len(states), dtype=np.uint64)
    arrays, before = (boards, states, legal, keys), states.copy()
    answer = ask(*arrays)
    assert _same(answer, ask(*arrays))
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        assert _same(answer, ask(*arrays))
    finally:
        numba.set_num_threads(threads)
    for i in range(0, len(states), every):
        one = slice(i, i + 1)
        alone = ask(*(array[one] for array in arrays))
        assert _same(tuple(column[one] for column in _columns(answer)), alone)
    if (boards == boards[0]).all():
        assert _same(answer, ask(boards[:1], states, legal, keys))
    assert (states == before).all()
    return answer, keys


def _columns(answer: Any) -> Columns:
    return answer if isinstance(answer, tuple) else (answer,)


def _same(one: Any, other: Any) -> bool:
    pairs = zip(_columns(one), _columns(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
