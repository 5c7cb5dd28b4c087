"""Aligned versions of the packed record dtypes, which GPUs can read.

A GPU faults when it reads a number at an address that is not a multiple of its size. The records
of `core` are packed. The aligned dtype has the same fields in the same order, with gaps.
`array.astype(aligned(dtype))` converts an array of records.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


@functools.cache
def aligned(packed: np.dtype[Any]) -> np.dtype[Any]:
    """Return a record dtype with its fields padded to their alignment, as GPUs need."""
    base, shape = packed.subdtype or (packed, ())
    if base.fields is None:
        return packed
    formats = [aligned(base.fields[name][0]) for name in base.names or ()]
    record = np.dtype({"names": list(base.names or ()), "formats": formats}, align=True)
    return np.dtype((record, shape)) if shape else record
