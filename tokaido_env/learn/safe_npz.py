"""Arrays from a file that a stranger may have written: no more memory than the file is long."""

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

_WRONG = (
    *(BadZipFile, struct.error, EOFError, RuntimeError),
    *(ValueError, TypeError, KeyError, IndexError, OverflowError),
)


def check_file(path: Path, most: int) -> None:
    """Refuse what is no plain file, which might never end, or a larger one.

    Args:
        path: of the file.
        most: bytes.

    Raises:
        ValueError: naming the file, without its folder.
    """
    found = file_kind(path)
    if found != FILE:
        raise ValueError(f"{path.name}: expected a file, it is {found}")
    if path.stat().st_size > most:
        raise ValueError(f"{path.name}: too large: expected at most {most >> 20} MiB")


def read_arrays(path: Path, most: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `numpy.savez` has written; nothing is unpickled or unpacked.

    Args:
        path: of the file.
        most: bytes of it.

    Raises:
        OSError: if it cannot be read.
        ValueError: in a line that names the file, without its folder, if it holds anything else.
    """
    check_file(path, most)
    try:
        with ZipFile(io.BytesIO(path.read_bytes())) as zipped:
            return {
                name.removesuffix(".npy"): _array(name, _member(zipped, name))
                for name in zipped.namelist()
            }
    except _WRONG as error:
        what = escape_text(str(error), 2 * MAX_VALUE_CHARS)
        raise ValueError(f"{path.name}: not a file of arrays: {what}") from None


def _member(zipped: ZipFile, name: str) -> bytes:
    if zipped.getinfo(name).compress_type != ZIP_STORED:
        raise ValueError(f"{name}: expected as it is, it is compressed")
    return zipped.read(name)


def _array(name: str, data: bytes) -> npt.NDArray[Any]:
    """Return an array from the bytes of a .npy file of version 1.0."""
    file = io.BytesIO(data)
    if npy.read_magic(file) != (1, 0):
        raise ValueError(f"{name}: expected version 1.0 of the format")
    try:
        shape, in_columns, dtype = npy.read_array_header_1_0(file)
    except (SyntaxError, tokenize.TokenError, RecursionError):
        raise ValueError(f"{name}: a header that cannot be read") from None
    rest = data[file.tell() :]
    right = all(type(size) is int and size >= 0 for size in shape)
    if dtype.hasobject or not right or prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"{name}: expected {dtype} of shape {shape}, got {len(rest)} bytes")
    flat = np.frombuffer(bytearray(rest), dtype) if len(rest) else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if in_columns else "C")
