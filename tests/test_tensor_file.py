"""Safetensors files: round trip, equal bytes, and refusal of other files."""

from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.tensor_file import read_tensors, write_tensors

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
