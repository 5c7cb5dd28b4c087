"""Kernels that step one game: a move, chance, the end, the next episode and bots.

Arguments of kernels are rows of arrays: `board` of `BOARD`, `s` of `STATE`, `luck` of `LUCK`,
`info` of `EPISODE_INFO`, `options` of `STEP_OPTIONS`. `mask` has the legal actions as bits.
Functions for Python callers take whole arrays, (n,), and the index `i` of a game.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.actions import NO_ACTION
from tokaido_env.core.bots import GREEDY, NO_BOT, greedy_action, random_action
from tokaido_env.core.constants import Mask, Row, Seat
from tokaido_env.core.jit import entry, int64, kernel, subroutine
from tokaido_env.core.rng import (
    MAX_EVENTS,
    agent_key,
    agent_key_of_seed,
    board_of_seed,
    init_luck,
    key_of_seed,
    resolve_chance,
    resolve_chance_logged,
    sample,
    seed_of_episode,
)
from tokaido_env.core.rules import (
    apply,
    apply_outcome,
    capacity,
    is_chance,
    legal,
    outcome_weight,
    outcome_weights,
    reward,
    setup_step,
    wares_held,
)
from tokaido_env.core.state import NO_PLAYER, OVER

# What a batch stores for each game, in addition to its state, its luck and its legal mask.
EPISODE_INFO = np.dtype(
    [
        ("agent_key", "<u8"),  # key of the random stream of agents
        ("base_seed", "<i8"),  # seed of episode 0
        ("seed", "<i8"),  # of the current episode
        ("episode", "<i4"),
        ("decisions", "<i4"),  # made in the episode
        ("reward", "<f4", 2),  # by seat, of the last step
        ("board", "<i4"),  # index into the batch's boards
        ("player", "i1"),  # the seat that decided in the last step; NO_PLAYER at chance or a reset
        ("next_player", "i1"),  # the seat that decides next; NO_PLAYER at the end and at chance
        ("terminated", "i1"),
        ("bot", "i1", 2),  # by seat: NO_BOT, or the one of BOTS that plays it within a step
    ]
)

# Options of a step, for all games of a batch.
STEP_OPTIONS = np.dtype(
    [
        ("sampled", "i1"),  # outcomes of chance are sampled, not chosen by the caller
        ("autoreset", "i1"),
        ("margin", "i1"),  # rewards are score margins
        ("bot", "i1"),  # chooses the moves; NO_BOT: the caller does
        ("to_end", "i1"),  # the bot plays each game to its end
        ("bots", "i1"),  # bots may move after the first move: a seat has one, or `to_end`
        ("pool", "<i4"),  # number of boards to draw from for each episode; 0: keep the board
    ]
)

HISTORY_FULL = 1 << 63  # returned in place of a legal mask, as no action has this bit
MASK_BITS = 64  # of a legal mask


@kernel
def checked_move(board: Row, s: Row, mask: Mask, move: int) -> int:
    """Return `move` if it is a legal action, or at chance a possible outcome; else NO_ACTION.

    `move` may be any integer; `board` and `s` are rows of `BOARD` and `STATE`.
    """
    if mask == np.uint64(0):
        return checked_outcome(board, s, move)
    return move if is_legal(mask, move) else NO_ACTION


@kernel
def is_legal(mask: Mask, move: int) -> bool:
    """Return whether a move, any integer, is an action of a mask of legal actions."""
    return 0 <= move < MASK_BITS and mask >> np.uint64(move) & np.uint64(1) != np.uint64(0)


@subroutine
def checked_outcome(board: Row, s: Row, move: int) -> int:
    """Return `move`, an integer, if it is a possible outcome of a `STATE` row `s`, or NO_ACTION."""
    return move if outcome_weight(board, s, move) > 0 else NO_ACTION


@kernel
def play_move(
    board: Row, s: Row, luck: Row, info: Row, mask: Mask, move: int, options: Row
) -> Mask:
    """Play a legal move or NO_ACTION, then chance if it is sampled; return the new legal mask.

    Rows of `BOARD`, `STATE`, `LUCK`, `EPISODE_INFO` and `STEP_OPTIONS`; the middle three change.
    """
    info["player"] = s["player"] if move != NO_ACTION else NO_PLAYER
    info["terminated"] = 0
    info["reward"][0] = 0.0
    info["reward"][1] = 0.0
    mask = _move(board, s, luck, info, mask, move, options)
    info["next_player"] = s["player"]
    return mask


@kernel
def _move(board: Row, s: Row, luck: Row, info: Row, mask: Mask, move: int, options: Row) -> Mask:
    """Play one legal move or NO_ACTION, then sampled chance; return the new legal mask."""
    if move != NO_ACTION:
        if mask != np.uint64(0):
            mask = apply(board, s, move)
            info["decisions"] += 1
        else:
            mask = apply_outcome(board, s, move)
    if int(options["sampled"]):
        mask = resolve_chance(board, s, luck, mask)
    return mask


@subroutine
def finish_step(
    i: int,
    boards: Any,
    states: Any,
    luck: Row,
    info: Row,
    mask: Mask,
    was_over: bool,
    initial_states: Any,
    options: Row,
    scratch: Any,
) -> Mask:
    """Finish the step of game `i` after its move: its end, the next episode, moves of bots.

    Its state, `luck` and `info` change in place.

    Args:
        i: index of the game.
        boards: `BOARD` (b,).
        states: `STATE` (n,).
        luck: a row of `LUCK`.
        info: a row of `EPISODE_INFO`.
        mask: the legal actions after the move as bits.
        was_over: whether the game had ended before the step.
        initial_states: `STATE` (b,), the initial state on each board.
        options: a row of `STEP_OPTIONS`.
        scratch: `STATE` (2,), overwritten; None if no bot is greedy.

    Returns:
        The new legal mask.
    """
    s = states[i]
    board = boards[info["board"]]
    ended = False
    while True:
        move = NO_ACTION
        if int(s["phase"]) == OVER and not ended and not was_over:
            ended = True
            _record_end(board, s, info, options)
        if ended and int(s["phase"]) == OVER and int(options["autoreset"]):
            info["episode"] += 1
            begin_episode(luck, info)
            if int(options["pool"]):
                info["board"] = board_of_seed(int64(info["seed"]), int64(options["pool"]))
                board = boards[info["board"]]
            states[i] = initial_states[info["board"]]
        elif _bot_is_next(s, info, options, ended):
            move = bot_move(board, s, luck, info, mask, options, scratch)
        else:
            return mask
        mask = _move(board, s, luck, info, mask, move, options)
        if not ended:
            info["next_player"] = s["player"]


@kernel
def _record_end(board: Row, s: Row, info: Row, options: Row) -> None:
    info["terminated"] = 1
    margin = int(options["margin"]) != 0
    info["reward"][0] = reward(board, s, 0, margin)
    info["reward"][1] = reward(board, s, 1, margin)


@kernel
def _bot_is_next(s: Row, info: Row, options: Row, ended: bool) -> bool:
    """Return whether a bot moves next in this step: the seat's, or one that plays to the end."""
    if int(options["to_end"]) and not ended:
        return int(s["phase"]) != OVER
    player = int64(s["player"])
    return player != NO_PLAYER and int(info["bot"][player]) != NO_BOT


@subroutine
def bot_move(
    board: Row, s: Row, luck: Row, info: Row, mask: Mask, options: Row, scratch: Any
) -> int:
    """Return the next move of a game that no caller decides; NO_ACTION when it is over.

    At a decision it is that of the seat's bot in `info`, or of the bot in `options` if the seat has
    none. At chance the move is a sampled outcome. `scratch` is `STATE` (2,), overwritten; with None
    no bot may be greedy. The other arguments are those of `play_move`.
    """
    if is_chance(s):
        return sample(board, s, luck)
    player = int64(s["player"])
    if player == NO_PLAYER:
        return NO_ACTION
    bot = int64(info["bot"][player])
    if bot == NO_BOT:
        bot = int64(options["bot"])
    if scratch is not None and bot == GREEDY:
        return greedy_action(board, s, mask, decision_key(s, info), scratch)
    return random_action(mask, decision_key(s, info))


@kernel
def decision_key(s: Row, info: Row) -> np.uint64:
    """Return the random key of the next decision, by rows of `STATE` and `EPISODE_INFO`."""
    return agent_key(info["agent_key"], int64(s["player"]), int64(info["decisions"]))


@kernel
def begin_episode(luck: Row, info: Row) -> None:
    """Set the seed, the agents' key and the luck of an episode; set its decisions to 0.

    They follow from the base seed and the number of the episode in `info`, an `EPISODE_INFO` row;
    `luck` is a row of `LUCK`.
    """
    seed = seed_of_episode(int64(info["base_seed"]), int64(info["episode"]))
    info["seed"] = seed
    info["agent_key"] = agent_key_of_seed(seed)
    info["decisions"] = 0
    init_luck(luck, key_of_seed(seed))


# Entries for Python callers


@entry
def advance_game(
    boards: Any, states: Any, lucks: Any, i: int, move: int, sampled: bool, history: Any
) -> tuple[int, int]:
    """Play one move of game `i`, then sample chance if `sampled`.

    One call makes all changes, so Ctrl-C comes before or after them.

    Args:
        boards: `BOARD` (n,); `states`, `STATE` (n,), and `lucks`, `LUCK` (n,), change in place.
        move: an action, at chance an outcome, or NO_ACTION; not checked.
        history: int32, the number of events and then the events; the move and the sampled outcomes
            are appended.

    Returns:
        The legal mask and the player to decide, or NO_PLAYER. The mask is HISTORY_FULL, and nothing
        has changed, if the history has no room for a move and `MAX_EVENTS`.
    """
    board = boards[i]
    s = states[i]
    n = int64(history[0]) + 1
    if n + MAX_EVENTS >= len(history) and (move >= 0 or sampled):
        return int(np.uint64(HISTORY_FULL)), NO_PLAYER
    if move < 0:
        mask = legal(board, s)
    else:
        history[n] = move
        n += 1
        mask = apply_outcome(board, s, move) if is_chance(s) else apply(board, s, move)
    if sampled:
        mask, n = resolve_chance_logged(board, s, lucks[i], mask, history, n)
    history[0] = n - 1
    return int(mask), int(s["player"])


@entry
def weights_of(boards: Any, states: Any, i: int, out: Any) -> tuple[int, int]:
    """Write the outcome weights of game `i` of `BOARD` (n,) and `STATE` (n,) to `out`.

    `out` is int64 (MAX_OUTCOMES,). Return the number of weights, and `rules.setup_step`.
    """
    return outcome_weights(boards[i], states[i], out), setup_step(states[i])


@entry
def wares_of(states: Any, i: int, seat: Seat) -> tuple[int, int]:
    """Return how many wares a seat of game `i` of `STATE` (n,) holds, and may hold (R4.3)."""
    return wares_held(states[i], seat), capacity(states[i], seat)
