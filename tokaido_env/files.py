"""Files: written whole or not at all, read without trust, and kept from a second command."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tokaido_env.core.checks import plain, shown

MOST_NESTED = 64  # lists and objects within each other, and parts of a key

LOCK = ".lock"
"""How the name of a lock ends: in a folder, or beside a file."""

_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*)"""
    rf"{{{MOST_NESTED}}}"
)


class InUseError(ValueError):
    """A file or folder that another command works on: the message says what helps."""


# Writing


def write_text(path: Path, text: str) -> None:
    """Write a file: whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a new file that takes the place of `path` if all goes well and else is gone."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.unlink(missing_ok=True)  # it may be a link to another file
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


# Reading


def parse_json(text: str) -> Any:
    """Return what a text says in JSON.

    Raises:
        ValueError: in one short line, if the text is no JSON, is nested too deeply, has a number of
            too many digits, or names a key of an object twice.
    """
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise ValueError(_long_number(text) or str(error)) from None
    if text.count("[") + text.count("{") > MOST_NESTED and _is_deep(data):
        raise ValueError(_too_deep())
    return data


def read_json(path: Path) -> Any:
    """Return what a file says in JSON.

    Raises:
        OSError: if it cannot be read.
        ValueError: as `parse_json`, or if it is no text; the message names the file.
    """
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not a whole JSON file: {error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file says.

    Raises:
        OSError: if it cannot be read.
        ValueError: in one short line that names the file, if it is no text or no TOML, is nested
            too deeply, or has a key of too many parts or a number of too many digits.
    """
    try:
        return _parse_toml(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no TOML, or no UTF-8
        raise ValueError(f"{path}: not a TOML file: {plain(str(error), 200)}") from None


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
        raise ValueError(f"the key {shown(twice)} comes twice")
    return data


def _too_deep() -> str:
    return f"nested too deeply: expected at most {MOST_NESTED} levels"


def _long_number(text: str) -> str:
    """Say where a number has more digits than Python reads; nothing if there is none."""
    most = sys.get_int_max_str_digits()
    found = re.search(rf"(?<![\d_])\d(?:_?\d){{{most}}}", text) if most else None
    if found is None:
        return ""
    line = text.count("\n", 0, found.start()) + 1
    return f"line {line}: a number of more than {most} digits"


def _is_deep(data: Any) -> bool:
    """Return whether lists and objects are nested deeper than `MOST_NESTED`."""
    level = [data]
    for _ in range(MOST_NESTED + 1):
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
    file = path / LOCK if path.is_dir() else path.with_name(path.name + LOCK)
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
