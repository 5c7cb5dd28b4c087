"""Matches from record files, whoever wrote them: shards of one run, several seeds, other machines.

The files say who played, on which boards and with which luck; every game is replayed before it
counts. What two agents played in pairs is one match, in the order of the seeds, so that the files
give the same figures in any order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tokaido_env.arena.records import read_records
from tokaido_env.arena.tournament import Sheet
from tokaido_env.boards.pool import BoardPool, Boards, board_named
from tokaido_env.core.checks import shown
from tokaido_env.record import Record, RecordError


class Merged(NamedTuple):
    """Matches from files.

    Attributes:
        sheets: of every two agents that met, in the order in which they first did.
        games: in the files.
        unpaired: how many of them have no game with swapped seats beside them: they do not count.
    """

    sheets: list[Sheet]
    games: int
    unpaired: int


_Pairs = dict[tuple[str, str], dict[tuple[int, str], set[str]]]


def merge(files: Sequence[Path], boards: Boards | None = None, *, luck: bool = False) -> Merged:
    """Read the matches of record files.

    Args:
        files: one or more; no game may come twice.
        boards: on which they are, if that is neither a built-in one nor one of the family.
        luck: whether to count the luck of the games.

    Raises:
        RecordError: naming file and line, if one holds what is no whole game of two agents with
            the luck of its seed, or comes twice.
        BoardError: if a board is none that this package or the family has.
    """
    pairs: _Pairs = defaultdict(lambda: defaultdict(set))
    for path in files:
        _note(path, pairs)
    names = list(dict.fromkeys(board for games in pairs.values() for _, board in games))
    if not names:
        raise RecordError(f"{', '.join(map(str, files))}: expected games, got none")
    pool = BoardPool.load([board_named(name, boards) for name in names])
    places = {name: place for place, name in enumerate(names)}
    sheets = []
    for (a, b), games in pairs.items():
        order = sorted(games)
        seeds = np.array([seed for seed, _ in order], np.int64)
        which = np.array([places[board] for _, board in order], np.int64)
        sheets.append(Sheet.of_pairs(a, b, pool, seeds, which))
        sheets[-1].luck = luck
    read = sum(read_records(path, sheets) for path in files)
    return Merged(sheets, read, read - sum(2 * len(sheet.match().games) for sheet in sheets))


def _note(path: Path, pairs: _Pairs) -> None:
    """Note which games a file holds: who met, with which seeds, on which boards."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}, line {number}"
            try:
                record = Record.from_json(line.decode())
            except (RecordError, UnicodeDecodeError) as error:
                raise RecordError(f"{where}: {error}") from None
            if record.seed is None or record.start is not None or len(record.players) != 2:
                raise RecordError(f"{where}: expected a game of two agents, by its seed alone")
            a, b = record.players
            known = (b, a) if (b, a) in pairs and (a, b) not in pairs else (a, b)
            pairs[known][record.seed, record.board].add(a)


def shard(sheet: Sheet, number: int, of: int) -> Sheet:
    """Return the sheet of a part of a match: each so many-th pair.

    Args:
        sheet: of the whole match.
        number: of the part, from 1.
        of: how many parts there are.

    Raises:
        ValueError: if there is no such part, or no pair in it.
    """
    pairs = len(sheet) // 2
    if not 1 <= number <= of <= pairs:
        raise ValueError(f"shard: expected I/N with I from 1 to N, N at most {pairs} pairs")
    chosen = sheet.games[2 * (number - 1) :: 2 * of]
    return Sheet.of_pairs(sheet.a, sheet.b, sheet.pool, chosen["seed"], chosen["board"])


def read_shard(text: str) -> tuple[int, int]:
    """Return what `--shard I/N` stands for, or raise `ValueError`."""
    parts = text.split("/")
    if len(parts) != 2 or not all(
        one.isascii() and one.isdigit() and len(one) < 10 for one in parts
    ):
        raise ValueError(f"shard: expected I/N, as 2/8, got {shown(text)}")
    return int(parts[0]), int(parts[1])
