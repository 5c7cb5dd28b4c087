"""Specs of the board family, such as `family:train/1000`, and their board numbers.

    family:2000007       one board, by its number
    family:train/1000    the first 1,000 boards of the training split
    family:test          all boards of the test split
    family:far           boards with entries that no board of train can have

`generator` makes the board of a number; `board_pool` provides several boards.
"""

from __future__ import annotations

import re

from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import as_integer, repr_short

PREFIX = "family:"
MAX_NUMBER = 2**31 - 1
MAX_BOARDS = 100_000
"""Largest size of a pool; the records of so many boards take 170 MB."""

FAR = "far"
SPLITS = {
    "train": range(1_000_000),
    "valid": range(1_000_000, 1_000_100),
    "test": range(2_000_000, 2_000_100),
    FAR: range(3_000_000_000, 3_000_000_100),  # not of family 1
}
"""The numbers of each split; no board is in two splits."""

_SPLIT = re.compile("([a-z]+)(?:/([0-9]{1,18}))?")


def is_family(spec: object) -> bool:
    """Return whether a spec names boards of the family."""
    return isinstance(spec, str) and spec.startswith(PREFIX)


def family_numbers(spec: str) -> range:
    """Return the numbers of the boards of a spec: `family:NUMBER`, `:SPLIT` or `:SPLIT/COUNT`.

    Raises:
        BoardError: if the spec is invalid, or has more boards than a pool may have.
    """
    text = spec.removeprefix(PREFIX)
    if re.fullmatch("[0-9]{1,18}", text):
        number = check_number(int(text))
        return range(number, number + 1)
    found = _SPLIT.fullmatch(text)
    if not is_family(spec) or found is None or found[1] not in SPLITS:
        splits = ", ".join(SPLITS)
        raise BoardError(
            f"{repr_short(spec)}: expected family:NUMBER, family:SPLIT or family:SPLIT/COUNT, "
            f"where SPLIT is one of {splits}"
        )
    split = SPLITS[found[1]]
    count = len(split) if found[2] is None else int(found[2])
    most = min(len(split), MAX_BOARDS)
    if not 1 <= count <= most:
        got = "none" if not count else f"{count:,}"
        raise BoardError(
            f"{spec}: expected 1 to {most:,} boards of {found[1]}, as family:{found[1]}/"
            f"{min(most, 1000)}, got {got}"
        )
    return split[:count]


def check_number(number: object) -> int:
    """Return a board's number as an int.

    Raises:
        BoardError: if it is no integer or out of range.
    """
    known = as_integer(number)
    if known is None or not (0 <= known <= MAX_NUMBER or known in SPLITS[FAR]):
        raise BoardError(f"board number: expected 0 to {MAX_NUMBER}, got {repr_short(number)}")
    return known
