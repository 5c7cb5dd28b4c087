"""Threads of parallel kernels: limits, an atomic counter and prefetching."""

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


@contextmanager
def single_thread() -> Iterator[None]:
    """Run kernels in one thread while the context is active, in this Python thread.

    Use it for a move of a few thousand games, which a second thread hardly speeds up, and for
    measurements, so that waiting threads do not count as processor time.
    """
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def _fetch_add(counter: npt.NDArray[np.int64], step: int) -> int:
    """Return the counter, int64 (1,), and add `step` to it, atomically.

    Threads that share a counter get different numbers, so each can take the next item of work.
    """
    value = int(counter[0])
    counter[0] += step
    return value


def _compile_fetch_add(context: Any, counter: Any, step: Any) -> Any:
    """Return the signature and the code generator of `fetch_add`, as Numba's intrinsics do."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, arguments[1], "monotonic")

    return types.int64(counter, types.int64), generate


fetch_add: Callable[[Any, int], int] = _fetch_add if INTERPRETED else intrinsic(_compile_fetch_add)


_LINE = 64  # bytes of a cache line


def _prefetch(array: npt.NDArray[Any], i: int, lines: int) -> None:
    """Load cache lines from item `i` of a contiguous array on, without waiting for them."""


def _compile_prefetch(context: Any, array: Any, i: Any, lines: Any) -> Any:
    """Return the signature and the code generator of `prefetch`, as Numba's intrinsics do."""
    if not isinstance(lines, types.IntegerLiteral):
        raise NumbaTypeError("prefetch: lines: expected a constant")

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), (pointer, number, number, number))
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        rows = target.make_array(signature.args[0])(target, builder, arguments[0])
        bytes_each = target.get_abi_sizeof(target.get_data_type(array.dtype))
        size = ir.Constant(ir.IntType(64), bytes_each)
        start = builder.add(
            builder.ptrtoint(rows.data, ir.IntType(64)), builder.mul(arguments[1], size)
        )
        for line in range(lines.literal_value):
            address = builder.add(start, ir.Constant(ir.IntType(64), _LINE * line))
            reading, near, data = (ir.Constant(number, n) for n in (0, 3, 1))
            builder.call(function, (builder.inttoptr(address, pointer), reading, near, data))
        return target.get_dummy_value()

    return types.void(array, types.int64, lines), generate


prefetch: Callable[[Any, int, int], None] = (
    _prefetch if INTERPRETED else intrinsic(_compile_prefetch)
)
