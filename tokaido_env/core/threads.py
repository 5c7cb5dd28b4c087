"""Work and memory for the threads of a parallel kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic

from tokaido_env.core.jit import INTERPRETED

# Between what two threads write to, in bytes: processors fetch cache lines of 64 in pairs.
_APART = 256


@contextmanager
def single_thread() -> Iterator[None]:
    """Let kernels use one thread in this thread of Python.

    For a move of a few thousand games, which a second thread hardly makes faster but busier; and to
    measure, so that no other thread's waiting counts as processor time.
    """
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def padded_rows(rows: int, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
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


fetch_add: Callable[[Any, int], int] = _take if INTERPRETED else intrinsic(_compile_take)


_LINE = 64  # bytes of a cache line


def _fetch(array: npt.NDArray[Any], i: int, lines: int) -> None:
    """Ask for the first cache lines of a row that will be read soon; nothing waits for them."""


def _compile_fetch(context: Any, array: Any, i: Any, lines: Any) -> Any:
    """Return the type of `fetch` and what writes its code, as Numba asks an intrinsic for."""
    if not isinstance(lines, types.IntegerLiteral):
        raise NumbaTypeError("fetch: lines: expected a constant")

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), (pointer, number, number, number))
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        rows = target.make_array(signature.args[0])(target, builder, arguments[0])
        size = ir.Constant(ir.IntType(64), array.dtype.size)
        start = builder.add(
            builder.ptrtoint(rows.data, ir.IntType(64)), builder.mul(arguments[1], size)
        )
        for line in range(lines.literal_value):
            place = builder.add(start, ir.Constant(ir.IntType(64), _LINE * line))
            reading, near, data = (ir.Constant(number, n) for n in (0, 3, 1))
            builder.call(prefetch, (builder.inttoptr(place, pointer), reading, near, data))
        return target.get_dummy_value()

    return types.void(array, types.int64, lines), generate


prefetch: Callable[[Any, int, int], None] = _fetch if INTERPRETED else intrinsic(_compile_fetch)
