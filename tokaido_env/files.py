"""Files: atomic writes, size-limited reads of JSON and TOML, and locks."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from tokaido_env.core.arguments import escape_text, short_path

# Far more than this project's files have. Parsing that much takes less than 1 GiB of memory.
MAX_JSON_BYTES = 16 << 20  # bytes
MAX_TOML_BYTES = 1 << 20

TEMP_SUFFIX = ".tmp"
"""Suffix of a file that is being written; a killed process can leave it behind."""

LOCK_SUFFIX = ".lock"
"""Suffix of a lock: in the locked folder, or next to the locked file."""


class InUseError(ValueError):
    """A file or folder that another process has locked; the message names it."""


class OutputError(OSError):
    """A path that cannot be written; the message gives the reason."""


# Writing


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8, whole or not at all; errors are those of `atomic_write`."""
    with atomic_write(path) as file:
        file.write(text.encode())


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` on success and is removed on an error.

    The contents are on disk before the file gets its name, and the name before this returns. A
    killed process can leave its temporary file behind: the next writer replaces it.

    Raises:
        OutputError: if something other than a regular file is at `path`.
        InUseError: if another process writes the file.
        OSError: naming the file.
    """
    _check_kind(path)
    temporary = path.with_name(path.name + TEMP_SUFFIX)
    with name_path_in_errors(path, temporary), locked(path):
        try:
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as file:
                yield file
                flush_to_disk(file)
            temporary.replace(path)
            flush_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


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
        OutputError: naming the first path that cannot be written, is read, or is given twice.
    """
    outputs = [Path(path) for path in files if path is not None]
    for path in outputs:
        _check_place(path)
        _check_kind(path)
    if folder is not None:
        outputs.append(Path(folder))
        _check_place(outputs[-1])
        if outputs[-1].exists() and not outputs[-1].is_dir():
            raise OutputError(f"{folder}: expected a folder, got a file")
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
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OutputError(f"{path}: expected a regular file or nothing")


def expand_home(path: str) -> str:
    """Return a path with the home folder for a leading `~`, which shells keep within a spec."""
    with suppress(RuntimeError):  # no such user
        return str(Path(path).expanduser()) if path.startswith("~") else path
    return path


def is_file(path: Path) -> bool:
    """Return whether a path is that of a file; False too for a text that is too long for a path."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_same_file(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


# Reading


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, 64 hex digits; raise `OSError` if it is unreadable."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parse_json(text: str, float_hook: Callable[[str], Any] | None = None) -> Any:
    """Parse JSON without NaN and infinities; a byte order mark is skipped.

    Args:
        text: JSON.
        float_hook: parses numbers with a point or an exponent, as `json_number` does.

    Raises:
        ValueError: with a one-line message, for invalid JSON.
    """
    try:
        return msgspec.json.Decoder(float_hook=float_hook).decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_number(text: str) -> int | float:
    """Return the number of a JSON text: "1.0" as the integer 1, as some programs write integers."""
    value = float(text)
    return int(value) if value.is_integer() and str(value) != "-0.0" else value


def read_json(path: Path) -> Any:
    """Read a JSON file; a number such as 1.0 becomes the integer 1 (`json_number`).

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is no JSON or no UTF-8 text; one line that names the file.
    """
    try:
        return parse_json(read_text(path, MAX_JSON_BYTES), json_number)
    except ValueError as error:
        raise ValueError(f"{short_path(path)}: not a whole JSON file: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as dicts, lists and Python's plain values.

    Raises:
        OSError: if the file cannot be read.
        ValueError: with a one-line message that names the file, for invalid UTF-8 or TOML, or a
            file that is too large.
    """
    try:
        return tomllib.loads(read_text(path, MAX_TOML_BYTES))
    except (ValueError, RecursionError) as error:
        reason = escape_text(str(error), 200)
        raise ValueError(f"{short_path(path)}: not a TOML file: {reason}") from None


def read_text(path: Path, max_bytes: int) -> str:
    """Read a file as UTF-8 text, without a byte order mark.

    Args:
        path: path of the file.
        max_bytes: largest accepted size.

    Raises:
        OSError: if the file cannot be read.
        ValueError: for a file that is too large, or invalid UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"too large: expected at most {max_bytes >> 20} MiB")
    return data.decode("utf-8-sig")


# Locks


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file or folder; see `lock`."""
    release = lock(path)
    try:
        yield
    finally:
        release()


# Errors of file systems without locks, as of clusters and containers; 524 is ENOTSUPP of Linux.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EPERM, errno.EIO, errno.EINVAL, 524)


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
        return lambda: None

    def release() -> None:
        if held.lock_counter == 1:
            with suppress(OSError):  # Windows removes no open file
                file.unlink()  # still locked, so no other process holds it
        held.release()

    return release
