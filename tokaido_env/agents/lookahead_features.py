"""What the board offers each player from where the pieces stand: the SIGHT table and its kernel.

The observation tells where the pieces are; what that means depends on the board. Here stands what a
player would look up on it: the stations ahead of the pilgrim, what the merchant could sell or draw
and which icons the artist could reach with each die, what the dice on the table bring, what the
next roll brings on average, the next steps of the tracks and what is left of them, and how many
stations of each kind there are. So told, positions of different boards are alike where they play
alike, and a network can carry what it learnt from one to another.

Like the observation it holds no hidden thing; raw values are whole numbers, divided by a scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.agents.eval_tables import SIXTHS
from tokaido_env.agents.heuristic import most_neighbours, neighbour_counts
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
    STATIONS,
    WARES,
    Row,
    Seat,
)
from tokaido_env.core.jit import index, int64, kernel
from tokaido_env.core.observation import Entry, layout_hash, layout_of, scales_of, width
from tokaido_env.core.rules import coast_at

_AHEAD = 8  # stations ahead of a pilgrim: a die of 6, hasty, and one that is taken
_MOST_POINTS = 16  # scale of points of a step of a track
_KINDS, _ICONS, _WARES = len(STATIONS), len(ICONS), len(WARES)


def _offer(when: str, rolls: int, meaning: str) -> tuple[Entry, ...]:
    """Return the entries of what dice offer: `rolls` faces together."""
    return (
        (
            f"{when}_station",
            _KINDS,
            rolls,
            f"kind of station that the pilgrim reaches {meaning}",
        ),
        (f"{when}_coins", 1, 4 * rolls, f"coins of the coastal town it reaches {meaning}"),
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
        *_offer("next", SIXTHS, "by the six faces of its die together"),
        *_offer("now", 1, "by its die on the table, while it is not taken"),
        ("ahead", _AHEAD * _KINDS, 1, "one-hot kinds of the next eight stations"),
        ("ahead_coins", _AHEAD, 4, "coins at each of them"),
        *(
            entry
            for die in range(1, MAX_DIE + 1)
            for entry in _trade(f"die_{die}", 1, f"by a {die}")
        ),
        ("temple_step", 1, _MOST_POINTS, "points of the next temple"),
        ("garden_step", 1, _MOST_POINTS, "points of the next garden"),
        ("culture_steps", 3, _MOST_POINTS, "points of the next three gifts"),
        ("commerce_steps", 2, _MOST_POINTS, "points of the next two slabs"),
        ("slab_coins", 1, 10, "coins that the next slab takes"),
        ("culture_left", 1, 4 * _MOST_POINTS, "points of all gifts to come"),
        ("commerce_left", 1, 4 * _MOST_POINTS, "points of all slabs to come"),
        ("ring", _KINDS, 16, "stations of each kind on the whole ring"),
    )
)
"""What is told of one player, in order."""

N_LOOKAHEAD = width(LOOKAHEAD)
LOOKAHEAD_HASH = layout_hash(LOOKAHEAD)
N_REACH = next(each.start for each in LOOKAHEAD if each.name == "now_station")
"""The first numbers of `SIGHT`, by the next roll."""

MAX_LOOKAHEAD = np.float32(16)
"""What no number exceeds."""

_UNITS = (1 / scales_of(LOOKAHEAD)).astype(np.float32)
_UNITS.flags.writeable = False
_MOST_RAW = 255  # of points of a step, which a board may have more of

_START = {feature.name: feature.start for feature in LOOKAHEAD}
_NOW, _AHEAD_AT, _COINS_AT = _START["now_station"], _START["ahead"], _START["ahead_coins"]
_BY_DIE, _STEPS = _START["die_1_price"], _START["temple_step"]
_LEFT, _RING = _START["culture_left"], _START["ring"]
_TRADE = _START["next_price"]  # within an offer: what follows the pilgrim's
_ONE_DIE = _START["die_2_price"] - _BY_DIE
# Within what is told of the merchant and the artist by one die.
_SALE, _DRAW, _ICON, _CROWD = (
    _START[f"die_1_{name}"] - _BY_DIE for name in ("sale", "draw", "icon", "crowd")
)


@kernel
def write_lookahead(board: Row, tables: Row, s: Row, seat: Seat, out: Any) -> None:
    """Write `SIGHT` of a seat, float32 (N_SIGHT,), in any phase but the set-up."""
    write_reach(board, tables, s, seat, neighbour_counts(board, s), out)
    for k in range(N_REACH, N_LOOKAHEAD):
        out[k] = 0.0
    _write_stations_ahead(board, s, seat, out)
    _add_reach_by_die(board, tables, s, seat, out)
    _write_track_steps(board, s, seat, out)
    for k in range(N_REACH, N_LOOKAHEAD):
        out[k] *= _UNITS[k]


@kernel
def write_reach(board: Row, tables: Row, s: Row, seat: Seat, crowds: np.uint64, out: Any) -> None:
    """Write the first `N_PROSPECTS` of `SIGHT` of a seat; `crowds` as `heuristic.crowds_of`."""
    for k in range(N_REACH):
        out[k] = 0.0
    closed = _closed_towns(board, s, seat)
    for die in range(1, MAX_DIE + 1):
        faces = int64(board["face_count"][PILGRIM, die])
        if faces > 0:
            _add_pilgrim_reach(board, s, seat, die, np.float32(faces), out)
        faces = int64(board["face_count"][MERCHANT, die])
        if faces > 0:
            _add_merchant_reach(
                board, tables, s, seat, closed, die, np.float32(faces), out[_TRADE:]
            )
        faces = int64(board["face_count"][ARTIST, die])
        if faces > 0:
            _add_artist_reach(board, tables, s, seat, crowds, die, np.float32(faces), out[_TRADE:])
    for k in range(N_REACH):
        out[k] *= _UNITS[k]


@kernel
def _add_reach_by_die(board: Row, tables: Row, s: Row, seat: Seat, out: Any) -> None:
    """Add what merchant and artist can do by each die, and all three by those on the table."""
    closed, crowds = _closed_towns(board, s, seat), neighbour_counts(board, s)
    one = np.float32(1)
    for die in range(1, MAX_DIE + 1):
        by_die = out[_BY_DIE + (die - 1) * _ONE_DIE :]
        if int64(board["face_count"][MERCHANT, die]) > 0:
            _add_merchant_reach(board, tables, s, seat, closed, die, one, by_die)
        if int64(board["face_count"][ARTIST, die]) > 0:
            _add_artist_reach(board, tables, s, seat, crowds, die, one, by_die)
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
    """Return the coastal towns that the merchant of a seat cannot go to (R4.1), as bits."""
    pilgrims = coast_at(board, int64(s["pilgrim"][0])) | coast_at(board, int64(s["pilgrim"][1]))
    return pilgrims | 1 << int64(s["merchant"][1 - seat])


@kernel
def _add_pilgrim_reach(
    board: Row, s: Row, seat: Seat, die: int, times: np.float32, out: Any
) -> None:
    """Add where the pilgrim goes by a die, whoever stands there."""
    station = _on_ring(board, int64(s["pilgrim"][seat]) + die)
    out[int64(board["station_kind"][index(station)])] += times
    out[_KINDS] += times * np.float32(_coins_at(board, s, station))


@kernel
def _on_ring(board: Row, station: int) -> int:
    size = int64(board["ring_size"])
    return station - size if station >= size else station


@kernel
def _coins_at(board: Row, s: Row, station: int) -> int:
    """Return the coins of a coastal town that a station is, 0 elsewhere (R5.2)."""
    if int64(board["station_kind"][index(station)]) != COAST:
        return int64(0)
    kind = index(s["boutiques"][lowest_action(np.uint64(coast_at(board, station)))])
    return int64(board["kind_price"][kind])


@kernel
def _add_merchant_reach(
    board: Row,
    tables: Row,
    s: Row,
    seat: Seat,
    closed: int,
    die: int,
    times: np.float32,
    out: Any,
) -> None:
    """Add what the merchant can sell and draw by a die: prices, the best sale, the best draw."""
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
        out[ware] += times * np.float32(prices >> 4 * ware & 15)
    out[_SALE] += times * np.float32(sale)
    out[_DRAW] += times * np.float32(int64(tables["most_drawn"][index(die), town]))


@kernel
def _add_artist_reach(
    board: Row,
    tables: Row,
    s: Row,
    seat: Seat,
    crowds: np.uint64,
    die: int,
    times: np.float32,
    out: Any,
) -> None:
    """Add what the artist can do by a die: the icons that a gift can match, the largest crowd."""
    area = index(s["artist"][seat])
    inspired = index(
        int(s["wave_owner"][ARTIST]) == seat and int(s["wave_side"][ARTIST]) == INSPIRED
    )
    for icon in range(_ICONS):
        reached = int64(tables["gift_faces"][inspired, index(die), area, index(icon)])
        out[_ICON + icon] += times * np.float32(reached != 0)
    most = most_neighbours(crowds, int64(board["area_reach"][index(die), area]))
    out[_CROWD] += times * np.float32(most)


@kernel
def _write_stations_ahead(board: Row, s: Row, seat: Seat, out: Any) -> None:
    for step in range(_AHEAD):
        station = _on_ring(board, int64(s["pilgrim"][seat]) + step + 1)
        kind = int64(board["station_kind"][index(station)])
        out[_AHEAD_AT + step * _KINDS + kind] = 1.0
        out[_COINS_AT + step] = np.float32(_coins_at(board, s, station))


@kernel
def _write_track_steps(board: Row, s: Row, seat: Seat, out: Any) -> None:
    """Write what the next steps of the tracks are worth (R9.2), 0 past their ends, and the rest."""
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
    return np.float32(min(step, _MOST_RAW))
