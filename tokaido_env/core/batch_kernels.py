"""The compiled loops of `Batch`: every loop over games is here.

Each takes `games`, the int64 indices of the games it is about, and the batch's arrays; position `j`
of what else it takes or writes belongs to `games[j]`.

No index is looked at here: `games` must be indices, and none twice where a kernel writes to games;
states must be possible (`state_validation`). Moves may be any integers: what is not on offer is not
played, so that states stay possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.core.actions import N_ACTIONS, NO_ACTION
from tokaido_env.core.bitmask import MASK_BYTES, expand_mask
from tokaido_env.core.bots import NO_BOT, RANDOM, random_action
from tokaido_env.core.constants import Row
from tokaido_env.core.entities import encode_entities
from tokaido_env.core.jit import allocator, index, int64, kernel, parallel
from tokaido_env.core.observation import N_FEATURES, encode
from tokaido_env.core.rng import sample
from tokaido_env.core.rules import is_chance, legal, outcome_weights, reward
from tokaido_env.core.state import STATE
from tokaido_env.core.stepping import (
    MASK_BITS,
    begin_episode,
    bot_move,
    checked_move,
    checked_outcome,
    decision_key,
    finish_step,
    is_legal,
    play_move,
)
from tokaido_env.core.threads import prefetch

# Games that one thread plays in the order of their moves, for a processor guesses the branches of
# one game by those of the game before; few enough for its nearest cache.
_BLOCK = 512

# So many games ahead their rows are asked for, of a board what every move reads: of many boards few
# are in the nearest caches.
_AHEAD = 8
_STATE_LINES, _BOARD_LINES = 2, 6


@parallel
def begin(games: Any, boards: Any, states: Any, lucks: Any, infos: Any, masks: Any) -> None:
    """Give games the luck of their episodes where they stand; chance is yet to come."""
    for j in prange(len(games)):
        i = games[j]
        begin_episode(lucks[i], infos[i])
        masks[i] = legal(boards[infos[i]["board"]], states[i])


@parallel
def advance(
    games: Any,
    boards: Any,
    states: Any,
    lucks: Any,
    infos: Any,
    masks: Any,
    words: Any,
    moves: Any,
    initial_states: Any,
    options_row: Any,
) -> None:
    """Play a move of each game and all that follows within a step; note what came of it.

    Args:
        words: uint64 (n, MASK_BYTES / 8), the legal masks as bytes.
        moves: int64, an action, at chance an outcome, or NO_MOVE to go on from where a game stands,
            as any that is not on offer does; written where the options's bot chooses.
        initial_states: `STATE` (b,), what a game on each of the boards begins from.
        options_row: `MODE` (1,).
    """
    for block in prange((len(games) + _BLOCK - 1) // _BLOCK):
        first = block * _BLOCK
        last = min(first + _BLOCK, len(games))
        options = options_row[0]
        scratch = _scratch()
        here, given = games[first:last], moves[first:last]
        if int(options["bot"]) != NO_BOT:
            _choose(here, boards, states, lucks, infos, masks, given, options, scratch)
        chosen, played = _in_order_of_moves(here, given)
        for k in range(len(here)):
            if k + _AHEAD < len(here):
                soon = chosen[k + _AHEAD]
                prefetch(states, soon, _STATE_LINES)
                prefetch(lucks, soon, 1)
                if len(boards) > 1:
                    prefetch(boards, int64(infos[index(soon)]["board"]), _BOARD_LINES)
            i = index(chosen[k])
            info = infos[i]
            # Rows are handed on, not arrays, whose references Numba would count at every call.
            board = boards[info["board"] if len(boards) > 1 else 0]
            move = checked_move(board, states[i], masks[i], int64(played[k]))
            mask = play_move(board, states[i], lucks[i], info, masks[i], move, options)
            if mask == np.uint64(0) or int(options["bots"]):
                moved = move != NO_ACTION
                mask = finish_step(
                    i, boards, states, lucks[i], info, mask, moved, initial_states, options, scratch
                )
            masks[i] = mask
            expand_mask(mask, words[i])


@parallel
def find_illegal(
    games: Any, boards: Any, states: Any, infos: Any, masks: Any, moves: Any, wrong: Any
) -> None:
    """Mark the moves that are not on offer in `wrong`, bool."""
    for j in prange(len(games)):
        i = games[j]
        move = int64(moves[j])
        right = is_legal(masks[i], move)
        if masks[i] == np.uint64(0):
            right = checked_outcome(boards[infos[i]["board"]], states[i], move) != NO_ACTION
        wrong[j] = not right


def mask_rows(games: npt.NDArray[np.int64], masks: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """Return the legal masks of games as bytes, int8 (k, N_ACTIONS): 1 = legal."""
    words = np.empty((len(games), MASK_BYTES // 8), np.uint64)
    unpack_masks(games, masks, words)
    return words.view(np.int8)[:, :N_ACTIONS]


@parallel
def unpack_masks(games: Any, masks: Any, words: Any) -> None:
    """Write the legal masks as bytes, `words` uint64 (k, MASK_BYTES / 8)."""
    for j in prange(len(games)):
        expand_mask(masks[games[j]], words[j])


@parallel
def observe(
    games: Any, boards: Any, states: Any, infos: Any, seats: Any, unit: Any, out: Any
) -> None:
    """Write what `seats` see, NO_PLAYER standing for seat 0, in the dtype of `unit` and `out`."""
    for j in prange(len(games)):
        i = games[j]
        seat = max(int64(seats[j]), 0)
        encode(boards[infos[i]["board"]], states[i], seat, unit, out[j])


@parallel
def observe_with_board(
    games: Any,
    boards: Any,
    states: Any,
    infos: Any,
    seats: Any,
    unit: Any,
    blocks: Any,
    standing: Any,
    out: Any,
) -> None:
    """`observe`, and the board's block behind it, which is written where another stands there.

    Args:
        blocks: (b, N_BOARD_FEATURES), `board_blocks` of the boards.
        standing: int32 (k,), of which board each row has the block, -1 for none; kept up to date.
        out: (k, N_FEATURES + N_BOARD_FEATURES).
    """
    for j in prange(len(games)):
        i = games[j]
        board = infos[i]["board"]
        encode(boards[board], states[i], max(int64(seats[j]), 0), unit, out[j, :N_FEATURES])
        if standing[j] != board:
            standing[j] = board
            out[j, N_FEATURES:] = blocks[board]


@parallel
def observe_entities(
    games: Any,
    boards: Any,
    states: Any,
    infos: Any,
    seats: Any,
    still: Any,
    standing: Any,
    out: Any,
) -> None:
    """Write what `seats` see as entities, NO_PLAYER standing for seat 0.

    Args:
        still: float32 (b, N_ENTITY_NUMBERS), what the boards alone say.
        standing: as for `observe_with_board`.
        out: float32 (k, N_ENTITY_NUMBERS).
    """
    for block in prange((len(games) + _BLOCK - 1) // _BLOCK):
        flat = _vector()
        for j in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, len(games))):
            i, k = games[j], infos[games[j]]["board"]
            if standing[j] != k:
                standing[j] = k
                out[j] = still[k]
            encode_entities(boards[k], states[i], max(int64(seats[j]), 0), flat, out[j])


@parallel
def rewards(games: Any, boards: Any, states: Any, infos: Any, margin: bool, out: Any) -> None:
    """Write the rewards of both seats as the games stand, float32 (k, 2)."""
    for j in prange(len(games)):
        i = games[j]
        for seat in range(2):
            out[j, seat] = reward(boards[infos[i]["board"]], states[i], seat, margin)


@parallel
def keys(games: Any, states: Any, infos: Any, out: Any) -> None:
    """Write what agents draw from for the next decision, uint64."""
    for j in prange(len(games)):
        out[j] = decision_key(states[games[j]], infos[games[j]])


@parallel
def weights(games: Any, boards: Any, states: Any, infos: Any, out: Any) -> None:
    """Write the odds of outcomes to rows of `out`, int64 (k, MAX_OUTCOMES), given as zeros."""
    for j in prange(len(games)):
        i = games[j]
        outcome_weights(boards[infos[i]["board"]], states[i], out[j])


@parallel
def outcomes(games: Any, boards: Any, states: Any, lucks: Any, infos: Any, out: Any) -> None:
    """Write an outcome drawn from each game's luck, int64; NO_MOVE where none is next."""
    for j in prange(len(games)):
        i = games[j]
        out[j] = NO_ACTION
        if is_chance(states[i]):
            out[j] = sample(boards[infos[i]["board"]], states[i], lucks[i])


@allocator
def _scratch() -> Any:
    """Return what bots write to; Numba cannot make it directly in a parallel loop."""
    return np.empty(2, STATE)


@allocator
def _vector() -> Any:
    """Return room for an observation, as `_scratch`."""
    return np.empty(N_FEATURES, np.float32)


@kernel
def _choose(
    games: Any,
    boards: Any,
    states: Any,
    lucks: Any,
    infos: Any,
    masks: Any,
    moves: Any,
    options: Row,
    scratch: Any,
) -> None:
    """Let the options's bot choose the moves of a block."""
    for j in range(index(len(games))):
        i = index(games[j])
        if int(options["bot"]) == RANDOM and masks[i] != np.uint64(0):
            moves[j] = random_action(masks[i], decision_key(states[i], infos[i]))
        else:
            board = boards[infos[i]["board"]]
            moves[j] = bot_move(board, states[i], lucks[i], infos[i], masks[i], options, scratch)


@allocator
def _in_order_of_moves(games: Any, moves: Any) -> Any:
    """Return the games of a block and their moves, sorted by move, by counting."""
    starts = np.zeros(MASK_BITS + 1, np.int64)
    for j in range(index(len(games))):
        starts[index(moves[j] & MASK_BITS - 1) + index(1)] += 1
    for kind in range(MASK_BITS):
        starts[kind + 1] += starts[kind]
    chosen = np.empty(_BLOCK, np.int64)
    played = np.empty(_BLOCK, np.int64)
    for j in range(index(len(games))):
        kind = index(moves[j] & MASK_BITS - 1)
        place = index(starts[kind])
        chosen[place] = games[j]
        played[place] = moves[j]
        starts[kind] += 1
    return chosen, played
