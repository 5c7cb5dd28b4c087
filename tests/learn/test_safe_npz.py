"""The reader of untrusted .npz files: round trip, and refusal of everything else."""

import io
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tokaido_env.core.state import STATE
from tokaido_env.learn.safe_npz import read_arrays

MAX_BYTES = 1 << 20


def test_read_arrays__returns_what_savez_wrote(tmp_path: Path) -> None:
    arrays = {
        **{"a": np.arange(6).reshape(2, 3), "b": np.zeros((), bool), "c": np.zeros((0, 5))},
        **{"text": np.array(["x", "yé"]), "states": np.ones(3, STATE), "t": np.ones((2, 3)).T},
    }
    np.savez(tmp_path / "x.npz", **arrays)
    found = read_arrays(tmp_path / "x.npz", MAX_BYTES)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert (found[name] == array).all()
        assert found[name].flags.writeable


def npy(descr: str, shape: str, data: bytes = bytes(8), version: bytes = b"\x01\x00") -> bytes:
    line = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY" + version + len(line).to_bytes(2, "little") + line + data


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy("|i1", "(1000000000000,)"), "a.npy: expected int8 of shape (1000000000000,), got 8"),
        (npy("|V1000000000", "(9,)"), "a.npy: expected |V1000000000 of shape (9,), got 8 bytes"),
        (npy("|O", "(1,)"), "a.npy: expected object of shape (1,), got 8 bytes"),
        (npy("<i8", "(-1,)"), "a.npy: expected int64 of shape (-1,), got 8 bytes"),
        (npy("<i8", "(True,)"), "a.npy: expected int64 of shape (True,), got 8 bytes"),
        (npy("<i8", "(" * 50), "a.npy: unreadable header"),
        (npy("<i8", "(1,)", version=b"\x02\x00"), "a.npy: expected version 1.0 of the .npy format"),
        (npy("x", "(1,)"), "descr is not a valid dtype descriptor: 'x'"),
        (b"", "EOF: reading magic string"),
    ],
)
def test_read_arrays__refuses_invalid_arrays_before_allocating(
    tmp_path: Path, member: bytes, message: str
) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as zipped:
        zipped.writestr("a.npy", member)
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        read_arrays(tmp_path / "x.npz", MAX_BYTES)
    assert str(refused.value).startswith("x.npz: not a file of arrays: ")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_read_arrays__refuses_compressed_arrays(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(10**6))
    with pytest.raises(ValueError, match=r"a\.npy: expected no compression"):
        read_arrays(tmp_path / "x.npz", MAX_BYTES)


def test_read_arrays__refuses_members_longer_than_the_file(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.savez(file, a=np.arange(5))
    data = bytearray(file.getvalue())
    for header, offset in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        start = data.index(header) + offset
        data[start : start + 8] = (2**31).to_bytes(4, "little") * 2
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.npz: not a file of arrays: "):
        read_arrays(tmp_path / "x.npz", MAX_BYTES)


def test_read_arrays__refuses_missing_special_and_huge_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.npz: expected a file, got nothing"):
        read_arrays(tmp_path / "x.npz", MAX_BYTES)
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"x\.npz: expected a file, got a pipe"):
        read_arrays(tmp_path / "x.npz", MAX_BYTES)
    (tmp_path / "x.npz").unlink()
    (tmp_path / "x.npz").touch()
    os.truncate(tmp_path / "x.npz", 2**40)
    with pytest.raises(ValueError, match=r"x\.npz: expected at most 1 MiB"):
        read_arrays(tmp_path / "x.npz", MAX_BYTES)
