"""Arrays in aligned memory, for other libraries and for callers to keep."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNMENT = 64
"""Bytes: of buffers that other libraries take without a copy, as JAX asks for on a CPU."""

_KEPT = 4  # buffers that a pool keeps, the last ones that it handed out


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros that begin at a multiple of `ALIGNMENT` bytes: `np.zeros` begins anywhere."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(kind).reshape(shape)


class BufferPool:
    """Arrays of one shape and dtype in memory that is used again once nobody holds it.

    Fresh memory of some megabytes costs a page fault for every 4 KiB, more than what is written.
    An array belongs to its caller, who may keep it and write to it. Views, tensors, capsules and
    memory views keep the memory from being used again, as they keep that of any array from being
    freed, so none of them ever changes.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._ring: list[tuple[weakref.ref[npt.NDArray[Any]], memoryview]] = []

    def take(self) -> npt.NDArray[Any]:
        """Return an array that begins at a multiple of `ALIGNMENT` bytes, with any contents."""
        free = [k for k, (owner, _) in enumerate(self._ring) if owner() is None]
        if free:
            memory = self._ring.pop(free[-1])[1]
        else:
            memory = aligned_zeros(self._shape, self._dtype).data
        # All views of an array refer to the first of their bases that rests on no array: to this
        # one. It is gone when the last of them is, and no garbage collection can revive it.
        owner = np.frombuffer(memory, self._dtype)
        self._ring = [*self._ring[1 - _KEPT :], (weakref.ref(owner), memory)]
        return owner.reshape(self._shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the buffers out: a copy of the pool begins without."""
        return BufferPool, (self._shape, self._dtype)
