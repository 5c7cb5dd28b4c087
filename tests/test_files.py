"""Tests of `tokaido_env.files`: limits on reading, atomic writes, locks."""

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tokaido_env.core.arguments import escape_text, repr_short, short_path, str_short
from tokaido_env.files import (
    TEMP_SUFFIX,
    InUseError,
    OutputError,
    atomic_write,
    check_outputs,
    lock,
    locked,
    parse_json,
    read_json,
    read_toml,
    write_text,
)

ESCAPES = "\x1b[31mred\x1b[0m\a\r\u202e\u2028"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX's kinds of files")


@pytest.mark.parametrize("text", ["x" * 10**6, "\x1b" * 10**6, ESCAPES])
def test_escape_text__is_short_and_has_one_line(text: str) -> None:
    for seen in (repr_short(text), str_short(text), escape_text(text), repr_short([text])):
        assert len(seen) <= 100
        assert seen.isprintable()


def test_escape_text__keeps_short_text() -> None:
    assert escape_text(ESCAPES) == r"\x1b[31mred\x1b[0m\x07\r\u202e\u2028"
    assert (repr_short("a'b"), str_short("réseau 日本")) == ('"a\'b"', "réseau 日本")
    assert short_path(b"runs/\xc3\xa9") == short_path(Path("runs/é")) == "runs/é"


# Reading


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_json, "[" * 100_000),
        (read_json, "9" * 5000),
        (read_json, "{"),
        (read_json, "NaN"),
        (read_json, '{"a": "\\ud800"}'),
        (read_json, "[" + "[]," * 10**7 + "[]]"),
        (read_toml, "a = " + "[" * 100_000),
        (read_toml, "a = " + "9" * 5000),
        (read_toml, "a = 1\na = 2"),
        (read_toml, "[a]\n" * 10**6),
        (read_toml, "name shikoku"),
    ],
    ids=range(11),
)
def test_read__refuses_invalid_or_oversized_files_in_one_line(
    tmp_path: Path, read: object, text: str
) -> None:
    file = tmp_path / "a"
    for data in (text.encode(), text.encode() + b"\xff"):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=re.escape(f"{file}: not a ")) as error:
            read(file)  # type: ignore[operator]
        assert len(str(error.value)) < 500
        assert str(error.value).isprintable()


def test_read__accepts_what_other_programs_write(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b'\xef\xbb\xbf\r\n{"a": [1.0, -2e2, -0.0, 0.5, 1e400],\r\n"b": 3}\r\n')
    data = read_json(file)
    assert [*map(repr, data["a"]), data["b"]] == ["1", "-200", "-0.0", "0.5", "inf", 3]
    file.write_bytes(b"\xef\xbb\xbf\r\na = 1.0\r\n")
    assert repr(read_toml(file)) == "{'a': 1.0}"
    for held in (None, [[]] * 100, {"a": [1.5, {"b": "é😀"}]}, [{"a": 1}, {"a": 2.0}]):
        assert repr(parse_json(json.dumps(held))) == repr(held)


# Writing


def test_atomic_write__keeps_the_old_file_on_errors(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_text(path, "before")
    writing = atomic_write(path)
    writing.__enter__().write(b"half")
    assert not writing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert path.read_text(encoding="utf-8") == "before"


@POSIX
def test_atomic_write__replaces_the_file_of_a_killed_process(tmp_path: Path) -> None:
    """A link at its place is not followed."""
    mine, path = tmp_path / "mine", tmp_path / "a"
    mine.write_text("precious", encoding="utf-8")
    path.with_name(f"a{TEMP_SUFFIX}").symlink_to(mine)
    write_text(path, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "mine"]
    assert mine.read_text(encoding="utf-8") == "precious"
    assert path.read_text(encoding="utf-8") == "new"


@POSIX
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "dangling link"])
def test_atomic_write__replaces_regular_files_only(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.with_name("target").write_text("precious", encoding="utf-8")
        path.symlink_to(path.with_name("target" if kind == "link" else "nothing"))
    before = path.lstat().st_ino
    for write in (check_outputs, lambda path: write_text(path, "x")):
        with pytest.raises(OutputError, match=r"a: expected a regular file or nothing$"):
            write(path)
    assert path.lstat().st_ino == before


def test_check_outputs__refuses_unwritable_paths(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    (tmp_path / "out").mkdir()
    good = [tmp_path / "a", tmp_path / "b"]
    check_outputs(*good, None, folder=tmp_path / "out", read=[tmp_path / "in", None, "shikoku"])
    check_outputs(*good, folder=tmp_path / "new")
    for files, options, name in (
        ([tmp_path / "no" / "a"], {}, "no/a: "),
        ([good[0], tmp_path / "in"], {"read": [tmp_path / "in"]}, "in: is read too"),
        ([good[0], good[0]], {}, "a: expected a different file"),
        ([good[0]], {"folder": good[0]}, "a: expected a different file"),
        ([good[0]], {"folder": tmp_path / "in"}, "in: expected a folder"),
    ):
        with pytest.raises(OutputError, match=name):
            check_outputs(*files, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    os.link(tmp_path / "in", tmp_path / "same")
    with pytest.raises(OutputError, match="same: is read too"):
        check_outputs(tmp_path / "same", read=[tmp_path / "in"])


def test_atomic_write__names_the_file_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    write_text(path, "before")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=re.escape(f"No space left on device: '{path}'")):
        write_text(path, "after")
    assert path.read_text(encoding="utf-8") == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


@POSIX
def test_atomic_write__flushes_contents_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    fsync, replace = os.fsync, Path.replace

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        done.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    write_text(tmp_path / "a", "x")
    assert done == ["file", "name", "folder"]


# Locks

HOLD = """
import sys
from pathlib import Path
from tokaido_env.files import lock
release = lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Let another process hold the lock of a file or folder."""
    command = [sys.executable, "-c", HOLD, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        if process.poll() is None:
            process.kill()


@pytest.mark.parametrize("name", ["folder", "file"])
def test_lock__excludes_other_processes_until_they_end(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.mkdir() if name == "folder" else path.touch()
    before = sorted(tmp_path.rglob("*"))
    with held_elsewhere(path) as other:
        with pytest.raises(InUseError, match=re.escape(f"{path}: another command is working")):
            lock(path)
        if name == "file":
            with pytest.raises(InUseError):
                write_text(path, "mine")
        other.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        other.wait()
        with locked(path):
            pass
    assert sorted(tmp_path.rglob("*")) == before


def test_lock__is_reentrant_and_released_at_the_end(tmp_path: Path) -> None:
    first, second = lock(tmp_path), lock(tmp_path)
    first()
    with locked(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    second()
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="no"):
        lock(tmp_path / "no" / "a")
    assert not list(tmp_path.iterdir())


@POSIX
def test_lock__treats_a_link_as_its_file(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with held_elsewhere(tmp_path / "a"), pytest.raises(InUseError):
        lock(tmp_path / "b")


def refuse_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let each lock fail with an error of file systems without locks."""
    fcntl = pytest.importorskip("fcntl", reason="other system calls")

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize("number", [errno.ENOLCK, 524])
def test_lock__warns_once_where_the_file_system_has_none(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_locks(monkeypatch, number)
    with pytest.warns(RuntimeWarning) as warned:
        write_text(tmp_path / "a", "x")
    (warning,) = warned
    assert str(warning.message).startswith(f"{tmp_path}: its file system has no locks")
    lock(tmp_path)()  # without a second warning
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
