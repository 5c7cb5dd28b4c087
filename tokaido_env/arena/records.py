"""Record files of matches: append finished games, load them in a later run, merge several files.

When all games are there, `sort` puts the lines into the order of the games: the file has the same
bytes however often the run was stopped, and whichever executor played the games.
"""

from __future__ import annotations

import json
import os
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.content import difference
from tokaido_env.arena.game_runner import FinishedGames, Numbers, mark_forfeits
from tokaido_env.arena.match import SCORE_KEYS, store_ends
from tokaido_env.arena.tournament import MatchState
from tokaido_env.arena.variance_reduction import store_luck
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards, board_by_name
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.state import ENDS, put_rows
from tokaido_env.files import atomic_write, flush_folder, flush_to_disk, lock, name_path_in_errors
from tokaido_env.record import (
    BLANK,
    FORFEIT,
    FORMAT,
    Files,
    Record,
    RecordError,
    entry_of,
    game_key,
    parse_lines,
    read_unverified,
    replay,
)
from tokaido_env.trajectory import labels_of, replay_chunks

HEAD = b'{"format": "%s"' % FORMAT.encode()  # how every line begins

_BLANK = BLANK.encode()

LINES_AT_ONCE = 256  # games replayed at once; the states of a whole file could fill the memory


class RecordFile:
    """The record file of some matches: loads its games, and appends games as they finish.

    A file is read line by line. Its lines stay as they are; a half-written line at the end, of a
    run that was killed, is cut off, and zero bytes after a power cut.

    Args:
        path: the file; created if it does not exist.
        match_states: the matches. Games of the file are stored in them; games that are played
            later come with their events.

    Attributes:
        loaded: number of games that the file held.
        dropped_bytes: length of the half-written line that was cut off the end.

    Raises:
        RecordError: if the file holds anything else than games of these matches, naming the line;
            the file stays unchanged.
        InUseError: if another command writes the file, which is locked while this object exists.
    """

    def __init__(self, path: Path, match_states: Sequence[MatchState]) -> None:
        weakref.finalize(self, lock(path))
        self._path = path
        self._match_states = list(match_states)
        for match_state in match_states:
            match_state.with_events = True
        self._first_games = np.cumsum([0, *map(len, match_states)])
        # Begin and end in the file of the line of each game, of all matches in turn; 0, 0: the game
        # is not in the file.
        self._lines = np.zeros((int(self._first_games[-1]), 2), np.int64)
        self.loaded = self.dropped_bytes = 0
        if path.exists():
            self._load()
        path.touch()
        with self._open_at_end():
            pass  # only cut off a half-written line
        flush_folder(path.resolve().parent)

    def append(self, match_state: MatchState, finished: FinishedGames) -> None:
        """Append the records of finished games of a match, and flush them to the disk."""
        assert finished.events is not None
        places = []
        with self._open_at_end() as file:
            for number, events in zip(finished.numbers.tolist(), finished.events, strict=True):
                labels = labels_of(_board_of(match_state, number), events)
                begin = file.tell()
                file.write((_record(match_state, number, labels).to_json() + "\n").encode())
                places.append((begin, file.tell()))
        index = next(i for i, one in enumerate(self._match_states) if one is match_state)
        # One assignment: Ctrl-C may come at any time.
        self._lines[int(self._first_games[index]) + finished.numbers] = places

    def sort(self) -> None:
        """Put the lines into the order of the games, in a new file that replaces this one."""
        present = np.flatnonzero(self._lines[:, 1])
        if (np.diff(self._lines[present, 0]) > 0).all():
            return
        places = np.zeros_like(self._lines)
        with atomic_write(self._path.resolve()) as new, self._path.open("rb") as old:
            for game in present.tolist():
                begin, end = self._lines[game].tolist()
                old.seek(begin)
                places[game, 0] = new.tell()
                new.write(old.read(end - begin).strip(_BLANK) + b"\n")
                places[game, 1] = new.tell()
        self._lines = places

    def _load(self) -> None:
        ends = [0]
        with self._path.open("rb") as file:
            found = _load_games(self._path, _whole_lines(file, ends), _Unfound(self._match_states))
            self.dropped_bytes = file.seek(0, os.SEEK_END) - ends[-1]
        self.loaded = len(found)
        lines, matches, numbers = np.array(found, np.int64).reshape(-1, 3).T
        places = np.array(ends)[np.stack([lines - 1, lines], axis=1)]
        self._lines[self._first_games[matches] + numbers] = places

    @contextmanager
    def _open_at_end(self) -> Iterator[IO[bytes]]:
        """Open the file after its last game; remains of an interrupted write are cut off."""
        size = int(self._lines.max(initial=0))
        with name_path_in_errors(self._path), self._path.open("r+b") as file:
            file.truncate(size)
            file.seek(max(size - 1, 0))
            if file.read(1) not in (b"", b"\n"):  # an editor may leave out the last line break
                file.write(b"\n")
            yield file
            flush_to_disk(file)


def _whole_lines(file: IO[bytes], ends: list[int]) -> Iterator[bytes]:
    """Yield the lines of a file but for a half-written one at its end; append their ends.

    A power cut may leave zero bytes at the end; they are no part of a line.
    """
    for whole_line in file:
        line = whole_line.rstrip(b"\0")
        is_record = line.startswith(HEAD) or HEAD.startswith(line)
        if is_record and not line.endswith(b"\n") and not _is_whole(line):
            return
        ends.append(ends[-1] + len(line))
        yield line


def _read_games(path: Path, unfound: _Unfound) -> int:
    with path.open("rb") as lines:
        return len(_load_games(path, lines, unfound))


def records_of(match_state: MatchState, numbers: Numbers) -> list[Record]:
    """Return the records of some finished games of a match, replayed; players are named by spec.

    `numbers`, int64 (k,), are those of the games within the match.
    """
    _, events = _replayed(match_state, numbers, match_state.actions[numbers])
    pairs = zip(numbers.tolist(), events, strict=True)
    return [_record(match_state, number, labels) for number, labels in pairs]


def _replayed(
    match_state: MatchState, numbers: Numbers, actions: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.void], list[tuple[str, ...]]]:
    """Replay games of a match; return `GAME` (k,), and their events by label."""
    games, events = match_state.games[numbers], [tuple[str, ...]()] * len(numbers)
    for some, played in replay_chunks(match_state.pool, games["seed"], actions, games["board"]):
        part = games[some]
        part["decisions"] = np.bincount(played.games[played.decided], minlength=len(played))
        store_ends(part, played.board.record, np.zeros(len(part), np.int64), played.ends)
        put_rows(games, some, part)
        if match_state.with_luck:
            store_luck(games, some, played)
        for i, game in enumerate(some.tolist()):
            events[game] = played.labels(i)
    return games, events


class _Unfound:
    """The games of matches that have not been found in a file."""

    def __init__(self, match_states: Sequence[MatchState]) -> None:
        self.match_states = match_states
        self._games = _games_by_key(match_states)
        self._found, self.equal = set[bytes](), 0

    def take(self, record: Record, where: str) -> tuple[int, int] | None:
        """Return the match's index and the number of a game; None for one equal to a found one."""
        key = record.players, record.seed, (record.board, record.board_hash)
        games = self._games.get(key)
        if games:
            self._found.add(game_key(record))
            return games.pop(0)
        if game_key(record) in self._found:
            self.equal += 1
            return None
        pair = " against ".join(map(repr_short, record.players))
        board = f"{repr_short(record.board)} ({record.board_hash})"
        game = f"{where}: {pair} on {board}, seed {record.seed}"
        if games is None:
            raise RecordError(
                f"{game}, is no game of these matches: expected games of the same agents, --board, "
                "--seed and number of games; name another file"
            )
        raise RecordError(f"{game}, differs from an earlier game of these: delete one line")


class _Found(NamedTuple):
    """A game of a match found in a record file: its number, its record, and its line."""

    number: int
    record: Record
    where: str


def _load_games(
    path: Path, lines: Iterable[bytes], unfound: _Unfound
) -> list[tuple[int, int, int]]:
    """Verify the games of some lines and store them in their matches.

    Returns:
        For each game the number of its line, from 1, the index of its match, and its number within
        the match.
    """
    places: list[tuple[int, int, int]] = []
    records = parse_lines(path, lines)
    while some := list(islice(records, LINES_AT_ONCE)):
        found: dict[int, list[_Found]] = defaultdict(list)  # by index of the match
        for line, record in some:
            where = f"{path}, line {line}"
            if (place := unfound.take(record, where)) is None:
                continue
            if changed := difference(record.files, unfound.match_states[place[0]].files):
                raise RecordError(
                    f"{where}: {changed}: it is another agent than in this command: restore its "
                    "file, or name another file for the games"
                )
            places.append((line, *place))
            found[place[0]].append(_Found(place[1], record, where))
        for index in sorted(found):
            _store(unfound.match_states[index], found[index])
    return places


def _is_whole(line: bytes) -> bool:
    """Return whether a line is an object of JSON, which a cut line never is."""
    try:
        return isinstance(json.loads(line), dict)  # `parse_json` refuses whole lines too
    except (ValueError, RecursionError):
        return False


def _store(match_state: MatchState, found: list[_Found]) -> None:
    """Verify games by replaying them, and store them in their match."""
    for game in found:
        with _naming_line(game.where):
            if game.record.end is None:
                raise RecordError("expected a game that is over, got an unfinished one")
            if game.record.forfeit is not None:  # only the seat to decide can forfeit
                replay(game.record, _board_of(match_state, game.number))
    numbers = np.array([game.number for game in found])
    chosen = [[IDS[e] for e in game.record.events if e in IDS] for game in found]
    actions = np.full((len(found), max(map(len, chosen))), -1, np.int8)
    for row, played in zip(actions, chosen, strict=True):
        row[: len(played)] = played
    games, events = _replayed(match_state, numbers, actions)
    for game, labels in zip(found, events, strict=True):
        if labels != game.record.events:
            _refuse(match_state, game)
    forfeits = {game.number: game.record.forfeit for game in found if game.record.forfeit}
    mark_forfeits(games, numbers, forfeits)
    match_state.add(FinishedGames(numbers, games, actions, None, forfeits))
    for game in found:
        if game.record != _record(match_state, game.number, game.record.events):
            _refuse(match_state, game)


def _refuse(match_state: MatchState, game: _Found) -> None:
    """Raise an error for a game that differs from the replay of its seed and actions."""
    with _naming_line(game.where):
        replay(game.record, _board_of(match_state, game.number))
        raise RecordError("its outcomes are not those of its seed")


@contextmanager
def _naming_line(where: str) -> Iterator[None]:
    """Add the file and line to the errors of a record."""
    try:
        yield
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None


def _board_of(match_state: MatchState, number: int) -> Board:
    return match_state.pool[int(match_state.games["board"][number])]


def _games_by_key(
    match_states: Sequence[MatchState],
) -> dict[tuple[tuple[str, ...], int | None, tuple[str, str | None]], list[tuple[int, int]]]:
    """Return the games of matches, (index of the match, number), by players, seed and board."""
    games: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for index, match_state in enumerate(match_states):
        columns = match_state.games[["seed", "board", "seat_of_a"]].tolist()
        for number, (seed, board, seat) in enumerate(columns):
            one = match_state.pool[board]
            key = _players(match_state, seat), seed, (one.name, one.hash)
            games[key].append((index, number))
    return games


def _players(match_state: MatchState, seat_of_a: int) -> tuple[str, str]:
    pair = match_state.a, match_state.b
    return pair[::-1] if seat_of_a else pair


def _record(match_state: MatchState, number: int, events: tuple[str, ...]) -> Record:
    game, forfeit = match_state.games[number], match_state.forfeits.get(number)
    seat_of_a, result = int(game["seat_of_a"]), float(game["result"])
    points = game["points"].tolist()
    scores = [dict(zip(SCORE_KEYS, [*p, sum(p)], strict=True)) for p in points]
    board = _board_of(match_state, number)
    return Record(
        board=board.name,
        board_hash=board.hash,
        seed=int(game["seed"]),
        start=None,
        players=_players(match_state, seat_of_a),
        events=events,
        scores=tuple(scores[::-1] if seat_of_a else scores),
        winner=None if result == 0.5 else seat_of_a ^ int(result == 0.0),
        end=ENDS[game["end"]] if forfeit is None else FORFEIT,
        rounds=int(game["rounds"]),
        forfeit=forfeit,
        files=match_state.files,
    )


# Matches from the files of several runs


class MergedMatches(NamedTuple):
    """Matches from record files.

    Attributes:
        match_states: one for every two agents that met, in the order of their first games.
        games: number of distinct games in the files.
        unpaired: number of games without the game of swapped seats; they are not counted.
        equal: number of games that equal a counted one.
    """

    match_states: list[MatchState]
    games: int
    unpaired: int
    equal: int


_SeedsByAgents = dict[tuple[str, str], dict[tuple[int, str], None]]
"""Seeds and boards of the games of two agents; dicts as ordered sets."""
_FilesByAgent = dict[str, tuple[Files, str]]
"""The entry of an agent in `Record.files`, and the place of its first game."""


def merge_records(
    files: Sequence[Path], boards: Boards | None = None, *, luck: bool = False
) -> MergedMatches:
    """Read the matches of record files: shards of one run, several seeds, games of other machines.

    Every game is replayed. The pairs of two agents form one match, in the order of the seeds: the
    order of the files only changes which one is `a`, player_0 of the first game.

    Args:
        files: one or more; equal games count once.
        boards: of the games, unless these are built-in boards or boards of the family.
        luck: compute the luck of the games.

    Raises:
        RecordError: naming file and line, if a line is no whole game of two agents with the chance
            outcomes of its seed, or has agents, seed and board of another game.
        BoardError: if a board is neither among `boards` nor built in nor of the family.
    """
    seeds_by_agents: _SeedsByAgents = defaultdict(dict)
    by_agent: _FilesByAgent = {}
    for path in files:
        _collect_seeds(path, seeds_by_agents, by_agent)
    names = list(dict.fromkeys(board for seeds in seeds_by_agents.values() for _, board in seeds))
    if not names:
        raise RecordError(f"{', '.join(map(str, files))}: expected games, got none")
    pool = BoardPool.load([board_by_name(name, boards) for name in names])
    board_index = {name: index for index, name in enumerate(names)}
    match_states = []
    for (a, b), seeds in seeds_by_agents.items():
        order = sorted(seeds)
        columns = [[seed for seed, _ in order], [board_index[board] for _, board in order]]
        match_states.append(MatchState.from_pairs(a, b, pool, *np.array(columns, np.int64)))
        match_states[-1].with_luck = luck
        match_states[-1].files = by_agent[a][0] | by_agent[b][0]
    unfound = _Unfound(match_states)
    games = sum(_read_games(path, unfound) for path in files)
    paired = sum(2 * len(match_state.to_match().games) for match_state in match_states)
    return MergedMatches(match_states, games, games - paired, unfound.equal)


def _collect_seeds(path: Path, seeds_by_agents: _SeedsByAgents, by_agent: _FilesByAgent) -> None:
    """Add the seeds and boards of the games of a file, by agents, and what these came from."""
    for number, record in read_unverified(path):
        if record.seed is None or record.start is not None:
            raise RecordError(
                f"{path}, line {number}: expected a game of two agents, by its seed alone"
            )
        for name in record.players:
            _check_agent(name, record, f"{path}, line {number}", by_agent)
        a, b = record.players
        known = (b, a) in seeds_by_agents and (a, b) not in seeds_by_agents
        seeds_by_agents[(b, a) if known else (a, b)][record.seed, record.board] = None


def _check_agent(name: str, record: Record, where: str, by_agent: _FilesByAgent) -> None:
    """Refuse a game of an agent that came from other files in an earlier game."""
    own = entry_of(record.files, name)
    first, place = by_agent.setdefault(name, (own, where))
    if changed := difference(own, first):
        raise RecordError(
            f"{where}: {changed}: {place} has another agent of this name: leave one file out, or "
            "play one of the agents again under another name (NAME=SPEC)"
        )
