"""What the networks here read: the position, and the result of each legal move.

The observation tells what is on the table. Beside it stand what a player would count: the terms of
`heuristic` for both sides, the worth of each legal action by that evaluation (its outlook), what
the board offers each player from where the pieces stand (`SIGHT`), and of each legal action its
result: the terms after it, and what the next roll offers then. A move is known by what it leads
to, so that a network can score moves alike in any place of the island, and not only their numbers.

All is seen by the player to decide, and nothing in it is hidden from the other.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Legal, States
from tokaido_env.agents.eval_tables import N_TERMS, TERMS, load_weights
from tokaido_env.agents.heuristic import SCRATCH, count_terms, evaluate, neighbour_counts, quiescent
from tokaido_env.agents.lookahead_features import (
    LOOKAHEAD_HASH,
    MAX_LOOKAHEAD,
    N_LOOKAHEAD,
    N_REACH,
    write_lookahead,
    write_reach,
)
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import AREAS, TOWNS, Action, Mask, Row, Seat
from tokaido_env.core.jit import index, int64, kernel, pooled
from tokaido_env.core.observation import (
    FLOAT_QUOTIENTS,
    LAYOUT_HASH,
    N_FEATURES,
    encode,
    layout_hash,
)
from tokaido_env.core.rules import apply, picker
from tokaido_env.core.state import EFFECT, OVER

MAX_LEGAL = 2 + len(TOWNS) + len(AREAS)
"""The most actions that can be legal at once: moves of the pilgrim, to each town and each area."""

AFTERSTATE_VALUES = N_FEATURES + 2 * N_TERMS
"""Where the outlook begins: before it the observation, my terms, their terms."""

_SIGHT_AT = AFTERSTATE_VALUES + N_ACTIONS

N_INPUTS = _SIGHT_AT + 2 * N_LOOKAHEAD
"""Numbers that describe the position: after the outlook of each action my `SIGHT`, and theirs."""

N_AFTERSTATE = N_TERMS + N_REACH
"""Numbers of a move: my terms less theirs after it, then the mover's prospects."""

MIN_AFTERSTATE_VALUE = np.float32(-0.5)
"""The least outlook: actions that are worse by more than half a win are alike."""

_TERMS_AT = N_FEATURES
_LEAST_UNIT = 0.02  # so that terms of little weight in the evaluation are seen too

# What a point of each term is worth, in log odds: the network sees terms by their weight.
TERM_SCALES = np.maximum(np.abs(load_weights()).max(axis=0), _LEAST_UNIT).astype(np.float32)
TERM_SCALES.flags.writeable = False

MAX_INPUT = max(1.0, float(MAX_LOOKAHEAD), 2.0**16 * float(TERM_SCALES.max()))
"""What no input exceeds: terms are 16-bit integers, all but them and the sight lies in [-1, 1]."""

_TERMS_HASH = hashlib.sha256(
    repr((LAYOUT_HASH, TERMS, load_weights().tolist(), float(MIN_AFTERSTATE_VALUE))).encode()
).hexdigest()[:16]

INPUTS_HASH = layout_hash((_TERMS_HASH, LOOKAHEAD_HASH))
"""Of all that the inputs follow from: the observation's layout, the terms and their weights, and
`SIGHT`."""


@kernel
def encode_position(
    board: Row, tables: Row, s: Row, mask: Mask, scratch: Row, trunk: Any, results: Any
) -> None:
    """Write what a network reads of a position.

    Args:
        board: a row of `BOARD`.
        tables: a row of `EVAL_TABLES`.
        s: a row of `STATE`, at a decision, or at chance but for the set-up.
        mask: the legal actions as bits, 0 at chance.
        scratch: a row of `SCRATCH`; overwritten.
        trunk: float32 (N_INPUTS,), overwritten whole; the outlook of an action is the evaluation
            after it less that after the best one, from `WORST` to 0, and 0 where it is illegal.
        results: float32 (MOST_LEGAL, N_RESULT): the first rows, one for each legal action in their
            order, are overwritten.
    """
    seat = active_seat(s)
    encode(board, s, seat, FLOAT_QUOTIENTS, trunk[:N_FEATURES])
    terms = scratch["terms"]
    count_terms(board, tables, quiescent(board, s, scratch), terms)
    for k in range(N_TERMS):
        trunk[_TERMS_AT + k] = np.float32(terms[seat, k]) * TERM_SCALES[k]
        trunk[_TERMS_AT + N_TERMS + k] = np.float32(terms[1 - seat, k]) * TERM_SCALES[k]
    outlook = trunk[AFTERSTATE_VALUES:_SIGHT_AT]
    outlook[:] = 0.0
    best = np.float32(-2.0)
    row = int64(0)
    left = mask
    while left != np.uint64(0):
        action = index(lowest_action(left))
        left &= left - np.uint64(1)
        outlook[action] = _write_afterstate(
            board, tables, s, int64(action), scratch, results[index(row)]
        )
        row += 1
        best = max(best, outlook[action])
    while mask != np.uint64(0):
        action = index(lowest_action(mask))
        mask &= mask - np.uint64(1)
        outlook[action] = max(outlook[action] - best, MIN_AFTERSTATE_VALUE)
    write_lookahead(board, tables, s, seat, trunk[_SIGHT_AT : _SIGHT_AT + N_LOOKAHEAD])
    write_lookahead(board, tables, s, 1 - seat, trunk[_SIGHT_AT + N_LOOKAHEAD :])


@kernel
def active_seat(s: Row) -> Seat:
    """Return who sees the position: the player who decides, at chance whose pick it is."""
    player = int64(s["player"])
    return player if player >= 0 else picker(s)


@kernel
def _write_afterstate(
    board: Row, tables: Row, s: Row, action: Action, scratch: Row, out: Any
) -> np.float32:
    """Write what an action and its best effect lead to; return the evaluation there."""
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
    """Write my terms less theirs; when the game is over none are counted, the outlook tells all."""
    counted = int64(int(after["phase"]) != OVER)
    for k in range(N_TERMS):
        ahead = int64(terms[seat, k]) - int64(terms[1 - seat, k])
        out[k] = np.float32(ahead * counted) * TERM_SCALES[k]


def encode_positions(
    boards: npt.NDArray[np.void],
    eval_tables: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
    legal: Legal,
    step: int = 1,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return what a network reads of n positions, without gaps between moves.

    Args:
        boards: `BOARD` (b,).
        eval_tables: `EVAL_TABLES` (b,), by `eval_tables_of`.
        which: int64 (n,), the board of each position.
        states: `STATE` (n,), at decisions, or at chance but for the set-up.
        legal: uint64 (n,), the legal actions as bits, 0 at chance.
        step: of how many rows each array has a multiple; the last ones may be 0.

    Returns:
        float32 (n, N_INPUTS), and float32 (k, N_RESULT): the legal actions of all positions in
        their order.
    """
    counts = np.bitwise_count(legal).astype(np.int64)
    ends = np.cumsum(counts)
    trunk = _padded(len(states), N_INPUTS, step)
    results = _padded(int(counts.sum()), N_AFTERSTATE, step)
    begins = ends - counts
    _encode_each(len(states), trunk, results, begins, boards, eval_tables, which, states, legal)
    return trunk, results


def _padded(rows: int, width: int, step: int) -> npt.NDArray[np.float32]:
    out = np.empty((-(-rows // step) * step, width), np.float32)
    out[rows:] = 0.0
    return out


@pooled(at_least=64)
def _encode_each(
    first: int,
    last: int,
    trunk: Any,
    results: Any,
    begins: Any,
    boards: Any,
    eval_tables: Any,
    which: Any,
    states: Any,
    masks: Any,
) -> None:
    scratch = np.empty(1, SCRATCH)[0]
    for i in range(first, last):
        on = index(which[i])
        encode_position(
            *(boards[on], eval_tables[on], states[i], masks[i], scratch, trunk[i]),
            results[begins[i] :],
        )
