"""Safetensors files: round trip, equal bytes, and refusal of other files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokaido_env.core.state import STATE
from tokaido_env.tensor_file import as_numbers, as_rows, read_tensors, write_tensors

MAX_BYTES = 1 << 20
ARRAYS: dict[str, Any] = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "number": np.asarray(np.float32(3)),
    "none": np.zeros((0, 5), np.uint64),
    "flags": np.array([True, False]),
    "counts": np.arange(3, dtype=np.uint16),
}
HEADER = {key: f"é {key}" for key in "zxyabc"}


def test_read_tensors__returns_what_was_written(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", ARRAYS, HEADER)
    header, arrays = read_tensors(tmp_path / "x", MAX_BYTES)
    assert header == HEADER
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert (arrays[name] == array).all()
        assert arrays[name].flags.writeable


@pytest.mark.parametrize(
    "rows",
    [
        np.frombuffer(bytes(range(2 * STATE.itemsize)), STATE),
        np.array(["moon", "é"]),
        np.zeros(0, STATE),
        np.arange(5, dtype=np.uint8),
    ],
)
def test_as_rows__inverts_as_numbers(rows: Any) -> None:
    numbers = as_numbers({"rows": rows})
    assert numbers["rows"].dtype.kind in "biuf"
    again = as_rows(numbers | {"more": rows}, {"rows": rows})
    assert list(again) == ["rows"]
    assert again["rows"].dtype == rows.dtype
    assert again["rows"].tobytes() == rows.tobytes()
    other = np.zeros((2, 3), np.uint8)
    assert as_rows({"rows": other}, {"rows": np.zeros(2, STATE)})["rows"] is other
