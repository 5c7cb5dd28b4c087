"""The one compile decorator: scalar kernels, cached entries, serial and parallel forms.

`kernel` marks a scalar function that other kernels call, `subroutine` a long one, `allocator` one
that makes arrays. `entry` marks a function that Python calls: it is compiled on its first call and
kept on disk. `parallel` gives an entry both forms.

With `NUMBA_DISABLE_JIT=1` all of them run as plain Python, for debugging and coverage.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import config

from tokaido_env.core.cache import keep

# A wide integer in kernels: compiled, `int` of an int8 stays one and `int` of a uint64 unsigned.
int64: Callable[[Any], int] = np.int64  # type: ignore[assignment]

# A number that is never negative: Numba looks for negative ones when it indexes with signed ones.
index: Callable[[Any], int] = np.uint64  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED = bool(config.DISABLE_JIT)
PARALLEL_FROM = 1024

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


def _compile_inner(function: F, **options: bool) -> F:
    if INTERPRETED:
        return function
    # Numba names its switch for the counting of references with an underscore: _nrt.
    compiled: F = numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    return compiled


def _compile(function: F, *, parallel: bool) -> F:
    if INTERPRETED:
        return _wrapping_around(function)
    compiled: F = numba.njit(function, parallel=parallel, nogil=True)
    keep(compiled)
    return compiled


def _wrapping_around(function: F) -> F:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*args)

    return wrapper  # type: ignore[return-value]
