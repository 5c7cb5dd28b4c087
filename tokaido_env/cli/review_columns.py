"""Table of reviews: a row for each decision with a choice and each chance event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.cli.tabular_io import WORD, table_file
from tokaido_env.core.actions import LABELS, NO_ACTION
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.state import NO_PLAYER, Phase
from tokaido_env.record import Record
from tokaido_env.study.batch_review import ReviewConfig
from tokaido_env.study.review import Review

FORMAT = "tokaido-duo-review"
VERSION = 1
COLUMNS = {
    "game": "int64",
    "seed": "int64",
    "board": WORD,
    "board_hash": WORD,
    "event": "int32",
    "round": "int16",
    "phase": WORD,
    "player": "int8",
    "name": WORD,
    "opponent": WORD,
    "label": WORD,
    "best": WORD,
    "loss": "float64",
    "error": "float64",
    "mark": WORD,
    "wins": "float64",
    "luck": "float64",
    "result": "float64",
}
"""The columns in order, with their kinds."""

_PHASES = [phase.name for phase in Phase]


@contextmanager
def review_file(path: Path, asked: ReviewConfig) -> Iterator[Callable[[int, Record, Review], None]]:
    """Yield a function that takes the line of a game, from 1, its record and its review.

    Args:
        path: as for `table_file`.
        asked: the settings of the reviews.

    Raises:
        OSError: if the file cannot be written.
    """
    about = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION}
    about |= {"judge": asked.judge.spec, "values_by": asked.value_agent.spec}
    with table_file(
        path, COLUMNS, about | {"draws": asked.chance_samples, "seed": asked.seed}
    ) as add:
        yield lambda number, record, found: add(rows_of(number, record, found))


def rows_of(number: int, record: Record, found: Review) -> dict[str, Any]:
    """Return the rows of one game by column: arrays, and lists of words.

    Args:
        number: line of the game, from 1.
        record: of the game.
        found: its review.
    """
    played = found.trajectory
    chance = (played.movers == NO_PLAYER) & (played.events != NO_ACTION)
    rows = np.flatnonzero(chance | (found.best >= 0))
    movers, labels = played.movers[rows], played.labels()
    seats = np.maximum(movers, 0).tolist()  # luck is that of player_0
    length, seed = len(rows), -1 if record.seed is None else record.seed
    return {
        "game": np.full(length, number),
        "seed": np.full(length, seed),
        "board": [played.board.name] * length,
        "board_hash": [played.board.hash] * length,
        "event": rows + 1,
        "round": played.states["round"][rows],
        "phase": [_PHASES[phase] for phase in played.states["phase"][rows].tolist()],
        "player": movers,
        "name": [record.players[seat] for seat in seats],
        "opponent": [record.players[1 - seat] for seat in seats],
        "label": [labels[row] for row in rows.tolist()],
        "best": [LABELS[action] if action >= 0 else "" for action in found.best[rows].tolist()],
        "loss": found.loss[rows],
        "error": found.error[rows],
        "mark": [found.mark(row) or "" for row in rows.tolist()],
        "wins": found.values[rows],
        "luck": found.luck[rows],
        "result": np.full(length, found.values[-1]),
    }
