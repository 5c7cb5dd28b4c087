"""Records: games as JSON Lines, with every action and outcome by label.

A record replays without a random number. Loading plays it through: every event must have been legal
and the result true, or a `RecordError` says which line and event is wrong and what was legal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards, board_named
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import MAX_NAME_CHARS, IllegalMove, escape_text, repr_short
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.serialization import result_of
from tokaido_env.decoding import Seed, Source, Struct
from tokaido_env.files import parse_json, write_text
from tokaido_env.position import PositionError, from_dict
from tokaido_env.trajectory import Trajectory, replay_actions, replay_labels

FORMAT = "tokaido-duo"
VERSION = 1

FORFEIT = "forfeit"
RESIGNED = "resigned"
REASONS = ("crash", "illegal", "exit", "time", "memory", RESIGNED)
"""Why a player forfeits: an error, what is no legal action, the end of its process, a decision that
took too long, too much memory, or a person who gives up."""

MOST_DETAIL = 300  # characters


class RecordError(ValueError):
    """A record that is broken or untrue: the message says where and what was expected."""


class Forfeit(Struct, frozen=True):
    """How a game was lost by failing to play on: the other seat wins it.

    Attributes:
        seat: who failed, at its decision.
        reason: one of `REASONS`.
        detail: what there is to say of it, in one line.
    """

    seat: Annotated[int, Meta(ge=0, le=1)]
    reason: Annotated[str, Meta(pattern=f"^({'|'.join(REASONS)})$")]
    detail: Annotated[str, Meta(max_length=MOST_DETAIL)] = ""

    def describe(self, names: Sequence[str]) -> str:
        """Tell it in one line, the seats by their names."""
        why = f"{self.reason}: {self.detail}" if self.detail else self.reason
        return escape_text(f"{names[self.seat]} forfeits ({why})", MAX_NAME_CHARS + 2 * MOST_DETAIL)


@dataclass(frozen=True)
class Record:
    """One game, as it stands on a line of a record file."""

    board: str
    board_hash: str
    seed: Seed | None
    start: dict[str, Any] | None  # a position, for a game begun from one
    players: tuple[str, str]
    events: tuple[str, ...]  # actions and outcomes of chance, in order
    scores: tuple[dict[str, int], ...]
    winner: int | None
    end: str | None  # "triggers", "cap", "forfeit"; None: the game was not finished
    rounds: int
    forfeit: Forfeit | None = None  # stands on the line only where a seat has forfeited
    format: str = FORMAT
    version: int = VERSION
    rules: int = RULES_VERSION

    def __post_init__(self) -> None:
        right = isinstance(self.players, tuple) and len(self.players) == 2
        if not right or not all(isinstance(name, str) for name in self.players):
            raise RecordError(f"players: expected two names, got {repr_short(self.players)}")
        for name in (*self.players, self.board):
            if any("\ud800" <= sign <= "\udfff" for sign in name):
                raise RecordError(f"expected names of whole characters, got {repr_short(name)}")
        # A dataset keeps as much for each name as the longest takes.
        longest = max(map(len, self.players))
        if longest > MAX_NAME_CHARS:
            raise RecordError(
                f"players: expected names of at most {MAX_NAME_CHARS} characters, "
                f"got one of {longest}"
            )

    def to_json(self) -> str:
        """Return the record as one line."""
        order = ("format", "version", "rules")
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        forfeit = data.pop("forfeit")
        data |= {} if forfeit is None else {"forfeit": forfeit.to_dict()}
        head = {key: data.pop(key) for key in order}
        return json.dumps(head | data, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Read one line; its events are not verified yet, see `replay`."""
        try:
            data = parse_json(line)
        except ValueError as error:
            raise RecordError(f"not a whole line of JSON: {error}") from None
        source = Source("record", data, RecordError)
        source.check_versions(format=FORMAT, version=VERSION, rules=RULES_VERSION)
        wrong = {field.name for field in fields(cls)} ^ (data.keys() | {FORFEIT})
        if wrong:
            raise RecordError(f"keys missing or unknown: {escape_text(', '.join(sorted(wrong)))}")
        return source.decode(cls)


def save(records: Iterable[Record], path: str | Path) -> None:
    """Write records to a file, one a line: whole or not at all."""
    write_text(Path(path), "".join(record.to_json() + "\n" for record in records))


def load(path: str | Path, board: Boards | None = None) -> list[Record]:
    """Read and verify a record file.

    Args:
        path: the file.
        board: the board of the games, or a pool that has their boards, when they are neither
            built in nor of the family.

    Raises:
        RecordError: naming line and event; nothing half-read is returned.
    """
    return [record for _, record, _ in read_verified(path, board)]


def read_unverified(path: str | Path) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file, not verified yet, and their lines from 1.

    It is read line by line: a file may be longer than memory.

    Raises:
        RecordError: naming the line.
    """
    # No other character ends a line: a player's name may hold those that `splitlines` cuts at.
    with Path(path).open(encoding="utf-8", newline="\n") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                try:
                    record = Record.from_json(line)
                except RecordError as error:
                    raise RecordError(f"{path}, line {number}: {error}") from None
                yield number, record
        except UnicodeDecodeError as error:
            raise RecordError(f"{path}: not a text file: {error}") from None


def read_verified(
    path: str | Path, board: Boards | None = None
) -> Iterator[tuple[int, Record, Trajectory]]:
    """Yield the games of a file, each verified as it is read: its line from 1, and what was played.

    Arguments and errors as for `load`, `read_unverified` for what is held of the file.
    """
    loaded = None if board is None else BoardPool.load(board)
    for number, record in read_unverified(path):
        try:
            played = replay(record, loaded)
            check_outcomes_of_seed(record, played)
        except RecordError as error:
            raise RecordError(f"{path}, line {number}: {error}") from None
        yield number, record, played


def read_line(line: str, board: Boards | None = None) -> Record:
    """Read and verify one line of a record file; arguments and errors as for `load`."""
    record = Record.from_json(line)
    check_outcomes_of_seed(record, replay(record, board))
    return record


def replay(record: Record, board: Boards | None = None) -> Trajectory:
    """Play a record through: return each event with the position before it, verified.

    Args:
        record: the game.
        board: as for `load`.

    Raises:
        RecordError: at the first event that is not legal, or if the result is not the record's.
    """
    loaded, start = _beginning(record, board)
    try:
        played = replay_labels(loaded, record.events, start)
    except IllegalMove as error:
        raise RecordError(str(error)) from None
    for key, value in _result(record, played).items():
        claimed = getattr(record, key)
        if json.dumps(claimed) != json.dumps(value):
            where = f"after the last event ({len(record.events)})"
            raise RecordError(f"{key}: expected {value!r} {where}, got {repr_short(claimed)}")
    return played


def _result(record: Record, played: Trajectory) -> dict[str, Any]:
    """Return what has to stand in a record of what happened.

    Raises:
        RecordError: if a seat is said to have forfeited that had nothing to decide.
    """
    result = result_of(played.board.record, played.ends)
    if record.forfeit is None:
        return result
    seat, mover = record.forfeit.seat, int(played.movers[-1])
    if seat != mover:
        whose = f"it was player_{mover}'s decision" if mover >= 0 else "nobody was to decide"
        raise RecordError(f"forfeit: player_{seat} cannot forfeit after the last event: {whose}")
    return result | {"winner": 1 - seat, "end": FORFEIT}


def check_outcomes_of_seed(record: Record, played: Trajectory) -> None:
    """Check that the seed of a record, if it tells one, gives its outcomes of chance.

    Args:
        record: the record.
        played: what `replay` returned of it.

    Raises:
        RecordError: naming the first event that is not that of the seed.
    """
    if record.seed is None:
        return
    actions = np.array([[IDS[event] for event in record.events if event in IDS]], np.int8)
    seeds = np.array([record.seed], np.int64)
    given = replay_actions(played.board, seeds, actions, played.states[:1]).labels()
    for number, (event, other) in enumerate(zip(record.events, given, strict=False), start=1):
        if event != other:
            raise RecordError(
                f"event {number} of {len(record.events)}: the luck of seed {record.seed} gives "
                f"{other!r}, got {event!r}"
            )


def _beginning(record: Record, board: Boards | None) -> tuple[Board, npt.NDArray[np.void] | None]:
    """Return the board of a record and the position that it was begun from, `STATE` (1,)."""
    try:
        loaded = board_named(record.board, board)
    except BoardError as error:
        raise RecordError(f"board: {error}; give the file of its board") from None
    if loaded.hash != record.board_hash:
        got = repr_short(record.board_hash)
        raise RecordError(f"board_hash: expected {loaded.hash} of {loaded.name!r}, got {got}")
    if record.start is None:
        return loaded, None
    try:
        return loaded, from_dict(loaded, record.start)
    except PositionError as error:
        raise RecordError(f"start: {error}") from None
