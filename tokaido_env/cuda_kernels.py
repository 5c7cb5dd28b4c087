"""GPU kernels of `CudaBatch`: one thread plays one game with the functions of `core`.

The rules stay in `core`. On the CPU `core.batch_kernels` loops over games; here each thread plays
one. States use the aligned dtypes of `core.aligned_dtypes`, and the results of a step go to arrays
of their own, so that neighbouring threads write to neighbouring addresses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from tokaido_env.core.aligned_dtypes import twin
from tokaido_env.core.bitmask import expand_mask
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.jit import int64
from tokaido_env.core.observation import N_FEATURES, encode
from tokaido_env.core.rng import sample
from tokaido_env.core.rules import is_chance, outcome_weights
from tokaido_env.core.state import STATE
from tokaido_env.core.stepping import (
    NO_MOVE,
    chosen_move,
    decision_key,
    go_on,
    is_legal,
    offered,
    play,
    possible_outcome,
)

_SCRATCH = twin(STATE)


class Games(NamedTuple):
    """All games on a GPU: twins of what a `Batch` has, (n,) if nothing else is said."""

    boards: Any  # BOARD (b,)
    fresh: Any  # STATE (b,)
    states: Any  # STATE
    lucks: Any  # LUCK
    slots: Any  # SLOT
    masks: Any  # uint64
    words: Any  # uint64 (n, MASK_BYTES / 8)


class Told(NamedTuple):
    """What a step tells, as `TimeStep` has it, (n,) if nothing else is said."""

    mover: Any  # int8
    reward: Any  # float32 (n, 2)
    terminated: Any  # bool
    truncated: Any  # bool
    player: Any  # int8
    next_player: Any  # int8


def step(games: Games, told: Told, moves: Any, modes: Any) -> None:
    """Play a move of each game and all that follows within a step, as `loops.advance`.

    Args:
        games: all of them; no bot in them is greedy.
        told: written.
        moves: int64 (n,); written where the mode's bot chooses.
        modes: `MODE` (1,).
    """
    i = cuda.grid(1)
    if i < len(games.states):
        _step(i, games, told, moves, modes[0], None)


def step_greedy(games: Games, told: Told, moves: Any, modes: Any) -> None:
    """`step` with bots that may be greedy: it takes three times the registers."""
    i = cuda.grid(1)
    if i < len(games.states):
        _step(i, games, told, moves, modes[0], cuda.local.array(2, _SCRATCH))


@cuda.jit(device=True)
def _step(i: int, games: Games, told: Told, moves: Any, mode: Any, scratch: Any) -> None:
    slot, luck, s = games.slots[i], games.lucks[i], games.states[i]
    board, mask = games.boards[slot["board"]], games.masks[i]
    if int(mode["bot"]) != NO_BOT:
        moves[i] = chosen_move(board, s, luck, slot, mask, mode, scratch)
    move = offered(board, s, mask, int64(moves[i]))
    mask = play(board, s, luck, slot, mask, move, mode)
    if mask == np.uint64(0) or int(mode["bots"]):
        boards, fresh, moved = games.boards, games.fresh, move != NO_MOVE
        mask = go_on(i, boards, games.states, luck, slot, mask, moved, fresh, mode, scratch)
    games.masks[i] = mask
    expand_mask(mask, games.words[i])
    _tell(i, games, told)


def tell(games: Games, told: Told) -> None:
    """Write what the games tell where they stand."""
    i = cuda.grid(1)
    if i < len(games.states):
        expand_mask(games.masks[i], games.words[i])
        _tell(i, games, told)


@cuda.jit(device=True)
def _tell(i: int, games: Games, told: Told) -> None:
    slot = games.slots[i]
    told.mover[i] = games.states[i]["player"]
    told.reward[i, 0] = slot["reward"][0]
    told.reward[i, 1] = slot["reward"][1]
    told.terminated[i] = int(slot["terminated"]) != 0
    told.truncated[i] = int(slot["truncated"]) != 0
    told.player[i] = slot["player"]
    told.next_player[i] = slot["next_player"]


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
            board = games.boards[games.slots[i]["board"]]
            right = possible_outcome(board, games.states[i], move) != NO_MOVE
        if not right:
            cuda.atomic.min(wrong, 0, i)


def observe(games: Games, seats: Any, unit: Any, blocks: Any, out: Any) -> None:
    """Write what seats see, NOBODY standing for seat 0, as `loops.observe_with_board`.

    Args:
        games: all of them.
        seats: int8 (n,).
        unit: `observation.units` of the dtype of `out`.
        blocks: (b, width), what stands behind it by board; of width 0 for nothing.
        out: (n, N_FEATURES + width).
    """
    i = cuda.grid(1)
    if i < len(games.states):
        k = games.slots[i]["board"]
        seat = max(int64(seats[i]), 0)
        encode(games.boards[k], games.states[i], seat, unit, out[i, :N_FEATURES])
        for place in range(blocks.shape[1]):
            out[i, N_FEATURES + place] = blocks[k, place]


def keys(games: Games, out: Any) -> None:
    """Write what agents draw from for the next decision, uint64 (n,), as `loops.keys`."""
    i = cuda.grid(1)
    if i < len(games.states):
        out[i] = decision_key(games.states[i], games.slots[i])


def weights(games: Games, out: Any) -> None:
    """Write the odds of outcomes to `out`, int64 (n, MAX_OUTCOMES), given as zeros."""
    i = cuda.grid(1)
    if i < len(games.states):
        outcome_weights(games.boards[games.slots[i]["board"]], games.states[i], out[i])


def outcomes(games: Games, out: Any) -> None:
    """Write an outcome drawn from each game's luck, int64 (n,); NO_MOVE where none is next."""
    i = cuda.grid(1)
    if i < len(games.states):
        out[i] = NO_MOVE
        if is_chance(games.states[i]):
            board = games.boards[games.slots[i]["board"]]
            out[i] = sample(board, games.states[i], games.lucks[i])
