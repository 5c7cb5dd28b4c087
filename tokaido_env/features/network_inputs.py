"""The inputs of the networks: the features of a position.

The observation alone leaves much to compute. A network also reads, for both players:

- the terms of `heuristic`;
- the look-ahead features (`lookahead_features`);
- the exact result of the best line that pulls an end trigger now (`endings`).

All inputs are from the view of one player, the one to decide or, at chance, of the current pick.
They contain nothing hidden from the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.constants import Row, Seat
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
from tokaido_env.core.state import OVER, SETUP
from tokaido_env.features.endings import trigger_now
from tokaido_env.features.evaluation import SCRATCH, around_of, count_terms, places_of, quiescent
from tokaido_env.features.lookahead_features import (
    LOOKAHEAD,
    LOOKAHEAD_HASH,
    N_LOOKAHEAD,
    write_lookahead,
)
from tokaido_env.features.terms import LOG_ODDS, N_TERMS, TERMS

_LOOKAHEAD_AT = N_FEATURES + 2 * N_TERMS
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
"""Inputs for a position: the observation, my terms, then theirs, my look-ahead features, then
theirs, and the endings in my view, mine and theirs."""

_MIN_SCALE = 0.02  # so that the network can read terms of little weight in the evaluation too

# A point of each term in log-odds: the network reads terms scaled by their weight.
TERM_SCALES = np.maximum(np.abs(LOG_ODDS).max(axis=0), _MIN_SCALE).astype(np.float32)
TERM_SCALES.flags.writeable = False

_RESULT_UNIT = 1 / 64  # the forward pass rounds results to multiples of this (`agents.weights`)

INPUT_UNITS = np.concatenate(
    [
        1 / scales_of(FEATURES),
        *(TERM_SCALES, TERM_SCALES),
        *(1 / scales_of(LOOKAHEAD), 1 / scales_of(LOOKAHEAD)),
        *([_RESULT_UNIT, 1.0], [_RESULT_UNIT, 1.0]),
    ]
).astype(np.float32)
"""The unit of each input, (N_INPUTS,): most inputs are whole multiples of it."""

INPUTS_HASH = short_hash(
    (
        LAYOUT_HASH,
        [term.name for term in TERMS],
        LOG_ODDS.tolist(),
        TERM_SCALES.tolist(),
        LOOKAHEAD_HASH,
        [name for name, _ in ENDINGS],
        _ENDING_LIMIT,
    )
)
"""A hash of the inputs, which policy files contain: the layouts of the observation and of
`LOOKAHEAD`; names, weights and scales of terms; the names of endings; and limits. As in
`layout_hash`, meanings are left out."""


@kernel
def encode_position(board: Row, s: Row, seat: Seat, scratch: Row, inputs: Any) -> None:
    """Write a seat's inputs of a position.

    At the set-up and after the end, which have no look-ahead, the inputs after the observation are
    0.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        seat: the seat that views the position.
        scratch: a row of `SCRATCH`, overwritten.
        inputs: float32 (N_INPUTS,), overwritten.
    """
    encode(board, s, seat, FLOAT_QUOTIENTS, inputs[:N_FEATURES])
    if int(s["phase"]) in (SETUP, OVER):
        inputs[N_FEATURES:] = 0.0
        return
    terms, around = scratch["terms"], around_of(board, s)
    count_terms(board, quiescent(board, s, scratch), places_of(board, s, around), terms)
    for k in range(N_TERMS):
        inputs[N_FEATURES + k] = np.float32(terms[seat, k]) * TERM_SCALES[k]
        inputs[N_FEATURES + N_TERMS + k] = np.float32(terms[1 - seat, k]) * TERM_SCALES[k]
    for side in range(2):
        own = seat ^ side
        write_lookahead(board, s, own, around, inputs[_LOOKAHEAD_AT + side * N_LOOKAHEAD :])
        result = trigger_now(board, s, own, scratch["frames"], _ENDING_LIMIT)
        exists = np.float32(result >= -1.0)
        sign = np.float32(1 - 2 * side)
        inputs[_ENDINGS_AT + 2 * side] = sign * exists * result
        inputs[_ENDINGS_AT + 2 * side + 1] = exists


@kernel
def active_seat(s: Row) -> Seat:
    """Return the seat that decides or, at chance, the seat of the current pick."""
    player = int64(s["player"])
    return player if player >= 0 else picker(s)


def encode_positions(
    boards: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: npt.NDArray[np.void],
    step: int = 1,
) -> npt.NDArray[np.float32]:
    """Return the inputs of n positions for their `active_seat`, float32 (n, N_INPUTS).

    Args:
        boards: `BOARD` (b,).
        which: int64 (n,), the index of each position's board.
        states: `STATE` (n,), at decisions, or at chance but not the set-up.
        step: the number of rows is a multiple of this; rows of zeros fill up.
    """
    n = len(states)
    inputs = np.empty((-(-n // step) * step, N_INPUTS), np.float32)
    inputs[n:] = 0.0
    _encode_each(n, inputs, boards, which, states)
    return inputs


@pooled(at_least=64)
def _encode_each(first: int, last: int, inputs: Any, boards: Any, which: Any, states: Any) -> None:
    scratch = np.empty(1, SCRATCH)
    for i in range(first, last):
        board = index(which[i])
        seat = active_seat(states[i])
        encode_position(boards[board], states[i], seat, scratch[0], inputs[i])


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
