"""Copies of objects that hold a running game."""

from __future__ import annotations

import copy
from typing import Self, TypeVar

T = TypeVar("T")


class CopiedWhole:
    """An object that `copy.copy` copies as `copy.deepcopy` does.

    A copy that shared the running game would leave the original with legal actions of another
    position.
    """

    def __copy__(self) -> Self:
        return copy.deepcopy(self)


def shallow_copy(original: T) -> T:
    """Return an object of the same class and attributes, without calling `__init__`."""
    other = object.__new__(type(original))
    other.__dict__.update(original.__dict__)
    return other
