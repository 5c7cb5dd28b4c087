"""Look-ahead features: the reach of the pieces with each die, and the next steps of the tracks.

The observation has the positions of the pieces; their meaning depends on the board. A player
would look these features up on the board:

- the stations ahead of the pilgrim;
- the sales, draws and icons in reach of merchant and artist with each die;
- the same with the dice on the table, and on average with the next roll (the reach features);
- the points of the next steps of the tracks and of the rest of them;
- the number of stations of each kind on the ring.

So positions of different boards have similar features where they play alike, and a network can
transfer from one board to another. Like the observation, the features contain nothing hidden. Raw
values are whole numbers, divided by a scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import (
    ARTIST,
    COAST,
    ICONS,
    INSPIRED,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    MAX_DIE,
    MERCHANT,
    PAINTINGS,
    PILGRIM,
    SIXTHS,
    STATIONS,
    WARES,
    Row,
    Seat,
)
from tokaido_env.core.jit import index, int64, kernel
from tokaido_env.core.observation import Entry, layout_hash, layout_of, scales_of, width
from tokaido_env.core.rules import coast_at
from tokaido_env.features.evaluation import most_neighbours, neighbour_counts

_AHEAD = 8  # stations ahead of a pilgrim: a die of 6, hasty, and one that is taken
_POINTS_SCALE = 16  # of a step of a track
_KINDS, _ICONS, _WARES = len(STATIONS), len(ICONS), len(WARES)


def _offer(when: str, rolls: int, meaning: str) -> tuple[Entry, ...]:
    """Return the entries for all three dice, of `rolls` faces together."""
    return (
        (
            f"{when}_station",
            _KINDS,
            rolls,
            f"stations of each kind that the pilgrim reaches {meaning}",
        ),
        (f"{when}_coins", 1, 4 * rolls, f"coins of the coastal town that it reaches {meaning}"),
        *_trade(when, rolls, meaning),
    )


def _trade(when: str, rolls: int, meaning: str) -> tuple[Entry, ...]:
    return (
        (f"{when}_price", _WARES, 4 * rolls, f"best price of each ware in reach {meaning}"),
        (f"{when}_sale", 1, 10 * rolls, f"coins of the best sale in reach {meaning}"),
        (f"{when}_draw", 1, 4 * rolls, f"wares of the best draw in reach {meaning}"),
        (f"{when}_icon", _ICONS, rolls, f"icons that a gift can match {meaning}"),
        (f"{when}_crowd", 1, 5 * rolls, f"most characters around an area in reach {meaning}"),
    )


LOOKAHEAD = layout_of(
    (
        *_offer("next", SIXTHS, "with each face of the die, summed over its six faces"),
        *_offer("now", 1, "with the die on the table, while it is not taken"),
        ("ahead", _AHEAD * _KINDS, 1, "one-hot kind of each of the next eight stations"),
        ("ahead_coins", _AHEAD, 4, "coins of each of the next eight stations; 0 for no town"),
        *(
            entry
            for die in range(1, MAX_DIE + 1)
            for entry in _trade(f"die_{die}", 1, f"with a {die}")
        ),
        ("temple_step", 1, _POINTS_SCALE, "points of the next temple"),
        ("garden_step", 1, _POINTS_SCALE, "points of the next garden"),
        ("culture_steps", 3, _POINTS_SCALE, "points of the next three gifts"),
        ("commerce_steps", 2, _POINTS_SCALE, "points of the next two slabs"),
        ("slab_coins", 1, 10, "coins missing for the next slab; 0 after the last"),
        ("culture_left", 1, 4 * _POINTS_SCALE, "points of all gifts to come"),
        ("commerce_left", 1, 4 * _POINTS_SCALE, "points of all slabs to come"),
        ("ring", _KINDS, 16, "stations of each kind on the whole ring"),
    )
)
"""The features of one player in order."""

N_LOOKAHEAD = width(LOOKAHEAD)
LOOKAHEAD_HASH = layout_hash(LOOKAHEAD)
N_REACH = next(each.start for each in LOOKAHEAD if each.name == "now_station")
"""The number of reach features: the first of `LOOKAHEAD`, for the next roll."""

MAX_LOOKAHEAD = np.float32(16)
"""The upper bound of the features."""

_INVERSE_SCALES = (1 / scales_of(LOOKAHEAD)).astype(np.float32)
_INVERSE_SCALES.flags.writeable = False
_MAX_RAW = 255  # a board may have more points for a step

_START = {feature.name: feature.start for feature in LOOKAHEAD}
_NOW, _AHEAD_AT, _COINS_AT = _START["now_station"], _START["ahead"], _START["ahead_coins"]
_BY_DIE, _STEPS = _START["die_1_price"], _START["temple_step"]
_LEFT, _RING = _START["culture_left"], _START["ring"]
_TRADE = _START["next_price"]  # offset after the features of the pilgrim
_ONE_DIE = _START["die_2_price"] - _BY_DIE
# Offsets in the features of merchant and artist for one die.
_SALE, _DRAW, _ICON, _CROWD = (
    _START[f"die_1_{name}"] - _BY_DIE for name in ("sale", "draw", "icon", "crowd")
)


@kernel
def write_lookahead(board: Row, s: Row, seat: Seat, out: Any) -> None:
    """Write `LOOKAHEAD` of a seat, in any phase but the set-up.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        seat: the seat.
        out: float32 (N_LOOKAHEAD,).
    """
    write_reach(board, s, seat, neighbour_counts(board, s), out)
    for k in range(N_REACH, N_LOOKAHEAD):
        out[k] = 0.0
    _write_stations_ahead(board, s, seat, out)
    _add_reach_by_die(board, s, seat, out)
    _write_track_steps(board, s, seat, out)
    for k in range(N_REACH, N_LOOKAHEAD):
        out[k] *= _INVERSE_SCALES[k]


@kernel
def write_reach(board: Row, s: Row, seat: Seat, neighbours: np.uint64, out: Any) -> None:
    """Write the reach features of a seat.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        seat: the seat.
        neighbours: from `neighbour_counts`.
        out: float32 (N_REACH or more,).
    """
    for k in range(N_REACH):
        out[k] = 0.0
    closed = _closed_towns(board, s, seat)
    for die in range(1, MAX_DIE + 1):
        faces = int64(board["face_count"][PILGRIM, die])
        if faces > 0:
            _add_pilgrim_reach(board, s, seat, die, np.float32(faces), out)
        faces = int64(board["face_count"][MERCHANT, die])
        if faces > 0:
            _add_merchant_reach(board, s, seat, closed, die, np.float32(faces), out[_TRADE:])
        faces = int64(board["face_count"][ARTIST, die])
        if faces > 0:
            _add_artist_reach(board, s, seat, neighbours, die, np.float32(faces), out[_TRADE:])
    for k in range(N_REACH):
        out[k] *= _INVERSE_SCALES[k]


@kernel
def _add_reach_by_die(board: Row, s: Row, seat: Seat, out: Any) -> None:
    """Add the reach of merchant and artist with each die, and of all with the dice on the table."""
    closed, neighbours = _closed_towns(board, s, seat), neighbour_counts(board, s)
    one = np.float32(1)
    for die in range(1, MAX_DIE + 1):
        by_die = out[_BY_DIE + (die - 1) * _ONE_DIE :]
        if int64(board["face_count"][MERCHANT, die]) > 0:
            _add_merchant_reach(board, s, seat, closed, die, one, by_die)
        if int64(board["face_count"][ARTIST, die]) > 0:
            _add_artist_reach(board, s, seat, neighbours, die, one, by_die)
    left = int64(s["dice_left"])
    now = out[_NOW:]
    if left >> PILGRIM & 1:
        _add_pilgrim_reach(board, s, seat, int64(s["dice"][PILGRIM]), one, now)
    for character in (MERCHANT, ARTIST):
        if left >> character & 1:
            by_die = out[_BY_DIE + (int64(s["dice"][character]) - 1) * _ONE_DIE :]
            first, end = (0, _ICON) if character == MERCHANT else (_ICON, _ONE_DIE)
            for k in range(first, end):
                now[_TRADE + k] = by_die[k]


@kernel
def _closed_towns(board: Row, s: Row, seat: Seat) -> int:
    """Return the coastal towns closed to the merchant of a seat (R4.1), as bits."""
    pilgrims = coast_at(board, int64(s["pilgrim"][0])) | coast_at(board, int64(s["pilgrim"][1]))
    return pilgrims | 1 << int64(s["merchant"][1 - seat])


@kernel
def _add_pilgrim_reach(
    board: Row, s: Row, seat: Seat, die: int, weight: np.float32, out: Any
) -> None:
    """Add the station and its coins that the pilgrim reaches with a die."""
    station = _on_ring(board, int64(s["pilgrim"][seat]) + die)
    out[int64(board["station_kind"][index(station)])] += weight
    out[_KINDS] += weight * np.float32(_coins_at(board, s, station))


@kernel
def _on_ring(board: Row, station: int) -> int:
    size = int64(board["ring_size"])
    return station - size if station >= size else station


@kernel
def _coins_at(board: Row, s: Row, station: int) -> int:
    """Return the coins of a station, 0 for one that is not a coastal town (R5.2)."""
    if int64(board["station_kind"][index(station)]) != COAST:
        return int64(0)
    kind = index(s["boutiques"][lowest_action(np.uint64(coast_at(board, station)))])
    return int64(board["kind_price"][kind])


@kernel
def _add_merchant_reach(
    board: Row,
    s: Row,
    seat: Seat,
    closed: int,
    die: int,
    weight: np.float32,
    out: Any,
) -> None:
    """Add the reach of the merchant with a die: prices, the best sale, the best draw."""
    town = index(s["merchant"][seat])
    towns = int64(board["town_reach"][index(die), town]) & 0xFF & ~closed
    prices, sale = int64(0), int64(0)  # four bits a ware
    while towns != 0:
        kind = index(s["boutiques"][lowest_action(np.uint64(towns))])
        towns &= towns - 1
        ware, price = int64(board["kind_ware"][kind]), int64(board["kind_price"][kind])
        if price > (prices >> 4 * ware & 15):
            prices = prices & ~(int64(15) << 4 * ware) | price << 4 * ware
        sale = max(sale, price * int64(s["wares"][seat, index(ware)]))
    for ware in range(_WARES):
        out[ware] += weight * np.float32(prices >> 4 * ware & 15)
    out[_SALE] += weight * np.float32(sale)
    out[_DRAW] += weight * np.float32(int64(board["most_drawn"][index(die), town]))


@kernel
def _add_artist_reach(
    board: Row,
    s: Row,
    seat: Seat,
    neighbours: np.uint64,
    die: int,
    weight: np.float32,
    out: Any,
) -> None:
    """Add the reach of the artist with a die: icons that a gift can match, most neighbours."""
    area = index(s["artist"][seat])
    inspired = index(
        int(s["wave_owner"][ARTIST]) == seat and int(s["wave_side"][ARTIST]) == INSPIRED
    )
    for icon in range(_ICONS):
        reached = int64(board["gift_faces"][inspired, index(die), area, index(icon)])
        out[_ICON + icon] += weight * np.float32(reached != 0)
    most = most_neighbours(neighbours, int64(board["area_reach"][index(die), area]))
    out[_CROWD] += weight * np.float32(most)


@kernel
def _write_stations_ahead(board: Row, s: Row, seat: Seat, out: Any) -> None:
    for step in range(_AHEAD):
        station = _on_ring(board, int64(s["pilgrim"][seat]) + step + 1)
        kind = int64(board["station_kind"][index(station)])
        out[_AHEAD_AT + step * _KINDS + kind] = 1.0
        out[_COINS_AT + step] = np.float32(_coins_at(board, s, station))


@kernel
def _write_track_steps(board: Row, s: Row, seat: Seat, out: Any) -> None:
    """Write the points of the next steps (R9.2), 0 past a track's end, and of all steps left."""
    temple, garden = int64(s["temple"][seat]), int64(s["garden"][seat])
    faith = int64(board["temple"][temple]) * int64(board["garden"][garden])
    if temple < LAST_TEMPLE:
        more = int64(board["temple"][temple + 1]) * int64(board["garden"][garden])
        out[_STEPS] = _points(more - faith)
    if garden < LAST_GARDEN:
        more = int64(board["temple"][temple]) * int64(board["garden"][garden + 1])
        out[_STEPS + 1] = _points(more - faith)
    gifted, gold = int64(s["gifted"][seat]), int64(s["gold"][seat])
    for k in range(min(3, PAINTINGS - gifted)):
        step = int64(board["culture"][gifted + k + 1]) - int64(board["culture"][gifted + k])
        out[_STEPS + 2 + k] = _points(step)
    for k in range(min(2, LAST_SLAB - gold)):
        step = int64(board["commerce"][gold + k + 1]) - int64(board["commerce"][gold + k])
        out[_STEPS + 5 + k] = _points(step)
    if gold < LAST_SLAB:
        out[_STEPS + 7] = np.float32(10 - int64(s["coins"][seat]))
    out[_LEFT] = _points(int64(board["culture"][PAINTINGS]) - int64(board["culture"][gifted]))
    out[_LEFT + 1] = _points(int64(board["commerce"][LAST_SLAB]) - int64(board["commerce"][gold]))
    for station in range(int64(board["ring_size"])):
        out[_RING + int64(board["station_kind"][station])] += np.float32(1)


@kernel
def _points(step: int) -> np.float32:
    return np.float32(min(step, _MAX_RAW))
