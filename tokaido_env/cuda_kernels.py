"""GPU kernels of `CudaBatch`: one thread for each game, with the rules of `core`.

They correspond to the loops of `core.batch_kernels`. Records have the aligned dtypes of
`core.aligned_dtypes`. The results of a step are separate arrays, so that neighbouring threads write
to neighbouring addresses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from tokaido_env.core.aligned_dtypes import aligned
from tokaido_env.core.bitmask import expand_mask
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.jit import int64
from tokaido_env.core.observation import N_FEATURES, encode
from tokaido_env.core.state import OVER, STATE
from tokaido_env.core.stepping import (
    bot_move,
    checked_move,
    decision_key,
    finish_step,
    is_legal,
    play_move,
)

_SCRATCH = aligned(STATE)


class Games(NamedTuple):
    """The games on a GPU: aligned versions of the arrays of `Batch`.

    Attributes:
        boards: `BOARD` (b,).
        initial_states: `STATE` (b,).
        states: `STATE` (n,).
        lucks: `LUCK` (n,).
        episode_info: `EPISODE_INFO` (n,).
        masks: uint64 (n,), the legal actions as bits.
        words: uint64 (n, MASK_BYTES / 8), the same as bytes.
    """

    boards: Any
    initial_states: Any
    states: Any
    lucks: Any
    episode_info: Any
    masks: Any
    words: Any


class StepOutput(NamedTuple):
    """The results of a step, as in `TimeStep`.

    Attributes:
        mover: int8 (n,).
        reward: float32 (n, 2).
        terminated: bool (n,).
        player: int8 (n,).
        next_player: int8 (n,).
    """

    mover: Any
    reward: Any
    terminated: Any
    player: Any
    next_player: Any


def step(games: Games, output: StepOutput, moves: Any, options_row: Any) -> None:
    """Play one step of each game: its move, chance, its end, the next episode and bots.

    Args:
        games: all games; none has a greedy bot.
        output: written.
        moves: int64 (n,), actions or NO_ACTION; written if the options name a bot.
        options_row: `STEP_OPTIONS` (1,).
    """
    i = cuda.grid(1)
    if i < len(games.states):
        _step(i, games, output, moves, options_row[0], None)


def step_greedy(games: Games, output: StepOutput, moves: Any, options_row: Any) -> None:
    """Play one step of games with greedy bots, as `step`; it needs three times the registers."""
    i = cuda.grid(1)
    if i < len(games.states):
        _step(i, games, output, moves, options_row[0], cuda.local.array(2, _SCRATCH))


@cuda.jit(device=True)
def _step(i: int, games: Games, output: StepOutput, moves: Any, options: Any, scratch: Any) -> None:
    info, luck, s = games.episode_info[i], games.lucks[i], games.states[i]
    board, mask = games.boards[info["board"]], games.masks[i]
    if int(options["bot"]) != NO_BOT:
        moves[i] = bot_move(board, s, luck, info, mask, options, scratch)
    over = int(s["phase"]) == OVER
    move = checked_move(board, s, mask, int64(moves[i]))
    mask = play_move(board, s, luck, info, mask, move, options)
    if mask == np.uint64(0) or int(options["bots"]):
        boards, states, initial_states = games.boards, games.states, games.initial_states
        mask = finish_step(
            i, boards, states, luck, info, mask, over, initial_states, options, scratch
        )
    games.masks[i] = mask
    expand_mask(mask, games.words[i])
    _write_output(i, games, output)


def write_output(games: Games, output: StepOutput) -> None:
    """Write the rewards, ends and players of all games to `output`, from their present states."""
    i = cuda.grid(1)
    if i < len(games.states):
        expand_mask(games.masks[i], games.words[i])
        _write_output(i, games, output)


@cuda.jit(device=True)
def _write_output(i: int, games: Games, output: StepOutput) -> None:
    info = games.episode_info[i]
    output.mover[i] = games.states[i]["player"]
    output.reward[i, 0] = info["reward"][0]
    output.reward[i, 1] = info["reward"][1]
    output.terminated[i] = int(info["terminated"]) != 0
    output.player[i] = info["player"]
    output.next_player[i] = info["next_player"]


def find_illegal(games: Games, moves: Any, wrong: Any) -> None:
    """Find the first game with an illegal move.

    Args:
        games: all games.
        moves: int64 (n,).
        wrong: int32 (1,), the lowest index of a game with an illegal move; pass n.
    """
    i = cuda.grid(1)
    if i < len(games.states) and not is_legal(games.masks[i], int64(moves[i])):
        cuda.atomic.min(wrong, 0, i)


def observe(games: Games, seats: Any, quotients: Any, blocks: Any, out: Any) -> None:
    """Write the observations of seats, with NO_PLAYER read as seat 0.

    Args:
        games: all games.
        seats: int8 (n,).
        quotients: `observation.quotient_table` of the dtype of `out`.
        blocks: (b, width), the board features to append; width 0 for none.
        out: (n, N_FEATURES + width).
    """
    i = cuda.grid(1)
    if i < len(games.states):
        k = games.episode_info[i]["board"]
        seat = max(int64(seats[i]), 0)
        encode(games.boards[k], games.states[i], seat, quotients, out[i, :N_FEATURES])
        for column in range(blocks.shape[1]):
            out[i, N_FEATURES + column] = blocks[k, column]


def keys(games: Games, out: Any) -> None:
    """Write the keys of the agents' random numbers for the next decision to `out`, uint64 (n,)."""
    i = cuda.grid(1)
    if i < len(games.states):
        out[i] = decision_key(games.states[i], games.episode_info[i])
