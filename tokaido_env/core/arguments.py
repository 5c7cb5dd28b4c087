"""Arguments that are refused, with words that teach."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Chance = Literal["sampled", "explicit"]
CHANCES = ("sampled", "explicit")

MAX_SEED = 2**53 - 1

MAX_NAME_CHARS = 1000  # characters of a player's name, a spec or a board's name
MAX_VALUE_CHARS = 100  # characters of a value that a stranger wrote, in a message
MAX_PATH_CHARS = 250  # characters of a path, there: a stranger's file may name one


class IllegalMove(ValueError):  # noqa: N818  the public name is a contract
    """An action or outcome that is not on offer: the message says what was."""


class SeedError(ValueError):
    """A seed that is not an integer from 0 to 2**53 - 1."""


def check_seed(seed: object) -> int:
    """Return a seed as an int, or raise `SeedError`: JSON keeps exactly these integers."""
    number = as_integer(seed)
    if number is None or not 0 <= number <= MAX_SEED:
        raise SeedError(
            f"seed: expected an integer from 0 to {MAX_SEED} (2**53 - 1), got {repr_short(seed)}"
        )
    return number


def as_integer(value: object) -> int | None:
    """Return an integer of Python or NumPy as an int; None if it is something else, or a bool."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        return None
    try:
        return int(value)
    except Exception:  # a stranger's own
        return None


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise `ValueError` unless an argument is one of some choices."""
    known = tuple(choices)
    try:
        right = not isinstance(value, np.ndarray) and value in known
    except Exception:  # a stranger's own comparison
        right = False
    if not right:
        one = ", ".join(map(repr, known))
        raise ValueError(f"{name}: expected one of {one}, got {repr_short(value)}")


def as_array(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return what an argument holds as an array, as NumPy makes it, or raise `ValueError`."""
    try:
        return np.asarray(values)
    except Exception:  # ragged, nested too deeply, or a stranger's own
        raise ValueError(f"{name}: expected an array, got {repr_short(values)}") from None


def describe_array(array: npt.NDArray[Any]) -> str:
    """Return dtype and shape of an array, for a message."""
    return f"{str_short(array.dtype)} of shape {str_short(array.shape)}"


def join_limited(errors: Iterable[str], n: int, things: str, most: int = 450) -> str:
    """Return as many of n errors about things as there is room for, one at least."""
    format_error = ""
    for j, error in enumerate(errors):
        if format_error and len(format_error) + len(error) > most:
            return f"{format_error}; and {n - j} more {things}"
        format_error += f"; {error}" if format_error else error
    return format_error


def repr_short(value: object, most: int = MAX_VALUE_CHARS) -> str:
    """Return a value that a stranger wrote as `repr` does, for a message: short, in one line."""
    return escape_text(_text(repr, value[: most + 1] if isinstance(value, str) else value), most)


def str_short(value: object, most: int = MAX_VALUE_CHARS) -> str:
    """Return a value that a stranger wrote as `str` does, for a message: short, in one line."""
    return escape_text(_text(str, value), most)


def format_error(error: BaseException) -> str:
    """Return an error in one line, with the place in the code where it came up.

    `SystemExit` is one too: an agent may not end the command.
    """
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = str_short(" ".join(str(error).split()), 200)
    return f"{type(error).__name__}: {text} ({Path(frame.filename).name}, line {frame.lineno})"


def _text(convert: Callable[[object], str], value: object) -> str:
    try:
        return convert(value)
    except Exception:  # too many digits, nested too deeply, or a stranger's own
        return f"{type(value).__name__} of a size that cannot be shown"


def escape_text(text: str, most: int = MAX_VALUE_CHARS) -> str:
    """Return text that a stranger wrote, for a message or a terminal: short, in one line.

    What cannot be printed, as the escape sequences that steer a terminal, stands as in `repr`.
    """
    seen = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: most + 1])
    return seen if len(seen) <= most else seen[: most - 1] + "…"
