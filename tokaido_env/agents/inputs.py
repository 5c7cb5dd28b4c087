"""What the networks here read: the position, and the result of each legal move.

The observation tells what is on the table. Beside it stand what a player would count: the terms of
`heuristic` for both sides, the worth of each legal action by that evaluation (its outlook), and the
terms after each legal action (its result). A move is known by what it leads to, so that a network
can score moves alike in any place of the island, and not only their numbers.

All is seen by the player to decide, and nothing in it is hidden from the other.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.heuristic import (
    N_TERMS,
    SCRATCH,
    TERMS,
    count_terms,
    crowds_of,
    evaluate,
    guides_of,
    load_weights,
    quieted,
)
from tokaido_env.agents.sight import (
    MOST_SIGHT,
    N_PROSPECTS,
    N_SIGHT,
    SIGHT_HASH,
    read_prospects,
    read_sight,
)
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bits import lowest
from tokaido_env.core.box import AREAS, TOWNS, Action, Mask, Row, Seat
from tokaido_env.core.features import hash_of
from tokaido_env.core.jit import index, int64, kernel, pooled
from tokaido_env.core.observation import FLOAT_UNITS, LAYOUT_HASH, N_FEATURES, encode
from tokaido_env.core.rules import apply, picker
from tokaido_env.core.state import EFFECT, OVER

N_TRUNK = N_FEATURES + 2 * N_TERMS + N_ACTIONS
"""Numbers that describe the position: observation, my terms, their terms, outlook by action."""

MOST_LEGAL = 2 + len(TOWNS) + len(AREAS)
"""The most actions that can be legal at once: moves of the pilgrim, to each town and each area."""

N_INPUTS = N_TRUNK + MOST_LEGAL * N_TERMS
"""Numbers in all: after those of the trunk the results of the legal actions, in their order."""

N_SIGHTED = N_TRUNK + 2 * N_SIGHT
"""Numbers that describe the position to who has sight: then also my `SIGHT`, their `SIGHT`."""

N_RESULT = N_TERMS + N_PROSPECTS
"""Numbers of a move to who has sight: its terms, then the mover's prospects after it."""

OUTLOOK = N_TRUNK - N_ACTIONS
"""Where the outlook begins."""

WORST = np.float32(-0.5)
"""The least outlook: actions that are worse by more than half a win are alike."""

_TERMS_AT = N_FEATURES
_LEAST_UNIT = 0.02  # so that terms of little weight in the evaluation are seen too

# What a point of each term is worth, in log odds: the network sees terms by their weight.
TERM_UNITS = np.maximum(np.abs(load_weights()).max(axis=0), _LEAST_UNIT).astype(np.float32)
TERM_UNITS.flags.writeable = False

LARGEST = max(1.0, float(MOST_SIGHT), 2.0**16 * float(TERM_UNITS.max()))
"""What no input exceeds: terms are 16-bit integers, all but them and the sight lies in [-1, 1]."""

INPUTS_HASH = hashlib.sha256(
    repr((LAYOUT_HASH, TERMS, load_weights().tolist(), float(WORST))).encode()
).hexdigest()[:16]
"""Of all that the inputs follow from: the observation's layout, the terms and their weights."""

SIGHTED_HASH = hash_of((INPUTS_HASH, SIGHT_HASH))
"""The same of those with sight."""


def read_positions(
    boards: npt.NDArray[np.void],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
    room: int = 0,
) -> npt.NDArray[np.float32]:
    """Return what a network reads of n positions: float32 (n, N_INPUTS + room).

    Args:
        boards: `BOARD` (1,) for all, or (n,).
        states: `STATE` (n,), with a decision to take.
        legal: uint64 (n,), the legal actions as bits.
        room: numbers at the end of each row that are left 0.
    """
    out = np.zeros((len(states), N_INPUTS + room), np.float32)
    _read_each(len(states), out, boards, guides_of(boards), states, legal)
    return out


@kernel
def read_position(
    board: Row, guide: Row, s: Row, mask: Mask, scratch: Row, trunk: Any, results: Any
) -> None:
    """Write what a network reads of a position.

    Args:
        board: a row of `BOARD`.
        guide: a row of `GUIDE`.
        s: a row of `STATE`, at a decision, or at chance but for the set-up.
        mask: the legal actions as bits, 0 at chance.
        scratch: a row of `SCRATCH`; overwritten.
        trunk: float32 (N_TRUNK,), or (N_SIGHTED,) with sight, overwritten whole; the outlook of an
            action is the evaluation after it less that after the best one, from `WORST` to 0, and 0
            where it is illegal.
        results: float32 (MOST_LEGAL, N_TERMS), or (MOST_LEGAL, N_RESULT) with sight: the first
            rows, one for each legal action in their order, are overwritten with my terms less
            theirs after it.
    """
    seat = viewer(s)
    encode(board, s, seat, FLOAT_UNITS, trunk[:N_FEATURES])
    terms = scratch["terms"]
    count_terms(board, guide, quieted(board, s, scratch), terms)
    for k in range(N_TERMS):
        trunk[_TERMS_AT + k] = np.float32(terms[seat, k]) * TERM_UNITS[k]
        trunk[_TERMS_AT + N_TERMS + k] = np.float32(terms[1 - seat, k]) * TERM_UNITS[k]
    outlook = trunk[OUTLOOK:]
    outlook[:] = 0.0
    best = np.float32(-2.0)
    row = int64(0)
    left = mask
    while left != np.uint64(0):
        action = index(lowest(left))
        left &= left - np.uint64(1)
        outlook[action] = _result(board, guide, s, int64(action), scratch, results[index(row)])
        row += 1
        best = max(best, outlook[action])
    while mask != np.uint64(0):
        action = index(lowest(mask))
        mask &= mask - np.uint64(1)
        outlook[action] = max(outlook[action] - best, WORST)
    if len(trunk) > N_TRUNK:
        read_sight(board, guide, s, seat, trunk[N_TRUNK : N_TRUNK + N_SIGHT])
        read_sight(board, guide, s, 1 - seat, trunk[N_TRUNK + N_SIGHT : N_SIGHTED])


@kernel
def viewer(s: Row) -> Seat:
    """Return who sees the position: the player who decides, at chance whose pick it is."""
    player = int64(s["player"])
    return player if player >= 0 else picker(s)


@kernel
def _result(board: Row, guide: Row, s: Row, action: Action, scratch: Row, out: Any) -> np.float32:
    """Write what an action and its best effect lead to; return the evaluation there."""
    seat = int64(s["player"])
    sign = np.float32(1 - 2 * seat)
    scratch["states"][0] = s
    after = scratch["states"][0]
    effects = apply(board, after, action)
    if len(out) > N_TERMS:
        read_prospects(board, guide, after, seat, crowds_of(board, after), out[N_TERMS:])
    if int(after["phase"]) != EFFECT:
        value = sign * evaluate(board, guide, after, scratch)
        _write_result(after, seat, scratch["terms"], out)
        return value
    best = np.float32(-2.0)
    while effects != np.uint64(0):
        scratch["states"][1] = after
        final = scratch["states"][1]
        apply(board, final, lowest(effects))
        effects &= effects - np.uint64(1)
        value = sign * evaluate(board, guide, final, scratch)
        if value > best:
            best = value
            _write_result(final, seat, scratch["terms"], out)
    return best


@kernel
def _write_result(after: Row, seat: Seat, terms: Any, out: Any) -> None:
    """Write my terms less theirs; when the game is over none are counted, the outlook tells all."""
    counted = int64(int(after["phase"]) != OVER)
    for k in range(N_TERMS):
        ahead = int64(terms[seat, k]) - int64(terms[1 - seat, k])
        out[k] = np.float32(ahead * counted) * TERM_UNITS[k]


@pooled(at_least=64)
def _read_each(
    first: int, last: int, out: Any, boards: Any, guides: Any, states: Any, masks: Any
) -> None:
    scratch = np.empty(1, SCRATCH)[0]
    for i in range(first, last):
        which = index(i if len(boards) > 1 else 0)
        results = out[i, N_TRUNK:N_INPUTS].reshape(MOST_LEGAL, N_TERMS)
        read_position(
            boards[which], guides[which], states[i], masks[i], scratch, out[i, :N_TRUNK], results
        )


def read_moves(
    boards: npt.NDArray[np.void],
    guides: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
    step: int = 1,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return what a network with sight reads of n positions, without gaps between moves.

    Args:
        boards: `BOARD` (b,).
        guides: `GUIDE` (b,), by `heuristic.guides_of`.
        which: int64 (n,), the board of each position.
        states: `STATE` (n,), at decisions, or at chance but for the set-up.
        legal: uint64 (n,), the legal actions as bits, 0 at chance.
        step: of how many rows each array has a multiple; the last ones may be 0.

    Returns:
        float32 (n, N_SIGHTED), and float32 (k, N_RESULT): the legal actions of all positions in
        their order.
    """
    counts = np.bitwise_count(legal).astype(np.int64)
    ends = np.cumsum(counts)
    trunk = _room(len(states), N_SIGHTED, step)
    results = _room(int(counts.sum()), N_RESULT, step)
    begins = ends - counts
    _read_moves(len(states), trunk, results, begins, boards, guides, which, states, legal)
    return trunk, results


def _room(rows: int, width: int, step: int) -> npt.NDArray[np.float32]:
    out = np.empty((-(-rows // step) * step, width), np.float32)
    out[rows:] = 0.0
    return out


@pooled(at_least=64)
def _read_moves(
    first: int,
    last: int,
    trunk: Any,
    results: Any,
    begins: Any,
    boards: Any,
    guides: Any,
    which: Any,
    states: Any,
    masks: Any,
) -> None:
    scratch = np.empty(1, SCRATCH)[0]
    for i in range(first, last):
        on = index(which[i])
        read_position(
            *(boards[on], guides[on], states[i], masks[i], scratch, trunk[i]),
            results[begins[i] :],
        )
