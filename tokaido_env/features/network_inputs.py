"""The inputs of the networks: features of a position, and of the afterstate of each legal action.

The observation alone leaves much to compute. A network also reads, of both players where it
applies:

- the terms of `heuristic`;
- the afterstate value of each legal action: the heuristic's evaluation after it and its best
  effect;
- the look-ahead features (`lookahead_features`);
- the exact result of the best line that pulls an end trigger now (`endings`);
- the afterstate features of each legal action: the terms after it, and the reach features then.

An action is described by its afterstate, so that a network can score moves alike in any place of
the island, and not only by their ids. All inputs are from the view of the player to decide, and
contain nothing hidden from the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import AREAS, TOWNS, Action, Mask, Row, Seat
from tokaido_env.core.jit import entry, index, int64, kernel, pooled
from tokaido_env.core.observation import (
    FEATURES,
    FLOAT_QUOTIENTS,
    LAYOUT_HASH,
    N_FEATURES,
    encode,
    scales_of,
    short_hash,
)
from tokaido_env.core.rules import apply, is_chance, picker
from tokaido_env.core.state import EFFECT, OVER, SETUP
from tokaido_env.features.endings import trigger_now
from tokaido_env.features.eval_tables import N_TERMS, TERMS, load_weights
from tokaido_env.features.evaluation import (
    SCRATCH,
    count_terms,
    evaluate,
    neighbour_counts,
    quiescent,
)
from tokaido_env.features.lookahead_features import (
    LOOKAHEAD,
    LOOKAHEAD_HASH,
    MAX_LOOKAHEAD,
    N_LOOKAHEAD,
    N_REACH,
    write_lookahead,
    write_reach,
)

MAX_LEGAL = 2 + len(TOWNS) + len(AREAS)
"""The highest number of legal actions: moves of the pilgrim, to each town and to each area."""

AFTERSTATE_VALUES = N_FEATURES + 2 * N_TERMS
"""Index of the first afterstate value: the observation, my terms and their terms come before."""

_LOOKAHEAD_AT = AFTERSTATE_VALUES + N_ACTIONS

_ENDINGS_AT = _LOOKAHEAD_AT + 2 * N_LOOKAHEAD
ENDINGS = (
    (
        "trigger_result",
        "result for me of the best line that pulls a trigger within a pick now; 0 for no line",
    ),
    ("trigger", "1 if a line pulls a trigger within a pick now"),
)
_ENDING_LIMIT = 300  # positions of an exact search; longer ones count as no line

N_INPUTS = _ENDINGS_AT + 2 * len(ENDINGS)
"""Inputs for a position: after the afterstate values come my look-ahead features, then theirs, then
the endings in my view, mine and theirs."""

N_AFTERSTATE = N_TERMS + N_REACH
"""Features of an afterstate: my terms less theirs, then the mover's reach features."""

MIN_AFTERSTATE_VALUE = np.float32(-0.5)
"""The least afterstate value; worse actions, by more than half a win, are alike."""

_MIN_SCALE = 0.02  # so that the network can read terms of little weight in the evaluation too

# A point of each term in log-odds: the network reads terms scaled by their weight.
TERM_SCALES = np.maximum(np.abs(load_weights()).max(axis=0), _MIN_SCALE).astype(np.float32)
TERM_SCALES.flags.writeable = False

AFTERSTATE_UNIT = 1 / 64
"""The forward pass rounds afterstate values and results to multiples of this (`first_layer`)."""

INPUT_UNITS = np.concatenate(
    [
        1 / scales_of(FEATURES),
        *(TERM_SCALES, TERM_SCALES),
        np.full(N_ACTIONS, AFTERSTATE_UNIT),
        *(1 / scales_of(LOOKAHEAD), 1 / scales_of(LOOKAHEAD)),
        *([AFTERSTATE_UNIT, 1.0], [AFTERSTATE_UNIT, 1.0]),
    ]
).astype(np.float32)
"""The unit of each input, (N_INPUTS,): most inputs are whole multiples of it."""

MAX_INPUT = max(1.0, float(MAX_LOOKAHEAD), 2.0**16 * float(TERM_SCALES.max()))
"""The upper bound of all inputs: terms are 16-bit integers, and all but terms and look-ahead
features lies in [-1, 1]."""

INPUTS_HASH = short_hash(
    (
        LAYOUT_HASH,
        [name for name, _ in TERMS],
        load_weights().tolist(),
        TERM_SCALES.tolist(),
        float(MIN_AFTERSTATE_VALUE),
        LOOKAHEAD_HASH,
        [name for name, _ in ENDINGS],
        _ENDING_LIMIT,
    )
)
"""A hash of the inputs, which policy files contain: the layouts of the observation and of
`LOOKAHEAD`; names, weights and scales of terms; the names of endings; and limits. As in
`layout_hash`, meanings are left out."""


@kernel
def encode_position(
    board: Row,
    tables: Row,
    s: Row,
    seat: Seat,
    mask: Mask,
    scratch: Row,
    inputs: Any,
    afterstates: Any,
) -> None:
    """Write a seat's inputs of a position and the afterstate features of its legal actions.

    At the set-up and after the end, which have no look-ahead, the inputs after the observation are
    0.

    Args:
        board: a row of `BOARD`.
        tables: a row of `EVAL_TABLES`.
        s: a row of `STATE`.
        seat: the seat that views the position.
        mask: the legal actions of the seat as bits, 0 if it does not decide.
        scratch: a row of `SCRATCH`, overwritten.
        inputs: float32 (N_INPUTS,), overwritten. The afterstate value of an action is relative to
            the best action, from `MIN_AFTERSTATE_VALUE` to 0, and 0 for an illegal action.
        afterstates: float32 (MAX_LEGAL, N_AFTERSTATE); the first rows, one for each legal action in
            ascending order, are overwritten.
    """
    encode(board, s, seat, FLOAT_QUOTIENTS, inputs[:N_FEATURES])
    if int(s["phase"]) in (SETUP, OVER):
        inputs[N_FEATURES:] = 0.0
        return
    terms = scratch["terms"]
    count_terms(board, tables, quiescent(board, s, scratch), terms)
    for k in range(N_TERMS):
        inputs[N_FEATURES + k] = np.float32(terms[seat, k]) * TERM_SCALES[k]
        inputs[N_FEATURES + N_TERMS + k] = np.float32(terms[1 - seat, k]) * TERM_SCALES[k]
    values = inputs[AFTERSTATE_VALUES:_LOOKAHEAD_AT]
    values[:] = 0.0
    best = np.float32(-2.0)
    row = int64(0)
    left = mask
    while left != np.uint64(0):
        action = index(lowest_action(left))
        left &= left - np.uint64(1)
        values[action] = _write_afterstate(
            board, tables, s, int64(action), scratch, afterstates[index(row)]
        )
        row += 1
        best = max(best, values[action])
    while mask != np.uint64(0):
        action = index(lowest_action(mask))
        mask &= mask - np.uint64(1)
        values[action] = max(values[action] - best, MIN_AFTERSTATE_VALUE)
    write_lookahead(board, tables, s, seat, inputs[_LOOKAHEAD_AT : _LOOKAHEAD_AT + N_LOOKAHEAD])
    write_lookahead(board, tables, s, 1 - seat, inputs[_LOOKAHEAD_AT + N_LOOKAHEAD : _ENDINGS_AT])
    for side in range(2):
        own = seat ^ side
        result = trigger_now(board, tables, s, own, scratch["frames"], _ENDING_LIMIT)
        exists = np.float32(result >= -1.0)
        sign = np.float32(1 - 2 * side)
        inputs[_ENDINGS_AT + 2 * side] = sign * exists * result
        inputs[_ENDINGS_AT + 2 * side + 1] = exists


@kernel
def active_seat(s: Row) -> Seat:
    """Return the seat that decides or, at chance, the seat of the current pick."""
    player = int64(s["player"])
    return player if player >= 0 else picker(s)


@kernel
def _write_afterstate(
    board: Row, tables: Row, s: Row, action: Action, scratch: Row, out: Any
) -> np.float32:
    """Write the features after an action and its best effect; return the evaluation there."""
    seat = int64(s["player"])
    sign = np.float32(1 - 2 * seat)
    scratch["states"][0] = s
    after = scratch["states"][0]
    effects = apply(board, after, action)
    write_reach(board, tables, after, seat, neighbour_counts(board, after), out[N_TERMS:])
    if int(after["phase"]) != EFFECT:
        value = sign * evaluate(board, tables, after, scratch)
        _write_term_differences(after, seat, scratch["terms"], out)
        return value
    best = np.float32(-2.0)
    while effects != np.uint64(0):
        scratch["states"][1] = after
        final = scratch["states"][1]
        apply(board, final, lowest_action(effects))
        effects &= effects - np.uint64(1)
        value = sign * evaluate(board, tables, final, scratch)
        if value > best:
            best = value
            _write_term_differences(final, seat, scratch["terms"], out)
    return best


@kernel
def _write_term_differences(after: Row, seat: Seat, terms: Any, out: Any) -> None:
    """Write my terms less theirs, or 0 in a finished game, which the afterstate value describes."""
    counted = int64(int(after["phase"]) != OVER)
    for k in range(N_TERMS):
        ahead = int64(terms[seat, k]) - int64(terms[1 - seat, k])
        out[k] = np.float32(ahead * counted) * TERM_SCALES[k]


def encode_positions(
    boards: npt.NDArray[np.void],
    eval_tables: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
    step: int = 1,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the inputs of n positions, and the afterstate features of all their legal actions.

    Args:
        boards: `BOARD` (b,).
        eval_tables: `EVAL_TABLES` (b,), from `eval_tables_of`.
        which: int64 (n,), the index of each position's board.
        states: `STATE` (n,), at decisions, or at chance but not the set-up.
        legal: uint64 (n,), the legal actions as bits, 0 at chance.
        step: the numbers of rows are multiples of this; rows of zeros fill up.

    Returns:
        float32 (n, N_INPUTS), and float32 (k, N_AFTERSTATE) for the legal actions of all positions
        in order.
    """
    counts = np.bitwise_count(legal).astype(np.int64)
    ends = np.cumsum(counts)
    inputs = _padded(len(states), N_INPUTS, step)
    afterstates = _padded(int(counts.sum()), N_AFTERSTATE, step)
    begins = ends - counts
    _encode_each(
        len(states), inputs, afterstates, begins, boards, eval_tables, which, states, legal
    )
    return inputs, afterstates


def _padded(rows: int, width: int, step: int) -> npt.NDArray[np.float32]:
    out = np.empty((-(-rows // step) * step, width), np.float32)
    out[rows:] = 0.0
    return out


@pooled(at_least=64)
def _encode_each(
    first: int,
    last: int,
    inputs: Any,
    afterstates: Any,
    begins: Any,
    boards: Any,
    eval_tables: Any,
    which: Any,
    states: Any,
    masks: Any,
) -> None:
    scratch = np.empty(1, SCRATCH)[0]
    for i in range(first, last):
        board = index(which[i])
        encode_position(
            *(boards[board], eval_tables[board], states[i], active_seat(states[i]), masks[i]),
            *(scratch, inputs[i], afterstates[begins[i] :]),
        )


def apply_actions(
    boards: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: npt.NDArray[np.void],
    actions: npt.NDArray[np.int64],
) -> npt.NDArray[np.int8]:
    """Apply actions; return the viewer of each state that is then a chance node, else -1.

    Args:
        boards: `BOARD` (b,).
        which: int64 (n,), the board of each state.
        states: `STATE` (n,), with a decision to take; overwritten.
        actions: int64 (n,), legal ones.
    """
    viewers = np.full(len(states), -1, np.int8)
    _apply_actions(viewers, boards, which, states, actions)
    return viewers


@entry
def _apply_actions(viewers: Any, boards: Any, which: Any, states: Any, actions: Any) -> None:
    for i in range(len(viewers)):
        apply(boards[index(which[i])], states[i], actions[i])
        if is_chance(states[i]):
            viewers[i] = active_seat(states[i])
