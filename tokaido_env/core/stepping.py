"""One game: a move and all that follows it within a step, in a batch and for callers in Python."""

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
from tokaido_env.core.state import END_CAP, END_TRIGGERS, NO_PLAYER, OVER

# What a batch keeps of a game beside its position, its luck and its legal mask.
EPISODE_INFO = np.dtype(
    [
        ("agents", "<u8"),  # key of what agents draw from
        ("base_seed", "<i8"),  # seed of episode 0
        ("seed", "<i8"),  # of the game that is played
        ("episode", "<i4"),
        ("decisions", "<i4"),  # made in the game
        ("reward", "<f4", 2),  # by seat, of the last step
        ("board", "<i4"),  # index into the batch's boards
        ("player", "i1"),  # who decided in the last step; NO_PLAYER for chance and for a reset
        ("next_player", "i1"),  # who decides next in that game; NO_PLAYER at its end and at chance
        ("terminated", "i1"),
        ("truncated", "i1"),
        ("bot", "i1", 2),  # what plays each seat within a step: NO_BOT or one of BOTS
    ]
)

# How `advance` goes about it: a record of one row.
STEP_OPTIONS = np.dtype(
    [
        ("sampled", "i1"),  # chance resolves itself
        ("autoreset", "i1"),
        ("margin", "i1"),  # rewards by score margin
        ("bot", "i1"),  # chooses the moves; NO_BOT: they are given
        ("to_end", "i1"),  # the bot goes on until the end of each game
        ("bots", "i1"),  # some infos have bots, or `to_end`
        ("pool", "<i4"),  # boards that the board of each episode is drawn from; 0: it stays
    ]
)

HISTORY_FULL = 1 << 63  # no legal mask: no action has this bit
MASK_BITS = 64  # of a legal mask


@kernel
def checked_move(board: Row, s: Row, mask: Mask, move: int) -> int:
    """Return a move, any integer, if it is on offer, else NO_MOVE."""
    if mask == np.uint64(0):
        return checked_outcome(board, s, move)
    return move if is_legal(mask, move) else NO_ACTION


@kernel
def is_legal(mask: Mask, move: int) -> bool:
    """Return whether a move, any integer, is an action of a mask."""
    return 0 <= move < MASK_BITS and mask >> np.uint64(move) & np.uint64(1) != np.uint64(0)


@subroutine
def checked_outcome(board: Row, s: Row, move: int) -> int:
    """Return an outcome, any integer, if it has a weight, else NO_MOVE."""
    return move if outcome_weight(board, s, move) > 0 else NO_ACTION


@kernel
def play_move(
    board: Row, s: Row, luck: Row, info: Row, mask: Mask, move: int, options: Row
) -> Mask:
    """Play the move that makes a step, and chance; return what is legal then."""
    info["player"] = s["player"] if move != NO_ACTION else NO_PLAYER
    info["terminated"] = 0
    info["truncated"] = 0
    info["reward"][0] = 0.0
    info["reward"][1] = 0.0
    mask = _move(board, s, luck, info, mask, move, options)
    info["next_player"] = s["player"]
    return mask


@kernel
def _move(board: Row, s: Row, luck: Row, info: Row, mask: Mask, move: int, options: Row) -> Mask:
    """Play one move that is on offer, or NO_MOVE, and chance where it resolves itself."""
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
    moved: bool,
    initial_states: Any,
    options: Row,
    scratch: Any,
) -> Mask:
    """Do what may follow the move of game `i` within a step: the end, the next episode, bots.

    Args:
        moved: whether there was a move, by chance or not: else the game was over or begins.
    """
    s = states[i]
    board = boards[info["board"]]
    ended = False
    while True:
        move = NO_ACTION
        if int(s["phase"]) == OVER and not ended and moved:
            ended = True
            _note_end(board, s, info, options)
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
def _note_end(board: Row, s: Row, info: Row, options: Row) -> None:
    end = int64(s["end"])
    info["terminated"] = int64(end == END_TRIGGERS)
    info["truncated"] = int64(end == END_CAP)
    margin = int(options["margin"]) != 0
    info["reward"][0] = reward(board, s, 0, margin)
    info["reward"][1] = reward(board, s, 1, margin)


@kernel
def _bot_is_next(s: Row, info: Row, options: Row, ended: bool) -> bool:
    """Return whether a bot plays on in the step: it is seated there, or plays to the end."""
    if int(options["to_end"]) and not ended:
        return int(s["phase"]) != OVER
    player = int64(s["player"])
    return player != NO_PLAYER and int(info["bot"][player]) != NO_BOT


@subroutine
def bot_move(
    board: Row, s: Row, luck: Row, info: Row, mask: Mask, options: Row, scratch: Any
) -> int:
    """Return the move of the seat's bot or the options's, at chance an outcome; NO_MOVE when over.

    Without `scratch`, None, no bot is greedy: that is known when it is compiled.
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
    """Return what an agent draws from for the next decision of a game."""
    return agent_key(info["agents"], int64(s["player"]), int64(info["decisions"]))


@kernel
def begin_episode(luck: Row, info: Row) -> None:
    """Give a game the luck of its episode."""
    seed = seed_of_episode(int64(info["base_seed"]), int64(info["episode"]))
    info["seed"] = seed
    info["agents"] = agent_key_of_seed(seed)
    info["decisions"] = 0
    init_luck(luck, key_of_seed(seed))


# For callers in Python


@entry
def advance_game(
    boards: Any, states: Any, lucks: Any, i: int, move: int, sampled: bool, history: Any
) -> tuple[int, int]:
    """Play one move of game `i`, then let chance resolve itself if `sampled`.

    All that changes is written within one call from Python: Ctrl-C comes before or after it.

    Args:
        move: an action, at chance an outcome, or -1 for none.
        history: int32, how many events there were, and these; the move and the outcomes that
            chance drew are added.

    Returns:
        The legal mask and the player to decide (-1 for nobody). NO_ROOM for the mask, if the
        history has no room for a move and `MAX_EVENTS`: then nothing has changed.
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
    """Return the number of outcomes of game `i` and its set-up step; write the weights to `out`."""
    return outcome_weights(boards[i], states[i], out), setup_step(states[i])


@entry
def wares_of(states: Any, i: int, seat: Seat) -> tuple[int, int]:
    """Return how many wares a seat of game `i` holds, and how many it may keep."""
    return wares_held(states[i], seat), capacity(states[i], seat)
