"""Argument checks with explanatory errors, and values shortened for messages."""

from __future__ import annotations

import hashlib
import operator
import os
import traceback
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Chance = Literal["sampled", "explicit"]

MAX_SEED = 2**53 - 1

MAX_NAME_CHARS = 1000  # of a player's name, an agent's spec or a board's name
MAX_VALUE_CHARS = 100  # of an untrusted value in a message
MAX_PATH_CHARS = 250  # of a path in a message
MAX_NAMES = 12  # of known names in a message


class IllegalMove(ValueError):  # noqa: N818  the public name is a contract
    """An illegal action, or an impossible outcome; the message lists the legal ones."""


class SeedError(ValueError):
    """A seed that is not a non-negative integer."""


def check_seed(seed: object) -> int:
    """Return a seed as an int from 0 to `MAX_SEED`, which JSON represents exactly.

    A larger seed is reduced to its hash: the first 8 bytes of the SHA-256 of its little-endian
    bytes, without trailing zeros, as a little-endian integer modulo 2**53.

    Raises:
        SeedError: for anything else than a non-negative integer.
    """
    number = seed if type(seed) is int else as_integer(seed)
    if number is None or number < 0:
        raise SeedError(f"seed: expected an integer from 0, got {repr_short(seed)}")
    if number <= MAX_SEED:
        return number
    digest = hashlib.sha256(number.to_bytes((number.bit_length() + 7) // 8, "little")).digest()
    return int.from_bytes(digest[:8], "little") & MAX_SEED


def as_integer(value: object) -> int | None:
    """Return an integer of Python, NumPy or another library as an int; None for anything else."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def plain_data(value: Any) -> Any:
    """Return nested data with NumPy's values and arrays as Python's, and tuples as lists."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {plain_data(key): plain_data(one) for key, one in value.items()}
    return [plain_data(one) for one in value] if isinstance(value, list | tuple) else value


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise `ValueError` unless the value of argument `name` is one of the choices."""
    known = tuple(choices)
    if value not in known:
        expected = ", ".join(map(repr, known))
        raise ValueError(f"{name}: expected one of {expected}, got {repr_short(value)}")


def unknown_name(noun: str, name: str, known: Iterable[str]) -> str:
    """Return a message on an unknown name: the nearest known name, or some if none is near.

    Args:
        noun: the kind of name, such as "option".
        name: the unknown name.
        known: the known names.
    """
    known = list(known)
    near = get_close_matches(name[:MAX_VALUE_CHARS].lower(), known, n=1)
    some = ", ".join(known[:MAX_NAMES]) + (", …" if len(known) > MAX_NAMES else "")
    remedy = f"the nearest is {near[0]!r}" if near else f"expected one of {some or 'none'}"
    return f"unknown {noun} {repr_short(name)}: {remedy}"


def describe_array(array: npt.NDArray[Any]) -> str:
    """Return the dtype and shape of an array as text, for a message."""
    return f"{str_short(array.dtype)} of shape {str_short(array.shape)}"


def join_limited(errors: Iterable[str], count: int, noun: str, max_chars: int = 450) -> str:
    """Join errors by "; " up to `max_chars`, at least one; then count the `noun` left out."""
    text = ""
    for n, error in enumerate(errors):
        if text and len(text) + len(error) > max_chars:
            return f"{text}; and {count - n} more {noun}"
        text += f"; {error}" if text else error
    return text


def repr_short(value: object, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return the `repr` of an untrusted value on one line, of at most `max_chars` characters."""
    value = value[: max_chars + 1] if isinstance(value, str) else value
    return escape_text(repr(value), max_chars)


def str_short(value: object, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return the `str` of an untrusted value on one line, of at most `max_chars` characters."""
    return escape_text(str(value), max_chars)


def format_error(error: BaseException) -> str:
    """Return an error on one line, with the file and line that raised it.

    `SystemExit` counts as an error: an agent must not end the command.
    """
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = str_short(" ".join(str(error).split()), 200)
    return f"{type(error).__name__}: {text} ({Path(frame.filename).name}, line {frame.lineno})"


def short_path(path: object) -> str:
    """Return an untrusted path as text on one line, of at most `MAX_PATH_CHARS` characters."""
    return str_short(os.fsdecode(path) if isinstance(path, bytes) else path, MAX_PATH_CHARS)


def escape_text(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    """Return untrusted text on one line, of at most `max_chars` characters, for a terminal.

    Unprintable characters, such as those that control a terminal, are escaped as in `repr`.
    """
    escaped = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: max_chars + 1])
    return escaped if len(escaped) <= max_chars else escaped[: max_chars - 1] + "…"
