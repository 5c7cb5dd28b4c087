"""Compiled entries on disk: kept by what they are made of, whole or not at all, made once.

Of several processes that need the same entry at once, one compiles it, the others wait and load it.
What the disk refuses, or has damaged, is compiled again and told.
"""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from pathlib import Path
from typing import Any

from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from tokaido_env.core.fingerprint import fingerprint

try:
    import fcntl
except ImportError:  # Windows: who is late compiles too
    fcntl = None  # type: ignore[assignment]  # a module is not optional to mypy

SLOW = 2.0  # seconds of compiling, then it is told
PAUSE = 60.0  # seconds until it may be told again

_CHECKSUM = hashlib.sha256().digest_size

# The compilations under way, one within another: what each has to end. Numba's lock guards it.
_ends: list[ExitStack] = []


def keep(dispatcher: Any) -> None:
    """Give a dispatcher of Numba a place on disk; nothing is read before its first call."""
    cache = KernelCache(dispatcher)
    compile_now = dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        with global_compiler_lock, ExitStack() as end:
            _ends.append(end)
            end.callback(_ends.pop)
            return compile_now(signature)

    dispatcher._cache = cache
    dispatcher.compile = compile_in_turn


def cache_folder() -> Path | None:
    """Return the folder for compiled entries, None if it cannot be written."""
    try:
        folder = _cache_root() / "tokaido_env" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # nothing can be written; there is no home
        return None
    return folder if os.access(folder, os.W_OK) else None


class KernelCache:
    """The place of one dispatcher's compiled forms: a file a signature, named by a fingerprint.

    It stands in for the cache of Numba, which looks at one source file only, keeps what an edit
    and its undoing leave behind, and fails on a damaged file.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @property
    def cache_path(self) -> str | None:
        """The folder, for `dispatcher.stats`."""
        folder = _folder()
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what is kept of a signature; None if it is for this process to compile."""
        target.refresh()
        path = self._path(signature)
        found = None if path is None else _load(path, target)
        if found is None:
            _ends[-1].enter_context(NOTICE)
            if path is not None:
                _ends[-1].enter_context(_turn(path))
                found = _load(path, target)
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled, if it means something to another process."""
        lasting = all(each.can_cache for each in result.lifted)
        path = self._path(signature)
        if path is None or not lasting or result.library.has_dynamic_globals:
            return
        contents = dumps(result._reduce())
        try:
            _write(path, hashlib.sha256(contents).digest() + contents)
        except OSError as error:
            _warn_unkept(path.parent, error.strerror or str(error))

    def flush(self) -> None:
        """Remove nothing: what is kept is never stale."""

    def _path(self, signature: Any) -> Path | None:
        folder = _folder()
        if folder is None:
            return None
        known_as = fingerprint(self._dispatcher, signature)
        function = self._dispatcher.py_func
        room = function.__module__.rpartition(".")[2]
        return None if known_as is None else folder / f"{room}.{function.__name__}-{known_as}.nbc"


@functools.cache
def _folder() -> Path | None:
    return cache_folder()


def _cache_root() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()))
    return Path.home() / ".cache"


def _load(path: Path, target: Any) -> Any:
    """Return what a file keeps, None if there is none or it is damaged, which is told."""
    try:
        contents = path.read_bytes()
        if hashlib.sha256(contents[_CHECKSUM:]).digest() != contents[:_CHECKSUM]:
            path.unlink()
            raise OSError("it is damaged and has been removed")
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"{path}: cannot read a compiled kernel: {error.strerror or error}")
        return None
    return compiler.CompileResult._rebuild(target, *pickle.loads(contents[_CHECKSUM:]))


def _write(path: Path, contents: bytes) -> None:
    """Write a file: whole or not at all."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_bytes(contents)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@functools.cache
def _warn_unkept(folder: Path, reason: str) -> None:
    """Warn, once, that what is compiled stays in memory."""
    _warn(f"{folder}: cannot keep compiled kernels, which every start compiles anew: {reason}")


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait until no other process compiles what this file is to keep, and be the one.

    The operating system holds the lock and lets go when its holder ends, however it does: one byte
    of the folder's lock file for each entry. Where it has no such locks, nobody waits.
    """
    place = int(path.stem.rpartition("-")[2][:15], 16)
    try:
        file = _lock_file(path.parent)
        fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
    except (OSError, AttributeError):  # no locks on this disk, or on this system
        yield
        return
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


@functools.cache
def _lock_file(folder: Path) -> int:
    """Open a folder's lock file for good: closing it anywhere would end all locks on it."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)


class Notice:
    """Says on a terminal that compiling takes a while: after `SLOW` seconds in all, then rarely."""

    def __init__(self) -> None:
        self.muted = False
        self._depth = 0
        self._spent = 0.0  # seconds of compiling since it was told
        self._told = -inf
        self._began = 0.0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        self._began = time.monotonic()
        if _at_terminal() and not self.muted and self._began - self._told >= PAUSE:
            self._timer = threading.Timer(max(SLOW - self._spent, 0), self._tell)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth > 0:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._spent += time.monotonic() - self._began

    def _tell(self) -> None:
        self._told, self._spent = time.monotonic(), 0.0
        folder = _folder()
        kept = (
            "it cannot be kept: XDG_CACHE_HOME names a folder that can be written"
            if folder is None
            else f"it is kept in {folder} (python -m tokaido_env warmup does it ahead)"
        )
        print(
            f"tokaido_env: compiling for the first time, about half a minute; {kept}",
            file=sys.stderr,
            flush=True,
        )


NOTICE = Notice()


def _at_terminal() -> bool:
    """Return whether somebody reads what this process says; workers leave it to their parent."""
    return multiprocessing.parent_process() is None and bool(sys.stderr and sys.stderr.isatty())
