"""What a policy tells of the boards that it was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import SPLITS, is_family, numbers_of


def board_summary(pool: BoardPool, started_on: Iterable[str] = ()) -> dict[str, Any]:
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


def splits_of(training: Mapping[str, Any]) -> list[str]:
    """Return the splits that a policy was trained on, by its header, which anybody may write."""
    told = training.get("board")
    splits = told.get("splits") if isinstance(told, dict) else None
    return [split for split in SPLITS if isinstance(splits, list) and split in splits]


def _splits(name: str) -> list[str]:
    if not is_family(name):
        return []
    numbers = numbers_of(name)
    return [split for split, own in SPLITS.items() if numbers[0] in own]
