"""Compiled loops over the games of a `Batch`.

Each kernel takes `games`, int64 (k,), the indices of the games to process, and the arrays of a
batch of n games:

    boards    BOARD (b,)
    states    STATE (n,)
    lucks     LUCK (n,)
    infos     EPISODE_INFO (n,)
    masks     uint64 (n,), the legal actions as bits

Row `j` of every other argument or output, (k, …), belongs to `games[j]`. Such are `moves`, int64,
and `seats`, int8.

Kernels check no index: `games` must hold valid indices, each once where a kernel writes to games,
and states must be possible (`state_validation`). Moves may be any integers: an illegal move is not
played, so states stay possible.
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
from tokaido_env.core.jit import allocator, entry, index, int64, kernel, parallel
from tokaido_env.core.observation import N_FEATURES, encode
from tokaido_env.core.rng import sample
from tokaido_env.core.rules import is_chance, legal, outcome_weights, reward
from tokaido_env.core.state import OVER, STATE
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

# One thread plays a block of games in the order of their moves, because a processor predicts the
# branches of a game from those of the game before. A block fits in the nearest cache.
_BLOCK = 512

DECIDING = np.zeros(0, np.int8)
"""Seats to observe: in each game the one that decides next."""

# Rows are prefetched this many games ahead: of a state, and of the fields of a board that every
# move reads. With many boards, few are in the nearest caches.
_AHEAD = 8
_STATE_LINES, _BOARD_LINES = 2, 6  # cache lines


@entry
def begin(games: Any, boards: Any, states: Any, lucks: Any, infos: Any, masks: Any) -> None:
    """Begin episodes from the present states: set luck, info, masks; arrays as for `advance`."""
    for j in range(len(games)):
        i = games[j]
        begin_episode(lucks[i], infos[i])
        masks[i] = legal(boards[infos[i]["board"]], states[i])


@parallel()
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
    """Play one step of each game: its move, chance, its end, the next episode and bots.

    Args:
        games: int64 (k,), indices of the games to process, not checked, each once.
        boards: `BOARD` (b,).
        states: `STATE` (n,); like `lucks`, `infos` and `masks` changed in place.
        lucks: `LUCK` (n,).
        infos: `EPISODE_INFO` (n,).
        masks: uint64 (n,), the legal actions as bits.
        words: uint64 (n, MASK_BYTES / 8), the legal masks as bytes; written.
        moves: int64 (k,), an action, at chance an outcome, or NO_ACTION for no move; an illegal
            move counts as NO_ACTION. Written if the options name a bot.
        initial_states: `STATE` (b,), the initial state on each board.
        options_row: `STEP_OPTIONS` (1,).
    """
    for block in prange((len(games) + _BLOCK - 1) // _BLOCK):
        first = block * _BLOCK
        last = min(first + _BLOCK, len(games))
        options = options_row[0]
        scratch = _scratch()
        block_games, block_moves = games[first:last], moves[first:last]
        if int(options["bot"]) != NO_BOT:
            _choose_moves(
                block_games, boards, states, lucks, infos, masks, block_moves, options, scratch
            )
        ordered_games, ordered_moves = _sorted_by_move(block_games, block_moves)
        for k in range(len(block_games)):
            if k + _AHEAD < len(block_games):
                soon = ordered_games[k + _AHEAD]
                prefetch(states, soon, _STATE_LINES)
                prefetch(lucks, soon, 1)
                if len(boards) > 1:
                    prefetch(boards, int64(infos[index(soon)]["board"]), _BOARD_LINES)
            i = index(ordered_games[k])
            info = infos[i]
            # Kernels get rows: Numba would count the references of arrays at every call.
            board = boards[info["board"] if len(boards) > 1 else 0]
            over = int(states[i]["phase"]) == OVER
            move = checked_move(board, states[i], masks[i], int64(ordered_moves[k]))
            mask = play_move(board, states[i], lucks[i], info, masks[i], move, options)
            if mask == np.uint64(0) or int(options["bots"]):
                mask = finish_step(
                    i, boards, states, lucks[i], info, mask, over, initial_states, options, scratch
                )
            masks[i] = mask
            expand_mask(mask, words[i])


@entry
def find_illegal(
    games: Any, boards: Any, states: Any, infos: Any, masks: Any, moves: Any, wrong: Any
) -> None:
    """Write to `wrong`, bool (k,), which `moves`, int64 (k,), are illegal; arrays as `advance`."""
    for j in range(len(games)):
        i = games[j]
        move = int64(moves[j])
        valid = is_legal(masks[i], move)
        if masks[i] == np.uint64(0):
            valid = checked_outcome(boards[infos[i]["board"]], states[i], move) != NO_ACTION
        wrong[j] = not valid


def mask_rows(games: npt.NDArray[np.int64], masks: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """Return `masks`, uint64 (n,), of `games`, int64 (k,), as int8 (k, N_ACTIONS), 1 = legal."""
    words = np.empty((len(games), MASK_BYTES // 8), np.uint64)
    unpack_masks(games, masks, words)
    return words.view(np.int8)[:, :N_ACTIONS]


@entry
def unpack_masks(games: Any, masks: Any, words: Any) -> None:
    """Write `masks`, uint64 (n,), of `games` as bytes to `words`, uint64 (k, MASK_BYTES / 8)."""
    for j in range(len(games)):
        expand_mask(masks[games[j]], words[j])


@parallel()
def observe(
    games: Any,
    boards: Any,
    states: Any,
    infos: Any,
    seats: Any,
    quotients: Any,
    blocks: Any,
    cached_board: Any,
    out: Any,
) -> None:
    """Write observations; `games` to `infos` are as for `advance`.

    Args:
        seats: int8 (k,), the observing seats, NO_PLAYER read as 0; or `DECIDING`.
        quotients: `observation.quotient_table` of the dtype of `out`.
        blocks: (b, f), the features of each board that follow a game's; f may be 0.
        cached_board: int32 (k,), the board whose features each row of `out` holds, -1 for none;
            updated. Features are written only if the board changed.
        out: float32 or uint8 (k, N_FEATURES + f).
    """
    for j in prange(len(games)):
        i = games[j]
        board = infos[i]["board"]
        seat = max(int64(seats[j] if len(seats) else states[i]["player"]), 0)
        encode(boards[board], states[i], seat, quotients, out[j])
        if blocks.shape[1] and cached_board[j] != board:
            cached_board[j] = board
            out[j, N_FEATURES:] = blocks[board]


@entry
def rewards(games: Any, boards: Any, states: Any, infos: Any, margin: bool, out: Any) -> None:
    """Write the rewards of both seats in the present states to `out`, float32 (k, 2).

    `margin` asks for score margins, as in `rules.reward`. The other arrays are as for `advance`.
    """
    for j in range(len(games)):
        i = games[j]
        for seat in range(2):
            out[j, seat] = reward(boards[infos[i]["board"]], states[i], seat, margin)


@entry
def keys(games: Any, states: Any, infos: Any, out: Any) -> None:
    """Write the random keys of the next decisions to `out`, uint64 (k,); arrays as `advance`."""
    for j in range(len(games)):
        out[j] = decision_key(states[games[j]], infos[games[j]])


@entry
def weights(games: Any, boards: Any, states: Any, infos: Any, out: Any) -> None:
    """Write outcome weights to `out`, zeros int64 (k, MAX_OUTCOMES); others as `advance`."""
    for j in range(len(games)):
        i = games[j]
        outcome_weights(boards[infos[i]["board"]], states[i], out[j])


@entry
def outcomes(games: Any, boards: Any, states: Any, lucks: Any, infos: Any, out: Any) -> None:
    """Write an outcome sampled from each game's luck to `out`, int64 (k,).

    It is NO_ACTION where chance is not next. The other arrays are as for `advance`.
    """
    for j in range(len(games)):
        i = games[j]
        out[j] = NO_ACTION
        if is_chance(states[i]):
            out[j] = sample(boards[infos[i]["board"]], states[i], lucks[i])


@allocator
def _scratch() -> Any:
    """Return scratch states for bots; Numba cannot make them directly in a parallel loop."""
    return np.empty(2, STATE)


@kernel
def _choose_moves(
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
    """Write the moves that the options' bot chooses for a block of games."""
    for j in range(index(len(games))):
        i = index(games[j])
        if int(options["bot"]) == RANDOM and masks[i] != np.uint64(0):
            moves[j] = random_action(masks[i], decision_key(states[i], infos[i]))
        else:
            board = boards[infos[i]["board"]]
            moves[j] = bot_move(board, states[i], lucks[i], infos[i], masks[i], options, scratch)


@allocator
def _sorted_by_move(games: Any, moves: Any) -> Any:
    """Return the games of a block and their moves, in a counting sort by move."""
    starts = np.zeros(MASK_BITS + 1, np.int64)
    for j in range(index(len(games))):
        starts[index(moves[j] & MASK_BITS - 1) + index(1)] += 1
    for move in range(MASK_BITS):
        starts[move + 1] += starts[move]
    ordered_games = np.empty(_BLOCK, np.int64)
    ordered_moves = np.empty(_BLOCK, np.int64)
    for j in range(index(len(games))):
        move = index(moves[j] & MASK_BITS - 1)
        position = index(starts[move])
        ordered_games[position] = games[j]
        ordered_moves[position] = moves[j]
        starts[move] += 1
    return ordered_games, ordered_moves
