"""The one compile decorator: scalar kernels, cached entries, serial and parallel forms.

`kernel` marks a scalar function that other kernels call, `subroutine` a long one, `allocator` one
that makes arrays. `entry` marks a function that Python calls: it is compiled on its first call and
kept on disk. `parallel` gives an entry both forms; `take` deals out work to its threads, and
`rows_apart` gives them room to write to.

With `NUMBA_DISABLE_JIT=1` all of them run as plain Python, for debugging and coverage.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import config, types
from numba.extending import intrinsic

# A wide integer in kernels: compiled, `int` of an int8 stays one and `int` of a uint64 unsigned.
int64: Callable[[Any], int] = np.int64  # type: ignore[assignment]

# A number that is never negative: Numba looks for negative ones when it indexes with signed ones.
index: Callable[[Any], int] = np.uint64  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parent
INTERPRETED = bool(config.DISABLE_JIT)
PARALLEL_FROM = 1024

# Between what two threads write to, in bytes: processors fetch cache lines of 64 in pairs.
_APART = 256

_in_forked_child = False
_threads_in_use = threading.Lock()


def _note_fork() -> None:
    global _in_forked_child
    _in_forked_child = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def kernel(function: F) -> F:
    """Compile a scalar function for use inside other kernels only; never cached by itself.

    It gets no wrapper for calls from Python, which saves a fifth of the time to compile, and it
    cannot make arrays: then it need not count references to those it is given, which can take as
    long as all that it does.
    """
    return _compile_inner(function, forceinline=True, _nrt=False)


def subroutine(function: F) -> F:
    """Compile a `kernel` that is called, not copied into its callers: long and seldom needed."""
    return _compile_inner(function, _nrt=False)


def allocator(function: F) -> F:
    """Compile a `kernel` that makes arrays."""
    return _compile_inner(function, forceinline=True)


def entry(function: F) -> F:
    """Compile a function that Python calls, cached on disk where a folder is writable.

    In interpreted mode the overflow warnings of NumPy's 64-bit integers are silenced: the random
    numbers of `luck` wrap around on purpose.
    """
    return _compile(function, parallel=False)


def parallel(function: F, at_least: int = PARALLEL_FROM) -> F:
    """Compile one plain body whose outer loop is `prange` twice, serial and parallel.

    The parallel form runs when the first argument is long (`at_least`, by default many games) and
    Numba may use more than one thread (`numba.set_num_threads`). It never runs in a forked
    child, which Numba's threads do not survive, nor in two Python threads at once, which they do
    not bear either: the second one takes the serial form. Both forms give the same bytes.
    """
    serial = _compile(function, parallel=False)
    threaded = _compile(function, parallel=True)

    @functools.wraps(function)
    def choose(*args: Any) -> Any:
        if len(args[0]) < at_least or _in_forked_child or numba.get_num_threads() == 1:
            return serial(*args)
        if not _threads_in_use.acquire(blocking=False):
            return serial(*args)
        try:
            return threaded(*args)
        finally:
            _threads_in_use.release()

    return choose  # type: ignore[return-value]


def rows_apart(rows: int, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return rows of zeros (rows, more than `length`), each for a thread of its own to write to.

    What is more keeps the rows apart. Two threads that write to one cache line send it to and fro
    between their processors, which takes longer than a simulation of a search.
    """
    spare = -(-_APART // np.dtype(dtype).itemsize)
    return np.zeros((rows, length + spare), dtype)


def _take(counter: npt.NDArray[np.int64], step: int) -> int:
    """Return the counter, int64 (1,), and move it on by `step`, in one go.

    Threads that share it get different numbers: whoever is done first takes the next piece of work.
    """
    taken = int(counter[0])
    counter[0] += step
    return taken


def _compile_take(context: Any, counter: Any, step: Any) -> Any:
    """Return the type of `take` and what writes its code, as Numba asks an intrinsic for."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, arguments[1], "monotonic")

    return types.int64(counter, types.int64), generate


take: Callable[[Any, int], int] = _take if INTERPRETED else intrinsic(_compile_take)


def cache_folder() -> Path | None:
    """Return the folder for compiled entries of exactly these sources, None if not writable.

    Numba's own check looks at the file of the entry only, not at the files it calls; a folder named
    by the hash of all sources makes a stale cache impossible.
    """
    try:
        folder = _cache_root() / "tokaido_env" / _sources_hash()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # nothing can be written; there is no home
        return None
    return folder if os.access(folder, os.W_OK) else None


def _compile_inner(function: F, **options: bool) -> F:
    if INTERPRETED:
        return function
    # Numba names its switch for the counting of references with an underscore: _nrt.
    compiled: F = numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    return compiled


def _compile(function: F, *, parallel: bool) -> F:
    if INTERPRETED:
        return _wrapping_around(function)
    folder = _cached_folder()
    previous = config.CACHE_DIR
    # Numba reads this while it decorates; other packages must not notice.
    # One folder a form: Numba's key does not tell whether a function was compiled in parallel.
    form = "parallel" if parallel else "serial"
    config.CACHE_DIR = "" if folder is None else str(folder / form)
    try:
        compiled: F = numba.njit(function, cache=folder is not None, parallel=parallel, nogil=True)
    finally:
        config.CACHE_DIR = previous
    return compiled


def _wrapping_around(function: F) -> F:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*args)

    return wrapper  # type: ignore[return-value]


@functools.cache
def _cached_folder() -> Path | None:
    return cache_folder()


def _cache_root() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()))
    return Path.home() / ".cache"


def _sources_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")) + sorted((PACKAGE / "agents").rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
