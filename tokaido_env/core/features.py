"""A layout declared as a table: what stands where in a vector of numbers, and its scale."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Entry = tuple[str, int, int, str]
"""A row of a table: name, size, scale, meaning."""


class Feature(NamedTuple):
    """One entry of a layout: `size` numbers from `start`, each a raw value / `scale`."""

    name: str
    start: int
    size: int
    scale: int
    meaning: str

    @property
    def slice(self) -> slice:
        """Where the feature stands in the vector."""
        return slice(self.start, self.start + self.size)


def laid_out(table: Iterable[Entry]) -> tuple[Feature, ...]:
    """Return the features of a table one after the other, the first from 0."""
    features: list[Feature] = []
    start = 0
    for name, size, scale, meaning in table:
        features.append(Feature(name, start, size, scale, meaning))
        start += size
    return tuple(features)


def width(features: tuple[Feature, ...]) -> int:
    """Return how many numbers a layout has."""
    return sum(feature.size for feature in features)


def hash_of(layout: Any) -> str:
    """Return sixteen hex digits that change when anything in a layout does, its words included."""
    return hashlib.sha256(repr(layout).encode()).hexdigest()[:16]


def scales_of(features: tuple[Feature, ...]) -> npt.NDArray[np.float32]:
    """Return what each raw number of a layout is divided by: float32, read-only."""
    scales = np.repeat(
        np.array([feature.scale for feature in features], np.float32),
        [feature.size for feature in features],
    )
    scales.flags.writeable = False
    return scales
