"""Arguments that are refused, with words that teach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

Chance = Literal["sampled", "explicit"]
CHANCES = ("sampled", "explicit")

MAX_SEED = 2**53 - 1


class IllegalMove(ValueError):  # noqa: N818  the public name is a contract
    """An action or outcome that is not on offer: the message says what was."""


class SeedError(ValueError):
    """A seed that is not an integer from 0 to 2**53 - 1."""


def check_seed(seed: object) -> int:
    """Return a seed as an int, or raise `SeedError`: JSON keeps exactly these integers."""
    right = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not right or not 0 <= int(seed) <= MAX_SEED:  # type: ignore[call-overload]
        raise SeedError(f"seed: expected an integer from 0 to {MAX_SEED} (2**53 - 1), got {seed!r}")
    return int(seed)  # type: ignore[call-overload, no-any-return]


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise `ValueError` unless an argument is one of some choices."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}")
