"""The geometry: the observation, the score, and what follows from the board.

It has facts and no opinion of what is good, so a learner that reads it starts without our knowledge
of how to play. The facts are those that a player reads off the board: the points of both players,
and the look-ahead features (`lookahead_features`), such as what each die reaches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.constants import Row, Seat
from tokaido_env.core.jit import kernel
from tokaido_env.core.observation import FLOAT_QUOTIENTS, N_FEATURES, encode, layout_of, width
from tokaido_env.core.rules import score
from tokaido_env.core.state import OVER, SETUP
from tokaido_env.features.evaluation import around_of
from tokaido_env.features.lookahead_features import N_LOOKAHEAD, write_lookahead

_SCALE, _MOST_POINTS = 4, 255  # the board of a file may have more points
POINTS = layout_of((("points", 3, _SCALE, "faith, commerce and culture, clipped at 255"),))
"""What the geometry has of one player besides the look-ahead features."""

N_POINTS = width(POINTS)
MAX_POINTS = _MOST_POINTS / _SCALE
"""The upper bound of `POINTS`."""

N_GEOMETRY = N_FEATURES + 2 * N_POINTS + 2 * N_LOOKAHEAD
"""Numbers of the geometry: the observation, my points, then theirs, my look-ahead features, then
theirs."""

_AHEAD_AT = N_FEATURES + 2 * N_POINTS


@kernel
def encode_geometry(board: Row, s: Row, seat: Seat, out: Any) -> None:
    """Write the geometry for a seat.

    At the set-up and after the end there is no look-ahead: its features are 0.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        seat: the seat that views the position.
        out: float32 (N_GEOMETRY,), overwritten.
    """
    encode(board, s, seat, FLOAT_QUOTIENTS, out[:N_FEATURES])
    _write_points(board, s, seat, out[N_FEATURES:])
    _write_points(board, s, 1 - seat, out[N_FEATURES + N_POINTS :])
    if int(s["phase"]) in (SETUP, OVER):
        out[_AHEAD_AT:] = 0.0
        return
    around = around_of(board, s)
    write_lookahead(board, s, seat, around, out[_AHEAD_AT:])
    write_lookahead(board, s, 1 - seat, around, out[_AHEAD_AT + N_LOOKAHEAD :])


@kernel
def _write_points(board: Row, s: Row, seat: Seat, out: Any) -> None:
    faith, commerce, culture = score(board, s, seat)
    unit = np.float32(1 / _SCALE)
    out[0] = np.float32(min(faith, _MOST_POINTS)) * unit
    out[1] = np.float32(min(commerce, _MOST_POINTS)) * unit
    out[2] = np.float32(min(culture, _MOST_POINTS)) * unit
