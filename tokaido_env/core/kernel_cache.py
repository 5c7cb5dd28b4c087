"""Compiled entries on disk: kept by what they are made of, whole or not at all, made once.

Of several processes that need the same entry at once, one compiles it, the others wait and load it.
What the disk refuses, or has damaged, is compiled again and told.

An entry is code, which runs as it is loaded, and its checksum keeps out damage, not people. So it
is read only where folder and file are the user's own and nobody else may write them, as they are
made here. Others are left alone, by root in somebody's home too: what is compiled stays in memory,
and a warning says what helps. Windows keeps the caches of users apart by itself.

Numba's own cache does not do: with a folder named by a hash of the sources, four processes compile
everything four times, a damaged file fails the first call, and NUMBA_BOUNDSCHECK gets kernels
without bounds checks (tried with Numba 0.68).

A file's name is a fingerprint of what the entry is made of, read from what Numba compiles, in
memory: the byte code of the function and of all that it calls, their constants, options and
versions. What lies in a source file by then has no part in it.

The folder is `tokaido_env/kernels` in NUMBA_CACHE_DIR, in XDG_CACHE_HOME or in the user's cache. A
relative one does not count: it would be a part of whatever folder a command runs in.
"""

from __future__ import annotations

import enum
import functools
import gc
import hashlib
import multiprocessing
import os
import pickle
import stat
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import compiler, config, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

try:
    import fcntl
except ImportError:  # Windows: who is late compiles too
    fcntl = None  # type: ignore[assignment]  # a module is not optional to mypy

SLOW = 2.0  # seconds of compiling, then it is told
PAUSE = 60.0  # seconds until it may be told again

_CHECKSUM = hashlib.sha256().digest_size

# The compilations under way, one within another: what each has to end. Numba's lock guards it.
_ends: list[ExitStack] = []


def cache_on_disk(dispatcher: Any) -> None:
    """Give a dispatcher of Numba a place on disk; nothing is read before its first call."""
    cache = KernelCache(dispatcher)
    compile_now = dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        with global_compiler_lock, _no_collection(), ExitStack() as end:
            _ends.append(end)
            end.callback(_ends.pop)
            return compile_now(signature)

    dispatcher._cache = cache
    dispatcher.compile = compile_in_turn


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python's collector from searching what the compiler makes, which all stays in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cache_folder() -> Path | None:
    """Return the folder for compiled entries; None if it cannot be written, or others may too."""
    try:
        outer = _cache_root() / "tokaido_env"
        folder = outer / "kernels"
        for part in (outer, folder):
            part.mkdir(0o700, parents=True, exist_ok=True)
            _check_own(part.stat())
    except UntrustedError as error:
        _warn_untrusted(folder, str(error))
        return None
    except (OSError, RuntimeError):  # nothing can be written; there is no home
        return None
    return folder if os.access(folder, os.W_OK) else None


class UntrustedError(Exception):
    """Files that somebody else could have written: the message says what helps."""


def _check_own(found: os.stat_result) -> None:
    """Raise `UntrustedError` unless a file or folder is the user's and nobody else may write it."""
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid():
        raise UntrustedError("some are another user's: XDG_CACHE_HOME names a folder of your own")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError("other users may write some: chmod -R go-w takes that from them")


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
        rtsys.initialize(target)  # loaded code needs no more; what compiling needs takes 0.3 s
        path = self._path(signature)
        found = None if path is None else _load(path, target)
        if found is None:
            _ends[-1].enter_context(COMPILE_NOTICE)
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
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        chosen = Path(os.environ.get(name, ""))
        if chosen.is_absolute():
            return chosen
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()))
    return Path.home() / ".cache"


def _load(path: Path, target: Any) -> Any:
    """Return what a file keeps, None if there is none or it is damaged, which is told."""
    try:
        with path.open("rb") as file:
            _check_own(os.fstat(file.fileno()))
            contents = file.read()
        if hashlib.sha256(contents[_CHECKSUM:]).digest() != contents[:_CHECKSUM]:
            path.unlink()
            raise OSError("it is damaged and has been removed")
    except FileNotFoundError:
        return None
    except UntrustedError as error:
        _warn_untrusted(path.parent, str(error))
        return None
    except OSError as error:
        _warn(f"{path}: cannot read a compiled kernel: {error.strerror or error}")
        return None
    return compiler.CompileResult._rebuild(target, *pickle.loads(contents[_CHECKSUM:]))


def _write(path: Path, contents: bytes) -> None:
    """Write a file: whole or not at all."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.unlink(missing_ok=True)
    try:
        with open(unfinished, "xb", opener=_for_us) as file:
            file.write(contents)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _for_us(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@functools.cache
def _warn_untrusted(folder: Path, reason: str) -> None:
    """Warn, once, that what lies in a folder is not loaded."""
    _warn(f"{folder}: does not load compiled kernels, which are code: {reason}")


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
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)


class CompileNotice:
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


COMPILE_NOTICE = CompileNotice()


def _at_terminal() -> bool:
    """Return whether somebody reads what this process says; workers leave it to their parent."""
    return multiprocessing.parent_process() is None and bool(sys.stderr and sys.stderr.isatty())


# What an entry is made of

# Settings of Numba that change what it compiles.
_SETTINGS = (
    *("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DEBUG_ARRAY_OPT", "ENABLE_AVX"),
    *("LOOP_VECTORIZE", "SLP_VECTORIZE", "DISABLE_INTEL_SVML", "ERROR_MODEL"),
)
_PLAIN = (type(None), type(Ellipsis), bool, int, float, complex, str, bytes)
# Code that a version number tells, or that is part of Python; that of llvmlite goes with Numba's.
_VERSIONED = {"numpy", "numba", "llvmlite", *sys.stdlib_module_names}

Description = tuple[str, list[Any]]
"""A value in words, and other values that it is made of."""


def fingerprint(entry: Any, signature: Any) -> str | None:
    """Return 32 hexadecimal digits of what a dispatcher compiles for a signature.

    None if something in it has no lasting description, such as a pointer: then nothing may be kept.
    """
    digest = hashlib.sha256(repr(_surroundings(entry)).encode())
    met: dict[int, int] = {}  # what is mentioned twice, or calls itself
    waiting = [signature, entry]
    while waiting:
        value = waiting.pop()
        if id(value) in met:
            digest.update(f"again {met[id(value)]};".encode())
            continue
        if isinstance(value, Dispatcher | FunctionType | type):
            met[id(value)] = len(met)
        described = _describe(value)
        if described is None:
            return None
        words, parts = described
        digest.update(f"{type(value).__name__} {len(parts)} {len(words)} {words};".encode())
        waiting += reversed(parts)
    return digest.hexdigest()[:32]


def _surroundings(entry: Any) -> tuple[Any, ...]:
    """Return what code depends on beside itself: versions, the processor, settings."""
    versions = (numba.__version__, np.__version__, sys.version)
    processor = entry.targetctx.codegen().magic_tuple()
    return (versions, processor, [getattr(config, name, None) for name in _SETTINGS])


def _describe(value: Any) -> Description | None:
    """Return a value in words and what it is made of, None if it cannot be told."""
    if isinstance(value, _PLAIN):
        return repr(value), []
    if isinstance(value, Dispatcher):
        return repr(sorted(value.targetoptions.items())), [value.py_func]
    if isinstance(value, CodeType):
        return _words_of_code(value), list(value.co_consts)
    if isinstance(value, types.Type):
        return repr(value), _parts_of_type(value)
    if isinstance(value, tuple | list):
        return "", [type(value), *value] if hasattr(value, "_fields") else list(value)
    if isinstance(value, frozenset):
        return "", sorted(value, key=repr)
    if isinstance(value, slice):  # a constant since Python 3.14
        return "", [value.start, value.stop, value.step]
    if isinstance(value, np.ndarray | np.generic | np.dtype):
        return _describe_numpy(value)
    return _describe_named(value)


def _describe_named(value: Any) -> Description | None:
    """Describe functions, classes and modules, those of libraries by their names."""
    if isinstance(value, _Intrinsic):
        return "", [value._defn]
    name = _name(value)
    if name.partition(".")[0] in _VERSIONED:
        return name, []
    if isinstance(value, FunctionType):
        return name, _parts_of_function(value)
    return (name, _parts_of_class(value)) if isinstance(value, type) else None


def _parts_of_function(function: FunctionType) -> list[Any]:
    """Return its code and the values that its names and closure have now."""
    scope = function.__globals__
    known = [(name, scope[name]) for name in _names(function.__code__) if name in scope]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__code__, function.__defaults__, known, cells]


@functools.cache
def _names(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals, and of attributes, in a function's code, sorted."""
    return tuple(sorted(set(_each_name(code))))


def _each_name(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _each_name(inner)


@functools.cache
def _words_of_code(code: CodeType) -> str:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return repr((code.co_code, code.co_argcount, code.co_flags, names))


def _describe_numpy(value: Any) -> Description | None:
    if isinstance(value, np.dtype):
        return repr((value.str, value.fields, value.subdtype)), []
    if value.dtype.hasobject:
        return None
    contents = hashlib.sha256(value.tobytes()).hexdigest()
    return f"{value.shape} {value.strides} {contents}", [value.dtype]


def _parts_of_class(kind: type) -> list[Any]:
    if issubclass(kind, enum.Enum):
        return [(member.name, member.value) for member in kind]
    return list(getattr(kind, "_fields", ()))


def _parts_of_type(kind: Any) -> list[Any]:
    """Return what the name of a type of Numba leaves out: the fields of named tuples."""
    named = [kind.instance_class] if hasattr(kind, "instance_class") else []
    return [*getattr(kind, "types", ()), *named]


def _name(value: Any) -> str:
    """Return the full name of a function, class or module, empty for anything else."""
    if isinstance(value, type(sys)):
        return value.__name__
    own = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    return f"{getattr(value, '__module__', None) or 'builtins'}.{own}" if own else ""
