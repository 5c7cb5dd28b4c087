"""Safetensors files: named arrays and a header of strings. Reading one never executes code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.core.arguments import escape_text
from tokaido_env.core.optional_deps import extra_error
from tokaido_env.files import FILE, atomic_write, file_kind

Array = npt.NDArray[Any]

_NUMBERS = "biuf"  # kinds of dtypes that the format has


class TensorFile(NamedTuple):
    """The contents of a file.

    Attributes:
        header: strings by key.
        arrays: the arrays by name, writable copies.
    """

    header: dict[str, str]
    arrays: dict[str, Array]


def write_tensors(path: Path, arrays: Mapping[str, Array], header: Mapping[str, str]) -> None:
    """Write a file atomically; equal contents are equal bytes.

    Args:
        path: of the file.
        arrays: numbers or bools of any shape, by name; see `as_numbers` for others.
        header: strings by key.

    Raises:
        OSError, InUseError: as `files.atomic_write`.
    """
    from safetensors.numpy import save

    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = save(tensors, dict(header))
    end = 8 + int.from_bytes(data[:8], "little")
    with atomic_write(path) as file:
        file.write(_sorted_header(data[8:end]))
        file.write(memoryview(data)[end:])


def read_tensors(path: Path, max_bytes: int) -> TensorFile:
    """Read a file, which may come from an untrusted source.

    Args:
        path: of the file.
        max_bytes: the largest size allowed.

    Raises:
        ValueError: without the file's name, for anything but a safetensors file of that size with
            dtypes that NumPy has.
        OSError: if the file cannot be read.
        ExtraError: if safetensors is not installed.
    """
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError as error:
        raise extra_error("policies need", error.name, "policies") from None
    found = file_kind(path)
    if found != FILE:
        raise ValueError(f"expected a file, got {found}")
    if path.stat().st_size > max_bytes:
        raise ValueError(f"too large: expected at most {max_bytes >> 20} MiB")
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return TensorFile(file.metadata() or {}, arrays)
    # TypeError: a dtype that NumPy does not have; ValueError: too many dimensions for NumPy.
    except (SafetensorError, TypeError, ValueError) as error:
        raise ValueError(escape_text(str(error), 200)) from None


def as_numbers(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays in dtypes of the format: others (n,), as states, as bytes (n, itemsize)."""
    return {
        name: array
        if array.dtype.kind in _NUMBERS
        else np.ascontiguousarray(array).view(np.uint8).reshape(len(array), array.dtype.itemsize)
        for name, array in arrays.items()
    }


def as_rows(arrays: Mapping[str, Array], like: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays that `as_numbers` made from others of the names and dtypes of `like`.

    An array that was made from another dtype is returned unchanged.
    """
    return {name: _view(array, like[name].dtype) for name, array in arrays.items() if name in like}


def _view(array: Array, dtype: np.dtype[Any]) -> Array:
    is_bytes = array.dtype == np.uint8 and array.ndim == 2 and array.shape[1] == dtype.itemsize
    return array.reshape(-1).view(dtype) if is_bytes and dtype.kind not in _NUMBERS else array


def _sorted_header(header: bytes) -> bytes:
    """Return the beginning of a file: the length of its header in eight bytes, and the header.

    Its keys are sorted; the writer of the library leaves their order to chance.
    """
    text = json.dumps(json.loads(header), sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
