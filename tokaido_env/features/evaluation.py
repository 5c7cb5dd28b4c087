"""The hand-written evaluation of positions.

The evaluation is linear in a few named terms (`terms.TERMS`), counted in whole numbers for
both players. Each term has a weight for the opening and one for the ending; the game phase, by the
nearest end trigger, mixes the two (a tapered evaluation, as in chess programs). The sum is the
log-odds of winning. `terms` holds the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.bitmask import EACH_BYTE, highest_action, lowest_action, nonzero_bytes
from tokaido_env.core.constants import (
    ANY_DIE,
    ARTIST,
    CAPACITY,
    GARDEN,
    HOT_SPRING,
    INSPIRED,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    MERCHANT,
    PAINTINGS,
    PILGRIM,
    SEASHORE,
    TEMPLE,
    Action,
    Mask,
    Row,
    Seat,
)
from tokaido_env.core.jit import allocator, index, int64, kernel, subroutine
from tokaido_env.core.rules import (
    apply,
    coast_at,
    is_last_round,
    legal,
    paintings_hidden,
    picker,
    picks_left,
    reward,
    score,
    wares_held,
)
from tokaido_env.core.state import DRAW, EFFECT, OVER, REVEAL, ROLL, STATE
from tokaido_env.features.endings import FRAME, FRAMES
from tokaido_env.features.terms import N_TERMS, WEIGHT_UNIT

MAX_GAME_PHASE = 180
"""The game phase of the ending; 0 is the opening. 9 temple pegs, 6 garden pegs, 60 coins and 10
gifts divide it."""

MAX_PHASE_BEFORE_TRIGGER = 170  # before a player pulls an end trigger
_PHASE_PER_TEMPLE, _PHASE_PER_GARDEN = MAX_GAME_PHASE // LAST_TEMPLE, MAX_GAME_PHASE // LAST_GARDEN
_PHASE_PER_COIN, _PHASE_PER_GIFT = MAX_GAME_PHASE // (10 * LAST_SLAB), MAX_GAME_PHASE // PAINTINGS
_LOG_ODDS_UNIT = np.float32(WEIGHT_UNIT / MAX_GAME_PHASE)

_FAITH, _COMMERCE, _CULTURE, _TEMPLE, _GARDEN, _GOLD, _GIFTED = range(7)
_COINS, _WARES, _HELD, _EASEL = range(7, 11)
_TEMPLE_NOW, _GARDEN_NOW, _SEASHORE_NOW, _SPRING_NOW = range(11, 15)
_SALE_NOW, _DRAW_NOW, _DRAW_NEXT = range(15, 18)
_GIFT_NOW, _GIFT_NEXT, _SECOND_NEXT, _PAINT_NOW = range(18, 22)
_WAVES = 22  # + 2 * character + side
_HOT_SPRING, _PICKS, _DRAWING, _REVEALING = range(28, 32)

_SIXTHS_OF_A_DIE = np.array([0, 6, 3, 2], np.int8)  # by the number of dice left
_COASTS = 0xFF
_DRAW, _MOST, _KIND = 32, 40, 48  # bits of a word of `places_of`

Around = tuple[np.uint64, np.uint64]
"""Where characters and boutiques are, as bits.

Byte n - 1 of the first word has the areas with n characters or more in and around them (R3.3).
The second has the coastal towns that buy each ware for 2 or 4 coins, one byte a ware; then those
that buy it for 3 or 4."""

Places = tuple[int, int]
"""For each seat a word: the best price of each ware, a byte each; the best draw from bit `_DRAW`;
the most neighbours from `_MOST`; the kind of station from `_KIND`."""

SCRATCH = np.dtype(
    [("frames", FRAME, FRAMES), ("states", STATE, 4), ("terms", "<i2", (2, N_TERMS))]
)
"""Memory for the kernels of this module and of `endings`, one row for each thread."""


@allocator
def new_scratch() -> Any:
    """Return a row of `SCRATCH`; Numba cannot make it directly in a parallel loop."""
    return np.empty(1, SCRATCH)


@subroutine
def evaluate(board: Row, s: Row, weights: Any, scratch: Row) -> np.float32:
    """Return the expected result of player_0, in [-1, 1], in any phase.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        weights: int16 (2, N_TERMS), such as `terms.WEIGHTS`.
        scratch: a row of `SCRATCH`; its last state and its terms are overwritten.
    """
    quiet = quiescent(board, s, scratch)
    if int(quiet["phase"]) == OVER:
        return final_result(board, quiet)
    places = places_of(board, quiet, around_of(board, quiet))
    return evaluate_at(board, quiet, places, weights, scratch)


@kernel
def evaluate_at(board: Row, s: Row, places: Places, weights: Any, scratch: Row) -> np.float32:
    """`evaluate` without a pending effect, from `places_of`; the terms are counted in `scratch`."""
    terms = scratch["terms"]
    count_terms(board, s, places, terms)
    if int(s["phase"]) == OVER:
        return final_result(board, s)
    return expected_result(_weighted_sum(weights, terms, game_phase(board, s)))


@kernel
def log_odds(board: Row, s: Row, weights: Any, scratch: Row) -> int:
    """Return the log-odds of winning for player_0, in units of `WEIGHT_UNIT / MAX_GAME_PHASE`.

    No effect may be pending.
    """
    count_terms(board, s, places_of(board, s, around_of(board, s)), scratch["terms"])
    return _weighted_sum(weights, scratch["terms"], game_phase(board, s))


@kernel
def expected_result(log_odds: int) -> np.float32:
    """Return the expected result of player_0, tanh(x / 2), of x as `log_odds` returns it."""
    return _tanh_of_half(np.float32(log_odds) * _LOG_ODDS_UNIT)


@kernel
def quiescent(board: Row, s: Row, scratch: Row) -> Row:
    """Return the position in which terms are counted: a pending effect is carried out.

    It is the legal effect with the highest id, usually the best. The position is `s` itself, or a
    state of `scratch`, valid until its next use.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        scratch: a row of `SCRATCH`; its last state is overwritten.
    """
    if int(s["phase"]) != EFFECT:
        return s
    scratch["states"][3] = s
    quiet = scratch["states"][3]
    # The highest id is usually the best: pass, visit, take, draw, sell, paint, gift.
    apply(board, quiet, highest_action(legal(board, quiet)))
    return quiet


@kernel
def final_result(board: Row, s: Row) -> np.float32:
    """Return the result of player_0 in a finished game: 1, 0 or -1."""
    return np.float32(reward(board, s, 0, False))


@kernel
def best_action(board: Row, s: Row, mask: Mask, weights: Any, scratch: Row) -> Action:
    """Return the action with the best `action_value` for the player to decide.

    Ties go to the lowest id.
    """
    best = np.float32(-2.0)
    choice = lowest_action(mask)
    if mask & (mask - np.uint64(1)) == np.uint64(0):
        return choice
    while mask != np.uint64(0):
        action = lowest_action(mask)
        mask &= mask - np.uint64(1)
        value = action_value(board, s, action, weights, scratch)
        if value > best:
            best = value
            choice = action
    return choice


@subroutine
def action_value(board: Row, s: Row, action: Action, weights: Any, scratch: Row) -> np.float32:
    """Return the evaluation, for the player to decide, after an action and its best effect."""
    sign = np.float32(1 - 2 * int64(s["player"]))
    scratch["states"][0] = s
    after = scratch["states"][0]
    mask = apply(board, after, action)
    if int(after["phase"]) != EFFECT:
        return sign * evaluate(board, after, weights, scratch)
    best = np.float32(-2.0)
    places = places_of(board, after, around_of(board, after))
    while mask != np.uint64(0):
        scratch["states"][1] = after
        final = scratch["states"][1]
        apply(board, final, lowest_action(mask))
        mask &= mask - np.uint64(1)
        best = max(best, sign * evaluate_at(board, final, places, weights, scratch))
    return best


@kernel
def game_phase(board: Row, s: Row) -> int:
    """Return how near the end is, by the trigger nearest to it.

    It grows from 0 with the pegs, coins and gifts of the player who has come furthest, up to
    `MAX_PHASE_BEFORE_TRIGGER`; in the last round it is `MAX_GAME_PHASE`.
    """
    most = 0
    for seat in range(2):
        slabs = 10 * int64(s["gold"][seat]) + int64(s["coins"][seat])
        most = max(most, _PHASE_PER_TEMPLE * int64(s["temple"][seat]))
        most = max(most, _PHASE_PER_GARDEN * int64(s["garden"][seat]))
        most = max(most, _PHASE_PER_COIN * slabs)
        most = max(most, _PHASE_PER_GIFT * int64(s["gifted"][seat]))
    return MAX_GAME_PHASE if is_last_round(board, s) else min(most, MAX_PHASE_BEFORE_TRIGGER)


@kernel
def count_terms(board: Row, s: Row, places: Places, out: Any) -> None:
    """Write the terms of both players; no effect may be pending.

    Args:
        board: a row of `BOARD`.
        s: a row of `STATE`.
        places: from `places_of`; an effect does not change them.
        out: int16 (2, N_TERMS), in the order of `TERMS`.
    """
    out[:] = 0
    for seat in range(2):
        terms, place = out[seat], places[seat]
        share = _dice_share(s, seat, terms)
        _count_progress(board, s, seat, terms)
        _count_pilgrim(board, s, seat, share, place >> _KIND, terms)
        _count_merchant(board, s, seat, share, place, terms)
        _count_artist(board, s, seat, share, place >> _MOST & 7, terms)
        _count_tokens(s, seat, terms)
    _count_pending(s, out)


@kernel
def places_of(board: Row, s: Row, around: Around) -> Places:
    """Return what each seat's pieces reach with the present dice; 0 if all dice are taken."""
    if int(s["dice_left"]) == 0:
        return int64(0), int64(0)
    return _places_of_seat(board, s, 0, around), _places_of_seat(board, s, 1, around)


@kernel
def _places_of_seat(board: Row, s: Row, seat: Seat, around: Around) -> int:
    station = int64(s["pilgrim"][seat]) + int64(s["dice"][PILGRIM])
    size = int64(board["ring_size"])
    kind = int64(board["station_kind"][index(station - size * int64(station >= size))])
    draw = int64(board["most_drawn"][index(s["dice"][MERCHANT]), index(s["merchant"][seat])])
    prices = open_prices(board, s, seat, around, int64(s["dice"][MERCHANT]))
    areas = int64(board["area_reach"][index(s["dice"][ARTIST]), index(s["artist"][seat])])
    return prices | draw << _DRAW | most_neighbours(around, areas) << _MOST | kind << _KIND


@kernel
def _weighted_sum(weights: Any, terms: Any, phase: int) -> int:
    """Return the weighted sum of the terms, in integers, so that vector units may reorder it."""
    opening = 0
    ending = 0
    for k in range(N_TERMS):
        ahead = int64(terms[0, k]) - int64(terms[1, k])
        opening += ahead * int64(weights[0, k])
        ending += ahead * int64(weights[1, k])
    return opening * (MAX_GAME_PHASE - phase) + ending * phase


@kernel
def _tanh_of_half(x: np.float32) -> np.float32:
    """Return tanh(x / 2) to within 1e-4, by Lambert's continued fraction."""
    x = max(np.float32(-4.9), min(np.float32(4.9), x * np.float32(0.5)))
    y = x * x
    numerator = x * (np.float32(135135.0) + y * (np.float32(17325.0) + y * (np.float32(378.0) + y)))
    denominator = np.float32(62370.0) + y * (np.float32(3150.0) + y * np.float32(28.0))
    value = numerator / (np.float32(135135.0) + y * denominator)
    return max(np.float32(-1.0), min(np.float32(1.0), value))


@kernel
def _dice_share(s: Row, seat: Seat, terms: Any) -> int:
    """Return the share of the dice left that a seat will pick, in sixths; write its picks."""
    leads = int64(int(s["lead"]) == seat)
    if int(s["phase"]) == ROLL:
        terms[_PICKS] = 1 + leads
        return 0
    dice = picks_left(s)
    picks = dice + leads >> 1
    terms[_PICKS] = picks
    return picks * int64(_SIXTHS_OF_A_DIE[index(dice)])


@kernel
def _count_progress(board: Row, s: Row, seat: Seat, terms: Any) -> None:
    faith, commerce, culture = score(board, s, seat)
    terms[_FAITH] = faith
    terms[_COMMERCE] = commerce
    terms[_CULTURE] = culture
    terms[_TEMPLE] = s["temple"][seat]
    terms[_GARDEN] = s["garden"][seat]
    terms[_GOLD] = s["gold"][seat]
    terms[_GIFTED] = s["gifted"][seat]
    terms[_COINS] = s["coins"][seat]


# Terms that do not count are multiplied by 0: a processor cannot predict which dice are left.


@kernel
def _count_pilgrim(board: Row, s: Row, seat: Seat, share: int, kind: int, terms: Any) -> None:
    share *= int64(s["dice_left"]) & 1
    temple, garden = int64(s["temple"][seat]), int64(s["garden"][seat])
    temples = int64(board["temple"][index(temple)])
    gardens = int64(board["garden"][index(garden)])
    step = int64(board["temple"][index(min(temple + 1, LAST_TEMPLE))]) - temples
    terms[_TEMPLE_NOW] = share * int64(kind == TEMPLE) * step * gardens
    step = int64(board["garden"][index(min(garden + 1, LAST_GARDEN))]) - gardens
    terms[_GARDEN_NOW] = share * int64(kind == GARDEN) * step * temples
    terms[_SEASHORE_NOW] = share * int64(kind == SEASHORE)
    terms[_SPRING_NOW] = share * int64(kind == HOT_SPRING)


@kernel
def _count_merchant(board: Row, s: Row, seat: Seat, share: int, place: int, terms: Any) -> None:
    town = index(s["merchant"][seat])
    wares = s["wares"][seat]
    prices = board["best_price"]
    value = int64(wares[0]) * int64(prices[0]) + int64(wares[1]) * int64(prices[1])
    value += int64(wares[2]) * int64(prices[2]) + int64(wares[3]) * int64(prices[3])
    held = int64(wares_held(s, seat))
    room = max(CAPACITY - held, 0)
    terms[_WARES] = value
    terms[_HELD] = held
    left = int64(s["dice_left"]) >> MERCHANT & 1
    terms[_SALE_NOW] = share * left * best_sale(s, seat, place)
    terms[_DRAW_NOW] = share * left * min(place >> _DRAW & 0xFF, room)
    terms[_DRAW_NEXT] = (1 - left) * int64(board["draw_faces"][index(room), town])


@kernel
def open_prices(board: Row, s: Row, seat: Seat, around: Around, die: int) -> int:
    """Return the best price of each ware where a merchant may go with a die, one byte a ware."""
    closed = coast_at(board, int64(s["pilgrim"][0])) | coast_at(board, int64(s["pilgrim"][1]))
    closed |= 1 << int64(s["merchant"][1 - seat])  # R4.1
    towns = int64(board["town_reach"][index(die), index(s["merchant"][seat])]) & ~closed
    bits = around[1] & np.uint64(towns & _COASTS) * EACH_BYTE
    high = bits >> np.uint64(32)
    paid = int64(nonzero_bytes(bits | high))  # 2 coins or more, and 3 or more
    return 2 * (paid & 0xFFFFFFFF) + (paid >> 32) + int64(nonzero_bytes(bits & high))


@kernel
def best_sale(s: Row, seat: Seat, prices: int) -> int:
    """Return the coins of a seat's best sale at the prices of `open_prices`."""
    best = int64(0)
    for ware in range(4):
        best = max(best, int64(s["wares"][seat, ware]) * (prices >> 8 * ware & 0xFF))
    return best


@kernel
def _count_artist(board: Row, s: Row, seat: Seat, share: int, most: int, terms: Any) -> None:
    area, die = index(s["artist"][seat]), index(s["dice"][ARTIST])
    size = int64(s["easel_size"][seat])
    easel = int64(s["easel"][seat])
    gifted = int64(s["gifted"][seat])
    terms[_EASEL] = size
    inspired = index(
        int(s["wave_owner"][ARTIST]) == seat and int(s["wave_side"][ARTIST]) == INSPIRED
    )
    following = int64(board["culture"][index(min(gifted + 1, PAINTINGS))])
    points = (following - int64(board["culture"][index(gifted)])) * int64(size > 0)
    faces = board["gift_faces"][inspired]
    front, second = index(easel & 3), index(easel >> 2 & 3)
    left = int64(s["dice_left"]) >> ARTIST & 1
    reached = int64(int64(faces[die, area, front]) > 0)
    terms[_GIFT_NOW] = share * left * points * reached
    terms[_GIFT_NEXT] = (1 - left) * points * int64(faces[ANY_DIE, area, front])
    terms[_SECOND_NEXT] = points * int64(size > 1) * int64(faces[ANY_DIE, area, second])
    terms[_PAINT_NOW] = share * left * min(most, paintings_hidden(s, seat))


@kernel
def around_of(board: Row, s: Row) -> Around:
    """Return the places of characters and boutiques."""
    counts = np.uint64(0)
    for seat in range(2):
        counts = _count_one(counts, 1 << int64(s["artist"][seat]))
        counts = _count_one(counts, int64(board["station_areas"][index(s["pilgrim"][seat])]))
        counts = _count_one(counts, int64(board["town_areas"][index(s["merchant"][seat])]))
    prices = int64(0)
    for coast in range(8):
        kind = max(int64(s["boutiques"][coast]), 0)  # none is drawn yet in the set-up
        prices |= int64(board["kind_bits"][index(kind)]) << coast
    return counts, np.uint64(prices)


@kernel
def _count_one(counts: np.uint64, areas: int) -> np.uint64:
    """Add one character to the counts of some areas, given as bits."""
    return counts | (counts << np.uint64(8) | np.uint64(0xFF)) & np.uint64(areas) * EACH_BYTE


@kernel
def most_neighbours(around: Around, areas: int) -> int:
    """Return the most characters in and around one of some areas, given as bits (R3.3)."""
    counted = nonzero_bytes(around[0] & np.uint64(areas) * EACH_BYTE)
    return int64(counted * EACH_BYTE >> np.uint64(56))


@kernel
def _count_tokens(s: Row, seat: Seat, terms: Any) -> None:
    for character in range(3):
        side = max(int64(s["wave_side"][character]), 0)
        terms[index(_WAVES + 2 * character + side)] = int(s["wave_owner"][character]) == seat
    terms[_HOT_SPRING] = int(s["hot_spring"]) == seat


@kernel
def _count_pending(s: Row, out: Any) -> None:
    phase = int(s["phase"])
    if phase == DRAW:
        seat = index(picker(s))
        room = max(CAPACITY + 1 - int64(wares_held(s, seat)), 0)
        out[seat, _DRAWING] = min(int64(s["pending"]), room)
    elif phase == REVEAL:
        out[index(picker(s)), _REVEALING] = s["pending"]
