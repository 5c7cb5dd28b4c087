"""Files: atomic writes, size-limited reads of untrusted JSON and TOML, and locks."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import IO, Any

from tokaido_env.core.arguments import escape_text, repr_short, short_path

MAX_DEPTH = 64  # nested lists and objects, and parts of a TOML key

# Far more than this project's files have. Parsing that much takes less than 1 GiB of memory.
MAX_JSON_BYTES = 16 << 20  # bytes
MAX_TOML_BYTES = 1 << 20

TEMP_SUFFIX = r"\.[0-9a-f]{16}\.tmp"
"""Pattern of the suffix of a file that is being written; a killed process can leave it behind."""

LOCK_SUFFIX = ".lock"
"""Suffix of a lock: in the locked folder, or next to the locked file."""

_DAY = 86_400  # seconds

_SURROGATE = re.compile("[\ud800-\udfff]")

_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*)"""
    rf"{{{MAX_DEPTH}}}"
)


class InUseError(ValueError):
    """A file or folder that another process has locked."""


class OutputError(OSError):
    """A path that cannot be written; the message gives the reason."""


# Writing


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; see `atomic_write`."""
    with atomic_write(path) as file:
        file.write(text.encode())


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` on success and is removed on an error.

    The contents are on disk before the file gets its name, and the name before this returns. Each
    writer has its own temporary file, because some file systems have no locks. The next writer
    deletes those of killed processes; without locks, those a day old.

    Raises:
        OutputError: if something other than a regular file is at `path`.
        InUseError: if another process writes the file.
        OSError: naming the file.
    """
    _check_kind(path)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    with name_path_in_errors(path, temporary), locked(path) as is_locked:
        _writing.add(temporary.name)
        try:
            _delete_unfinished(path, before=inf if is_locked else time.time() - _DAY)
            with temporary.open("xb") as file:
                yield file
                flush_to_disk(file)
            temporary.replace(path)
            flush_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            _writing.discard(temporary.name)


_writing: set[str] = set()  # names of temporary files of this process


def _delete_unfinished(path: Path, before: float) -> None:
    """Delete the temporary files of other processes for `path` last written before a time."""
    pattern = re.compile(re.escape(path.name) + TEMP_SUFFIX)
    for found in [one for one in path.parent.iterdir() if pattern.fullmatch(one.name)]:
        with suppress(OSError):  # another user's, or gone
            if found.name not in _writing and found.lstat().st_mtime < before:
                found.unlink()


def flush_to_disk(file: IO[bytes] | IO[str]) -> None:
    """Flush a file to disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system supports it."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # network and container file systems
            raise
    finally:
        os.close(handle)


@contextmanager
def name_path_in_errors(path: Path, *temporaries: Path) -> Iterator[None]:
    """Name `path` in an `OSError` that names no file, one of its temporary files, or its lock."""
    try:
        yield
    except OSError as error:
        own = None, *map(str, temporaries), f"{path.resolve()}{LOCK_SUFFIX}"
        if error.errno is not None and error.filename in own:
            error.filename = str(path)
        raise


def check_outputs(
    *files: str | Path | None,
    folder: str | Path | None = None,
    read: Sequence[str | Path | None] = (),
) -> None:
    """Check paths of outputs before any work is done for them.

    Args:
        files: paths to write; None is skipped.
        folder: a folder to write to; it may not exist yet.
        read: paths that are read and must not be overwritten.

    Raises:
        OutputError: naming the first path that cannot be written.
    """
    outputs = [Path(path) for path in files if path is not None]
    for path in outputs:
        _check_place(path)
        _check_kind(path)
    if folder is not None:
        outputs.append(Path(folder))
        _check_place(outputs[-1])
        if outputs[-1].exists() and not outputs[-1].is_dir():
            raise OutputError(f"{folder}: expected a folder, got {file_kind(outputs[-1])}")
    for i, path in enumerate(outputs):
        if any(_is_same_file(path, Path(other)) for other in read if other is not None):
            raise OutputError(f"{path}: is read too: expected another file to write")
        if any(_is_same_file(path, other) for other in outputs[:i]):
            raise OutputError(f"{path}: expected a different file for each output")


def _check_place(path: Path) -> None:
    """Refuse a path in a missing folder or without write permission."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise OutputError(f"{path}: there is no folder {parent}")
    if not os.access(path if path.exists() else parent, os.W_OK):
        raise OutputError(f"{path}: not writable")


def _check_kind(path: Path) -> None:
    """Refuse anything but a regular file, because writing would replace it."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: expected a file or nothing, got {kind_of_mode(mode)}")


def kind_of_mode(mode: int) -> str:
    """Return the kind of file of a mode from `stat`, such as "a folder"."""
    return _KINDS.get(stat.S_IFMT(mode), "a device")


def file_kind(path: Path) -> str:
    """Return the kind of file at a path, following links; NOTHING for a missing path."""
    try:
        return kind_of_mode(path.stat().st_mode)
    except (OSError, ValueError):  # too long, a cycle of links, or a null character
        return NOTHING


def expand_home(path: str) -> str:
    """Return a path with the home folder for a leading `~`, which shells keep within a spec."""
    with suppress(RuntimeError):  # no such user
        return str(Path(path).expanduser()) if path.startswith("~") else path
    return path


FILE, FOLDER, NOTHING, PIPE = "a file", "a folder", "nothing", "a pipe"
_KINDS = {
    **{stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: "a link"},
    **{stat.S_IFIFO: PIPE, stat.S_IFSOCK: "a socket"},
}


def _is_same_file(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


# Reading


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parse_json(text: str, parse_float: Callable[[str], Any] = float) -> Any:
    r"""Parse JSON of valid Unicode with limits on length, depth and digits.

    A byte order mark is skipped. JSON can name lone surrogates, such as "\ud800", which no text in
    UTF-8 can have: they are refused, because nothing could print or write them.

    Args:
        text: JSON.
        parse_float: parses numbers with a point or an exponent, as `json_number` does.

    Raises:
        ValueError: with a one-line message, for invalid JSON, a text beyond a limit, a repeated key
            in an object, or a lone surrogate, with its place.
    """
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(_too_large(MAX_JSON_BYTES))
    try:
        data = json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=_dict_of_unique_keys,
            parse_float=parse_float,
        )
    except RecursionError:
        raise ValueError(_too_deep()) from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise ValueError(_long_number(text) or str(error)) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(data):
        raise ValueError(_too_deep())
    if not text.isascii() or "\\u" in text:
        _check_unicode(data, "")
    return data


def _check_unicode(data: Any, place: str) -> None:
    """Refuse a text with a lone surrogate, and name its place."""
    if isinstance(data, str) and _SURROGATE.search(data):
        expected = f"expected a text of valid Unicode, got {repr_short(data)}"
        raise ValueError(f"{escape_text(place)}: {expected}" if place else expected)
    if isinstance(data, list):
        for i, value in enumerate(data):
            _check_unicode(value, f"{place}[{i}]")
    if isinstance(data, dict):
        for key, value in data.items():
            _check_unicode(key, place)
            _check_unicode(value, f"{place}.{key}" if place else key)


def json_number(text: str) -> int | float:
    """Return a number: 1.0 as the integer 1, because programs write integers as 1.0 too."""
    value = float(text)
    return int(value) if value.is_integer() and str(value) != "-0.0" else value


def read_json(path: Path) -> Any:
    """Read a JSON file; numbers as `json_number` returns them.

    Raises:
        OSError: if the file cannot be read.
        ValueError: as for `parse_json`, or if it is no UTF-8 text; the message names the file.
    """
    try:
        return parse_json(read_text(path, MAX_JSON_BYTES), json_number)
    except ValueError as error:
        raise ValueError(f"{short_path(path)}: not a whole JSON file: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: with a one-line message that names the file, for invalid UTF-8 or TOML, or a
            file beyond a limit on size, depth or digits.
    """
    try:
        return _parse_toml(read_text(path, MAX_TOML_BYTES))
    except ValueError as error:
        reason = escape_text(str(error), 200)
        raise ValueError(f"{short_path(path)}: not a TOML file: {reason}") from None


def read_text(path: Path, max_bytes: int) -> str:
    """Read a regular file as UTF-8 text, without a byte order mark.

    A pipe is refused, because reading it could block.

    Args:
        path: path of the file.
        max_bytes: largest accepted size.

    Raises:
        OSError: if the file cannot be read.
        ValueError: for anything but a regular file, a file that is too large, or invalid UTF-8.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise ValueError(f"expected a file, got {kind_of_mode(mode)}")
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(_too_large(max_bytes))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        got = error.object[error.start : error.end]
        raise ValueError(f"line {line}: expected UTF-8, got {got!r}") from None


def _parse_toml(text: str) -> dict[str, Any]:
    if _LONG_KEY.search(text):  # tomllib would need minutes
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


def _dict_of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected each key once, got {repr_short(repeated)} twice")
    return data


def _too_large(max_bytes: int) -> str:
    return f"too large: expected at most {max_bytes >> 20} MiB"


def _too_deep() -> str:
    return f"nested too deeply: expected at most {MAX_DEPTH} levels"


def _long_number(text: str) -> str:
    """Return a message about a number with more digits than Python reads, or an empty string."""
    most = sys.get_int_max_str_digits()
    found = re.search(rf"(?<![\d_])\d(?:_?\d){{{most}}}", text) if most else None
    if found is None:
        return ""
    line = text.count("\n", 0, found.start()) + 1
    return f"line {line}: expected numbers of at most {most} digits"


def _is_deep(data: Any) -> bool:
    """Return whether lists and objects are nested deeper than `MAX_DEPTH`."""
    level = [data]
    for _ in range(MAX_DEPTH + 1):
        nested = [value for value in level if isinstance(value, dict | list)]
        level = [
            x for value in nested for x in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


# Locks


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock on a file or folder; see `lock`. Yield whether the file system has locks."""
    release = lock(path)
    try:
        yield release is not _release_nothing
    finally:
        release()


# Errors of file systems without locks, as of clusters and containers; 524 is ENOTSUPP of Linux.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EPERM, errno.EIO, errno.EINVAL, 524)


def _release_nothing() -> None:
    """Release no lock, of a file system without locks."""


@functools.cache
def _warn_no_locks(folder: Path) -> None:
    """Warn once that files of a folder are written without a lock."""
    text = f"{folder}: its file system has no locks: let one command at a time write there"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def lock(path: Path) -> Callable[[], None]:
    """Lock a file or folder for this process, which may lock it again.

    The operating system releases the lock when the process ends for any reason. On a file system
    without locks there is none, and a warning.

    Args:
        path: a folder, or a file, which may not exist yet.

    Returns:
        A function that releases the lock; the lock also ends with this function.

    Raises:
        InUseError: if another process holds the lock.
        FileNotFoundError: if the folder of the file does not exist.
    """
    from filelock import FileLock, Timeout

    path = path.resolve()
    file = path / LOCK_SUFFIX if path.is_dir() else path.with_name(path.name + LOCK_SUFFIX)
    if not file.parent.is_dir():  # filelock would create it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    held = FileLock(file, 0, thread_local=False, is_singleton=True, fallback_to_soft=False)
    try:
        held.acquire()
    except Timeout:
        raise InUseError(
            f"{path}: another command is working on it: wait for that command, or choose "
            "another path"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        file.unlink(missing_ok=True)
        _warn_no_locks(path if path.is_dir() else path.parent)
        return _release_nothing

    def release() -> None:
        if held.lock_counter == 1:
            with suppress(OSError):  # Windows removes no open file
                file.unlink()  # still locked, so no other process holds it
        held.release()

    return release
