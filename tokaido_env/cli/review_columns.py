"""Reviews as columns: a row for each decision with a choice and for each event of chance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.cli.columns import Part, npz_archive, parquet_rows, write_member
from tokaido_env.core.actions import LABELS
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.state import NOBODY, Phase
from tokaido_env.files import whole_file
from tokaido_env.record import Record
from tokaido_env.study.review import Review
from tokaido_env.study.reviews import Asked
from tokaido_env.trajectory import NO_EVENT

FORMAT = "tokaido-duo-review"
VERSION = 1
WORD = "word"
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
"""The columns in their order, with their dtypes; those of words hold each word once."""

Add = Callable[[int, Record, Review], None]

_PHASES = [phase.name for phase in Phase]  # as positions have them
_WORDS = "_words"  # how the array of an archive ends that holds the words of a column


@contextmanager
def review_file(path: Path, asked: Asked) -> Iterator[Add]:
    """Give what takes the line of a game, from 1, its record and its review; the file is whole.

    A parquet file is written as games come. The rows of an archive are held until all are there,
    about 100 bytes each.

    Args:
        path: .parquet or .npz.
        asked: how the games are reviewed.

    Raises:
        OSError: if the file cannot be written.
    """
    write = _npz if path.suffix == ".npz" else _parquet
    with whole_file(path) as file, write(file, _metadata(asked)) as add:
        yield lambda number, record, found: add(part_of(number, record, found))


def part_of(number: int, record: Record, found: Review) -> dict[str, Any]:
    """Return the rows of one game by the names of their columns: arrays, and lists of words.

    Args:
        number: of the game, from 1.
        record: of it.
        found: the review of this game alone.
    """
    played = found.played
    chance = (played.movers == NOBODY) & (played.events != NO_EVENT)
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


def _metadata(asked: Asked) -> str:
    told = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION}
    told |= {"judge": asked.judge.spec, "values_by": asked.values_by.spec}
    return json.dumps(told | {"draws": asked.draws, "seed": asked.seed})


@contextmanager
def _parquet(file: IO[bytes], metadata: str) -> Iterator[Callable[[Part], None]]:
    import pyarrow as pa

    words = pa.dictionary(pa.int32(), pa.string())
    fields = [
        pa.field(name, words if kind == WORD else pa.from_numpy_dtype(kind), nullable=False)
        for name, kind in COLUMNS.items()
    ]
    with parquet_rows(file, pa.schema(fields, metadata={"tokaido_env": metadata})) as add:
        yield add


@contextmanager
def _npz(file: IO[bytes], metadata: str) -> Iterator[Callable[[Part], None]]:
    words: dict[str, dict[str, int]] = {name: {} for name, kind in COLUMNS.items() if kind == WORD}
    held: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in COLUMNS}

    def add(part: Part) -> None:
        for name, kind in COLUMNS.items():
            if kind == WORD:
                known = words[name]
                codes = [known.setdefault(word, len(known)) for word in part[name]]
                held[name].append(np.array(codes, np.int32))
            else:
                held[name].append(part[name].astype(kind))

    with npz_archive(file) as archive:
        yield add
        for name, kind in COLUMNS.items():
            none = np.zeros(0, np.int32 if kind == WORD else kind)
            write_member(archive, name, np.concatenate([none, *held[name]]))
        for name, known in words.items():
            write_member(archive, name + _WORDS, np.array(list(known), np.str_))
        write_member(archive, "metadata", np.array(metadata))
