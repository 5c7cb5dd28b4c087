"""Copies of objects that hold a running game."""

from __future__ import annotations

import copy
from typing import Any, Self, TypeVar

T = TypeVar("T")


class CopiedWhole:
    """An object that `copy.copy` copies as `copy.deepcopy` does.

    A copy that shared the running game would leave the original with legal actions of another
    position.
    """

    def __copy__(self) -> Self:
        return copy.deepcopy(self)


class NotCopied:
    """An object that `copy` and `pickle` refuse, because it owns a thread or memory of a device.

    Attributes:
        copy_remedy: how to copy the game.
    """

    copy_remedy: str

    def __reduce_ex__(self, protocol: Any) -> Any:
        name = type(self).__name__
        raise TypeError(f"{name}: cannot be copied or pickled: {self.copy_remedy}")


def shallow_copy(original: T) -> T:
    """Return an object with the same attributes, for implementations of `__deepcopy__`."""
    other = object.__new__(type(original))
    other.__dict__.update(original.__dict__)
    return other
