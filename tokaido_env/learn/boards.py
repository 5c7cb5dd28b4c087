"""Summaries of training boards in policy headers, which reveal training on test boards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import SPLITS, family_numbers, is_family


def board_summary(pool: BoardPool, started_on: Iterable[str] = ()) -> dict[str, Any]:
    """Return the entry `board` of a policy's training summary, as JSON types.

    It lists the splits of the board family that the training boards are from, `test` included.

    Args:
        pool: the boards.
        started_on: splits of earlier training.
    """
    names = [pool.name] if pool.drawn else pool.names.tolist()
    splits = {split for name in names for split in _splits(name)}.union(started_on)
    return {
        "name": pool.name,
        "hash": pool.hash,
        "boards": len(pool),
        "splits": [split for split in SPLITS if split in splits],
    }


def splits_of(training: Mapping[str, Any]) -> list[str]:
    """Return the splits of the board family in a policy's header, which may be untrusted."""
    board = training.get("board")
    splits = board.get("splits") if isinstance(board, dict) else None
    return [split for split in SPLITS if isinstance(splits, list) and split in splits]


def _splits(name: str) -> list[str]:
    if not is_family(name):
        return []
    numbers = family_numbers(name)
    return [split for split, own in SPLITS.items() if numbers[0] in own]
