"""The afterstate observation: what the networks read, and more about each legal action.

An observation of a seat has three arrays (`AFTERSTATE_SHAPES`): `observation`, the inputs of the
networks; `actions`, in row `a` the features of the afterstate of action `a`, zeros where it is
illegal; and `action_mask`. An action is described by its afterstate, so that a network can score
moves alike in any place of the island, and not only by their ids. The features are made by hand:
they count what a good player looks at. They do not contain the heuristic's value of an action, but
after an action with an optional effect the terms are those of the position after the effect that
the heuristic values most; the others are of the position before it. For a seat that does not
decide, `actions` and `action_mask` are 0. At the set-up and after the end there is no look-ahead:
only the first N_FEATURES numbers, the observation alone, are filled.

The arrays of a game lie in one row of `AFTERSTATE_ROW` numbers; `afterstate_arrays` returns views
of them. `python -m tokaido_env features` prints the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import MASK_BYTES, expand_mask, lowest_action
from tokaido_env.core.constants import (
    CAPACITY,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    PAINTINGS,
    SIXTHS,
    WARE_COUNTS,
    Mask,
    Row,
    Seat,
)
from tokaido_env.core.jit import index, int64, kernel, parallel
from tokaido_env.core.observation import FEATURES, Feature, layout_hash
from tokaido_env.core.rules import apply, legal
from tokaido_env.core.state import EFFECT, MAX_COINS, MAX_PENDING
from tokaido_env.core.threads import prefetch
from tokaido_env.features.evaluation import (
    Places,
    around_of,
    count_terms,
    evaluate_at,
    new_scratch,
    places_of,
)
from tokaido_env.features.geometry_features import MAX_POINTS, POINTS, encode_geometry
from tokaido_env.features.lookahead_features import (
    LOOKAHEAD,
    MAX_LOOKAHEAD,
    N_REACH,
    next_reach,
    write_reach,
)
from tokaido_env.features.network_inputs import ENDINGS, N_INPUTS, TERM_SCALES, encode_position
from tokaido_env.features.terms import N_TERMS, TERMS, WEIGHTS

N_OBSERVED = N_INPUTS
"""Numbers of `observation`: the inputs of the networks."""

N_AFTERSTATE = N_TERMS + N_REACH
"""Features of an afterstate: my terms less theirs, then the mover's reach features."""


class Column(NamedTuple):
    """One entry of a layout: `size` numbers from index `start`, in [low, high].

    Attributes:
        name: of the entry.
        start: index of its first number.
        size: how many numbers it has.
        unit: the value of a raw count of 1: the number is a count times `unit`.
        low: the lowest value.
        high: the highest value.
        meaning: what the numbers say, in their order.
    """

    name: str
    start: int
    size: int
    unit: float
    low: float
    high: float
    meaning: str

    @property
    def slice(self) -> slice:
        """The indices of the column in the vector."""
        return slice(self.start, self.start + self.size)


Entry = tuple[str, int, float, float, float, str]
"""A row of a table: name, size, unit, low, high, meaning."""

_WARES = sum(WARE_COUNTS)
_MOST_POINTS = 255  # of a step of a track
_INT16 = np.iinfo(np.int16)  # products of two tracks wrap around
_TERM_LIMITS: dict[str, int] = {
    **dict.fromkeys(("commerce", "culture"), _MOST_POINTS),
    **dict.fromkeys(("gift_now", "gift_next", "second_next"), SIXTHS * _MOST_POINTS),
    **{"temple": LAST_TEMPLE, "garden": LAST_GARDEN, "gold": LAST_SLAB, "gifted": PAINTINGS},
    **{"coins": MAX_COINS, "held": _WARES, "wares": 4 * _WARES, "easel": PAINTINGS},
    **dict.fromkeys(("seashore_now", "spring_now"), SIXTHS),
    **{"sale_now": 4 * SIXTHS * max(WARE_COUNTS), "paint_now": 7 * SIXTHS},
    **dict.fromkeys(("draw_now", "draw_next"), SIXTHS * CAPACITY),
    **dict.fromkeys(("tranquil", "hasty", "crafty", "robust", "proficient", "inspired"), 1),
    **{"hot_spring": 1, "picks": 2, "drawing": CAPACITY + 1, "revealing": MAX_PENDING},
}
"""The highest count of each term that is never negative; the others fill 16 bits."""

_ABOVE_ONE = ("sale", "crowd", "step", "steps", "left", "ring")
"""Last words of the names of look-ahead features that may exceed 1."""


def _observation_entries() -> Iterator[Entry]:
    for each in FEATURES:
        yield each.name, each.size, 1 / each.scale, 0.0, 1.0, each.meaning


def _lookahead_entries(prefix: str, features: Iterable[Feature]) -> Iterator[Entry]:
    for each in features:
        above = each.name.rpartition("_")[2] in _ABOVE_ONE
        high = float(MAX_LOOKAHEAD) if above else 1.0
        yield f"{prefix}{each.name}", each.size, 1 / each.scale, 0.0, high, each.meaning


def _points_entries(prefix: str) -> Iterator[Entry]:
    for each in POINTS:
        yield f"{prefix}{each.name}", each.size, 1 / each.scale, 0.0, MAX_POINTS, each.meaning


def _term_limits(name: str) -> tuple[int, int]:
    if name in _TERM_LIMITS:
        return 0, _TERM_LIMITS[name]
    return int(_INT16.min), int(_INT16.max)


def _term_entries(prefix: str) -> Iterator[Entry]:
    for term, unit in zip(TERMS, TERM_SCALES, strict=True):
        low, high = (np.float32(limit) * unit for limit in _term_limits(term.name))
        yield f"{prefix}{term.name}", 1, float(unit), float(low), float(high), term.meaning


def _difference_entries() -> Iterator[Entry]:
    for term, unit in zip(TERMS, TERM_SCALES, strict=True):
        low, high = _term_limits(term.name)
        most = float(np.float32(high - low) * unit)
        yield f"term_{term.name}", 1, float(unit), -most, most, f"mine less theirs: {term.meaning}"


def _ending_entries(prefix: str) -> Iterator[Entry]:
    lows = -1.0, 0.0
    for (name, meaning), low in zip(ENDINGS, lows, strict=True):
        yield f"{prefix}{name}", 1, 1.0, low, 1.0, meaning


def _columns(table: Iterable[Entry]) -> tuple[Column, ...]:
    """Return the columns of a table in order, the first from index 0."""
    columns: list[Column] = []
    for name, size, *rest in table:
        start = columns[-1].slice.stop if columns else 0
        columns.append(Column(name, start, size, *rest))  # type: ignore[arg-type]
    return tuple(columns)


GEOMETRY = _columns(
    (
        *_observation_entries(),
        *_points_entries("my_"),
        *_points_entries("their_"),
        *_lookahead_entries("my_", LOOKAHEAD),
        *_lookahead_entries("their_", LOOKAHEAD),
    )
)
"""The layout of the geometry observation, (N_GEOMETRY,)."""

GEOMETRY_LAYOUT_HASH = layout_hash(GEOMETRY)

AFTERSTATE_INPUTS = _columns(
    (
        *_observation_entries(),
        *_term_entries("my_term_"),
        *_term_entries("their_term_"),
        *_lookahead_entries("my_", LOOKAHEAD),
        *_lookahead_entries("their_", LOOKAHEAD),
        *_ending_entries("my_"),
        *_ending_entries("their_"),
    )
)
"""The layout of `observation`, (N_OBSERVED,)."""

AFTERSTATE_FEATURES = _columns(
    (*_difference_entries(), *_lookahead_entries("", [f for f in LOOKAHEAD if f.start < N_REACH]))
)
"""The layout of a row of `actions`, (N_AFTERSTATE,): terms and reach features after the action."""

AFTERSTATE_LAYOUT_HASH = layout_hash(AFTERSTATE_INPUTS, AFTERSTATE_FEATURES)

AFTERSTATE_SHAPES: dict[str, tuple[int, ...]] = {
    "observation": (N_OBSERVED,),
    "actions": (N_ACTIONS, N_AFTERSTATE),
    "action_mask": (N_ACTIONS,),
}
"""The arrays of one game: float32, float32 and int8."""

# A row starts at a cache line, and the mask in it at a word.
_ACTIONS_END = N_OBSERVED + N_ACTIONS * N_AFTERSTATE
_MASK_AT = _ACTIONS_END + _ACTIONS_END % 2
_MASK_END = _MASK_AT + MASK_BYTES // 4
AFTERSTATE_ROW = -(-_MASK_END // 16) * 16
"""The float32 numbers of a game's row: `observation`, `actions`, and the mask as bytes."""
_HALF_LINES = AFTERSTATE_ROW // 32  # cache lines; the next row is prefetched
_BLOCK = 16  # rows that a thread writes at a time


def bounds_of(columns: tuple[Column, ...]) -> npt.NDArray[np.float32]:
    """Return the lowest and the highest value of each number of a layout, float32 (2, numbers)."""
    sizes = [each.size for each in columns]
    bounds = np.array([(each.low, each.high) for each in columns], np.float32)
    return np.repeat(bounds.T, sizes, axis=1)


def afterstate_arrays(rows: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[Any]]:
    """Return views of rows (…, AFTERSTATE_ROW): arrays (…, *AFTERSTATE_SHAPES[name]) by name.

    Args:
        rows: float32; the view of `action_mask` is int8.
    """
    actions = rows[..., N_OBSERVED:_ACTIONS_END]
    return {
        "observation": rows[..., :N_OBSERVED],
        "actions": actions.reshape(*rows.shape[:-1], *AFTERSTATE_SHAPES["actions"]),
        "action_mask": rows[..., _MASK_AT:].view(np.int8)[..., :N_ACTIONS],
    }


@parallel(at_least=64)
def observe_afterstates(
    games: Any, boards: Any, states: Any, infos: Any, seats: Any, rows: Any
) -> None:
    """Write the afterstate observations of `seats`, NO_PLAYER read as 0.

    Args:
        games: as for `core.batch_kernels`.
        boards: as for `core.batch_kernels`.
        states: as for `core.batch_kernels`.
        infos: as for `core.batch_kernels`.
        seats: int8 (k,), or `batch_kernels.DECIDING`.
        rows: float32 (k, AFTERSTATE_ROW), overwritten.
    """
    for block in prange((len(games) + _BLOCK - 1) // _BLOCK):
        scratch = new_scratch()
        last = min((block + 1) * _BLOCK, len(games))
        for j in range(block * _BLOCK, last):
            i = index(games[j])
            s, k = states[i], index(infos[i]["board"])
            seat = max(int64(seats[j] if len(seats) else s["player"]), 0)
            mask = legal(boards[k], s) if int64(s["player"]) == seat else np.uint64(0)
            row = rows[j]
            actions = row[N_OBSERVED:_ACTIONS_END].reshape(N_ACTIONS, N_AFTERSTATE)
            if j + 1 < last:
                prefetch(rows, (j + 1) * AFTERSTATE_ROW, _HALF_LINES)
            encode_position(boards[k], s, seat, scratch[0], row[:N_INPUTS])
            if j + 1 < last:  # in two parts, because only so many lines can be on their way
                prefetch(rows, (j + 1) * AFTERSTATE_ROW + 16 * _HALF_LINES, _HALF_LINES)
            actions[:] = 0.0
            _write_afterstates(boards[k], s, mask, scratch[0], actions)
            expand_mask(mask, row[_MASK_AT:_MASK_END].view(np.uint64))


@parallel(at_least=64)
def observe_geometry(
    games: Any, boards: Any, states: Any, infos: Any, seats: Any, rows: Any
) -> None:
    """Write geometry observations to `rows`, float32 (k, N_GEOMETRY); else as afterstates."""
    for j in prange(len(games)):
        i = index(games[j])
        seat = max(int64(seats[j] if len(seats) else states[i]["player"]), 0)
        encode_geometry(boards[index(infos[i]["board"])], states[i], seat, rows[j])


@kernel
def _write_afterstates(board: Row, s: Row, mask: Mask, scratch: Row, actions: Any) -> None:
    """Write the features of the afterstates of a mask's actions."""
    seat = int64(s["player"])
    while mask != np.uint64(0):
        action = index(lowest_action(mask))
        mask &= mask - np.uint64(1)
        scratch["states"][0] = s
        after = scratch["states"][0]
        effects = apply(board, after, int64(action))
        around, out = around_of(board, after), actions[action]
        write_reach(next_reach(board, after, seat, around), 0, out[N_TERMS:])
        places = places_of(board, after, around)
        _write_best_terms(board, after, seat, effects, places, scratch, out)


@kernel
def _write_best_terms(
    board: Row,
    after: Row,
    seat: Seat,
    effects: Mask,
    places: Places,
    scratch: Row,
    out: Any,
) -> None:
    """Write the terms after an action and the effect that the heuristic values most."""
    terms = scratch["terms"]
    sign = np.float32(1 - 2 * seat)
    if int(after["phase"]) != EFFECT:
        count_terms(board, after, places, terms)
        _write_differences(terms, seat, out)
        return
    best = np.float32(-2.0)
    while effects != np.uint64(0):
        scratch["states"][1] = after
        final = scratch["states"][1]
        apply(board, final, lowest_action(effects))
        effects &= effects - np.uint64(1)
        value = sign * evaluate_at(board, final, places, WEIGHTS, scratch)
        if value > best:
            best = value
            _write_differences(terms, seat, out)


@kernel
def _write_differences(terms: Any, seat: Seat, out: Any) -> None:
    """Write my terms less theirs."""
    for k in range(N_TERMS):
        out[k] = np.float32(int64(terms[seat, k]) - int64(terms[1 - seat, k])) * TERM_SCALES[k]
