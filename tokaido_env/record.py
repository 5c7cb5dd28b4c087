"""Records: games as JSON Lines, with every action and outcome by label.

A record can be replayed without random numbers. Loading replays it: every event must be legal and
the result correct, otherwise a `RecordError` names the line, the event and the legal moves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards, board_by_name
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import MAX_NAME_CHARS, IllegalMove, escape_text, repr_short
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.serialization import result_of
from tokaido_env.decoding import Name, Seed, Source, Struct, one_of
from tokaido_env.files import json_number, parse_json, write_text
from tokaido_env.position import PositionError, from_dict
from tokaido_env.trajectory import Trajectory, replay_actions, replay_labels

FORMAT = "tokaido-duo"
VERSION = 1

FORFEIT = "forfeit"
RESIGNED = "resigned"
REASONS = ("illegal", "exit", "time", RESIGNED)
"""Reasons of a forfeit: an illegal action, the end of the player's process, a decision over the
time limit, or resignation."""

MAX_DETAIL_CHARS = 300  # characters

Files = dict[Name, Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(\+[0-9a-f]{64})*\Z")] | None]
"""SHA-256 of the files of agents, joined by "+", by SPEC or NAME=SPEC as typed; None for none."""

BLANK = "\ufeff \t\r\n"
"""Characters of a line without a record: a byte order mark and JSON's white space."""


class RecordError(ValueError):
    """An invalid or incorrect record; the message names the place and the expected value."""


def entry_of(files: Files, name: str) -> Files:
    """Return the entries of `files` with the key `name`, a spec, or a key that begins `name=`.

    Values are SHA-256; without such a key the result is empty.
    """
    return {key: one for key, one in files.items() if key == name or key.startswith(f"{name}=")}


class Forfeit(Struct, frozen=True):
    """The forfeit of a game, which the other seat wins.

    Attributes:
        seat: the player to decide, who forfeits.
        reason: one of `REASONS`.
        detail: an explanation in one line, at most `MAX_DETAIL_CHARS` characters.
    """

    seat: Annotated[int, Meta(ge=0, le=1)]
    reason: Annotated[str, one_of(REASONS)]
    detail: Annotated[str, Meta(max_length=MAX_DETAIL_CHARS)] = ""

    def describe(self, names: Sequence[str]) -> str:
        """Return a description in one line, with the name of the player."""
        reason = f"{self.reason}: {self.detail}" if self.detail else self.reason
        return escape_text(
            f"{names[self.seat]} forfeits ({reason})", MAX_NAME_CHARS + 2 * MAX_DETAIL_CHARS
        )


@dataclass(frozen=True)
class Record:
    """One game, as one line of a record file; `docs/reference/file-formats.md` explains the keys.

    Attributes:
        board: name of the board.
        board_hash: hash of its contents.
        seed: that gives the same chance outcomes; None if they were chosen.
        start: the position at the start as from `Game.to_dict`; None for the set-up.
        players: names, player_0 first.
        events: labels of actions and outcomes of chance, in order.
        scores: points of both seats by category, with the total.
        winner: the winning seat; None for a shared victory, or in an unfinished game.
        end: "triggers", "cap" or "forfeit"; None in an unfinished game.
        rounds: number of rounds, the last included.
        forfeit: the forfeit that ended the game; None without one, and left out of the line.
        files: of the players; left out of the line if it is empty.
        format: always `FORMAT`.
        version: of the record format.
        rules: version of the rules.
    """

    board: str
    board_hash: str
    seed: Seed | None
    start: dict[str, Any] | None
    players: tuple[str, str]
    events: tuple[str, ...]
    scores: tuple[dict[str, int], ...]
    winner: int | None
    end: str | None
    rounds: int
    forfeit: Forfeit | None = None
    files: Files = field(default_factory=dict)
    format: str = FORMAT
    version: int = VERSION
    rules: int = RULES_VERSION

    def __post_init__(self) -> None:
        # Each row of a table of decisions has a name.
        if len(self.players) != 2 or not all(
            isinstance(name, str) and len(name) <= MAX_NAME_CHARS for name in self.players
        ):
            raise RecordError(
                f"players: expected two names of at most {MAX_NAME_CHARS} characters, "
                f"got {repr_short(self.players)}"
            )

    def to_json(self) -> str:
        """Return the record as one line of JSON, without a line break."""
        order = ("format", "version", "rules")
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        forfeit, files = data.pop("forfeit"), data.pop("files")
        data |= {} if forfeit is None else {"forfeit": forfeit.to_dict()}
        data |= {"files": files} if files else {}
        head = {key: data.pop(key) for key in order}
        return json.dumps(head | data, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Parse one line, or raise `RecordError`; `replay` verifies its events."""
        try:
            data = parse_json(line, json_number)
        except ValueError as error:
            raise RecordError(f"not a whole line of JSON: {error}") from None
        source = Source("record", data, RecordError)
        source.check_versions(format=FORMAT, version=VERSION, rules=RULES_VERSION)
        wrong = {field.name for field in fields(cls)} ^ (data.keys() | {FORFEIT, "files"})
        if wrong:
            raise RecordError(f"keys missing or unknown: {escape_text(', '.join(sorted(wrong)))}")
        return source.decode(cls)


def save(records: Iterable[Record], path: str | Path) -> None:
    """Write records to a file, one per line, whole or not at all; see `files.atomic_write`."""
    write_text(Path(path), "".join(record.to_json() + "\n" for record in records))


def load(path: str | Path, board: Boards | None = None) -> list[Record]:
    """Read and verify a record file.

    Args:
        path: path of the file.
        board: the board of the games, or a pool with their boards; required for boards that are
            neither built in nor of the family.

    Raises:
        RecordError: naming the line and the event.
    """
    return [record for _, record, _ in read_verified(path, board)]


def read_unverified(path: str | Path) -> Iterator[tuple[int, Record]]:
    """Yield the line number (from 1) and the unverified record of each line.

    The file is read line by line, because it may be larger than memory.

    Raises:
        RecordError: naming the line.
    """
    with Path(path).open("rb") as lines:
        yield from parse_lines(path, lines)


def parse_lines(path: str | Path, lines: Iterable[bytes]) -> Iterator[tuple[int, Record]]:
    """Yield what `read_unverified` yields, of the lines of a file; blank lines are skipped.

    Args:
        path: for errors.
        lines: of the file.

    Raises:
        RecordError: naming the line.
    """
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode()
            if "\0" in text:
                raise RecordError(
                    "zero bytes, as after a power cut: delete them; the command that wrote the "
                    "file cuts them off at its end"
                )
            if text.strip(BLANK):
                yield number, Record.from_json(text)
        except RecordError as error:
            raise RecordError(f"{path}, line {number}: {error}") from None
        except UnicodeDecodeError as error:
            raise RecordError(f"{path}, line {number}: not a text file: {error}") from None


def game_key(record: Record) -> bytes:
    """Return a hash that equal games share: of board, seed, start, players, events and end."""
    parts = record.board_hash, record.seed, record.start, record.players, record.events, record.end
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


def read_verified(
    path: str | Path, board: Boards | None = None, *, distinct: bool = False
) -> Iterator[tuple[int, Record, Trajectory]]:
    """Yield the line number (from 1), the verified record and the trajectory of each game.

    Arguments and errors are those of `load`. Nothing is read ahead; see `read_unverified`. If
    `distinct` is true, only the first of equal games (`game_key`) is yielded.
    """
    loaded, found = None if board is None else BoardPool.load(board), set[bytes]()
    for number, record in read_unverified(path):
        try:
            played = replay(record, loaded)
            check_outcomes_of_seed(record, played)
        except RecordError as error:
            raise RecordError(f"{path}, line {number}: {error}") from None
        if distinct:
            if (key := game_key(record)) in found:
                continue
            found.add(key)
        yield number, record, played


def replay(record: Record, board: Boards | None = None) -> Trajectory:
    """Replay a record and verify it; return its events with the position before each.

    Args:
        record: the game.
        board: the board or pool of the game, required if neither built in nor of the family.

    Raises:
        RecordError: for the first illegal event, or a result that differs from the record.
    """
    loaded, start = _board_and_start(record, board)
    try:
        played = replay_labels(loaded, record.events, start)
    except IllegalMove as error:
        raise RecordError(str(error)) from None
    for key, value in _expected_result(record, played).items():
        claimed = getattr(record, key)
        if claimed != value:
            where = f"after the last event ({len(record.events)})"
            raise RecordError(f"{key}: expected {value!r} {where}, got {repr_short(claimed)}")
    return played


def _expected_result(record: Record, played: Trajectory) -> dict[str, Any]:
    """Return the correct result fields of a record.

    Raises:
        RecordError: for a forfeit of a seat that was not to decide.
    """
    result = result_of(played.board.record, played.ends)
    if record.forfeit is None:
        return result
    seat, mover = record.forfeit.seat, int(played.movers[-1])
    if seat != mover:
        turn = f"it was player_{mover}'s decision" if mover >= 0 else "nobody was to decide"
        raise RecordError(f"forfeit: player_{seat} cannot forfeit after the last event: {turn}")
    return result | {"winner": 1 - seat, "end": FORFEIT}


def check_outcomes_of_seed(record: Record, played: Trajectory) -> None:
    """Check that the seed of a record, if it has one, produces its chance outcomes.

    Args:
        record: the record.
        played: the trajectory that `replay` returned for it.

    Raises:
        RecordError: naming the first event that differs.
    """
    if record.seed is None:
        return
    actions = np.array([[IDS[event] for event in record.events if event in IDS]], np.int8)
    seeds = np.array([record.seed], np.int64)
    expected = replay_actions(played.board, seeds, actions, played.states[:1]).labels()
    for number, (event, other) in enumerate(zip(record.events, expected, strict=False), start=1):
        if event != other:
            raise RecordError(
                f"event {number} of {len(record.events)}: expected {other!r} from seed "
                f"{record.seed}, got {event!r}"
            )


def _board_and_start(
    record: Record, board: Boards | None
) -> tuple[Board, npt.NDArray[np.void] | None]:
    """Return the board of a record and its initial state, `STATE` (1,), or None for the set-up."""
    try:
        loaded = board_by_name(record.board, board)
    except BoardError as error:
        raise RecordError(f"board: {error}") from None
    if loaded.hash != record.board_hash:
        got = repr_short(record.board_hash)
        raise RecordError(f"board_hash: expected {loaded.hash} of {loaded.name!r}, got {got}")
    if record.start is None:
        return loaded, None
    try:
        return loaded, from_dict(loaded, record.start)
    except PositionError as error:
        raise RecordError(f"start: {error}") from None
