"""Files: written whole or not at all, read without trust, and kept from a second command."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tokaido_env.core.arguments import MAX_PATH_CHARS, escape_text, repr_short, str_short

MAX_DEPTH = 64  # lists and objects within each other, and parts of a key

# Far more than any of ours: what a parser makes of so much takes less than 1 GiB.
MAX_JSON_BYTES = 16 << 20  # bytes
MAX_TOML_BYTES = 1 << 20

TEMP_SUFFIX = ".tmp"
"""How the name of a file, or folder, ends that is being written: a kill can leave it behind."""

LOCK_SUFFIX = ".lock"
"""How the name of a lock ends: in a folder, or beside a file."""

_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*)"""
    rf"{{{MAX_DEPTH}}}"
)


class InUseError(ValueError):
    """A file or folder that another command works on: the message says what helps."""


class OutputError(OSError):
    """A path that nothing can be written to: the message says why."""


# Writing


def write_text(path: Path, text: str) -> None:
    """Write a file as `atomic_write` does."""
    with atomic_write(path) as file:
        file.write(text.encode())


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Give a new file that takes the place of `path` if all goes well and else is gone.

    Its contents are on the disk before it has that name, and the name before this returns.

    Raises:
        OutputError: if there is something else than a plain file.
        OSError: naming the file.
    """
    _check_kind(path)
    unfinished = path.with_name(path.name + TEMP_SUFFIX)
    with name_path_in_errors(path):
        unfinished.unlink(missing_ok=True)  # it may be a link to another file
        try:
            with unfinished.open("xb") as file:
                yield file
                flush_to_disk(file)
            unfinished.replace(path)
            flush_folder(path.parent)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


def flush_to_disk(file: IO[bytes] | IO[str]) -> None:
    """See what was written to a file on the disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """See the names in a folder on the disk, where the system lets one."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a network's, a container's
            raise
    finally:
        os.close(handle)


@contextmanager
def name_path_in_errors(path: Path) -> Iterator[None]:
    """Name a file in an OSError that names none, as that of a full disk, or its unfinished form."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(path) + TEMP_SUFFIX):
            error.filename = str(path)
        raise


def check_outputs(
    *files: str | Path | None,
    folder: str | Path | None = None,
    read: Sequence[str | Path | None] = (),
) -> None:
    """Refuse paths at which nothing could be written, before work is done for it.

    Args:
        files: what is to be written; None is nothing.
        folder: one that files are written to; it is made if it is not there.
        read: files that are read: none of them may be replaced.

    Raises:
        OutputError: naming the first that cannot be.
    """
    outputs = [Path(path) for path in files if path is not None]
    for path in outputs:
        _check_place(path)
        _check_kind(path)
    if folder is not None:
        outputs.append(Path(folder))
        _check_place(outputs[-1])
        if outputs[-1].exists() and not outputs[-1].is_dir():
            raise OutputError(f"{folder}: expected a folder, it is none")
    for i, path in enumerate(outputs):
        if any(_same(path, Path(other)) for other in read if other is not None):
            raise OutputError(f"{path}: is read too: expected another file to write")
        if any(_same(path, other) for other in outputs[:i]):
            raise OutputError(f"{path}: each output needs a name of its own")


def _check_place(path: Path) -> None:
    """Refuse a path that nothing can stand at, or that may not be written."""
    above = path.absolute().parent
    if not above.is_dir():
        raise OutputError(f"{path}: there is no folder {above}")
    if not os.access(path if path.exists() else above, os.W_OK):
        raise OutputError(f"{path}: not writable")


def _check_kind(path: Path) -> None:
    """Refuse what is no plain file: it would be gone."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: expected a file or nothing there, it is {kind_of_mode(mode)}")


def kind_of_mode(mode: int) -> str:
    """Say what stands at a path, by the mode that `stat` gives."""
    return _KINDS.get(stat.S_IFMT(mode), "a device")


def file_kind(path: Path) -> str:
    """Say what stands at a path, links followed: NOTHING if nothing does, or can."""
    try:
        return kind_of_mode(path.stat().st_mode)
    except (OSError, ValueError):  # too long, links that lead to each other; no path at all
        return NOTHING


FILE, FOLDER, NOTHING = "a file", "a folder", "nothing"
_KINDS = {
    **{stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: "a link"},
    **{stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"},
}


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


# Reading


def parse_json(text: str) -> Any:
    """Return what a text says in JSON.

    Raises:
        ValueError: in one short line, if the text is no JSON, too long, nested too deeply, has a
            number of too many digits, or names a key of an object twice.
    """
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(_too_large(MAX_JSON_BYTES))
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise ValueError(_long_number(text) or str(error)) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(data):
        raise ValueError(_too_deep())
    return data


def read_json(path: Path) -> Any:
    """Return what a file says in JSON.

    Raises:
        OSError: if it cannot be read.
        ValueError: as `parse_json`, or if it is no text; the message names the file.
    """
    try:
        return parse_json(read_text(path, MAX_JSON_BYTES))
    except ValueError as error:
        raise ValueError(
            f"{str_short(path, MAX_PATH_CHARS)}: not a whole JSON file: {error}"
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file says.

    Raises:
        OSError: if it cannot be read.
        ValueError: in one short line that names the file, if it is no text or no TOML, too large,
            nested too deeply, or has a key of too many parts or a number of too many digits.
    """
    try:
        return _parse_toml(read_text(path, MAX_TOML_BYTES))
    except ValueError as error:  # no TOML, or no UTF-8
        what = escape_text(str(error), 200)
        raise ValueError(f"{str_short(path, MAX_PATH_CHARS)}: not a TOML file: {what}") from None


def read_text(path: Path, most: int) -> str:
    """Return the text of a plain file: a pipe might never end, or never begin.

    Args:
        path: of the file.
        most: bytes of it.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is something else, or larger.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise ValueError(f"expected a file, it is {kind_of_mode(mode)}")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(_too_large(most))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line}: expected UTF-8, got {data[error.start : error.end]!r}"
        ) from None


def _parse_toml(text: str) -> dict[str, Any]:
    if _LONG_KEY.search(text):  # tomllib would take minutes
        raise ValueError(_too_deep())
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    except ValueError as error:
        raise ValueError(_long_number(text) or str(error)) from None
    if _is_deep(data):
        raise ValueError(_too_deep())
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repr_short(twice)} comes twice")
    return data


def _too_large(most: int) -> str:
    return f"too large: expected at most {most >> 20} MiB"


def _too_deep() -> str:
    return f"nested too deeply: expected at most {MAX_DEPTH} levels"


def _long_number(text: str) -> str:
    """Say where a number has more digits than Python reads; nothing if there is none."""
    most = sys.get_int_max_str_digits()
    found = re.search(rf"(?<![\d_])\d(?:_?\d){{{most}}}", text) if most else None
    if found is None:
        return ""
    line = text.count("\n", 0, found.start()) + 1
    return f"line {line}: a number of more than {most} digits"


def _is_deep(data: Any) -> bool:
    """Return whether lists and objects are nested deeper than `MAX_DEPTH`."""
    level = [data]
    for _ in range(MAX_DEPTH + 1):
        nests = [one for one in level if isinstance(one, dict | list)]
        level = [x for one in nests for x in (one.values() if isinstance(one, dict) else one)]
    return bool(level)


# One command at a time

_held: dict[Path, _Held] = {}  # the locks of this process, by file


class _Held:
    """A lock of this process."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.count = 0  # how often it was taken


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep a file or folder for this process: see `lock`."""
    release = lock(path)
    try:
        yield
    finally:
        release()


def lock(path: Path) -> Callable[[], None]:
    """Keep a file, there or not, or a folder for this process, which may do so more than once.

    The operating system holds the lock: it is gone with the process, however that ended.

    Returns:
        What gives it back.

    Raises:
        InUseError: if another process keeps it.
    """
    path = path.resolve()
    file = path / LOCK_SUFFIX if path.is_dir() else path.with_name(path.name + LOCK_SUFFIX)
    if file not in _held:
        _held[file] = _Held(_acquire(file, path))
    held = _held[file]
    held.count += 1

    def release() -> None:
        held.count -= 1
        if not held.count:
            del _held[file]
            _let_go(file, held.handle)

    return release


def _acquire(file: Path, path: Path) -> int:
    """Return an open file that holds the lock: one that still has this name."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(file, flags, 0o666)
        if not _try_to_lock(handle):
            os.close(handle)
            raise InUseError(
                f"{path}: another command is working on it: wait until it has ended, or name "
                "another"
            )
        try:
            if os.path.samestat(os.fstat(handle), file.lstat()):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)  # whoever held it has just removed it


if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _let_go(file: Path, handle: int) -> None:
        os.close(handle)
        with suppress(OSError):  # another has opened it since
            file.unlink()
else:
    import fcntl

    def _try_to_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _let_go(file: Path, handle: int) -> None:
        file.unlink(missing_ok=True)  # while it is still locked: nobody else has it
        os.close(handle)
