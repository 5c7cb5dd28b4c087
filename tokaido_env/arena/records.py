"""Matches as record files: games are appended as they finish, and taken over by a later run.

Once all are there, their lines are put into the order of the games: the file is the same, whatever
was stopped, in however many processes the games were played.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.game_runner import FinishedGames, Numbers
from tokaido_env.arena.match import SCORE_KEYS, store_played
from tokaido_env.arena.tournament import MatchState
from tokaido_env.arena.variance_reduction import store_luck
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards, board_named
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import escape_text, repr_short
from tokaido_env.core.state import ENDS
from tokaido_env.files import atomic_write, flush_folder, flush_to_disk, lock, name_path_in_errors
from tokaido_env.record import FORFEIT, FORMAT, Record, RecordError, replay
from tokaido_env.trajectory import labels_of, replay_chunks

HEAD = b'{"format": "%s"' % FORMAT.encode()  # how every line begins

_OTHERS = -1  # as the number of a match_state: of games of others, whose first comes after all

AT_ONCE = 4096  # lines read, so that a large file needs little memory


class RecordFile:
    """The record file of some matches.

    Args:
        path: the file; it is made if there is none.
        match_states: the matches. Games of the file are filled in; later ones come with their
            events.
        players: games of others than these may stand in the file, and stay; None: none may.

    Attributes:
        taken: how many games of these matches the file held.
        others: how many games of other players it holds.
        dropped: how many bytes of a half-written line were cut off its end.

    Raises:
        RecordError: if the file holds anything else than games of these matches; it is left as it
            was.
        InUseError: if another command writes it: it is kept as long as this object lives.
    """

    def __init__(
        self, path: Path, match_states: Sequence[MatchState], players: Sequence[str] | None = None
    ) -> None:
        weakref.finalize(self, lock(path))
        text = path.read_bytes() if path.exists() else b""
        whole, _, rest = text.rpartition(b"\n")
        if rest and not (rest.startswith(HEAD) or HEAD.startswith(rest)):
            raise RecordError(f"{path}: not a record file: it ends with {rest[:40]!r}")
        lines = whole.split(b"\n") if whole else []
        self._path = path
        self._match_states = list(match_states)
        for match_state in match_states:
            match_state.with_events = True
        self._firsts = np.cumsum([0, *map(len, match_states)])
        taken = np.array(_take_over(path, lines, match_states, players), np.int64).reshape(-1, 2)
        self.other_games = int((taken[:, 0] == _OTHERS).sum())
        self.loaded = len(lines) - self.other_games
        # Where the line of each game, of all matches and then of others, begins and ends in the
        # file; 0, 0: nowhere.
        self._lines = np.zeros((int(self._firsts[-1]) + self.other_games, 2), np.int64)
        games = self._firsts[taken[:, 0]] + taken[:, 1]
        self._note(games, np.array([len(line) + 1 for line in lines], np.int64))
        self.dropped_bytes = len(rest)
        path.touch()
        self._write(b"")
        flush_folder(path.resolve().parent)

    def append(self, match_state: MatchState, finished: FinishedGames) -> None:
        """Write finished games of a match and see them on the disk."""
        assert finished.events is not None
        lines = []
        for number, events in zip(finished.numbers.tolist(), finished.events, strict=True):
            labels = labels_of(_board_of(match_state, match_state.games[number]), events)
            lines.append((_record(match_state, number, labels).to_json() + "\n").encode())
        self._write(b"".join(lines))
        games = self._first(match_state) + finished.numbers
        self._note(games, np.array([len(line) for line in lines], np.int64))

    def sort(self) -> None:
        """Put the lines into the order of the games; those of others come last."""
        there = np.flatnonzero(self._lines[:, 1])
        lines = self._lines[there]
        if (np.diff(lines[:, 0]) > 0).all():
            return
        with atomic_write(self._path.resolve()) as new, self._path.open("rb") as old:
            for begin, end in lines.tolist():
                old.seek(begin)
                new.write(old.read(end - begin))
        self._lines[:] = 0
        self._note(there, np.diff(lines)[:, 0])

    @property
    def _size(self) -> int:
        """How many bytes of the file are whole lines."""
        return int(self._lines.max(initial=0))

    def _first(self, match_state: MatchState) -> int:
        """Return the number, among the games of all matches, of the first of a match."""
        place = next(i for i, one in enumerate(self._match_states) if one is match_state)
        return int(self._firsts[place])

    def _note(self, games: Numbers, sizes: Numbers) -> None:
        """Note lines that follow the others in the file: at once, Ctrl-C may come any time."""
        ends = self._size + np.cumsum(sizes)
        self._lines[games] = np.stack([ends - sizes, ends], axis=1)

    def _write(self, lines: bytes) -> None:
        """Write after the last whole line, whatever an interrupted write has left there."""
        with name_path_in_errors(self._path), self._path.open("r+b") as file:
            file.seek(self._size)
            file.truncate()
            file.write(lines)
            flush_to_disk(file)


def read_records(path: Path, match_states: Sequence[MatchState]) -> int:
    """Fill the games of a record file into the matches that they belong to, each verified.

    The file is left as it is.

    Returns:
        How many games it holds.

    Raises:
        RecordError: if it holds anything else than games of these matches, naming the line.
    """
    text = path.read_bytes()
    if text and not text.endswith(b"\n"):
        raise RecordError(f"{path}: its last line is cut short: expected whole lines")
    lines = text.split(b"\n")[:-1]
    return len(_take_over(path, lines, match_states))


def records_of(match_state: MatchState, numbers: Numbers) -> list[Record]:
    """Return the records of finished games of a match, which are replayed.

    The players are called by their specs.
    """
    _, events = _replayed(match_state, numbers, match_state.actions[numbers])
    each = zip(numbers.tolist(), events, strict=True)
    return [_record(match_state, number, labels) for number, labels in each]


def _replayed(
    match_state: MatchState, numbers: Numbers, actions: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.void], list[tuple[str, ...]]]:
    """Return what happened in some games of a match, `GAME` (k,), and their events by label."""
    games, events = match_state.games[numbers], [tuple[str, ...]()] * len(numbers)
    for some, played in replay_chunks(match_state.pool, games["seed"], actions, games["board"]):
        store_played(games, some, played)
        if match_state.with_luck:
            store_luck(games, some, played)
        for place, game in enumerate(some.tolist()):
            events[game] = played.labels(place)
    return games, events


def _take_over(
    path: Path,
    lines: list[bytes],
    match_states: Sequence[MatchState],
    players: Sequence[str] | None = None,
) -> list[tuple[int, int]]:
    """Fill the games of some lines into the match_states that they belong to, each verified.

    Returns:
        Which game each line is: the index of the match and the number within it; for games of
        other players, which are not checked, `_OTHERS` and how many such came before.
    """
    places = _places(match_states) if lines else {}
    taken: list[tuple[int, int]] = []
    others = 0
    for first in range(0, len(lines), AT_ONCE):
        found: dict[int, list[_Found]] = defaultdict(list)  # by match_state
        for i, line in enumerate(lines[first : first + AT_ONCE], start=first + 1):
            where = f"{path}, line {i}"
            record = _read(where, line)
            if players is not None and not set(record.players) <= set(players):
                taken.append((_OTHERS, others))
                others += 1
                continue
            _check_board(where, record, match_states)
            games = places.get((record.players, record.seed, record.board))
            if not games:
                players = " against ".join(map(repr_short, record.players))
                on = "" if len(match_states[0].pool) == 1 else f" on {repr_short(record.board)}"
                raise RecordError(
                    f"{where}: {players}{on}, seed {record.seed}, is no game of these matches, or "
                    "comes twice: other agents, another --seed or fewer --games; name another file"
                )
            match_state, game = games.pop(0)
            taken.append((match_state, game))
            found[match_state].append(_Found(game, record, where))
        for match_state in sorted(found):
            _fill_in(match_states[match_state], found[match_state])
    return taken


class _Found(NamedTuple):
    """A game of a match_state that stands in a record file."""

    number: int
    record: Record
    where: str


def _fill_in(match_state: MatchState, found: list[_Found]) -> None:
    for each in found:
        with _named(each.where):
            if each.record.end is None:
                raise RecordError("expected a game that is over, got an unfinished one")
            if each.record.forfeit is not None:  # a seat can only if it had something to decide
                replay(each.record, _board_of(match_state, match_state.games[each.number]))
    numbers = np.array([each.number for each in found])
    chosen = [[IDS[e] for e in each.record.events if e in IDS] for each in found]
    actions = np.full((len(found), max(map(len, chosen))), -1, np.int8)
    for row, played in zip(actions, chosen, strict=True):
        row[: len(played)] = played
    games, events = _replayed(match_state, numbers, actions)
    for each, labels in zip(found, events, strict=True):
        if labels != each.record.events:
            _refuse(each, _board_of(match_state, match_state.games[each.number]))
    forfeits = {each.number: each.record.forfeit for each in found if each.record.forfeit}
    match_state.put(FinishedGames.forfeited(numbers, games, actions, None, forfeits))
    for each in found:
        if each.record != _record(match_state, each.number, each.record.events):
            _refuse(each, _board_of(match_state, match_state.games[each.number]))


def _refuse(found: _Found, board: Board) -> None:
    """Raise an error for a game that is not what its seed and actions give."""
    with _named(found.where):
        replay(found.record, board)
        raise RecordError("its outcomes are not those of its seed")


def _read(where: str, line: bytes) -> Record:
    with _named(where):
        return Record.from_json(line.decode())


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Let errors of a record name the line that it stands in."""
    try:
        yield
    except (RecordError, UnicodeDecodeError) as error:
        raise RecordError(f"{where}: {error}") from None


def _check_board(where: str, record: Record, match_states: Sequence[MatchState]) -> None:
    """Refuse a game on a board that is none of the matches'."""
    board = _board_named(record.board, match_states)
    if board is None or record.board_hash != board.hash:
        own = match_states[0].pool
        right = own[0] if len(own) == 1 else board
        expected = repr(own.name) if right is None else f"{right.name!r} ({right.hash})"
        got = f"{repr_short(record.board)} ({escape_text(str(record.board_hash))})"
        raise RecordError(
            f"{where}: a game on board {got}, these matches are on {expected}: name another file"
        )


def _board_named(name: str, match_states: Sequence[MatchState]) -> Board | None:
    """Return the board of a name that one of the matches is played on, None if none is."""
    for pool in {id(match_state.pool): match_state.pool for match_state in match_states}.values():
        try:
            return pool[pool.index(name)]
        except BoardError:
            continue
    return None


def _board_of(match_state: MatchState, game: np.void) -> Board:
    return match_state.pool[int(game["board"])]


def _places(
    match_states: Sequence[MatchState],
) -> dict[tuple[tuple[str, ...], int | None, str], list[tuple[int, int]]]:
    """Return by players, seed and board which games they are: (match_state, number)."""
    places: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for i, match_state in enumerate(match_states):
        columns = match_state.games[["seed", "board", "seat_of_a"]].tolist()
        for game, (seed, board, seat) in enumerate(columns):
            places[_players(match_state, seat), seed, match_state.pool[board].name].append(
                (i, game)
            )
    return places


def _players(match_state: MatchState, seat_of_a: int) -> tuple[str, str]:
    return (match_state.b, match_state.a) if seat_of_a else (match_state.a, match_state.b)


def _record(match_state: MatchState, number: int, events: tuple[str, ...]) -> Record:
    game, forfeit = match_state.games[number], match_state.forfeits.get(number)
    seat_of_a, result = int(game["seat_of_a"]), float(game["result"])
    points = game["points"].tolist()
    scores = [dict(zip(SCORE_KEYS, [*p, sum(p)], strict=True)) for p in points]
    board = _board_of(match_state, game)
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
    )


# Matches from the files of many runs


class MergedMatches(NamedTuple):
    """Matches from files.

    Attributes:
        match_states: of every two agents that met, in the order in which they first did.
        games: in the files.
        unpaired: how many of them have no game with swapped seats beside them: they do not count.
    """

    match_states: list[MatchState]
    games: int
    unpaired: int


_Pairs = dict[tuple[str, str], dict[tuple[int, str], set[str]]]


def merge_records(
    files: Sequence[Path], boards: Boards | None = None, *, luck: bool = False
) -> MergedMatches:
    """Read the matches of record files: shards of one run, several seeds, other machines' games.

    Every game is replayed before it counts. What two agents played in pairs is one match, in the
    order of the seeds, so that the files give the same figures in any order.

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
    match_states = []
    for (a, b), games in pairs.items():
        order = sorted(games)
        seeds = np.array([seed for seed, _ in order], np.int64)
        which = np.array([places[board] for _, board in order], np.int64)
        match_states.append(MatchState.from_pairs(a, b, pool, seeds, which))
        match_states[-1].with_luck = luck
    read = sum(read_records(path, match_states) for path in files)
    return MergedMatches(
        match_states,
        read,
        read - sum(2 * len(match_state.to_match().games) for match_state in match_states),
    )


def _note(path: Path, pairs: _Pairs) -> None:
    """Note which games a file holds: who met, with which seeds, on which boards."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}, line {number}"
            record = _read(where, line)
            if record.seed is None or record.start is not None or len(record.players) != 2:
                raise RecordError(f"{where}: expected a game of two agents, by its seed alone")
            a, b = record.players
            known = (b, a) if (b, a) in pairs and (a, b) not in pairs else (a, b)
            pairs[known][record.seed, record.board].add(a)


def shard(match_state: MatchState, number: int, of: int) -> MatchState:
    """Return the match_state of a part of a match: each so many-th pair.

    Args:
        match_state: of the whole match.
        number: of the part, from 1.
        of: how many parts there are.

    Raises:
        ValueError: if there is no such part, or no pair in it.
    """
    pairs = len(match_state) // 2
    if not 1 <= number <= of <= pairs:
        raise ValueError(f"shard: expected I/N with I from 1 to N, N at most {pairs} pairs")
    chosen = match_state.games[2 * (number - 1) :: 2 * of]
    return MatchState.from_pairs(
        match_state.a, match_state.b, match_state.pool, chosen["seed"], chosen["board"]
    )


def parse_shard(text: str) -> tuple[int, int]:
    """Return what `--shard I/N` stands for, or raise `ValueError`."""
    parts = text.split("/")
    if len(parts) != 2 or not all(
        one.isascii() and one.isdigit() and len(one) < 10 for one in parts
    ):
        raise ValueError(f"shard: expected I/N, as 2/8, got {repr_short(text)}")
    return int(parts[0]), int(parts[1])
