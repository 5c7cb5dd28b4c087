"""A cache of compiled entries on disk, shared by processes and keyed by content.

If several processes need the same entry at once, one compiles it; the others wait and load it.
Files are written completely or not at all. If a file cannot be read or is damaged, the entry is
compiled again, with a warning.

Loading an entry runs its code, and its checksum detects damage, not attacks. So a file is loaded
only if it and its folder belong to the user and no other user may write them. Otherwise compiled
entries stay in memory, and a warning gives the remedy; this also holds for root in a user's home.
On Windows the users' cache folders are separate.

Numba's own cache is not enough (tried with Numba 0.68). With a folder named by a hash of the
sources, four processes compile everything four times, a damaged file fails the first call, and
NUMBA_BOUNDSCHECK gets kernels without bounds checks.

The name of a file holds a fingerprint of the entry as Numba compiles it, in memory: the byte code
of the function and of all functions it calls, their constants, options and versions. Source files
are not read.

The folder is `tokaido_env/kernels` in NUMBA_CACHE_DIR, in XDG_CACHE_HOME or in the user's cache.
Relative paths are ignored: they would depend on the working directory.
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
import tempfile
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
except ImportError:  # Windows: processes do not wait for each other
    fcntl = None  # type: ignore[assignment]  # a module is not optional to mypy

NOTICE_AFTER = 2.0  # seconds of compiling
NOTICE_INTERVAL = 60.0  # seconds between notices

_CHECKSUM = hashlib.sha256().digest_size

# The clean-up of each nested compilation in progress. Numba's compiler lock protects it.
_cleanups: list[ExitStack] = []


def cache_on_disk(dispatcher: Any) -> None:
    """Cache the compiled forms of a Numba dispatcher on disk; read files on its first call."""
    cache = KernelCache(dispatcher)
    compile_now = dispatcher.compile

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock, _no_collection(), ExitStack() as cleanup:
            _cleanups.append(cleanup)
            cleanup.callback(_cleanups.pop)
            return compile_now(signature)

    dispatcher._cache = cache
    dispatcher.compile = compile_once


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause garbage collection: the compiler's many objects stay in use, and a search is slow."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cache_folder() -> Path | None:
    """Return the folder for compiled entries; None if you cannot write there, or others can."""
    try:
        parent = _cache_root() / "tokaido_env"
        folder = parent / "kernels"
        for path in (parent, folder):
            path.mkdir(0o700, parents=True, exist_ok=True)
            _check_owner(path.stat())
    except UntrustedError as error:
        _warn_untrusted(folder, str(error))
        return None
    except (OSError, RuntimeError):  # not writable, or no home folder
        return None
    return folder if os.access(folder, os.W_OK) else None


class UntrustedError(Exception):
    """Another user could have written the files; the message gives the remedy."""


def _check_owner(found: os.stat_result) -> None:
    """Raise `UntrustedError` unless only the user may write a file or folder."""
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid():
        raise UntrustedError("another user owns files there: set XDG_CACHE_HOME to your own folder")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError("other users may write files there: run chmod -R go-w on it")


class KernelCache:
    """The compiled forms of one dispatcher: a file for each signature, named by its fingerprint.

    It replaces Numba's cache, which depends on one source file only, keeps stale entries, and fails
    on a damaged file.

    Args:
        dispatcher: the compiled function.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @property
    def cache_path(self) -> str | None:
        """The cache folder; `dispatcher.stats` reads it."""
        folder = _folder()
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the cached form for a signature; None if this process has to compile it."""
        rtsys.initialize(target)  # enough for loaded code; compiling needs 0.3 s more
        path = self._path(signature)
        loaded = None if path is None else _load(path, target)
        if loaded is None:
            _cleanups[-1].enter_context(COMPILE_NOTICE)
            if path is not None:
                _cleanups[-1].enter_context(_entry_lock(path))
                loaded = _load(path, target)
        return loaded

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled form, unless it refers to memory of this process."""
        portable = all(each.can_cache for each in result.lifted)
        path = self._path(signature)
        if path is None or not portable or result.library.has_dynamic_globals:
            return
        contents = dumps(result._reduce())
        try:
            _write(path, hashlib.sha256(contents).digest() + contents)
        except OSError as error:
            _warn_unwritable(path.parent, error.strerror or str(error))

    def flush(self) -> None:
        """Do nothing: entries are never stale."""

    def _path(self, signature: Any) -> Path | None:
        folder = _folder()
        if folder is None:
            return None
        digits = fingerprint(self._dispatcher, signature)
        function = self._dispatcher.py_func
        module = function.__module__.rpartition(".")[2]
        return None if digits is None else folder / f"{module}.{function.__name__}-{digits}.nbc"


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
    """Return the compiled form in a file; None, with a warning, if it is damaged or untrusted."""
    try:
        with path.open("rb") as file:
            _check_owner(os.fstat(file.fileno()))
            contents = file.read()
        if hashlib.sha256(contents[_CHECKSUM:]).digest() != contents[:_CHECKSUM]:
            path.unlink()
            raise OSError("the file was damaged and has been removed")
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
    """Write a file completely or not at all."""
    # A name that no other process has, of this host or another; only the user may read the file.
    with tempfile.NamedTemporaryFile(
        suffix=".tmp", prefix=path.name, dir=path.parent, delete=False
    ) as file:
        unfinished = Path(file.name)
        try:
            file.write(contents)
            file.flush()
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink()
            raise


@functools.cache
def _warn_untrusted(folder: Path, reason: str) -> None:
    """Warn, once, that the files of a folder are not loaded."""
    _warn(f"{folder}: compiled kernels are code and were not loaded: {reason}")


@functools.cache
def _warn_unwritable(folder: Path, reason: str) -> None:
    """Warn, once, that compiled entries stay in memory."""
    _warn(f"{folder}: cannot write compiled kernels, so each start compiles them again: {reason}")


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


@contextmanager
def _entry_lock(path: Path) -> Iterator[None]:
    """Hold the lock of an entry, so that one process at a time compiles it.

    The lock is on one byte of the folder's lock file for each entry. The operating system releases
    it when the process ends in any way. Where it has no such locks, processes do not wait.
    """
    byte = int(path.stem.rpartition("-")[2][:15], 16)
    try:
        file = _lock_file(path.parent)
        fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
    except (OSError, AttributeError):  # no locks on this disk or on this system
        yield
        return
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


@functools.cache
def _lock_file(folder: Path) -> int:
    """Open a folder's lock file and never close it: closing would release all its locks."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)


class CompileNotice:
    """Prints a notice on a terminal after `NOTICE_AFTER` seconds of compiling in all.

    Notices are at least `NOTICE_INTERVAL` seconds apart.
    """

    def __init__(self) -> None:
        self.muted = False
        self._depth = 0
        self._spent = 0.0  # seconds of compiling since the last notice
        self._last_notice = -inf
        self._began = 0.0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        self._began = time.monotonic()
        if _at_terminal() and not self.muted and self._began - self._last_notice >= NOTICE_INTERVAL:
            self._timer = threading.Timer(max(NOTICE_AFTER - self._spent, 0), self._print)
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

    def _print(self) -> None:
        self._last_notice, self._spent = time.monotonic(), 0.0
        folder = _folder()
        cached = (
            "the result cannot be cached: set XDG_CACHE_HOME to a writable folder"
            if folder is None
            else f"the result is cached in {folder} (python -m tokaido_env warmup does it ahead)"
        )
        print(
            f"tokaido_env: compiling for the first time, about half a minute; {cached}",
            file=sys.stderr,
            flush=True,
        )


COMPILE_NOTICE = CompileNotice()


def _at_terminal() -> bool:
    """Return whether this process prints to a terminal; worker processes never do."""
    return multiprocessing.parent_process() is None and bool(sys.stderr and sys.stderr.isatty())


# Fingerprints of entries

# Settings of Numba that change the compiled code.
_NUMBA_SETTINGS = (
    *("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DEBUG_ARRAY_OPT", "ENABLE_AVX"),
    *("LOOP_VECTORIZE", "SLP_VECTORIZE", "DISABLE_INTEL_SVML", "ERROR_MODEL"),
)
_PLAIN_TYPES = (type(None), type(Ellipsis), bool, int, float, complex, str, bytes)
# Packages that a version number identifies, or that are part of Python; llvmlite's follows Numba's.
_VERSIONED = {"numpy", "numba", "llvmlite", *sys.stdlib_module_names}

Description = tuple[str, list[Any]]
"""A text that describes a value, and the values that it consists of."""


def fingerprint(entry: Any, signature: Any) -> str | None:
    """Return 32 hexadecimal digits that identify a dispatcher's code for a signature.

    None if a part is valid in this process only, such as a pointer: the code must not be cached.
    """
    digest = hashlib.sha256(repr(_environment(entry)).encode())
    seen: dict[int, int] = {}  # values that occur again, or refer to themselves
    waiting = [signature, entry]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            digest.update(f"again {seen[id(value)]};".encode())
            continue
        if isinstance(value, Dispatcher | FunctionType | type):
            seen[id(value)] = len(seen)
        described = _describe(value)
        if described is None:
            return None
        text, parts = described
        digest.update(f"{type(value).__name__} {len(parts)} {len(text)} {text};".encode())
        waiting += reversed(parts)
    return digest.hexdigest()[:32]


def _environment(entry: Any) -> tuple[Any, ...]:
    """Return the versions, the processor and the settings that compiled code depends on."""
    versions = (numba.__version__, np.__version__, sys.version)
    processor = entry.targetctx.codegen().magic_tuple()
    return (versions, processor, [getattr(config, name, None) for name in _NUMBA_SETTINGS])


def _describe(value: Any) -> Description | None:
    """Return a text that describes a value and the values in it; None if there is none."""
    if isinstance(value, _PLAIN_TYPES):
        return repr(value), []
    if isinstance(value, Dispatcher):
        return repr(sorted(value.targetoptions.items())), [value.py_func]
    if isinstance(value, CodeType):
        return _code_text(value), list(value.co_consts)
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
    """Describe functions, classes and modules; those of libraries by their names."""
    if isinstance(value, _Intrinsic):
        return "", [value._defn]
    name = _name(value)
    if name.partition(".")[0] in _VERSIONED:
        return name, []
    if isinstance(value, FunctionType):
        return name, _parts_of_function(value)
    return (name, _parts_of_class(value)) if isinstance(value, type) else None


def _parts_of_function(function: FunctionType) -> list[Any]:
    """Return a function's code and the present values of its globals and closure."""
    scope = function.__globals__
    known = [(name, scope[name]) for name in _names(function.__code__) if name in scope]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__code__, function.__defaults__, known, cells]


@functools.cache
def _names(code: CodeType) -> tuple[str, ...]:
    """Return the sorted names of globals and attributes in a function's code."""
    return tuple(sorted(set(_iter_names(code))))


def _iter_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _iter_names(inner)


@functools.cache
def _code_text(code: CodeType) -> str:
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
    """Return the parts that the name of a Numba type leaves out: the fields of named tuples."""
    named = [kind.instance_class] if hasattr(kind, "instance_class") else []
    return [*getattr(kind, "types", ()), *named]


def _name(value: Any) -> str:
    """Return the full name of a function, class or module; "" for other values."""
    if isinstance(value, type(sys)):
        return value.__name__
    own = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    return f"{getattr(value, '__module__', None) or 'builtins'}.{own}" if own else ""
