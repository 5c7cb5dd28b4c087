"""Aligned twins of the packed records: the same fields where a GPU can read them.

A GPU faults where it reads a number that does not begin at a multiple of its size. The records of
`core` are packed; a twin has the same fields in the same order with gaps between them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt


@functools.cache
def twin(packed: np.dtype[Any]) -> np.dtype[Any]:
    """Return the aligned twin of a record, of records inside of it too."""
    base, shape = packed.subdtype or (packed, ())
    if base.fields is None:
        return packed
    formats = [twin(base.fields[name][0]) for name in base.names or ()]
    aligned = np.dtype({"names": list(base.names or ()), "formats": formats}, align=True)
    return np.dtype((aligned, shape)) if shape else aligned


def to_twin(array: npt.NDArray[Any], packed: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return an array of packed records as one of their twins; gaps are zero.

    Raises:
        ValueError: if the array holds other records.
    """
    return _converted(array, packed, twin(packed))


def from_twin(array: npt.NDArray[Any], packed: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return an array of twins as one of packed records.

    Raises:
        ValueError: if the array holds other records.
    """
    return _converted(array, twin(packed), packed)


def _converted(
    array: npt.NDArray[Any], source: np.dtype[Any], target: np.dtype[Any]
) -> npt.NDArray[Any]:
    if array.dtype != source:
        raise ValueError(f"array: expected records of {source.itemsize} bytes, got {array.dtype}")
    out = np.zeros(array.shape, target)
    _copy_fields(array, out)
    return out


def _copy_fields(array: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    for name in array.dtype.names or ():
        if array[name].dtype.fields is None:
            out[name] = array[name]
        else:
            _copy_fields(array[name], out[name])
