"""Reader of untrusted .npz files: no unpickling, no decompression, memory bounded by file size."""

from __future__ import annotations

import io
import struct
import tokenize
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from tokaido_env.core.arguments import MAX_VALUE_CHARS, escape_text
from tokaido_env.files import FILE, file_kind

_FORMAT_ERRORS = (
    *(BadZipFile, struct.error, EOFError, RuntimeError),
    *(ValueError, TypeError, KeyError, IndexError, OverflowError),
)


def check_file(path: Path, max_bytes: int) -> None:
    """Refuse devices and other special files, which may be endless, and files that are too large.

    Args:
        path: of the file.
        max_bytes: the largest size allowed.

    Raises:
        ValueError: naming the file, without its folder.
    """
    found = file_kind(path)
    if found != FILE:
        raise ValueError(f"{path.name}: expected a file, got {found}")
    if path.stat().st_size > max_bytes:
        raise ValueError(f"{path.name}: expected at most {max_bytes >> 20} MiB, got a larger file")


def read_arrays(path: Path, max_bytes: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file that `numpy.savez` has written, by name.

    Args:
        path: of the file.
        max_bytes: the largest file size allowed.

    Raises:
        OSError: if the file cannot be read.
        ValueError: naming the file, without its folder, if its content is invalid.
    """
    check_file(path, max_bytes)
    try:
        with ZipFile(io.BytesIO(path.read_bytes())) as zipped:
            return {
                name.removesuffix(".npy"): _array(name, _member(zipped, name))
                for name in zipped.namelist()
            }
    except _FORMAT_ERRORS as error:
        reason = escape_text(str(error), 2 * MAX_VALUE_CHARS)
        raise ValueError(f"{path.name}: not a file of arrays: {reason}") from None


def _member(zipped: ZipFile, name: str) -> bytes:
    if zipped.getinfo(name).compress_type != ZIP_STORED:
        raise ValueError(f"{name}: expected no compression, got a compressed array")
    return zipped.read(name)


def _array(name: str, data: bytes) -> npt.NDArray[Any]:
    """Return an array from the bytes of a .npy file of version 1.0."""
    file = io.BytesIO(data)
    if npy.read_magic(file) != (1, 0):
        raise ValueError(f"{name}: expected version 1.0 of the .npy format")
    try:
        shape, fortran_order, dtype = npy.read_array_header_1_0(file)
    except (SyntaxError, tokenize.TokenError, RecursionError):
        raise ValueError(f"{name}: unreadable header") from None
    rest = data[file.tell() :]
    valid = all(type(size) is int and size >= 0 for size in shape)
    if dtype.hasobject or not valid or prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"{name}: expected {dtype} of shape {shape}, got {len(rest)} bytes")
    flat = np.frombuffer(bytearray(rest), dtype) if len(rest) else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran_order else "C")
