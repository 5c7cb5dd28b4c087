"""Aligned twins of the packed records: the same fields where a GPU can read them.

A GPU faults where it reads a number that does not begin at a multiple of its size. The records of
`core` are packed; a twin has the same fields in the same order with gaps between them. NumPy's
`astype` makes rows of the one to rows of the other.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


@functools.cache
def aligned(packed: np.dtype[Any]) -> np.dtype[Any]:
    """Return the aligned twin of a record, of records inside of it too."""
    base, shape = packed.subdtype or (packed, ())
    if base.fields is None:
        return packed
    formats = [aligned(base.fields[name][0]) for name in base.names or ()]
    aligned = np.dtype({"names": list(base.names or ()), "formats": formats}, align=True)
    return np.dtype((aligned, shape)) if shape else aligned
