"""Decorators that compile kernels, entries for Python, and entries for several threads.

`kernel` marks a scalar function that is inlined into its callers, `subroutine` one that they call,
`allocator` one that makes arrays. `entry` marks a function for Python callers: it is compiled on
its first call and stored on disk. `pooled` and `parallel` are entries for several threads:
`pooled` for coarse work, in one compiled form, `parallel` for single steps and observations of a
batch, in two: after a step, Numba's idle threads spin, and would keep a pool of others waiting.

The choice between inlining and calling was measured (Numba 0.68, two processors). Without inlining,
random play is 7 % slower, and `champion` about 5 %. Inlining costs little compile time, because a
function with only compiled callers is optimised as a part of them (`_InnerLibrary`).

With `NUMBA_DISABLE_JIT=1` all functions run as plain Python, for debugging and coverage.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from tokaido_env.core.kernel_cache import cache_on_disk

# A wide integer in kernels: compiled, `int` of an int8 stays one and `int` of a uint64 unsigned.
int64: Callable[[Any], int] = np.int64  # type: ignore[assignment]

# A number that is never negative: Numba looks for negative ones when it indexes with signed ones.
index: Callable[[Any], int] = np.uint64  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED = bool(config.DISABLE_JIT)
PARALLEL_FROM = 1024
_PARTS = 4  # of a range for each thread, because the times of items differ

_in_forked_child = False
_threads_in_use = threading.Lock()


def _note_fork() -> None:
    global _in_forked_child
    _in_forked_child = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def kernel(function: F) -> F:
    """Compile a scalar function that other kernels inline; it has no cache entry.

    It has no wrapper for calls from Python, which saves a fifth of the compile time. It cannot make
    arrays, and so need not count references to its arguments, which can take as long as its work.
    """
    return _compile_inner(function, forceinline=True, _nrt=False)


def subroutine(function: F) -> F:
    """Compile a `kernel` that is called, not inlined: for long code that seldom runs."""
    return _compile_inner(function, _nrt=False)


def allocator(function: F) -> F:
    """Compile a `subroutine` that may make arrays; `kernel` and `subroutine` cannot."""
    return _compile_inner(function)


def entry(function: F) -> F:
    """Compile a function for Python callers; cache it on disk if a folder is writable.

    In interpreted mode, NumPy's overflow warnings are off: random numbers (`rng`) wrap around.
    """
    return _compile(function, parallel=False)


def pooled(*, at_least: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Compile a function over a range of coarse work; calls split the range among threads.

    The function's first two arguments are a range, `first` and `last`, and it writes only to items
    of that range. Callers pass the number of items instead. It is compiled once, serial: entries
    release Python's global lock, so a pool of Python threads is nearly as fast as Numba's threads,
    which would need a second compiled form. Threads add 70 µs to a call.

    Args:
        at_least: the smallest number of items for which a call uses threads.
    """

    def compile_pooled(function: Callable[..., None]) -> Callable[..., None]:
        serial = _compile(function, parallel=False)

        @functools.wraps(function)
        def run(items: int, *args: Any) -> None:
            threads = threads_for(items) if items >= at_least else 1
            if threads == 1:
                serial(0, items, *args)
            else:
                _run_in_pool(serial, threads, items, args)

        return run

    return compile_pooled


def threads_for(items: int) -> int:
    """Return the number of threads of a `pooled` call, at least 1.

    It is 1 in a forked child, because other children use the other processors, while Python shuts
    down, and in interpreted mode.
    """
    if items < 2 or INTERPRETED or _in_forked_child or not threading.main_thread().is_alive():
        return 1
    return min(int(numba.get_num_threads()), items)


def _run_in_pool(serial: Callable[..., None], threads: int, items: int, args: Any) -> None:
    """Run a kernel over a range in several threads; each takes the next part when it is free."""
    parts = min(items, _PARTS * threads)
    ends = [items * part // parts for part in range(parts + 1)]
    parts_left = deque(itertools.pairwise(ends))

    def work() -> None:
        while True:
            try:
                first, last = parts_left.popleft()
            except IndexError:
                return
            serial(first, last, *args)

    helpers = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:  # no thread may write to the caller's arrays after the call
        parts_left.clear()
        running = [helper for helper in helpers if not helper.cancel()]
        try:
            wait(running)
        except KeyboardInterrupt:
            wait(running)
            raise
        args = ()  # the pool may hold `work` longer, which must not keep arrays in use
    for helper in running:
        helper.result()


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="tokaido_env")


def parallel(*, at_least: int = PARALLEL_FROM) -> Callable[[F], F]:
    """Compile a function with an outer `prange` loop twice: serial and parallel.

    The parallel form runs if the first argument has enough items and Numba may use more than one
    thread (`numba.set_num_threads`). It never runs in a forked child, where Numba's threads do not
    exist, nor in two Python threads at once, which Numba's threads do not support: the second uses
    the serial form. Both forms produce the same bytes.

    The loop's body passes a named tuple on to kernels, whole: if the body itself indexes arrays of
    a tuple, Numba 0.68 compiles a parallel form that writes wrong items, without an error.

    Args:
        at_least: the smallest number of items for which a call uses threads.
    """

    def compile_twice(function: F) -> F:
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

    return compile_twice


def _compile_inner(function: F, **options: bool) -> F:
    if INTERPRETED:
        return function
    compiled = numba.njit(
        function,
        pipeline_class=_InnerCompiler,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )
    compiled.get_call_template = functools.partial(_by_types, compiled.get_call_template)
    return compiled


def _by_types(template: Callable[..., Any], args: Any, kws: Any) -> Any:
    """Treat constants as numbers: Numba would compile a function again for each constant."""
    return template(tuple(map(numba.types.unliteral, args)), kws)


class _InnerLibrary(JITCodeLibrary):
    """The code of a function with compiled callers only, which is optimised as a part of them.

    Numba would optimise each function together with all functions that it calls: code below ten
    callers eleven times, half of the compile time. If Numba renames these methods, only that time
    returns. Inner functions do not use the environment that Numba sets for functions that make
    Python objects.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> _InnerLibrary:
        return self

    def set_env(self, name: str, environment: object) -> None:
        pass


class _InnerCompiler(Compiler):
    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, kinds: Any
    ) -> None:
        library = _InnerLibrary(target.codegen(), "inner")
        super().__init__(typing, target, library, args, result, flags, kinds)


class _ParallelCompiler(Compiler):
    """Compiles the parallel form of an entry; its parts are optimised with the whole only.

    Numba wraps the body of a parallel loop three times, and would optimise it with each wrapper.
    """

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, kinds: Any
    ) -> None:
        library = target.codegen().create_library("parallel")
        library.enable_object_caching()
        super().__init__(typing, target, library, args, result, flags, kinds)

    def compile_extra(self, function: Any) -> Any:
        codegen = self.state.targetctx.codegen()
        codegen._library_class = _InnerLibrary
        try:
            return super().compile_extra(function)
        finally:
            del codegen._library_class


def _compile(function: F, *, parallel: bool) -> F:
    if INTERPRETED:
        return _wrapping_around(function)
    kind = _ParallelCompiler if parallel else Compiler
    compiled: F = numba.njit(function, parallel=parallel, nogil=True, pipeline_class=kind)
    cache_on_disk(compiled)
    return compiled


def _wrapping_around(function: F) -> F:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*args)

    return wrapper  # type: ignore[return-value]
