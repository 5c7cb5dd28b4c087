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
    GOLD_PRICE,
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
from tokaido_env.features.evaluation import Around, best_sale, most_neighbours, open_prices

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
            f"stations, of each kind, as far ahead of the pilgrim, occupied or not, {meaning}",
        ),
        (f"{when}_coins", 1, 4 * rolls, f"coins of a coastal town there {meaning}"),
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
_SALE, _DRAW, _ICON = (_START[f"die_1_{name}"] - _BY_DIE for name in ("sale", "draw", "icon"))


Reach = tuple[int, int, int]
"""The reach of pilgrim, merchant and artist: words with a feature a byte, at most 192."""


@kernel
def write_lookahead(board: Row, s: Row, seat: Seat, around: Around, out: Any) -> None:
    """Write `LOOKAHEAD` of a seat, in any phase but the set-up.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        seat: the seat.
        around: from `around_of`.
        out: float32 (N_LOOKAHEAD or more,).
    """
    left = int64(s["dice_left"])
    pilgrim = _station_ahead(board, s, seat, int64(s["dice"][PILGRIM])) * (left & 1)
    merchant, artist, merchant_now, artist_now = int64(0), int64(0), int64(0), int64(0)
    for k in range(_BY_DIE, _STEPS):
        out[k] = 0.0
    for die in range(1, MAX_DIE + 1):
        at = _BY_DIE + (die - 1) * _ONE_DIE
        faces = int64(board["face_count"][MERCHANT, die])
        if faces > 0:
            reach = _merchant_reach(board, s, seat, around, die)
            merchant += faces * reach
            merchant_now |= reach * int64(die == int64(s["dice"][MERCHANT]))
            _write_bytes(reach, _ICON, at, out)
        faces = int64(board["face_count"][ARTIST, die])
        if faces > 0:
            reach = _artist_reach(board, s, seat, around, die)
            artist += faces * reach
            artist_now |= reach * int64(die == int64(s["dice"][ARTIST]))
            _write_bytes(reach, _ONE_DIE - _ICON, at + _ICON, out)
    now = pilgrim, merchant_now * (left >> MERCHANT & 1), artist_now * (left >> ARTIST)
    write_reach(now, _NOW, out)
    write_reach((_write_stations_ahead(board, s, seat, out), merchant, artist), 0, out)
    _write_track_steps(board, s, seat, out)


@kernel
def write_reach(reach: Reach, at: int, out: Any) -> None:
    """Write the reach features, from index `at` on: 0 for those of the next roll."""
    _write_bytes(reach[0], _TRADE, at, out)
    _write_bytes(reach[1], _ICON, at + _TRADE, out)
    _write_bytes(reach[2], _ONE_DIE - _ICON, at + _TRADE + _ICON, out)


@kernel
def _write_bytes(word: int, count: int, at: int, out: Any) -> None:
    """Write the lowest bytes of a word as features from `at` on."""
    for k in range(count):
        out[at + k] = np.float32(word >> 8 * k & 0xFF) * _INVERSE_SCALES[at + k]


@kernel
def next_reach(board: Row, s: Row, seat: Seat, around: Around) -> Reach:
    """Return the reach of a seat's pieces, summed over the faces of the next roll."""
    pilgrim, merchant, artist = int64(0), int64(0), int64(0)
    for die in range(1, MAX_DIE + 1):
        pilgrim += int64(board["face_count"][PILGRIM, die]) * _station_ahead(board, s, seat, die)
        faces = int64(board["face_count"][MERCHANT, die])
        if faces > 0:
            merchant += faces * _merchant_reach(board, s, seat, around, die)
        faces = int64(board["face_count"][ARTIST, die])
        if faces > 0:
            artist += faces * _artist_reach(board, s, seat, around, die)
    return pilgrim, merchant, artist


@kernel
def _station_ahead(board: Row, s: Row, seat: Seat, steps: int) -> int:
    """Return a station ahead of the pilgrim: a byte for each kind, then its coins (R5.2)."""
    size = int64(board["ring_size"])
    station = int64(s["pilgrim"][seat]) + steps
    station -= size * int64(station >= size)
    kind = int64(board["station_kind"][index(station)])
    coast = lowest_action(np.uint64(coast_at(board, station))) & 7  # any, if it is no town
    price = int64(board["kind_price"][index(s["boutiques"][coast])])
    return 1 << 8 * kind | price * int64(kind == COAST) << 8 * _KINDS


@kernel
def _merchant_reach(board: Row, s: Row, seat: Seat, around: Around, die: int) -> int:
    """Return the reach of the merchant with a die: prices, the best sale, the best draw."""
    prices = open_prices(board, s, seat, around, die)
    draw = int64(board["most_drawn"][index(die), index(s["merchant"][seat])])
    return prices | best_sale(s, seat, prices) << 8 * _SALE | draw << 8 * _DRAW


@kernel
def _artist_reach(board: Row, s: Row, seat: Seat, around: Around, die: int) -> int:
    """Return the reach of the artist with a die: icons that a gift can match, most neighbours."""
    area = index(s["artist"][seat])
    inspired = index(
        int(s["wave_owner"][ARTIST]) == seat and int(s["wave_side"][ARTIST]) == INSPIRED
    )
    most = most_neighbours(around, int64(board["area_reach"][index(die), area]))
    faces = int64(0)  # 0 or 6, one byte an icon
    for icon in range(_ICONS):
        faces |= int64(board["gift_faces"][inspired, index(die), area, index(icon)]) << 8 * icon
    return faces >> 1 & 0x01010101 | most << 8 * _ICONS


@kernel
def _write_stations_ahead(board: Row, s: Row, seat: Seat, out: Any) -> int:
    """Write the stations ahead; return the pilgrim's part of `next_reach`."""
    reach = int64(0)
    for k in range(_AHEAD_AT, _COINS_AT):
        out[k] = 0.0
    for step in range(_AHEAD):
        station = _station_ahead(board, s, seat, step + 1)
        if step < MAX_DIE:
            reach += int64(board["face_count"][PILGRIM, step + 1]) * station
        kind = lowest_action(np.uint64(station)) >> 3
        out[index(_AHEAD_AT + step * _KINDS + kind)] = 1.0
        out[_COINS_AT + step] = np.float32(station >> 8 * _KINDS) * _INVERSE_SCALES[_COINS_AT]
    return reach


@kernel
def _write_track_steps(board: Row, s: Row, seat: Seat, out: Any) -> None:
    """Write the points of the next steps (R9.2), 0 past a track's end, and of all steps left."""
    temple, garden = int64(s["temple"][seat]), int64(s["garden"][seat])
    gifted, gold = int64(s["gifted"][seat]), int64(s["gold"][seat])
    temples, gardens = int64(board["temple"][temple]), int64(board["garden"][garden])
    more = int64(board["temple"][min(temple + 1, LAST_TEMPLE)]) - temples
    _write_points(more * gardens, _STEPS, out)
    more = int64(board["garden"][min(garden + 1, LAST_GARDEN)]) - gardens
    _write_points(more * temples, _STEPS + 1, out)
    culture, commerce = board["culture"], board["commerce"]
    for k in range(3):
        step, following = min(gifted + k, PAINTINGS), min(gifted + k + 1, PAINTINGS)
        _write_points(int64(culture[following]) - int64(culture[step]), _STEPS + 2 + k, out)
    for k in range(2):
        step, following = min(gold + k, LAST_SLAB), min(gold + k + 1, LAST_SLAB)
        _write_points(int64(commerce[following]) - int64(commerce[step]), _STEPS + 5 + k, out)
    coins = (GOLD_PRICE - int64(s["coins"][seat])) * int64(gold < LAST_SLAB)
    _write_points(coins, _STEPS + 7, out)
    _write_points(int64(culture[PAINTINGS]) - int64(culture[gifted]), _LEFT, out)
    _write_points(int64(commerce[LAST_SLAB]) - int64(commerce[gold]), _LEFT + 1, out)
    for kind in range(_KINDS):
        out[_RING + kind] = np.float32(board["ring_kinds"][kind]) * _INVERSE_SCALES[_RING]


@kernel
def _write_points(points: int, at: int, out: Any) -> None:
    out[at] = np.float32(min(points, _MAX_RAW)) * _INVERSE_SCALES[at]
