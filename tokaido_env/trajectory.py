"""`Trajectory`: played games as arrays, one row per event, with state and legal actions.

    replay_actions(board, seeds, actions)   many games, from seeds and decisions
    replay_labels(board, labels)            one game, from the labels of all its events

Further data about a game is one more column over these rows.
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
"""Games per chunk of `replay_chunks`, about 20 MB of rows."""

_ANY_STAGE = 31  # stage of an event known by id only: that of the current position
_ROWS_PER_DECISION = 2  # initial capacity; few games need more

Seeds = npt.NDArray[np.int64]
Actions = npt.NDArray[np.int8]
States = npt.NDArray[np.void]


@dataclass(frozen=True)
class Trajectory:
    """n played games, one after the other: a row per event, and one for the end of each game.

    Attributes:
        board: the board of all games.
        offsets: int64 (n + 1,): game `g` has the rows `offsets[g]` to `offsets[g + 1]`.
        states: `STATE` (rows,), the position before each event, and the final one.
        events: int16 (rows,), codes of the events (`core.events`); the code of a decision is its
            action id. `NO_ACTION` in the last row of a game.
        legal: uint64 (rows,), the legal actions as bits; 0 at chance and at the end.
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
        """The player to decide in each row, -1 at chance and at the end: int8 (rows,)."""
        return np.asarray(self.states["player"])

    @property
    def games(self) -> npt.NDArray[np.int64]:
        """The index of the game of each row: int64 (rows,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Whether each row has a player's decision: bool (rows,)."""
        return np.asarray((self.legal != 0) & (self.events != NO_ACTION))

    @property
    def outcomes(self) -> npt.NDArray[np.int16]:
        """The outcome id of each chance row, `NO_ACTION` elsewhere: int16 (rows,)."""
        return np.where(
            self.events < CODES_PER_STAGE, NO_ACTION, self.events % CODES_PER_STAGE
        ).astype(np.int16)

    @property
    def ends(self) -> States:
        """The final position of each game: `STATE` (n,)."""
        return copy_rows(self.states, self.offsets[1:] - 1)

    @property
    def events_by_game(self) -> npt.NDArray[np.int16]:
        """The events of each game, `NO_ACTION` after its last: int16 (n, longest)."""
        lengths = np.diff(self.offsets) - 1
        is_event = np.arange(lengths.max(initial=0)) < lengths[:, None]
        events = np.full(is_event.shape, NO_ACTION, np.int16)
        events[is_event] = self.events[self.events != NO_ACTION]
        return events

    def rows(self, game: int = 0) -> slice:
        """Return the slice of the rows of a game, by index: its events and its end."""
        game = range(len(self))[game]
        return slice(int(self.offsets[game]), int(self.offsets[game + 1]))

    def labels(self, game: int = 0) -> tuple[str, ...]:
        """Return the labels of all events of a game, in order."""
        return labels_of(self.board, self.events[self.rows(game)])

    def position(self, row: int) -> dict[str, Any]:
        """Return the position of a row as plain JSON types, for `Game.from_dict`."""
        return serialization.state_to_dict(self.board.name, self.board.record[0], self.states[row])


def labels_of(board: Board, events: npt.NDArray[np.int16]) -> tuple[str, ...]:
    """Return the labels of one game's events, up to `NO_ACTION`.

    Args:
        board: of the game.
        events: int16 (events,), codes of events.
    """
    labels = event_labels(board.kinds)
    return tuple([labels[code] for code in events.tolist() if code >= 0])


def replay_actions(
    board: Board, seeds: Seeds, actions: Actions, start: States | None = None
) -> Trajectory:
    """Replay games from their seeds and decisions; chance follows from the seeds.

    A game ends after its last action or before an illegal one.

    Args:
        board: the board of all games.
        seeds: int64 (n,), of the games.
        actions: int8 (n, longest), the decisions of each game, then -1.
        start: `STATE` (1,), the initial position of all games; by default the set-up.
    """
    capacity = _ROWS_PER_DECISION * (len(seeds) + np.count_nonzero(actions >= 0))
    each = np.ascontiguousarray(np.broadcast_to(seeds, len(actions)))
    return _replay(board, start, each, actions, int(capacity))


def replay_chunks(
    boards: Board | BoardPool,
    seeds: Seeds,
    actions: Actions,
    board_index: npt.NDArray[np.int64] | None = None,
    *,
    size: int = GAMES_PER_CHUNK,
) -> Iterator[tuple[npt.NDArray[np.int64], Trajectory]]:
    """Replay games in chunks; yield their indices, int64 (k,), with their trajectory.

    The rows of a large match would not fit into memory at once. A chunk has one board.

    Args:
        boards: a board or pool.
        seeds: int64 (n,).
        actions: int8 (n, longest), the decisions of each game, then -1.
        board_index: int64 (n,), the index of each game's board in the pool; by default the board
            drawn from the game's seed.
        size: largest number of games per chunk.
    """
    pool = BoardPool.load(boards)
    board_index = pool.indices_of_seeds(seeds) if board_index is None else board_index
    order = np.argsort(board_index, kind="stable")
    for numbers in np.split(order, np.flatnonzero(np.diff(board_index[order])) + 1):
        for first in range(0, len(numbers), size):
            chunk = numbers[first : first + size]
            board = pool[int(board_index[chunk[0]])]
            yield chunk, replay_actions(board, seeds[chunk], actions[chunk])


def replay_labels(board: Board, events: Sequence[str], start: States | None = None) -> Trajectory:
    """Replay one game from the labels of all its events, chance outcomes included.

    Args:
        board: the board.
        events: labels of actions and outcomes, in order.
        start: `STATE` (1,), the initial position, not checked; by default the set-up.

    Raises:
        IllegalMove: for an impossible event; the message has its number, from 1, and the
            alternatives.
    """
    codes = event_codes(board.kinds)
    event_ids = [codes.get(event, NO_ACTION) for event in events]
    played = _replay_codes(board, np.array(event_ids, np.int16), start)
    done = len(played.states) - 1
    if done < len(events):
        reason = illegal_move_message(board.kinds, board.record, played.ends, 0, events[done])
        raise IllegalMove(f"event {done + 1} of {len(events)}: {reason}")
    return played


def replay_ids(board: Board, ids: npt.NDArray[np.uint8], start: States) -> Trajectory:
    """Replay one game from the ids of all its events.

    Args:
        board: the board.
        ids: uint8 (k,), action and outcome ids, all possible.
        start: `STATE` (1,), the initial position.
    """
    return _replay_codes(board, CODES_PER_STAGE * _ANY_STAGE + ids.astype(np.int16), start)


def _replay_codes(board: Board, codes: npt.NDArray[np.int16], start: States | None) -> Trajectory:
    """Replay one game up to its first impossible event."""
    return _replay(board, start, None, codes[None], len(codes) + 1)


def _replay(
    board: Board, start: States | None, seeds: Seeds | None, moves: npt.NDArray[Any], capacity: int
) -> Trajectory:
    """Replay games on one board.

    Args:
        board: of all games.
        start: `STATE` (1,), the position at the start; None for that before the set-up.
        seeds: int64 (n,), from which chance follows; None if `moves` has the outcomes.
        moves: integers (n, longest), event codes, then -1; with seeds the decisions only.
        capacity: expected number of rows of all games; it grows as needed.
    """
    first_state = start_of(board.record) if start is None else start
    given_seeds = np.zeros(len(moves), np.int64) if seeds is None else seeds
    offsets = np.zeros(len(moves) + 1, np.int64)
    dtypes: Any = STATE, np.int16, np.uint64
    columns = [np.empty(capacity, dtype) for dtype in dtypes]
    codes = moves.astype(np.int16, order="C")
    args = board.record, first_state, given_seeds, codes, seeds is not None
    done = 0
    while (done := _replay_games(offsets, done, *args, *columns)) < len(moves):
        columns = [np.concatenate([each, np.empty_like(each)]) for each in columns]
    return Trajectory(board, offsets, *(each[: offsets[-1]] for each in columns))


@entry
def _replay_games(
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
    """Replay games `first` to n; return the first that exceeds the capacity, else n.

    `moves`, int16 (n, longest), are event codes, then -1; decisions only if chance is `sampled` by
    the seeds. `offsets` is filled up to game `first`, and receives the rest as the other outputs
    of a `Trajectory` do.
    """
    for i in range(first, len(moves)):
        row = offsets[i]
        columns = states[row:], events[row:], legal[row:]
        count = _replay_game(boards[0], starts[0], int64(seeds[i]), moves[i], sampled, columns)
        if count > len(columns[0]):
            return i
        offsets[i + 1] = row + count
    return len(moves)


@allocator
def _replay_game(board: Row, start: Row, seed: int, moves: Any, sampled: bool, columns: Any) -> int:
    states, events, legal = columns
    weights = np.empty(MAX_OUTCOMES, np.int64)
    luck = np.empty(1, LUCK)
    init_luck(luck[0], key_of_seed(seed))
    now = np.empty(1, STATE)
    now[0] = start
    mask = legal_of(board, now[0])
    row = 0
    used = 0
    while True:
        s = now[0]
        stage = _stage(s, mask)
        event = int64(NO_ACTION)
        if sampled and is_chance(s):
            event = int64(sample(board, s, luck[0]))
        elif used < len(moves):
            event = _if_possible(board, s, mask, stage, int64(moves[used]), weights)
            used += 1
        if row == len(states):
            return row + 1
        states[row] = s
        events[row] = event if event < 0 else CODES_PER_STAGE * stage + event
        legal[row] = mask
        row += 1
        if event < 0:
            return row
        mask = apply_outcome(board, s, event) if is_chance(s) else apply(board, s, event)


@kernel
def _stage(s: Row, mask: np.uint64) -> int:
    """Return the stage of the next event, as in `core.events`."""
    if mask != np.uint64(0):
        return int64(DECISION_STAGE)
    phase = int64(s["phase"])
    return int64(SETUP_STAGE + setup_step(s)) if phase == SETUP else phase


@kernel
def _if_possible(board: Row, s: Row, mask: np.uint64, stage: int, code: int, weights: Any) -> int:
    """Return the id of an event, or `NO_ACTION` if it is impossible."""
    event = code % CODES_PER_STAGE
    code_stage = code // CODES_PER_STAGE
    if code < 0 or (code_stage != stage and code_stage != _ANY_STAGE):
        return int64(NO_ACTION)
    if mask != np.uint64(0):
        possible = event < N_ACTIONS and mask >> np.uint64(event) & np.uint64(1) != np.uint64(0)
    else:
        possible = event < outcome_weights(board, s, weights) and weights[event] > 0
    return int64(event) if possible else int64(NO_ACTION)
