"""A cache of compiled entries on disk, one file for each entry and signature.

The name of a file holds a hash of what the compiled code depends on: the sources of the kernel
packages and of the entry's own file, the signature, versions, the processor and settings. Kernels
use names of the kernel packages and of their own file only (`test_kernel_cache.py`). An entry of
`core` depends on `core` alone, so that an edit of an agent compiles agents only.

If several processes need the same entry at once, one compiles it; the others wait and load it.
A damaged file is compiled again. Without a writable folder, entries stay in memory.

Numba's own cache is not enough (Numba 0.68). It depends on the file of the entry, not on those of
the kernels inlined in it, has one key for the serial and the parallel form of a function, and fails
on damaged files.

The folder is `tokaido_env/kernels` in NUMBA_CACHE_DIR, in XDG_CACHE_HOME or in `~/.cache`.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import compiler, config
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

try:
    import fcntl
except ImportError:  # Windows: processes do not wait for each other
    fcntl = None  # type: ignore[assignment]  # a module is not optional to mypy

KERNEL_PACKAGES = ("core", "features", "agents")
"""The packages with kernels that other files inline; each may use those before it."""

_PACKAGE = Path(__file__).resolve().parents[1]
_STARTED = time.time()
_MAX_FILES = 1000  # about 15 versions of all entries
_CHECKSUM = hashlib.sha256().digest_size

# Settings of Numba that change the compiled code.
_SETTINGS = (
    *("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DEBUG_ARRAY_OPT", "ENABLE_AVX"),
    *("LOOP_VECTORIZE", "SLP_VECTORIZE", "DISABLE_INTEL_SVML", "ERROR_MODEL"),
)


def cache_on_disk(dispatcher: Any) -> None:
    """Cache the compiled forms of a Numba function on disk, one file per signature.

    The first call with a signature loads its file. Without a file it compiles, and stores the
    result; other processes that need the same kernel wait meanwhile.

    Args:
        dispatcher: a function that `numba.njit` has made, changed in place.
    """
    cache = KernelCache(dispatcher)
    compile_now = dispatcher.compile

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock:
            path = cache.path(signature)
            if path is not None and path.exists():
                return compile_now(signature)  # loads the file
            with _compiling(cache.name):
                return compile_now(signature)

    dispatcher._cache = cache
    dispatcher.compile = compile_once


def cache_folder() -> Path | None:
    """Return the folder of compiled entries; None if there is none and it cannot be made."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with suppress(OSError, RuntimeError):  # no home folder
        folder = Path(chosen).expanduser() / "tokaido_env" / "kernels"
        folder.mkdir(0o700, parents=True, exist_ok=True)
        return folder
    return None


class KernelCache:
    """The compiled forms of one dispatcher on disk, as Numba's dispatchers use a cache.

    Args:
        dispatcher: the compiled function.

    Attributes:
        name: of the function, with its module.
    """

    def __init__(self, dispatcher: Any) -> None:
        function = dispatcher.py_func
        self._dispatcher = dispatcher
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @property
    def cache_path(self) -> str:
        """The cache folder; `dispatcher.stats` reads it."""
        return str(_folder())

    def path(self, signature: Any) -> Path | None:
        """Return the file of a signature's compiled form; None if it has to stay in memory."""
        function, folder = self._dispatcher.py_func, _folder()
        sources = _hash_sources(Path(function.__code__.co_filename))
        # A function in a function depends on values that no source shows.
        if folder is None or sources is None or function.__closure__:
            return None
        options = sorted(self._dispatcher.targetoptions.items())
        processor = self._dispatcher.targetctx.codegen().magic_tuple()
        line = function.__code__.co_firstlineno
        settings = [getattr(config, name, None) for name in _SETTINGS]
        versions = (numba.__version__, np.__version__, sys.version)
        parts = sources, line, signature, options, processor, settings, versions
        digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
        return folder / f"{self.name}-{digest}.nbc"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the cached form for a signature; None if this process has to compile it."""
        rtsys.initialize(target)  # enough for loaded code; compiling needs 0.3 s more
        path = self.path(signature)
        if path is None:
            return None
        with suppress(OSError):
            contents = path.read_bytes()
            if hashlib.sha256(contents[_CHECKSUM:]).digest() == contents[:_CHECKSUM]:
                return compiler.CompileResult._rebuild(target, *pickle.loads(contents[_CHECKSUM:]))
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled form, unless it refers to memory of this process."""
        path = self.path(signature)
        if path is None or result.library.has_dynamic_globals:
            return
        contents = dumps(result._reduce())
        unfinished = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            unfinished.write_bytes(hashlib.sha256(contents).digest() + contents)
            unfinished.replace(path)
            by_age = sorted(path.parent.glob("*.nbc"), key=os.path.getmtime)
            for old in by_age[:-_MAX_FILES]:
                old.unlink()


@functools.cache
def _folder() -> Path | None:
    return cache_folder()


@functools.cache
def _hash_sources(file: Path) -> str | None:
    """Return a hash of the sources that the entries of a file depend on.

    None if there is no such file, or if a source has changed since this process started: then it is
    unknown which version was imported.
    """
    sources = [file]
    package = file.parent.name if file.parent.parent == _PACKAGE else ""
    last = KERNEL_PACKAGES.index(package) + 1 if package in KERNEL_PACKAGES else None
    for each in KERNEL_PACKAGES[:last]:
        sources += sorted((_PACKAGE / each).glob("*.py"))
    digest = hashlib.sha256()
    try:
        # Copies may keep an old time of modification, but not that of their arrival.
        if max(max(one.st_mtime, one.st_ctime) for one in map(os.stat, sources)) > _STARTED:
            return None
        for path in sources:
            digest.update(path.read_bytes())
    except OSError:
        return None
    return digest.hexdigest()


@contextmanager
def _compiling(name: str) -> Iterator[None]:
    """Let one process at a time compile an entry, where the folder can be written.

    Garbage collection pauses: the compiler's many objects stay in use, and a search is slow.
    """
    _print_notice()
    collects = gc.isenabled()
    gc.disable()
    try:
        with _locked(name):
            yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold the lock file of an entry; the system releases it when the process ends in any way."""
    with ExitStack() as cleanup:
        with suppress(OSError, AttributeError):  # read only, a disk without locks, or Windows
            path = (_folder() or Path(os.devnull)) / f"{name}.lock"
            file = cleanup.enter_context(path.open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
            cleanup.callback(fcntl.flock, file, fcntl.LOCK_UN)  # forked processes hold the file too
        yield


@functools.cache
def _print_notice() -> None:
    """Print once, if this process prints to a terminal, that compiling takes time."""
    if multiprocessing.parent_process() is None and sys.stderr and sys.stderr.isatty():
        note = "`tokaido warmup` compiles everything ahead"
        if _folder() is None:
            note = "set XDG_CACHE_HOME to a writable folder to do it only once"
        print(
            f"tokaido_env: compiling for the first time, about half a minute; {note}",
            file=sys.stderr,
            flush=True,
        )
