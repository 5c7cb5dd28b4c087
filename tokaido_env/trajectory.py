"""Played games as data: every state, event and legal set, one row each, game after game.

    replay_actions(board, seeds, actions)   many games, from their seeds and decisions
    replay_labels(board, labels)            one game, from everything that happened in it

What else there is to know of a game is one more column over its rows: its luck, what an agent
thought of each position, the words for each event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core import serialization
from tokaido_env.core.actions import N_ACTIONS, NO_ACTION
from tokaido_env.core.arguments import IllegalMove
from tokaido_env.core.constants import Row
from tokaido_env.core.events import (
    CODES_PER_STAGE,
    DECISION_STAGE,
    SETUP_STAGE,
    event_codes,
    event_labels,
    illegal_move_message,
)
from tokaido_env.core.jit import allocator, entry, int64, kernel
from tokaido_env.core.rng import LUCK, init_luck, key_of_seed, sample
from tokaido_env.core.rules import (
    MAX_OUTCOMES,
    apply,
    apply_outcome,
    is_chance,
    legal as legal_of,
    outcome_weights,
    setup_step,
)
from tokaido_env.core.state import SETUP, STATE, copy_rows, initial_states as start_of

GAMES_PER_CHUNK = 512
"""Games of `replay_chunks`: about 20 MB of rows."""

_ANYWHERE = 31  # the place of an event that is known by its id alone: where the game stands
_USUAL_ROWS = 2  # for each decision: few games need more

Seeds = npt.NDArray[np.int64]
Actions = npt.NDArray[np.int8]
States = npt.NDArray[np.void]


@dataclass(frozen=True)
class Trajectory:
    """Played games, n of them, one after the other: a row for each event, and one for the end.

    Attributes:
        board: of all games.
        offsets: int64 (n + 1,): game `g` has the rows `offsets[g]` to `offsets[g + 1]`.
        states: `STATE` (rows,), the position before each event, in its last row that at the end.
        events: int16 (rows,), what happened then, by its code (`core.events`): of a decision the
            id of the action; `NO_ACTION` in the last row of a game.
        legal: uint64 (rows,), the legal actions as bits; 0 at chance and when over.
    """

    board: Board
    offsets: npt.NDArray[np.int64]
    states: States
    events: npt.NDArray[np.int16]
    legal: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def movers(self) -> npt.NDArray[np.int8]:
        """Whose decision it is in each row, -1 at chance and when over: int8 (rows,)."""
        return np.asarray(self.states["player"])

    @property
    def games(self) -> npt.NDArray[np.int64]:
        """Which game each row belongs to: int64 (rows,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """In which rows a player's decision was played: bool (rows,)."""
        return np.asarray((self.legal != 0) & (self.events != NO_ACTION))

    @property
    def outcomes(self) -> npt.NDArray[np.int16]:
        """The outcome of chance in each row by its id, `NO_ACTION` elsewhere: int16 (rows,)."""
        return np.where(
            self.events < CODES_PER_STAGE, NO_ACTION, self.events % CODES_PER_STAGE
        ).astype(np.int16)

    @property
    def ends(self) -> States:
        """The position at the end of each game: `STATE` (n,)."""
        return copy_rows(self.states, self.offsets[1:] - 1)

    @property
    def events_by_game(self) -> npt.NDArray[np.int16]:
        """The events of each game, `NO_ACTION` after its last: int16 (n, longest)."""
        lengths = np.diff(self.offsets) - 1
        there = np.arange(lengths.max(initial=0)) < lengths[:, None]
        events = np.full(there.shape, NO_ACTION, np.int16)
        events[there] = self.events[self.events != NO_ACTION]
        return events

    def rows(self, game: int = 0) -> slice:
        """Return the rows of a game."""
        return slice(int(self.offsets[game]), int(self.offsets[game + 1]))

    def labels(self, game: int = 0) -> tuple[str, ...]:
        """Return everything that happened in a game, in order, by label."""
        return labels_of(self.board, self.events[self.rows(game)])

    def position(self, row: int) -> dict[str, Any]:
        """Return the position in a row as plain JSON types, for `Game.from_dict`."""
        return serialization.state_to_dict(self.board.name, self.board.record[0], self.states[row])


def labels_of(board: Board, events: npt.NDArray[np.int16]) -> tuple[str, ...]:
    """Return the labels of the events of one game; `NO_ACTION` comes after its last."""
    labels = event_labels(board.kinds)
    return tuple([labels[code] for code in events.tolist() if code >= 0])


def replay_actions(
    board: Board, seeds: Seeds, actions: Actions, start: States | None = None
) -> Trajectory:
    """Play games through from their seeds and decisions; chance follows from the seeds.

    A game ends where its actions do, or before one that is not legal.

    Args:
        board: of all games.
        seeds: int64 (n,).
        actions: int8 (n, longest), the decisions of each game, -1 after its last.
        start: `STATE` (1,), the position that the games were begun from; by default the set-up.
    """
    room = _USUAL_ROWS * (len(seeds) + np.count_nonzero(actions >= 0))
    return _played(board, start, np.ascontiguousarray(seeds), actions, int(room))


def replay_chunks(
    boards: Board | BoardPool,
    seeds: Seeds,
    actions: Actions,
    which: npt.NDArray[np.int64] | None = None,
    *,
    size: int = GAMES_PER_CHUNK,
) -> Iterator[tuple[npt.NDArray[np.int64], Trajectory]]:
    """Yield games in chunks, each as of `replay_actions`, with its games' numbers, int64 (k,).

    All rows of a large match would not fit into memory. The games of a part are of one board.

    Args:
        boards: of the games.
        seeds: int64 (n,).
        actions: int8 (n, longest), as for `replay_actions`.
        which: int64 (n,), the board of each game as an index into the pool; by default that of its
            seed.
        size: games of a part, at most.
    """
    pool = BoardPool.load(boards)
    which = pool.indices_of_seeds(seeds) if which is None else which
    order = np.argsort(which, kind="stable")
    for numbers in np.split(order, np.flatnonzero(np.diff(which[order])) + 1):
        for first in range(0, len(numbers), size):
            some = numbers[first : first + size]
            yield some, replay_actions(pool[int(which[some[0]])], seeds[some], actions[some])


def replay_labels(board: Board, events: Sequence[str], start: States | None = None) -> Trajectory:
    """Play one game through from the labels of all that happened in it, outcomes of chance too.

    Args:
        board: the board.
        events: labels of actions and outcomes, in order.
        start: `STATE` (1,), the position that the game was begun from; by default the set-up.

    Raises:
        IllegalMove: if an event was not on offer: the message names its number, from 1, and says
            what was. States need no check, events do.
    """
    codes = event_codes(board.kinds)
    known = [codes.get(event, NO_ACTION) for event in events]
    played = _of_codes(board, np.array(known, np.int16), start)
    done = len(played.states) - 1
    if done < len(events):
        why = illegal_move_message(board.kinds, board.record, played.ends, 0, events[done])
        raise IllegalMove(f"event {done + 1} of {len(events)}: {why}")
    return played


def replay_ids(board: Board, ids: npt.NDArray[np.uint8], start: States) -> Trajectory:
    """Play one game through from the ids of all its events, as `Game` keeps them.

    Args:
        board: the board.
        ids: uint8 (k,), actions and outcomes, all possible.
        start: `STATE` (1,), where it began.
    """
    return _of_codes(board, CODES_PER_STAGE * _ANYWHERE + ids.astype(np.int16), start)


def _of_codes(board: Board, codes: npt.NDArray[np.int16], start: States | None) -> Trajectory:
    """Play one game through, as far as its events are possible."""
    return _played(board, start, None, codes[None], len(codes) + 1)


def _played(
    board: Board, start: States | None, seeds: Seeds | None, moves: npt.NDArray[Any], room: int
) -> Trajectory:
    """Play games through, with room for so many rows at first."""
    begun = start_of(board.record) if start is None else start
    given = np.zeros(len(moves), np.int64) if seeds is None else seeds
    offsets = np.zeros(len(moves) + 1, np.int64)
    dtypes: Any = STATE, np.int16, np.uint64
    columns = [np.empty(room, dtype) for dtype in dtypes]
    args = board.record, begun, given, moves.astype(np.int16, order="C"), seeds is not None
    done = 0
    while (done := _play_all(offsets, done, *args, *columns)) < len(moves):
        columns = [np.concatenate([each, np.empty_like(each)]) for each in columns]
    return Trajectory(board, offsets, *(each[: offsets[-1]] for each in columns))


@entry
def _play_all(
    offsets: Any,
    first: int,
    boards: Any,
    starts: Any,
    seeds: Any,
    moves: Any,
    sampled: bool,
    states: Any,
    events: Any,
    legal: Any,
) -> int:
    """Play n games through, from game `first` on; return the first that finds no room, else n.

    Args:
        offsets: as in `Trajectory`, up to game `first`; receives the others.
        first: the first game to play.
        boards: `BOARD` (1,).
        starts: `STATE` (1,).
        seeds: int64 (n,).
        moves: int16 (n, longest), codes of events, -1 after the last: decisions only if `sampled`.
        sampled: whether chance follows from the seed.
        states, events, legal: as in `Trajectory`.
    """
    for i in range(first, len(moves)):
        row = offsets[i]
        room = states[row:], events[row:], legal[row:]
        count = _play_game(boards[0], starts[0], int64(seeds[i]), moves[i], sampled, room)
        if count > len(room[0]):
            return i
        offsets[i + 1] = row + count
    return len(moves)


@allocator
def _play_game(board: Row, start: Row, seed: int, moves: Any, sampled: bool, room: Any) -> int:
    states, events, legal = room
    odds = np.empty(MAX_OUTCOMES, np.int64)
    luck = np.empty(1, LUCK)[0]
    init_luck(luck, key_of_seed(seed))
    now = np.empty(1, STATE)
    now[0] = start
    s = now[0]
    mask = legal_of(board, s)
    row = 0
    given = 0
    while True:
        place = _place(s, mask)
        event = int64(NO_ACTION)
        if sampled and is_chance(s):
            event = int64(sample(board, s, luck))
        elif given < len(moves):
            event = _if_possible(board, s, mask, place, int64(moves[given]), odds)
            given += 1
        if row == len(states):
            return row + 1
        states[row] = s
        events[row] = event if event < 0 else CODES_PER_STAGE * place + event
        legal[row] = mask
        row += 1
        if event < 0:
            return row
        mask = apply_outcome(board, s, event) if is_chance(s) else apply(board, s, event)


@kernel
def _place(s: Row, mask: np.uint64) -> int:
    """Return where the next event is: a place of `core.events`."""
    if mask != np.uint64(0):
        return int64(DECISION_STAGE)
    phase = int64(s["phase"])
    return int64(SETUP_STAGE + setup_step(s)) if phase == SETUP else phase


@kernel
def _if_possible(board: Row, s: Row, mask: np.uint64, place: int, code: int, odds: Any) -> int:
    """Return the id of an event, or `NO_ACTION` if it is not on offer."""
    event = code % CODES_PER_STAGE
    where = code // CODES_PER_STAGE
    if code < 0 or (where != place and where != _ANYWHERE):
        return int64(NO_ACTION)
    if mask != np.uint64(0):
        possible = event < N_ACTIONS and mask >> np.uint64(event) & np.uint64(1) != np.uint64(0)
    else:
        possible = event < outcome_weights(board, s, odds) and odds[event] > 0
    return int64(event) if possible else int64(NO_ACTION)
