"""Actions by exact results near the end of a game, better than those of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Actions, BoardRows, Legal, States
from tokaido_env.core.bitmask import highest_score, lowest_action
from tokaido_env.core.constants import Action, Mask, Row, Seat
from tokaido_env.core.jit import int64, pooled, subroutine
from tokaido_env.core.rules import apply, is_last_round, reward
from tokaido_env.core.state import OVER
from tokaido_env.features.endings import (
    FRAME,
    FRAMES,
    UNSOLVED,
    YES,
    best_ending,
    forces_win,
    may_trigger,
)

EXACT, NETWORK = "exact", "network"
"""How an agent plays endings: by exact results where they show a better action, or as its network
says."""

LIMIT = 20_000
"""The most positions that an agent searches for an action: a median search takes 6 µs."""


@subroutine
def exact_action(
    board: Row,
    s: Row,
    mask: Mask,
    chosen: Action,
    scores: Any,
    frames: Any,
    limit: int,
) -> Action:
    """Return an action that is better than a chosen one by exact results, or the chosen one.

    In the last round that is the best action. Before it it is an action that forces a win in this
    round; if there is none, and the chosen one lets the other player force a win, it is the action
    with the highest score that does not. A trigger for which a player needs two picks of the round
    may be missed (`may_trigger`).

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`, at a decision.
        mask: the legal actions as bits.
        chosen: one of them.
        scores: (N_ACTIONS,), higher for the actions to prefer.
        frames: `FRAME` (FRAMES,), overwritten.
        limit: the most positions to search for an action; one that takes more is not considered.
    """
    if mask & (mask - np.uint64(1)) == np.uint64(0):
        return chosen
    if is_last_round(board, s):
        return _best_result(board, s, mask, chosen, scores, frames, limit)
    seat = int64(s["player"])
    if may_trigger(board, s, seat):
        action = _winning_action(board, s, mask, chosen, frames, limit)
        if action != _NO_ACTION:
            return action
    if may_trigger(board, s, 1 - seat):
        return _safe_action(board, s, mask, chosen, scores, frames, limit)
    return chosen


_NO_ACTION = -1


@subroutine
def _best_result(
    board: Row, s: Row, mask: Mask, chosen: Action, scores: Any, frames: Any, limit: int
) -> Action:
    """Return the action with the best result in the last round; ties go to the chosen one.

    Only a sure win is better than a chosen action of unknown result, and the unknown is better than
    a sure loss.
    """
    best = _result_after(board, s, chosen, frames, limit)
    if best == UNSOLVED:
        best = np.float32(1.0) - 2 * _LEAST_GAIN
    choice, unknown = chosen, np.uint64(0)
    while mask != np.uint64(0):
        action = lowest_action(mask)
        mask &= mask - np.uint64(1)
        if action != chosen:
            result = _result_after(board, s, action, frames, limit)
            if result == UNSOLVED:
                unknown |= np.uint64(1) << np.uint64(action)
            elif result > best + _LEAST_GAIN:
                best, choice = result, action
    if best < _LEAST_GAIN - 1 and unknown != np.uint64(0):
        return highest_score(unknown, scores)
    return choice


@subroutine
def _winning_action(
    board: Row, s: Row, mask: Mask, chosen: Action, frames: Any, limit: int
) -> Action:
    """Return an action that forces a win in this round, the chosen one first, or `_NO_ACTION`."""
    seat = int64(s["player"])
    if _forces_win_after(board, s, chosen, seat, frames, limit) == YES:
        return chosen
    while mask != np.uint64(0):
        action = lowest_action(mask)
        mask &= mask - np.uint64(1)
        if action != chosen and _forces_win_after(board, s, action, seat, frames, limit) == YES:
            return action
    return int64(_NO_ACTION)


@subroutine
def _safe_action(
    board: Row, s: Row, mask: Mask, chosen: Action, scores: Any, frames: Any, limit: int
) -> Action:
    """Return the chosen action, or the best by score after which no win is forced against it."""
    other = 1 - int64(s["player"])
    action = chosen
    while _forces_win_after(board, s, action, other, frames, limit) == YES:
        mask &= ~(np.uint64(1) << np.uint64(action))
        if mask == np.uint64(0):
            return chosen
        action = highest_score(mask, scores)
    return action


_LEAST_GAIN = np.float32(1e-4)  # results that differ by less are equal but for rounding


@subroutine
def _forces_win_after(
    board: Row, s: Row, action: Action, seat: Seat, frames: Any, limit: int
) -> int:
    """Return `forces_win` of a seat after an action."""
    frames[0]["state"] = s
    mask = apply(board, frames[0]["state"], action)
    return forces_win(board, frames, mask, seat, limit)


@subroutine
def _result_after(board: Row, s: Row, action: Action, frames: Any, limit: int) -> np.float32:
    """Return the result after an action in the last round, for the player who takes it."""
    seat = int64(s["player"])
    frames[0]["state"] = s
    after = frames[0]["state"]
    mask = apply(board, after, action)
    if int64(after["phase"]) == OVER:
        return np.float32(reward(board, after, seat, False))
    value = best_ending(board, frames, mask, limit)
    if value == UNSOLVED:
        return value
    return value * np.float32(1 - 2 * seat)


@pooled(at_least=256)
def _improve_each(
    first: int,
    last: int,
    actions: Any,
    boards: Any,
    states: Any,
    legal: Any,
    scores: Any,
    limit: int,
) -> None:
    frames = np.empty(FRAMES, FRAME)
    for i in range(first, last):
        which = i if len(boards) > 1 else 0
        actions[i] = exact_action(
            *(boards[which], states[i], legal[i], actions[i], scores[i]),
            *(frames, limit),
        )


def improve_endings(
    actions: Actions, boards: BoardRows, states: States, legal: Legal, scores: npt.NDArray[Any]
) -> None:
    """Replace actions where exact results show better ones, `exact_action`.

    Args:
        actions: int64 (n,), legal ones; changed in place.
        boards: `BOARD` (1,) for all positions, or (n,).
        states: `STATE` (n,), at decisions.
        legal: uint64 (n,), the legal actions as bits.
        scores: (n, N_ACTIONS), higher for the actions to prefer.
    """
    _improve_each(len(actions), actions, boards, states, legal, scores, LIMIT)


@pooled(at_least=256)
def _solve_each(
    first: int, last: int, values: Any, boards: Any, states: Any, legal: Any, limit: int
) -> None:
    frames = np.empty(FRAMES, FRAME)
    for i in range(first, last):
        board = boards[i if len(boards) > 1 else 0]
        if is_last_round(board, states[i]):
            frames[0]["state"] = states[i]
            result = best_ending(board, frames, legal[i], limit)
            if result != UNSOLVED:
                values[i] = result


def solve_endings(
    values: npt.NDArray[np.float32], boards: BoardRows, states: States, legal: Legal
) -> None:
    """Replace the values of positions in the last round by exact results, `best_ending`.

    Args:
        values: float32 (n,), expected results for player_0; changed in place.
        boards: `BOARD` (1,) for all positions, or (n,).
        states: `STATE` (n,), at decisions.
        legal: uint64 (n,), the legal actions as bits.
    """
    _solve_each(len(values), values, boards, states, legal, LIMIT)
