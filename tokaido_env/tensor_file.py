"""Safetensors files: named arrays and a header of strings. Reading one never executes code.

The header of a file that we write has the SHA-256 of its other contents: a flipped bit in a policy
would change its play, and nobody would see it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.core.arguments import escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import atomic_write, is_file

Array = npt.NDArray[Any]

SHA256 = "sha256"  # key of the header


class TensorFile(NamedTuple):
    """The contents of a file.

    Attributes:
        header: strings by key, without `SHA256`.
        arrays: the arrays by name, writable copies.
    """

    header: dict[str, str]
    arrays: dict[str, Array]


def write_tensors(path: Path, arrays: Mapping[str, Array], header: Mapping[str, str]) -> None:
    """Write a file atomically; equal contents are equal bytes.

    Args:
        path: of the file.
        arrays: numbers or bools of any shape, by name.
        header: strings by key.

    Raises:
        OSError: if the file cannot be written.
        InUseError: if another process writes it.
    """
    from safetensors.numpy import save

    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = save(tensors, {**header, SHA256: _contents_sha256(tensors, header)})
    end = 8 + int.from_bytes(data[:8], "little")
    with atomic_write(path) as file:
        file.write(_sorted_header(data[8:end]))
        file.write(memoryview(data)[end:])


def read_tensors(path: Path, max_bytes: int) -> TensorFile:
    """Read a file, which may come from an untrusted source; other programs write no SHA-256.

    Args:
        path: of the file.
        max_bytes: the largest size allowed.

    Raises:
        ValueError: without the file's name, for anything but a safetensors file of that size with
            dtypes that NumPy has, and for another SHA-256 than its header's.
        OSError: if the file cannot be read.
        ExtraError: if safetensors is not installed.
    """
    require_extra("policies need", "policies", "safetensors")
    from safetensors import SafetensorError, safe_open

    if not is_file(path):
        raise ValueError("no such file")
    if path.stat().st_size > max_bytes:
        raise ValueError(f"too large: expected at most {max_bytes >> 20} MiB")
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            header = file.metadata() or {}
    # Attribute, TypeError: a dtype that NumPy does not have; ValueError: too many dimensions.
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(escape_text(str(error), 200)) from None
    expected = header.pop(SHA256, None)
    if expected not in (None, _contents_sha256(arrays, header)):
        raise ValueError(f"changed: its contents do not have the {SHA256} of its header")
    return TensorFile(header, arrays)


def _contents_sha256(arrays: Mapping[str, Array], header: Mapping[str, str]) -> str:
    """Return the SHA-256 of a header and of the names, dtypes, shapes and bytes of arrays."""
    digest = hashlib.sha256(json.dumps(dict(header), sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _sorted_header(header: bytes) -> bytes:
    """Return the beginning of a file: the length of its header in eight bytes, and the header.

    Its keys are sorted; the writer of the library leaves their order to chance.
    """
    text = json.dumps(json.loads(header), sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
