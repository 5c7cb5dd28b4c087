"""Arrays of a file: what `numpy.savez` writes, and nothing else."""

import io
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tokaido_env.core.state import STATE
from tokaido_env.learn.safe_npz import read_arrays

MOST = 1 << 20


def test_arrays_come_back(tmp_path: Path) -> None:
    arrays = {
        **{"a": np.arange(6).reshape(2, 3), "b": np.zeros((), bool), "c": np.zeros((0, 5))},
        **{"text": np.array(["x", "yé"]), "states": np.ones(3, STATE), "t": np.ones((2, 3)).T},
    }
    np.savez(tmp_path / "x.npz", **arrays)
    found = read_arrays(tmp_path / "x.npz", MOST)
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
def test_an_array_that_is_none_is_refused_before_memory_is_asked_for(
    tmp_path: Path, member: bytes, message: str
) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as zipped:
        zipped.writestr("a.npy", member)
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        read_arrays(tmp_path / "x.npz", MOST)
    assert str(refused.value).startswith("x.npz: not a file of arrays: ")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(10**6))
    with pytest.raises(ValueError, match=r"a\.npy: expected no compression"):
        read_arrays(tmp_path / "x.npz", MOST)


def test_a_member_is_no_longer_than_its_file(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.savez(file, a=np.arange(5))
    data = bytearray(file.getvalue())
    for header, at in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        place = data.index(header) + at
        data[place : place + 8] = (2**31).to_bytes(4, "little") * 2
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.npz: not a file of arrays: "):
        read_arrays(tmp_path / "x.npz", MOST)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.npz: expected a file, got nothing"):
        read_arrays(tmp_path / "x.npz", MOST)
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"x\.npz: expected a file, got a pipe"):
        read_arrays(tmp_path / "x.npz", MOST)
    (tmp_path / "x.npz").unlink()
    (tmp_path / "x.npz").touch()
    os.truncate(tmp_path / "x.npz", 2**40)
    with pytest.raises(ValueError, match=r"x\.npz: expected at most 1 MiB"):
        read_arrays(tmp_path / "x.npz", MOST)
