"""Luck of an agent in a game, the control variate of luck-adjusted scores.

Each chance outcome is compared with its expectation by the odds of the rules:

    luck = Σ  value(position after the outcome) - Σ odds × value(position after each outcome)

The odds are known, so that the sum has mean zero for any agents and any value function. Therefore
`result - luck` has the mean of the result, and a lower variance the better the value function is.
This is the chance part of AIVAT (Burch, Schmid, Moravčík, Morrill and Bowling 2018, "AIVAT: A New
Variance Reduction Technique for Agent Evaluation in Imperfect Information Games"). The value
function is the heuristic's, one decision deep.

Set-up is left out: both games of a pair have the same one, with seats swapped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.actions import (
    ARTIST_STAY,
    MOVE_ARTIST,
    MOVE_MERCHANT,
    MOVE_PILGRIM,
    NO_ACTION,
)
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import int64, pooled, subroutine
from tokaido_env.core.rules import MAX_OUTCOMES, apply, apply_outcome, legal, outcome_weights
from tokaido_env.core.state import EFFECT, ROLL, SETUP
from tokaido_env.features.evaluation import (
    SCRATCH,
    action_value,
    evaluate,
    expected_result,
    log_odds,
)
from tokaido_env.features.terms import WEIGHTS
from tokaido_env.trajectory import Trajectory

_UNITS = (36, 6, 1)  # factor of each die in the id of a roll
_MOVES = (  # of the characters, as masks
    (1 << MOVE_MERCHANT) - (1 << MOVE_PILGRIM),
    (1 << MOVE_ARTIST) - (1 << MOVE_MERCHANT),
    (2 << ARTIST_STAY) - (1 << MOVE_ARTIST),
)


def store_luck(
    games: npt.NDArray[np.void], some: npt.NDArray[np.int64], played: Trajectory
) -> None:
    """Store the luck of replayed games.

    Args:
        games: `GAME` (n,), changed in place.
        some: int64 (k,), the indices of the replayed games.
        played: the replayed games, in this order.
    """
    each = np.zeros(len(played.states))  # by event, 0 for decisions and set-up
    boards, outcomes = played.board.record, played.outcomes
    outcomes[played.states["phase"] == SETUP] = NO_ACTION
    _store_luck(len(played), played.offsets, boards, played.states, outcomes, each)
    luck = np.bincount(played.games, each, len(played))  # of player_0
    games["luck"][some] = np.where(games["seat_of_a"][some] == 0, luck, -luck)


@pooled(at_least=2)
def _store_luck(
    first: int,
    last: int,
    offsets: Any,
    boards: Any,
    states: Any,
    outcomes: Any,
    luck: Any,
) -> None:
    """Store the luck of each event of games, float64 (rows,)."""
    scratch = np.empty(1, SCRATCH)
    buffers = np.empty(MAX_OUTCOMES, np.int64), np.empty(MAX_OUTCOMES, np.float32)
    face_odds = np.empty((2, 6), np.int64)
    for row in range(offsets[first], offsets[last]):
        outcome = int64(outcomes[row])
        if outcome >= 0:
            s = states[row]
            found = _outcome_luck(boards[0], s, outcome, buffers, face_odds, scratch[0])
            luck[row] = found / 2.0


@subroutine
def _outcome_luck(
    board: Row, s: Row, outcome: int, buffers: Any, face_odds: Any, scratch: Row
) -> float:
    """Return the value of an outcome for player_0 minus the expected value."""
    odds, values = buffers
    outcomes = outcome_weights(board, s, odds)
    if int(s["phase"]) == ROLL:
        _value_rolls(board, s, odds, values, face_odds, scratch)
    else:
        for other in range(outcomes):
            if odds[other] > 0:
                scratch["states"][2] = s
                apply_outcome(board, scratch["states"][2], other)
                values[other] = _best_value(board, scratch["states"][2], scratch)
    weights = 0
    mean = 0.0
    for other in range(outcomes):
        weights += odds[other]
        if odds[other] > 0:
            mean += odds[other] * float(values[other])
    return float(values[outcome]) - mean / weights


@subroutine
def _value_rolls(board: Row, s: Row, odds: Any, values: Any, face_odds: Any, scratch: Row) -> None:
    """Store the value of each roll for player_0, after the best decision.

    The effect of a die does not depend on the other two dice, and these have separate terms in the
    value. Therefore each action is valued once for each face of its die, not for every roll.
    """
    first = 0
    while odds[first] == 0:
        first += 1
    values[:] = -2.0
    for die in range(3):
        unit = _UNITS[die]
        others = first - first // unit % 6 * unit
        for face in range(6):
            if int(board["face_count"][die, face + 1]) > 0:
                scratch["states"][2] = s
                rolled = scratch["states"][2]
                mask = apply_outcome(board, rolled, others + face * unit) & np.uint64(_MOVES[die])
                while mask != np.uint64(0):
                    action = lowest_action(mask)
                    mask &= mask - np.uint64(1)
                    _value_action(board, die, action, values, face_odds, scratch)
    for outcome in range(MAX_OUTCOMES):
        values[outcome] *= np.float32(1 - 2 * int64(s["lead"]))


@subroutine
def _value_action(
    board: Row, die: int, action: int, values: Any, face_odds: Any, scratch: Row
) -> None:
    """Update the values of all rolls with this face of a die by an action and its effects."""
    offset = (int64(scratch["states"][2]["dice"][die]) - 1) * _UNITS[die]
    scratch["states"][0] = scratch["states"][2]
    after = scratch["states"][0]
    effects = apply(board, after, action)
    if int(after["phase"]) != EFFECT:
        _value_leaf(board, after, die, offset, values, face_odds, scratch)
        return
    while effects != np.uint64(0):
        scratch["states"][1] = after
        apply(board, scratch["states"][1], lowest_action(effects))
        effects &= effects - np.uint64(1)
        _value_leaf(board, scratch["states"][1], die, offset, values, face_odds, scratch)


@subroutine
def _value_leaf(
    board: Row,
    leaf: Row,
    die: int,
    offset: int,
    values: Any,
    face_odds: Any,
    scratch: Row,
) -> None:
    """Update the values of rolls for the roller by a position after a pick, for all other faces."""
    one, two = (die + 1) % 3, (die + 2) % 3
    faces = board["face_count"]
    shown_odds = int64(0)
    for k in range(2):
        other = two if k else one
        face_shown = int64(leaf["dice"][other])
        for face in range(6):
            if int(faces[other, face + 1]) > 0:
                leaf["dice"][other] = face + 1
                face_odds[k, face] = log_odds(board, leaf, WEIGHTS, scratch)
        leaf["dice"][other] = face_shown
        shown_odds = face_odds[k, face_shown - 1]
    sign = np.float32(1 - 2 * int64(leaf["lead"]))
    for i in range(6):
        for j in range(6):
            if int(faces[one, i + 1]) > 0 and int(faces[two, j + 1]) > 0:
                roll = offset + i * _UNITS[one] + j * _UNITS[two]
                value = sign * expected_result(face_odds[0, i] + face_odds[1, j] - shown_odds)
                values[roll] = max(values[roll], value)


@subroutine
def _best_value(board: Row, s: Row, scratch: Row) -> np.float32:
    """Return the value for player_0, after the best decision if a decision is due."""
    mask = legal(board, s)
    if mask == np.uint64(0):
        return evaluate(board, s, WEIGHTS, scratch)
    sign = np.float32(1 - 2 * int64(s["player"]))
    best = np.float32(-2.0)
    while mask != np.uint64(0):
        best = max(best, action_value(board, s, lowest_action(mask), WEIGHTS, scratch))
        mask &= mask - np.uint64(1)
    return sign * best
