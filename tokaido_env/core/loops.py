"""The compiled loops of `Batch`: every loop over games is here.

Each takes `games`, the int64 indices of the games it is about, and the batch's arrays; position `j`
of what else it takes or writes belongs to `games[j]`.

No index is looked at here: `games` must be indices, and none twice where a kernel writes to games;
states must be possible (`possible`). Moves may be any integers: what is not on offer is not played,
so that states stay possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from tokaido_env.core.bits import expand_mask
from tokaido_env.core.bots import GREEDY, NO_BOT, RANDOM, greedy_action, random_action
from tokaido_env.core.jit import allocator, index, int64, kernel, parallel, subroutine
from tokaido_env.core.luck import (
    agent_key,
    agent_key_of_seed,
    begin_luck,
    key_of_seed,
    sample,
    seed_of_episode,
    settle,
)
from tokaido_env.core.observation import encode
from tokaido_env.core.rules import (
    Row,
    apply,
    apply_outcome,
    is_chance,
    legal,
    outcome_weight,
    outcome_weights,
    reward,
)
from tokaido_env.core.state import END_CAP, END_TRIGGERS, NOBODY, OVER, STATE

# What a batch keeps of a game beside its position, its luck and its legal mask.
SLOT = np.dtype(
    [
        ("agents", "<u8"),  # key of what agents draw from
        ("base", "<i8"),  # seed of episode 0
        ("seed", "<i8"),  # of the game that is played
        ("episode", "<i4"),
        ("decisions", "<i4"),  # made in the game
        ("reward", "<f4", 2),  # by seat, of the last step
        ("board", "<i4"),  # index into the batch's boards
        ("player", "i1"),  # who decided in the last step; NOBODY for chance and for a reset
        ("next_player", "i1"),  # who decides next in that game; NOBODY at its end and at chance
        ("terminated", "i1"),
        ("truncated", "i1"),
        ("bot", "i1", 2),  # what plays each seat within a step: NO_BOT or one of BOTS
    ]
)

# How `advance` goes about it: a record of one row.
MODE = np.dtype(
    [
        ("sampled", "i1"),  # chance resolves itself
        ("autoreset", "i1"),
        ("margin", "i1"),  # rewards by score margin
        ("bot", "i1"),  # chooses the moves; NO_BOT: they are given
        ("to_end", "i1"),  # the bot goes on until the end of each game
        ("bots", "i1"),  # some slots have bots, or `to_end`
    ]
)

NO_MOVE = -1

# Games that one thread plays in the order of their moves, for a processor guesses the branches of
# one game by those of the game before; few enough for its nearest cache.
_BLOCK = 512
_KINDS = 64  # of moves, told apart in that order; as many as a legal mask has bits


@parallel
def begin(games: Any, boards: Any, states: Any, lucks: Any, slots: Any, masks: Any) -> None:
    """Give games the luck of their episodes where they stand; chance is yet to come."""
    for j in prange(len(games)):
        i = games[j]
        _new_luck(lucks[i], slots[i])
        masks[i] = legal(boards[slots[i]["board"]], states[i])


@parallel
def advance(
    games: Any,
    boards: Any,
    states: Any,
    lucks: Any,
    slots: Any,
    masks: Any,
    words: Any,
    moves: Any,
    fresh: Any,
    modes: Any,
) -> None:
    """Play a move of each game and all that follows within a step; note what came of it.

    Args:
        words: uint64 (n, MASK_BYTES / 8), the legal masks as bytes.
        moves: int64, an action, at chance an outcome, or NO_MOVE to go on from where a game stands,
            as any that is not on offer does; written where the mode's bot chooses.
        fresh: `STATE` (b,), what a game on each of the boards begins from.
        modes: `MODE` (1,).
    """
    for block in prange((len(games) + _BLOCK - 1) // _BLOCK):
        first = block * _BLOCK
        last = min(first + _BLOCK, len(games))
        mode = modes[0]
        scratch = _scratch()
        if int(mode["bot"]) != NO_BOT:
            _choose(games, boards, states, lucks, slots, masks, moves, mode, scratch, first, last)
        chosen, played = _in_order_of_moves(games, moves, first, last)
        for k in range(last - first):
            i = index(chosen[k])
            slot = slots[i]
            # Rows are handed on, not arrays, whose references Numba would count at every call.
            board = boards[slot["board"] if len(boards) > 1 else 0]
            move = _offered(board, states[i], masks[i], int64(played[k]))
            mask = _play(board, states[i], lucks[i], slot, masks[i], move, mode)
            if mask == np.uint64(0) or int(mode["bots"]):
                moved = move != NO_MOVE
                mask = _go_on(i, board, states, lucks[i], slot, mask, moved, fresh, mode, scratch)
            masks[i] = mask
            expand_mask(mask, words[i])


@parallel
def find_illegal(
    games: Any, boards: Any, states: Any, slots: Any, masks: Any, moves: Any, wrong: Any
) -> None:
    """Mark the moves that are not on offer in `wrong`, bool."""
    for j in prange(len(games)):
        i = games[j]
        move = int64(moves[j])
        right = _is_legal(masks[i], move)
        if masks[i] == np.uint64(0):
            right = _possible_outcome(boards[slots[i]["board"]], states[i], move) != NO_MOVE
        wrong[j] = not right


@parallel
def expand(games: Any, masks: Any, words: Any) -> None:
    """Write the legal masks as bytes, `words` uint64 (k, MASK_BYTES / 8)."""
    for j in prange(len(games)):
        expand_mask(masks[games[j]], words[j])


@parallel
def observe(
    games: Any, boards: Any, states: Any, slots: Any, seats: Any, unit: Any, out: Any
) -> None:
    """Write what `seats` see, NOBODY standing for seat 0, in the dtype of `unit` and `out`."""
    for j in prange(len(games)):
        i = games[j]
        seat = max(int64(seats[j]), 0)
        encode(boards[slots[i]["board"]], states[i], seat, unit, out[j])


@parallel
def rewards(games: Any, boards: Any, states: Any, slots: Any, margin: bool, out: Any) -> None:
    """Write the rewards of both seats as the games stand, float32 (k, 2)."""
    for j in prange(len(games)):
        i = games[j]
        for seat in range(2):
            out[j, seat] = reward(boards[slots[i]["board"]], states[i], seat, margin)


@parallel
def keys(games: Any, states: Any, slots: Any, out: Any) -> None:
    """Write what agents draw from for the next decision, uint64."""
    for j in prange(len(games)):
        out[j] = _key(states[games[j]], slots[games[j]])


@parallel
def weights(games: Any, boards: Any, states: Any, slots: Any, out: Any) -> None:
    """Write the odds of outcomes to rows of `out`, int64 (k, MAX_OUTCOMES), given as zeros."""
    for j in prange(len(games)):
        i = games[j]
        outcome_weights(boards[slots[i]["board"]], states[i], out[j])


@parallel
def outcomes(games: Any, boards: Any, states: Any, lucks: Any, slots: Any, out: Any) -> None:
    """Write an outcome drawn from each game's luck, int64; NO_MOVE where none is next."""
    for j in prange(len(games)):
        i = games[j]
        out[j] = NO_MOVE
        if is_chance(states[i]):
            out[j] = sample(boards[slots[i]["board"]], states[i], lucks[i])


# One game


@kernel
def _offered(board: Row, s: Row, mask: np.uint64, move: int) -> int:
    """Return a move, any integer, if it is on offer, else NO_MOVE."""
    if mask == np.uint64(0):
        return _possible_outcome(board, s, move)
    return move if _is_legal(mask, move) else NO_MOVE


@kernel
def _is_legal(mask: np.uint64, move: int) -> bool:
    """Return whether a move, any integer, is an action of a mask."""
    return 0 <= move < _KINDS and mask >> np.uint64(move) & np.uint64(1) != np.uint64(0)


@subroutine
def _possible_outcome(board: Row, s: Row, move: int) -> int:
    return move if outcome_weight(board, s, move) > 0 else NO_MOVE


@kernel
def _play(
    board: Row, s: Row, luck: Row, slot: Row, mask: np.uint64, move: int, mode: Row
) -> np.uint64:
    """Play the move that makes a step, and chance; return what is legal then."""
    slot["player"] = s["player"] if move != NO_MOVE else NOBODY
    slot["terminated"] = 0
    slot["truncated"] = 0
    slot["reward"][0] = 0.0
    slot["reward"][1] = 0.0
    mask = _move(board, s, luck, slot, mask, move, mode)
    slot["next_player"] = s["player"]
    return mask


@kernel
def _move(
    board: Row, s: Row, luck: Row, slot: Row, mask: np.uint64, move: int, mode: Row
) -> np.uint64:
    """Play one move that is on offer, or NO_MOVE, and chance where it resolves itself."""
    if move != NO_MOVE:
        if mask != np.uint64(0):
            mask = apply(board, s, move)
            slot["decisions"] += 1
        else:
            mask = apply_outcome(board, s, move)
    if int(mode["sampled"]):
        mask = settle(board, s, luck, mask)
    return mask


@subroutine
def _go_on(
    i: int,
    board: Row,
    states: Any,
    luck: Row,
    slot: Row,
    mask: np.uint64,
    moved: bool,
    fresh: Any,
    mode: Row,
    scratch: Any,
) -> np.uint64:
    """Do what may follow the move of game `i` within a step: the end, the next episode, bots.

    Args:
        moved: whether there was a move, by chance or not: else the game was over or begins.
    """
    s = states[i]
    ended = False
    while True:
        move = NO_MOVE
        if int(s["phase"]) == OVER and not ended and moved:
            ended = True
            _note_end(board, s, slot, mode)
        if ended and int(s["phase"]) == OVER and int(mode["autoreset"]):
            states[i] = fresh[slot["board"]]
            slot["episode"] += 1
            _new_luck(luck, slot)
        elif _bot_is_next(s, slot, mode, ended):
            move = _chosen(board, s, luck, slot, mask, mode, scratch)
        else:
            return mask
        mask = _move(board, s, luck, slot, mask, move, mode)
        if not ended:
            slot["next_player"] = s["player"]


@kernel
def _note_end(board: Row, s: Row, slot: Row, mode: Row) -> None:
    end = int64(s["end"])
    slot["terminated"] = int64(end == END_TRIGGERS)
    slot["truncated"] = int64(end == END_CAP)
    margin = int(mode["margin"]) != 0
    slot["reward"][0] = reward(board, s, 0, margin)
    slot["reward"][1] = reward(board, s, 1, margin)


@kernel
def _bot_is_next(s: Row, slot: Row, mode: Row, ended: bool) -> bool:
    """Return whether a bot plays on in the step: it is seated there, or plays to the end."""
    if int(mode["to_end"]) and not ended:
        return int(s["phase"]) != OVER
    player = int64(s["player"])
    return player != NOBODY and int(slot["bot"][player]) != NO_BOT


@subroutine
def _chosen(
    board: Row, s: Row, luck: Row, slot: Row, mask: np.uint64, mode: Row, scratch: Any
) -> int:
    """Return the move of the seat's bot or the mode's, at chance an outcome; NO_MOVE when over."""
    if is_chance(s):
        return sample(board, s, luck)
    player = int64(s["player"])
    if player == NOBODY:
        return NO_MOVE
    bot = int64(slot["bot"][player])
    if bot == NO_BOT:
        bot = int64(mode["bot"])
    if bot == GREEDY:
        return greedy_action(board, s, mask, _key(s, slot), scratch)
    return random_action(mask, _key(s, slot))


@kernel
def _key(s: Row, slot: Row) -> np.uint64:
    return agent_key(slot["agents"], int64(s["player"]), int64(slot["decisions"]))


@kernel
def _new_luck(luck: Row, slot: Row) -> None:
    """Give a game the luck of its episode."""
    seed = seed_of_episode(int64(slot["base"]), int64(slot["episode"]))
    slot["seed"] = seed
    slot["agents"] = agent_key_of_seed(seed)
    slot["decisions"] = 0
    begin_luck(luck, key_of_seed(seed))


@allocator
def _scratch() -> Any:
    """Return what bots write to; Numba cannot make it directly in a parallel loop."""
    return np.empty(2, STATE)


@kernel
def _choose(
    games: Any,
    boards: Any,
    states: Any,
    lucks: Any,
    slots: Any,
    masks: Any,
    moves: Any,
    mode: Row,
    scratch: Any,
    first: int,
    last: int,
) -> None:
    """Let the mode's bot choose the moves of a block."""
    for j in range(index(first), index(last)):
        i = index(games[j])
        if int(mode["bot"]) == RANDOM and masks[i] != np.uint64(0):
            moves[j] = random_action(masks[i], _key(states[i], slots[i]))
        else:
            board = boards[slots[i]["board"]]
            moves[j] = _chosen(board, states[i], lucks[i], slots[i], masks[i], mode, scratch)


@allocator
def _in_order_of_moves(games: Any, moves: Any, first: int, last: int) -> Any:
    """Return the games `first` … `last` - 1 and their moves, sorted by move, by counting."""
    starts = np.zeros(_KINDS + 1, np.int64)
    for j in range(index(first), index(last)):
        starts[index(moves[j] & _KINDS - 1) + index(1)] += 1
    for kind in range(_KINDS):
        starts[kind + 1] += starts[kind]
    chosen = np.empty(_BLOCK, np.int64)
    played = np.empty(_BLOCK, np.int64)
    for j in range(index(first), index(last)):
        kind = index(moves[j] & _KINDS - 1)
        place = index(starts[kind])
        chosen[place] = games[j]
        played[place] = moves[j]
        starts[kind] += 1
    return chosen, played
