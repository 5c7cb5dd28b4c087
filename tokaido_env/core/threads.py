"""Work and memory for the threads of a parallel kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import intrinsic

from tokaido_env.core.jit import INTERPRETED

# Between what two threads write to, in bytes: processors fetch cache lines of 64 in pairs.
_APART = 256


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
