"""Exact results near the end of a game: the last round, and wins that a player can force.

In the last round, after an end trigger (R9.1) or at the cap (R10.1), so few picks are left that all
of them can be searched: the players alternate between the best actions of each, and chance is
weighted by its odds (expectimax; Michie 1966). Before it, the lines within the current pick
that pull one have exact results too, which a network reads; and a search of the picks of the round
finds a win that a player can force, which an agent takes or avoids.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import (
    ARTIST,
    GOLD_PRICE,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    MERCHANT,
    PAINTINGS,
    PILGRIM,
    Mask,
    Row,
    Seat,
)
from tokaido_env.core.jit import int64, kernel, subroutine
from tokaido_env.core.rules import (
    apply,
    apply_outcome,
    is_chance,
    is_last_round,
    legal,
    outcome_weight,
    picker,
    picks_left,
    reward,
)
from tokaido_env.core.state import DISCARD, EFFECT, MOVE, OVER, REPEAT, ROLL, STATE, UNSET

FRAME = np.dtype(
    [
        ("state", STATE),
        ("left", "<u8"),  # actions not searched yet
        ("best", "<f4"),  # of the actions searched, for the player who decides
        ("total", "<f4"),  # at chance, the weighted sum of results
        ("weight", "<f4"),  # at chance, the sum of weights
        ("next_weight", "<f4"),  # of the outcome that is searched
        ("outcome", "i1"),  # at chance, the next one
    ]
)
"""A position on the line that is searched."""

FRAMES = 64
"""The longest line of an exact search: three picks with all draws and repeats are shorter."""

UNSOLVED = np.float32(9.0)
"""Instead of a result, if a search reached its limit of positions."""

NO_LINE = np.float32(2.0)
"""Instead of a result, its size if no line of the pick pulls a trigger; the sign is a loss."""

_OUTCOMES = 4  # kinds of wares and of icons
_LARGEST_EXTRA = 6  # coins of a coastal town and by waves


@subroutine
def best_ending(board: Row, frames: Any, mask: Mask, limit: int) -> np.float32:
    """Return the result for player_0 of the best line to the end of the game.

    In the last round the result is exact. Before it, only lines count in which the player who
    decides pulls a trigger within this pick; without one the result is a loss of size `NO_LINE`.

    Args:
        board: a row of `BOARD`.
        frames: `FRAME` (FRAMES,); the state of the first, not at a roll, is the position; all are
            overwritten.
        mask: its legal actions as bits, 0 at chance.
        limit: the most positions to search; with more, the result is `UNSOLVED`.
    """
    seat = int64(frames[0]["state"]["player"])
    _open(frames[0], mask)
    depth = 0
    searched = 0
    while True:
        child = _push_child(board, frames, depth)
        if child != _NONE:
            searched += 1
            depth += 1
            if searched > limit or depth + 2 > len(frames):
                return UNSOLVED
            frame = frames[depth]
            if not _is_leaf(board, frame["state"], seat):
                _open(frame, child)
                continue
            value = _leaf_value(board, frame["state"], seat)
        else:
            value = _value_of(frames[depth])
        if child == _NONE and depth == 0:
            return value
        depth -= 1
        _add_result(frames[depth], value)


_NONE = np.uint64(1 << 63)  # no mask of legal actions, because actions have lower ids


@kernel
def _open(frame: Row, mask: Mask) -> None:
    frame["left"] = mask
    frame["best"] = -NO_LINE
    frame["total"] = 0.0
    frame["weight"] = 0.0
    frame["outcome"] = 0


@kernel
def _is_leaf(board: Row, s: Row, seat: Seat) -> bool:
    """Return whether a line ends: the game is over, or the pick without a trigger."""
    phase = int64(s["phase"])
    if is_last_round(board, s):
        return phase == OVER
    return int64(s["player"]) != seat or phase not in (EFFECT, REPEAT)


@kernel
def _leaf_value(board: Row, s: Row, seat: Seat) -> np.float32:
    if int64(s["phase"]) == OVER:
        return np.float32(reward(board, s, 0, False))
    return -NO_LINE * np.float32(1 - 2 * seat)


@kernel
def _push_child(board: Row, frames: Any, depth: int) -> Mask:
    """Write the next position below a frame of the search to the frame after it.

    Args:
        board: a row of `BOARD`.
        frames: the stack of the search; the frame at `depth` counts its children.
        depth: of the frame.

    Returns:
        The legal actions of the child as bits; `_NONE` if no child is left or needed.
    """
    frame, child = frames[depth], frames[depth + 1]
    s = frame["state"]
    if is_chance(s):
        outcome = _next_outcome(board, frame)
        if outcome == _OUTCOMES:
            return _NONE
        child["state"] = s
        frame["outcome"] = outcome + 1
        frame["next_weight"] = np.float32(outcome_weight(board, s, outcome))
        return apply_outcome(board, child["state"], outcome)
    left = np.uint64(frame["left"])
    if left == np.uint64(0) or frame["best"] >= 1.0 or (frame["best"] > -NO_LINE and _is_alike(s)):
        return _NONE
    frame["left"] = left & (left - np.uint64(1))
    child["state"] = s
    return apply(board, child["state"], lowest_action(left))


@kernel
def _next_outcome(board: Row, frame: Row) -> int:
    """Return the next possible outcome, `_OUTCOMES` if there is none.

    What is drawn matters only to a player who moves the character again (R8), so that otherwise
    one outcome stands for all.
    """
    s = frame["state"]
    outcome = int64(frame["outcome"])
    if frame["weight"] > 0 and int64(s["hot_spring"]) != picker(s):
        return _OUTCOMES
    while outcome < _OUTCOMES and int64(outcome_weight(board, s, outcome)) == 0:
        outcome += 1
    return outcome


@kernel
def _is_alike(s: Row) -> bool:
    """Return whether all actions have the same result: discards of wares that no one can sell."""
    if int64(s["phase"]) != DISCARD:
        return False
    again = int64(s["die"]) == MERCHANT and int64(s["hot_spring"]) == int64(s["player"])
    return not (again or int64(s["dice_left"]) >> MERCHANT & 1)


@kernel
def _value_of(frame: Row) -> np.float32:
    """Return the result for player_0 of a frame, all of its children searched."""
    if is_chance(frame["state"]):
        return np.float32(frame["total"] / frame["weight"])
    return np.float32(frame["best"]) * np.float32(1 - 2 * int64(frame["state"]["player"]))


@kernel
def _add_result(frame: Row, value: np.float32) -> None:
    if is_chance(frame["state"]):
        frame["total"] += frame["next_weight"] * value
        frame["weight"] += frame["next_weight"]
    else:
        sign = np.float32(1 - 2 * int64(frame["state"]["player"]))
        frame["best"] = max(frame["best"], sign * value)


@kernel
def may_trigger(board: Row, s: Row, seat: Seat) -> bool:
    """Return whether a seat might pull a trigger within a pick; often true without need.

    It is false in the last round, where a trigger changes nothing, and misses lines on which the
    hot spring token lets the pilgrim earn coins in two towns, or the merchant draw and then sell.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        seat: the seat.
    """
    if is_last_round(board, s):
        return False
    coins = int64(s["coins"][seat]) + _LARGEST_EXTRA
    for ware in range(4):
        coins += int64(s["wares"][seat, ware]) * (int64(board["best_price"][ware]) + 1)
    return (
        int64(s["temple"][seat]) >= LAST_TEMPLE - 2
        or int64(s["garden"][seat]) >= LAST_GARDEN - 2
        or int64(s["gifted"][seat]) >= PAINTINGS - 2
        or coins >= GOLD_PRICE * (LAST_SLAB - int64(s["gold"][seat]))
    )


@kernel
def trigger_now(board: Row, s: Row, seat: Seat, frames: Any, limit: int) -> np.float32:
    """Return the best result for a seat if it picked now and pulled a trigger within the pick.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`, not at the set-up.
        seat: the seat. Where the other seat decides, this one picks in its place, from the dice
            that are left.
        frames: `FRAME` (FRAMES,), overwritten.
        limit: the most positions to search.

    Returns:
        -1 to 1; -`NO_LINE` without such a line, or if the limit was reached.
    """
    if not may_trigger(board, s, seat):
        return -NO_LINE
    frames[0]["state"] = s
    own = frames[0]["state"]
    if int64(s["player"]) != seat or int64(s["phase"]) not in (MOVE, EFFECT, REPEAT):
        left = picks_left(s)
        if left == 0:
            return -NO_LINE
        own["die"] = UNSET
        own["phase"] = MOVE
        own["player"] = seat
        own["pending"] = 0
        own["lead"] = seat ^ int64(left == 2)  # the order of picks (R2.1)
    if int64(s["hot_spring"]) != seat and not _may_trigger_at_once(board, own, seat):
        return -NO_LINE
    result = best_ending(board, frames, legal(board, own), limit)
    if result == UNSOLVED:
        return -NO_LINE
    return result * np.float32(1 - 2 * seat)


@kernel
def _may_trigger_at_once(board: Row, s: Row, seat: Seat) -> bool:
    """Return whether a seat that moves or has an effect might pull a trigger by one action."""
    dice = int64(s["dice_left"]) if int(s["phase"]) == MOVE else 1 << int64(s["die"])
    missing = GOLD_PRICE * (LAST_SLAB - int64(s["gold"][seat])) - int64(s["coins"][seat])
    visit = int64(s["temple"][seat]) == LAST_TEMPLE - 1
    visit |= int64(s["garden"][seat]) == LAST_GARDEN - 1
    sale = False
    for ware in range(4):
        price = int64(board["best_price"][ware])
        visit |= price >= missing
        sale |= int64(s["wares"][seat, ware]) * (price + 1) >= missing
    gift = int64(s["gifted"][seat]) == PAINTINGS - 1 and int64(s["easel_size"][seat]) > 0
    possible = int64(visit) << PILGRIM | int64(sale) << MERCHANT | int64(gift) << ARTIST
    return dice & possible != 0


YES, NO, UNKNOWN = 1, 0, -1
"""Whether a player can force a win in the round; unknown if a search reached its limit."""


@subroutine
def forces_win(board: Row, frames: Any, mask: Mask, seat: Seat, limit: int) -> int:
    """Return whether a seat can win in this round, whatever the other does and chance brings.

    Args:
        board: a row of `BOARD`.
        frames: `FRAME` (FRAMES,); the state of the first is the position; all are overwritten.
        mask: its legal actions as bits, 0 at chance.
        seat: the seat.
        limit: the most positions to search.

    Returns:
        `YES`, `NO`, or `UNKNOWN`.
    """
    if _ends_round(frames[0]["state"]):
        return int64(_wins(board, frames[0]["state"], seat))
    _open(frames[0], mask)
    depth = 0
    searched = 0
    while True:
        child = _push_child(board, frames, depth)
        wins = not _decides(frames[depth]["state"], seat)  # after the last child
        if child != _NONE:
            searched += 1
            depth += 1
            if searched > limit or depth + 2 > len(frames):
                return int64(UNKNOWN)
            s = frames[depth]["state"]
            if not _ends_round(s):
                _open(frames[depth], child)
                continue
            wins = _wins(board, s, seat)
        # One winning action settles a decision of the seat; one failure settles all else.
        settled = True
        while settled:
            if depth == 0:
                return int64(wins)
            depth -= 1
            _add_result(frames[depth], np.float32(0.0))
            settled = wins == _decides(frames[depth]["state"], seat)


@kernel
def _decides(s: Row, seat: Seat) -> bool:
    return int64(s["player"]) == seat


@kernel
def _ends_round(s: Row) -> bool:
    return int64(s["phase"]) in (ROLL, OVER)


@kernel
def _wins(board: Row, s: Row, seat: Seat) -> bool:
    """Return whether the game is over and a seat has won it."""
    return int64(s["phase"]) == OVER and reward(board, s, int64(seat), False) > 0
