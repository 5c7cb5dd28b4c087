"""Tests of `tokaido_env.files`: limits on reading, atomic writes, locks."""

import errno
import itertools
import json
import os
import random
import re
import secrets
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tokaido_env.boards.board import Board
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import escape_text, repr_short, short_path, str_short
from tokaido_env.files import (
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

DEEP = 100_000
LONG = "9" * 5000
ESCAPES = "\x1b[31mred\x1b[0m\a\r\u202e\u2028"


# Text in messages


@pytest.mark.parametrize("text", ["x" * 10**6, "\x1b" * 10**6, "\U000e0001" * 10**6, ESCAPES])
def test_escape_text__is_short_and_has_one_line(text: str) -> None:
    for seen in (
        repr_short(text),
        str_short(text),
        escape_text(text),
        repr_short([text]),
        str_short({text: 1}),
    ):
        assert len(seen) <= 100
        assert seen.isprintable()


def test_escape_text__keeps_short_text() -> None:
    assert (repr_short("a'b"), str_short("réseau 日本"), escape_text("a b")) == (
        '"a\'b"',
        "réseau 日本",
        "a b",
    )
    assert (repr_short(1.5), str_short(None), repr_short(["x"])) == ("1.5", "None", "['x']")
    assert escape_text(ESCAPES) == r"\x1b[31mred\x1b[0m\x07\r\u202e\u2028"


def test_short_path__shows_the_bytes_of_a_path_as_text() -> None:
    """TensorBoard names its files in bytes."""
    assert short_path(b"runs/\xc3\xa9") == short_path(Path("runs/é")) == "runs/é"
    assert short_path(b"a\n\xff") == r"a\n\udcff"
    assert len(short_path(b"x" * 9999)) == len(short_path("x" * 9999)) < 9999


def test_repr_short__describes_values_without_a_repr() -> None:
    nest: list[object] = []
    for _ in range(DEEP):
        nest = [nest]
    assert repr_short(nest) == "list that cannot be shown"
    assert repr_short(10**5000) == "int that cannot be shown"


# Reading


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * DEEP, "nested too deeply: expected at most 64 levels"),
        ("[" * DEEP + "]" * DEEP, "nested too deeply"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested too deeply"),
        ("\n\n" + LONG, "line 3: expected numbers of at most 4300 digits"),
        ('{"a": 1, "a": 2}', "expected each key once, got 'a' twice"),
        ('{"b": [{"' + "a" * 10**6 + '": 1, "' + "a" * 10**6 + '": 2}]}', "expected each key once"),
        ("{", "Expecting property name"),
        ('"\\ud800"', "expected a text of valid Unicode, got '.udc?8"),
        ('{"a": [1, {"b": "é\\uDFFF"}]}', r"a\[1\]\.b: expected a text of valid Unicode, got 'é"),
        (
            '{"a": [{"\\udc80\\ud83d": 0}]}',
            r"a\[0\]: expected a text of valid Unicode, got '.udc80",
        ),
        ("[" + "[]," * 10**7 + "[]]", "too large: expected at most 16 MiB"),
    ],
)
def test_parse_json__refuses_invalid_or_oversized_text(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        parse_json(text)
    assert len(str(error.value)) < 300
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        read_json(file)
    assert str(error.value).startswith(f"{file}: not a whole JSON file: ")


def test_parse_json__reads_valid_text() -> None:
    for data in (None, [[]] * 100, {"a": [1.5, {"b": "x"}]}, [{"a": 1}, {"a": 2}]):
        assert parse_json(json.dumps(data)) == data
    nest = json.loads("[" * 64 + "]" * 64)
    assert parse_json(json.dumps(nest)) == nest
    assert parse_json("9" * 4000) == int("9" * 4000)
    assert parse_json(r'{"\u00e9": ["\ud83d\uDE00", "\\ud800"]}') == {"é": ["😀", r"\ud800"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * DEEP, "nested too deeply"),
        ("a = " + "[" * 100 + "]" * 100, "nested too deeply"),
        (".".join("a" * 20_000) + " = 1", "nested too deeply"),
        ("[" + ".".join(['"a b"'] * 20_000) + "]", "nested too deeply"),
        ("a = 1\nb = " + LONG, "line 2: expected numbers of at most 4300 digits"),
        ("a = 1\na = 2", "Cannot overwrite a value"),
        ("a" * 10**5 + " = 1\n" + "a" * 10**5 + " = 1", "Cannot overwrite"),
        ("[a]\n" * 10**6, "too large: expected at most 1 MiB"),
    ],
)
def test_read_toml__refuses_invalid_or_oversized_text_quickly(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text, encoding="utf-8")
    began = time.process_time()
    with pytest.raises(ValueError, match=message) as error:
        read_toml(file)
    assert str(error.value).startswith(f"{file}: not a TOML file: ")
    assert len(str(error.value)) < 500
    with pytest.raises(BoardError, match=message):
        Board.load(file)
    assert time.process_time() - began < 5


# Writing


LEFT = f"{0:016x}.tmp"  # the end of a temporary file's name
INTERRUPTED = KeyboardInterrupt, KeyboardInterrupt(), None


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_atomic_write__does_not_follow_a_link_at_the_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the link of a killed process, nor one at the name of the new file."""
    mine, path = tmp_path / "mine", tmp_path / "config.toml"
    mine.write_text("precious", encoding="utf-8")
    path.with_name(f"config.toml.{LEFT}").symlink_to(mine)
    write_text(path, "theirs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "mine"]
    monkeypatch.setattr(secrets, "token_hex", lambda count: "guess")
    (tmp_path / "config.toml.guess.tmp").symlink_to(mine)
    with pytest.raises(FileExistsError):
        write_text(path, "more")
    assert mine.read_text(encoding="utf-8") == "precious"
    assert path.read_text(encoding="utf-8") == "theirs"


def test_atomic_write__keeps_the_old_file_on_errors(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_text(path, "before")
    writing = atomic_write(path)
    writing.__enter__().write(b"half")
    assert not writing.__exit__(*INTERRUPTED)
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert path.read_text(encoding="utf-8") == "before"


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX's kinds of files")


def special(path: Path, kind: str) -> Path:
    """Create something other than a regular file at a path."""
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    else:
        path.with_name("target").write_text("precious", encoding="utf-8")
        path.symlink_to(path.with_name("target" if kind == "link" else "nothing"))
    return path


@POSIX
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "link", "dangling link"])
def test_atomic_write__replaces_regular_files_only(tmp_path: Path, kind: str) -> None:
    path = special(tmp_path / "a", kind)
    before = {one: one.lstat() for one in tmp_path.rglob("*")}
    message = f"a: expected a file or nothing, got a {kind.removeprefix('dangling ')}$"
    with pytest.raises(OutputError, match=message):
        write_text(path, "x")
    with pytest.raises(OutputError, match=message):
        check_outputs(path)
    after = {one: one.lstat() for one in tmp_path.rglob("*")}
    assert {one: (s.st_ino, s.st_mtime_ns) for one, s in after.items()} == {
        one: (s.st_ino, s.st_mtime_ns) for one, s in before.items()
    }


def test_read__accepts_what_other_programs_write(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b'\xef\xbb\xbf\r\n{"a": [1.0, -2e2, -0.0, 0.5, 1e400],\r\n"b": 3}\r\n')
    data = read_json(file)
    assert [*map(repr, data["a"]), data["b"]] == ["1", "-200", "-0.0", "0.5", "inf", 3]
    file.write_bytes(b"\xef\xbb\xbf\r\na = 1.0\r\n")
    assert repr(read_toml(file)) == "{'a': 1.0}"


@POSIX
@pytest.mark.parametrize("read", [read_json, read_toml])
def test_read_text__refuses_pipes_and_devices(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    for path, kind in ((special(tmp_path / "a", "pipe"), "pipe"), (Path("/dev/zero"), "device")):
        with pytest.raises(ValueError, match=f"^{path}: .*: expected a file, got a {kind}$"):
            read(path)


def test_check_outputs__refuses_unwritable_paths(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    (tmp_path / "out").mkdir()
    good = [tmp_path / "a", tmp_path / "b"]
    check_outputs(*good, None, folder=tmp_path / "out", read=[tmp_path / "in", None, "shikoku"])
    check_outputs(*good, folder=tmp_path / "new")
    for files, options, message in (
        ([tmp_path / "no" / "a"], {}, "no/a: there is no folder .*no$"),
        ([good[0], tmp_path / "in"], {"read": [tmp_path / "in"]}, "in: is read too: expected ano"),
        ([good[0], good[0]], {}, "a: expected a different file for each output"),
        ([good[0]], {"folder": good[0]}, "a: expected a different file for each output"),
        ([good[0]], {"folder": tmp_path / "in"}, "in: expected a folder, got a file"),
    ):
        with pytest.raises(OutputError, match=message):
            check_outputs(*files, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@POSIX
def test_check_outputs__recognises_an_input_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.link(tmp_path / "a", tmp_path / "b")
    with pytest.raises(OutputError, match="b: is read too"):
        check_outputs(tmp_path / "b", read=[tmp_path / "a"])


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


WRITE = """
import sys
from pathlib import Path
from tokaido_env.files import atomic_write
with atomic_write(Path(sys.argv[1])) as file:
    file.write(b"theirs")
    print("writing", flush=True)
    sys.stdin.readline()
"""


def test_atomic_write__refuses_a_file_that_another_process_writes(tmp_path: Path) -> None:
    path, pipe = tmp_path / "a", subprocess.PIPE
    command = [sys.executable, "-c", WRITE, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
        with pytest.raises(InUseError, match="a: another command is working on it"):
            write_text(path, "mine")
        other.communicate("go on\n")
    assert (other.returncode, path.read_text(encoding="utf-8")) == (0, "theirs")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    path.with_name(f"a.{LEFT}").write_text("of a killed process", encoding="utf-8")
    write_text(path, "mine")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("has_locks", [True, False])
@pytest.mark.filterwarnings("ignore:.* has no locks")
def test_atomic_write__keeps_two_writers_apart(
    has_locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads of a process with locks, or two processes without them."""
    if not has_locks:
        refuse_locks(monkeypatch, errno.ENOLCK)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a"
    old, new = (path.with_name(f"a.{number:016x}.tmp") for number in range(2))
    others = {tmp_path / f"{name}.{LEFT}" for name in ("aa", "b", "a.b")}
    for one in (old, new, *others):
        one.write_text("half", encoding="utf-8")
    os.utime(old, (0, 0))
    expected = b"before"
    path.write_bytes(expected)
    for ends in itertools.product([(None,) * 3, INTERRUPTED], repeat=2):
        writers = atomic_write(path), atomic_write(Path("a"))
        first, second = (writer.__enter__() for writer in writers)
        first.write(b"first, ")
        second.write(b"second")
        second.flush()
        first.write(b"whole")
        for writer, end, text in zip(writers, ends, (b"first, whole", b"second"), strict=True):
            assert not writer.__exit__(*end)
            expected = expected if end is INTERRUPTED else text
            assert path.read_bytes() == expected
    left = set() if has_locks else {new}  # without locks, another process may write it
    assert set(tmp_path.iterdir()) == {path} | others | left


# Locks

NO_LOCKS = 524, 5, 1, 22, 37, 38, 95
"""Errors of file systems without locks."""


def refuse_locks(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let each lock fail with one of some errors, chosen at random."""
    fcntl, rng = pytest.importorskip("fcntl", reason="other system calls"), random.Random(7)

    def refuse(*arguments: object) -> None:
        number = rng.choice(numbers)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


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


@pytest.mark.parametrize("name", ["folder", "file", "to be"])
def test_lock__excludes_other_processes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    if name == "file":
        path.touch()
    before = sorted(tmp_path.rglob("*"))
    with held_elsewhere(path) as other:
        with pytest.raises(InUseError, match="another command is working on it: wait") as error:
            lock(path)
        assert str(error.value).startswith(f"{path}: ")
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
    with held_elsewhere(tmp_path), pytest.raises(InUseError):
        lock(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_lock__treats_a_link_as_its_file(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with held_elsewhere(tmp_path / "a"), pytest.raises(InUseError):
        lock(tmp_path / "b")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_lock__does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="lock"):
        lock(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("number", NO_LOCKS)
def test_lock__warns_once_where_the_file_system_has_none(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_locks(monkeypatch, number)
    with pytest.warns(RuntimeWarning) as warned:
        write_text(tmp_path / "a", "x")
    (warning,) = warned
    assert str(warning.message).startswith(f"{tmp_path}: its file system has no locks: let one ")
    lock(tmp_path)()  # without a second warning
    lock(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_lock__makes_no_folder(tmp_path: Path) -> None:
    for write in (lock, lambda path: write_text(path, "x")):
        with pytest.raises(FileNotFoundError, match="no"):
            write(tmp_path / "no" / "a")
    assert not list(tmp_path.iterdir())
