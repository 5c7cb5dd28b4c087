"""Tests of copies of rows of states."""

import numpy as np
import numpy.typing as npt
import pytest
from positions import random_walk

from tokaido_env.core.state import STATE, copy_rows, put_rows

ROWS = pytest.mark.parametrize("rows", [[0], [3, 1], [2, 2, 0], [-1, 0], []], ids=str)


def some_states(seed: int = 0) -> npt.NDArray[np.void]:
    return np.concatenate([random_walk(seed + i, 30 * i).state for i in range(5)])


@ROWS
def test_copy_rows__copies_whole_records(rows: list[int]) -> None:
    states = some_states()
    assert copy_rows(states).tobytes() == states.tobytes()
    copied = copy_rows(states, np.array(rows, np.int64))
    assert copied.dtype == STATE
    assert [row.tobytes() for row in copied] == [states[i].tobytes() for i in rows]
    copied["round"] = 99
    assert states.tobytes() == some_states().tobytes()


@ROWS
def test_put_rows__writes_whole_records(rows: list[int]) -> None:
    states, values = some_states(), some_states(seed=50)[: len(rows)]
    expected = [row.tobytes() for row in states]
    for i, value in zip(rows, values, strict=True):
        expected[i] = value.tobytes()
    put_rows(states, np.array(rows, np.int64), values)
    assert [row.tobytes() for row in states] == expected


def test_put_rows__refuses_another_number_of_rows() -> None:
    states = some_states()
    with pytest.raises(ValueError, match="shape"):
        put_rows(states, np.array([0, 1, 2]), some_states()[:2])
    assert states.tobytes() == some_states().tobytes()
