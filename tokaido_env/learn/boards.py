"""The boards of a run: which a network reads, and what a policy tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.registry import Parameter
from tokaido_env.boards.family import SPLITS, is_family, numbers_of
from tokaido_env.boards.pool import BoardPool

BOARD_MEANING = "a board, a file, family:NUMBER or a pool such as family:train/1000"

SEEING = Parameter(str, words=("auto", "yes", "no"))
SEEING_MEANING = "whether the network reads the board; auto: if there is more than one"


def boards_seen(pool: BoardPool, see_board: str) -> npt.NDArray[np.void] | None:
    """Return the boards that a network reads, `BOARD` (b,), None if it reads none.

    Args:
        pool: what is played on.
        see_board: one of the words of `SEEING`.
    """
    seen = len(pool) > 1 if see_board == "auto" else see_board == "yes"
    return pool.records if seen else None


def summary(pool: BoardPool, started_on: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a policy tells of the boards that it was trained on, as JSON types.

    Of the family the splits are told that any of the boards is in, those to measure on too.

    Args:
        pool: the boards.
        started_on: the splits that it had been trained on before.
    """
    splits = {*_splits(pool.name), *started_on}
    return {
        "name": pool.name,
        "hash": pool.hash,
        "boards": len(pool),
        "splits": [split for split in SPLITS if split in splits],
    }


def told_splits(training: Mapping[str, Any]) -> list[str]:
    """Return the splits that a policy was trained on, by its header, which anybody may write."""
    told = training.get("board")
    splits = told.get("splits") if isinstance(told, dict) else None
    return [split for split in SPLITS if isinstance(splits, list) and split in splits]


def _splits(name: str) -> list[str]:
    if not is_family(name):
        return []
    numbers = numbers_of(name)
    return [split for split, own in SPLITS.items() if numbers[0] in own]
