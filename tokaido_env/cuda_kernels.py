"""GPU kernels of `CudaBatch`: one thread plays one game with the functions of `core`.

The rules stay in `core`. On the CPU `core.batch_kernels` loops over games; here each thread plays
one. States use the aligned dtypes of `core.aligned_dtypes`, and the results of a step go to arrays
of their own, so that neighbouring threads write to neighbouring addresses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from tokaido_env.core.actions import NO_ACTION
from tokaido_env.core.aligned_dtypes import aligned
from tokaido_env.core.bitmask import expand_mask
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.jit import int64
from tokaido_env.core.observation import N_FEATURES, encode
from tokaido_env.core.rng import sample
from tokaido_env.core.rules import is_chance, outcome_weights
from tokaido_env.core.state import STATE
from tokaido_env.core.stepping import (
    bot_move,
    checked_move,
    checked_outcome,
    decision_key,
    finish_step,
    is_legal,
    play_move,
)

_SCRATCH = aligned(STATE)


class Games(NamedTuple):
    """All games on a GPU: twins of what a `Batch` has, (n,) if nothing else is said."""

    boards: Any  # BOARD (b,)
    initial_states: Any  # STATE (b,)
    states: Any  # STATE
    lucks: Any  # LUCK
    episode_info: Any  # EPISODE_INFO
    masks: Any  # uint64
    words: Any  # uint64 (n, MASK_BYTES / 8)


class StepOutput(NamedTuple):
    """What a step tells, as `TimeStep` has it, (n,) if nothing else is said."""

    mover: Any  # int8
    reward: Any  # float32 (n, 2)
    terminated: Any  # bool
    truncated: Any  # bool
    player: Any  # int8
    next_player: Any  # int8


def step(games: Games, output: StepOutput, moves: Any, options_row: Any) -> None:
    """Play a move of each game and all that follows within a step, as `loops.advance`.

    Args:
        games: all of them; no bot in them is greedy.
        output: written.
        moves: int64 (n,); written where the options's bot chooses.
        options_row: `MODE` (1,).
    """
    i = cuda.grid(1)
    if i < len(games.states):
        _step(i, games, output, moves, options_row[0], None)


def step_greedy(games: Games, output: StepOutput, moves: Any, options_row: Any) -> None:
    """`step` with bots that may be greedy: it takes three times the registers."""
    i = cuda.grid(1)
    if i < len(games.states):
        _step(i, games, output, moves, options_row[0], cuda.local.array(2, _SCRATCH))


@cuda.jit(device=True)
def _step(i: int, games: Games, output: StepOutput, moves: Any, options: Any, scratch: Any) -> None:
    info, luck, s = games.episode_info[i], games.lucks[i], games.states[i]
    board, mask = games.boards[info["board"]], games.masks[i]
    if int(options["bot"]) != NO_BOT:
        moves[i] = bot_move(board, s, luck, info, mask, options, scratch)
    move = checked_move(board, s, mask, int64(moves[i]))
    mask = play_move(board, s, luck, info, mask, move, options)
    if mask == np.uint64(0) or int(options["bots"]):
        boards, initial_states, moved = games.boards, games.initial_states, move != NO_ACTION
        mask = finish_step(
            i, boards, games.states, luck, info, mask, moved, initial_states, options, scratch
        )
    games.masks[i] = mask
    expand_mask(mask, games.words[i])
    _write_output(i, games, output)


def write_output(games: Games, output: StepOutput) -> None:
    """Write what the games tell where they stand."""
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
    output.truncated[i] = int(info["truncated"]) != 0
    output.player[i] = info["player"]
    output.next_player[i] = info["next_player"]


def find_illegal(games: Games, moves: Any, wrong: Any) -> None:
    """Find the first game whose move is not on offer.

    Args:
        games: all of them.
        moves: int64 (n,).
        wrong: int32 (1,), the lowest game with such a move; given as n.
    """
    i = cuda.grid(1)
    if i < len(games.states):
        mask, move = games.masks[i], int64(moves[i])
        right = is_legal(mask, move)
        if mask == np.uint64(0):
            board = games.boards[games.episode_info[i]["board"]]
            right = checked_outcome(board, games.states[i], move) != NO_ACTION
        if not right:
            cuda.atomic.min(wrong, 0, i)


def observe(games: Games, seats: Any, unit: Any, blocks: Any, out: Any) -> None:
    """Write what seats see, NO_PLAYER standing for seat 0, as `loops.observe_with_board`.

    Args:
        games: all of them.
        seats: int8 (n,).
        unit: `observation.units` of the dtype of `out`.
        blocks: (b, width), what stands behind it by board; of width 0 for nothing.
        out: (n, N_FEATURES + width).
    """
    i = cuda.grid(1)
    if i < len(games.states):
        k = games.episode_info[i]["board"]
        seat = max(int64(seats[i]), 0)
        encode(games.boards[k], games.states[i], seat, unit, out[i, :N_FEATURES])
        for place in range(blocks.shape[1]):
            out[i, N_FEATURES + place] = blocks[k, place]


def keys(games: Games, out: Any) -> None:
    """Write what agents draw from for the next decision, uint64 (n,), as `loops.keys`."""
    i = cuda.grid(1)
    if i < len(games.states):
        out[i] = decision_key(games.states[i], games.episode_info[i])


def weights(games: Games, out: Any) -> None:
    """Write the odds of outcomes to `out`, int64 (n, MAX_OUTCOMES), given as zeros."""
    i = cuda.grid(1)
    if i < len(games.states):
        outcome_weights(games.boards[games.episode_info[i]["board"]], games.states[i], out[i])


def outcomes(games: Games, out: Any) -> None:
    """Write an outcome drawn from each game's luck, int64 (n,); NO_MOVE where none is next."""
    i = cuda.grid(1)
    if i < len(games.states):
        out[i] = NO_ACTION
        if is_chance(games.states[i]):
            board = games.boards[games.episode_info[i]["board"]]
            out[i] = sample(board, games.states[i], games.lucks[i])
