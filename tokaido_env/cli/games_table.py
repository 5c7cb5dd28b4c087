"""Table of recorded games, one row per game: `tokaido export FILE OUT --rows games`.

`docs/reference/file-formats.md` lists the columns. The table is Parquet, for `pandas.read_parquet`,
or `.npz` with an array per column.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.boards.board_pool import Boards
from tokaido_env.cli.tabular_io import TEXT, check_export, table_file
from tokaido_env.core.constants import TRIGGER_LEVELS
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.record import Record, read_verified
from tokaido_env.trajectory import Trajectory

FORMAT = "tokaido-duo-games"
VERSION = 1

_POINTS = ("faith", "commerce", "culture", "total")

COLUMNS = {
    "game": "int64",
    "seed": "int64",
    **dict.fromkeys(("board", "board_hash", "player_0", "player_1"), TEXT),
    "winner": "int8",
    "end": TEXT,
    "margin": "int16",
    **{f"{name}_{seat}": "int16" for seat in range(2) for name in _POINTS},
    "rounds": "int16",
    **{f"decisions_{seat}": "int32" for seat in range(2)},
    "trigger": TEXT,
    "trigger_seat": "int8",
    "trigger_round": "int16",
    "forfeit_seat": "int8",
    "forfeit_reason": TEXT,
}
"""The columns in order, with their kinds."""


def export(records: str | Path, out: str | Path, board: Boards | None = None) -> int:
    """Verify a record file and write a table of its games; return their number.

    Args:
        records: a record file, JSON Lines.
        out: file to write, .parquet or .npz, whole or not at all.
        board: as for `record.load`.

    Raises:
        RecordError, ValueError, OSError, ModuleNotFoundError: as `dataset.export`.
    """
    source, target = check_export(records, out, board)
    rows = list(read(source, board))
    if not rows:
        raise ValueError(f"{source}: expected games, found none")
    about = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION}
    with table_file(target, COLUMNS, about) as add:
        add({name: [row[name] for row in rows] for name in COLUMNS})
    return len(rows)


def read(path: Path, board: Boards | None = None) -> Iterator[dict[str, Any]]:
    """Yield the row of each game of a record file, verified, by the names of the columns."""
    for number, record, played in read_verified(path, board):
        yield _row(number, record, played)


def _row(number: int, record: Record, played: Trajectory) -> dict[str, Any]:
    movers = played.movers[played.decided]
    first, second = record.scores
    forfeit = record.forfeit
    row = {
        "game": number,
        "seed": -1 if record.seed is None else record.seed,
        "board": record.board,
        "board_hash": record.board_hash,
        "winner": -1 if record.winner is None else record.winner,
        "end": record.end or "",
        "margin": first["total"] - second["total"],
        "rounds": record.rounds,
        "forfeit_seat": -1 if forfeit is None else forfeit.seat,
        "forfeit_reason": "" if forfeit is None else forfeit.reason,
    }
    for seat, points in enumerate(record.scores):
        row |= {f"{name}_{seat}": points[name] for name in _POINTS}
        row |= {f"player_{seat}": record.players[seat]}
        row |= {f"decisions_{seat}": int((movers == seat).sum())}
    return row | _trigger(played)


def _trigger(played: Trajectory) -> dict[str, Any]:
    """Return the end trigger: its name, seat and round."""
    triggered = np.flatnonzero(played.states["end_triggered"])
    if len(triggered):
        state = played.states[triggered[0]]
        for name, last in TRIGGER_LEVELS.items():
            for seat in np.flatnonzero(state[name] >= last).tolist():
                found = {"trigger": name, "trigger_seat": seat}
                return found | {"trigger_round": int(state["round"])}
    return {"trigger": "", "trigger_seat": -1, "trigger_round": 0}
