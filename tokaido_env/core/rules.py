"""The rules as kernels on one state: four verbs, the score, and a function for each rule.

    legal(board, s)                     the legal actions as one 64-bit mask
    apply(board, s, action)             play a decision
    outcome_weights(board, s, out)      the weights of the outcomes of a chance phase
    apply_outcome(board, s, outcome)    play an outcome of chance

`board` is a row of a `BOARD` array. `s` is a row of a `STATE` array and changes in place; the verbs
that change it return the new legal mask. The verbs check nothing: the state must be possible
(`state_validation`), the action legal, and the outcome's weight above 0 (`outcome_weight`).
Otherwise they read and write out of bounds. Only drivers sample (`rng`, and through it `Game` and
`Batch`). R-numbers refer to `docs/reference/rules.md`.

Functions for Python callers take `boards`, `BOARD` (n,), and `states`, `STATE` (n,): game `i` has
the state `states[i]` on `boards[i]`.

Kernels read small fields through `int`, so that interpreted kernels do not overflow. They pass
values on as `int64`, because Numba compiles a function for each type of argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.core.actions import (
    ARTIST_STAY,
    DISCARD as DISCARD_WARE,
    DRAW as DRAW_WARES,
    DRAW_WAVE,
    GIFT,
    MERCHANT_STAY,
    MOVE_ARTIST,
    MOVE_MERCHANT,
    MOVE_PILGRIM,
    MOVE_PILGRIM_WAVE,
    PAINT,
    PAINT_WAVE,
    PASS,
    SELL,
    SELL_WAVE,
    TAKE,
    VISIT,
)
from tokaido_env.core.constants import (
    ARTIST,
    CAPACITY,
    COAST,
    CRAFTY,
    GARDEN,
    GOLD_PRICE,
    HASTY,
    HOT_SPRING,
    INSPIRED,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    MERCHANT,
    PAINTINGS,
    PILGRIM,
    PROFICIENT,
    ROBUST,
    SEASHORE,
    TEMPLE,
    TRANQUIL,
    Action,
    BoardRow,
    Mask,
    Outcome,
    Seat,
    StateRow,
)
from tokaido_env.core.jit import entry, index, int64, kernel
from tokaido_env.core.state import (
    DISCARD,
    DRAW,
    EFFECT,
    END_CAP,
    END_TRIGGERS,
    MAX_COINS,
    MOVE,
    NO_PLAYER,
    NOT_ENDED,
    OVER,
    REPEAT,
    REVEAL,
    ROLL,
    SETUP,
    UNSET,
)

RULES_VERSION = 2
MAX_OUTCOMES = 216
MARGIN_SCALE = 100

_COASTS = 8
_ALL_COASTS = 0xFF
_BOUTIQUES = 8
_SETUP_STEPS = 11

# How a pick continues. A positive number is the mask of the next decision; chance is next; the move
# and its effect are done; or the pick is over.
_CHANCE, _ACTED, _ENDED = 0, -1, -2


@kernel
def legal(board: BoardRow, s: StateRow) -> Mask:
    """Return the legal actions as bits of a uint64; 0 at chance and when the game is over."""
    phase = int(s["phase"])
    mask = 0
    if phase == MOVE:
        mask = _moves_of_dice_left(board, s)
    elif phase == EFFECT:
        mask = _effects(board, s) | 1 << PASS
    elif phase == DISCARD:
        mask = _discards(s)
    elif phase == REPEAT:
        mask = _moves(board, s, _decider(s)) | 1 << PASS
    return np.uint64(mask)


@kernel
def apply(board: BoardRow, s: StateRow, action: Action) -> Mask:
    """Play a legal action of the player to decide, not checked; return the new legal mask."""
    phase = int(s["phase"])
    if phase == EFFECT:
        step = _use_effect(board, s, action)
    elif phase == DISCARD:
        step = _discard(s, action - DISCARD_WARE)
    else:
        step = _choose_move(board, s, phase, action)
    return np.uint64(_continue_pick(board, s, step))


@kernel
def outcome_weights(board: BoardRow, s: StateRow, out: Any) -> int:
    """Write the integer weights of the outcomes of a chance phase; return their number.

    Args:
        out: int64, `MAX_OUTCOMES` or longer; entries past the returned number are not written.

    Outcome ids: at SETUP the kind of boutique token, then the side of a wave tile; at ROLL
    36 (p - 1) + 6 (m - 1) + (a - 1) by the dice's values; at DRAW the ware; at REVEAL the icon.
    Other phases have no outcomes.
    """
    phase = int(s["phase"])
    if phase == SETUP:
        return _setup_weights(board, s, out)
    if phase == ROLL:
        for outcome in range(MAX_OUTCOMES):
            out[outcome] = _roll_weight(board, outcome)
        return MAX_OUTCOMES
    if phase == DRAW:
        for ware in range(4):
            out[ware] = int(s["bag"][ware])
        return 4
    if phase == REVEAL:
        seat = picker(s)
        for icon in range(4):
            out[icon] = int(s["hidden"][seat, icon])
        return 4
    return 0


@kernel
def outcome_weight(board: BoardRow, s: StateRow, outcome: Outcome) -> int:
    """Return the integer weight of an outcome id; 0 for any integer that is impossible now."""
    phase = int(s["phase"])
    if not 0 <= outcome < MAX_OUTCOMES:
        return 0
    if phase == ROLL:
        return _roll_weight(board, outcome)
    if phase == SETUP:
        return _setup_weight(board, s, outcome)
    if outcome >= 4:
        return 0
    if phase == DRAW:
        return int64(s["bag"][outcome])
    return int64(s["hidden"][picker(s), outcome]) if phase == REVEAL else 0


@kernel
def apply_outcome(board: BoardRow, s: StateRow, outcome: Outcome) -> Mask:
    """Play an outcome of positive weight, not checked: change `s`, return the new legal mask."""
    phase = int(s["phase"])
    if phase == ROLL:
        step = _roll(board, s, outcome)
    elif phase == SETUP:
        step = _set_up(s, outcome)
    else:
        step = _draw_one(s, outcome) if phase == DRAW else _reveal_one(s, outcome)
    return np.uint64(_continue_pick(board, s, step))


@kernel
def score(board: BoardRow, s: StateRow, seat: Seat) -> tuple[int, int, int]:
    """Return the present faith, commerce and culture points of a seat (R9.2)."""
    faith = int(board["temple"][index(s["temple"][seat])])
    faith *= int(board["garden"][index(s["garden"][seat])])
    commerce = int(board["commerce"][index(s["gold"][seat])])
    culture = int(board["culture"][index(s["gifted"][seat])])
    return faith, commerce, culture


@kernel
def total(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """Return the present total points of a seat: faith, commerce and culture added (R9.2)."""
    faith, commerce, culture = score(board, s, seat)
    return faith + commerce + culture


@kernel
def winner(board: BoardRow, s: StateRow) -> Seat:
    """Return the winning seat (R9.2); NO_PLAYER while the game runs, or for a shared victory."""
    if int(s["end"]) == NOT_ENDED:
        return NO_PLAYER
    margin = total(board, s, 0) - total(board, s, 1)
    if margin == 0:
        margin = int(s["coins"][0]) - int(s["coins"][1])  # R9.3
    if margin == 0:
        return NO_PLAYER
    return 0 if margin > 0 else 1


@kernel
def reward(board: BoardRow, s: StateRow, seat: Seat, margin: bool) -> float:
    """Return the reward of a seat; 0 while the game runs.

    Args:
        margin: return the score margin / `MARGIN_SCALE`, clipped to [-1, 1], instead of 1 for a
            win, -1 for a loss and 0 for a shared victory.
    """
    if int(s["end"]) == NOT_ENDED:
        return 0.0
    if margin:
        points = total(board, s, seat) - total(board, s, 1 - seat)
        return max(-1.0, min(1.0, points / MARGIN_SCALE))
    won = winner(board, s)
    if won == NO_PLAYER:
        return 0.0
    return 1.0 if won == seat else -1.0


@kernel
def picker(s: StateRow) -> Seat:
    """Return the seat that picks: lead, other, lead (R2.1). Within a pick the other may decide."""
    dice = _count_bits(int(s["dice_left"])) + (1 if int(s["die"]) != UNSET else 0)
    lead = int64(s["lead"]) & 1
    return lead ^ int64(dice == 2)


@kernel
def picks_left(s: StateRow) -> int:
    """Return the number of dice not taken in this round yet, 0 to 3 (R2.1)."""
    return _count_bits(int64(s["dice_left"]))


@kernel
def wares_held(s: StateRow, seat: Seat) -> int:
    """Return the number of wares that a seat holds, of all kinds."""
    wares = s["wares"]
    return int(wares[seat, 0]) + int(wares[seat, 1]) + int(wares[seat, 2]) + int(wares[seat, 3])


@kernel
def capacity(s: StateRow, seat: Seat) -> int:
    """Return the most wares that a seat may hold at the end of an action (R4.3, R7.3)."""
    return CAPACITY + (1 if _has_side(s, seat, MERCHANT, ROBUST) else 0)


@kernel
def wares_in_bag(s: StateRow) -> int:
    """Return the number of wares in the bag, of all kinds."""
    bag = s["bag"]
    return int(bag[0]) + int(bag[1]) + int(bag[2]) + int(bag[3])


@kernel
def paintings_hidden(s: StateRow, seat: Seat) -> int:
    """Return the number of a seat's face-down paintings, 0 to 10."""
    hidden = s["hidden"]
    return int(hidden[seat, 0]) + int(hidden[seat, 1]) + int(hidden[seat, 2]) + int(hidden[seat, 3])


@kernel
def boutiques_left(board: BoardRow, s: StateRow, kind: int) -> int:
    """Return how many boutique tokens of a kind, an index in `Board.kinds`, are left (R1.2)."""
    left = int64(board["kind_count"][kind])
    for coast in range(_BOUTIQUES):
        left -= int64(int(s["boutiques"][coast]) == kind)
    return left


@kernel
def is_last_round(board: BoardRow, s: StateRow) -> bool:
    """Return whether the game ends with this round: a trigger (R9.1) or the cap (R10.1)."""
    return int(s["end_triggered"]) != 0 or int(s["round"]) >= int(board["max_rounds"])


@kernel
def is_chance(s: StateRow) -> bool:
    """Return whether the state waits for chance: set-up, a roll, a draw or a reveal."""
    phase = int(s["phase"])
    return phase in (ROLL, DRAW, REVEAL, SETUP)


@entry
def legal_mask(boards: Any, states: Any, i: int) -> int:
    """Return `legal` of game `i` of `BOARD` (n,) and `STATE` (n,), for callers in Python."""
    return int(legal(boards[i], states[i]))


@entry
def scores_of(
    boards: Any, states: Any, i: int
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return faith, commerce and culture of both seats in game `i`, for callers in Python.

    Args:
        boards: `BOARD` (n,), the board of each game.
        states: `STATE` (n,).
        i: the index of the game.
    """
    return score(boards[i], states[i], 0), score(boards[i], states[i], 1)


@entry
def winner_of(boards: Any, states: Any, i: int) -> int:
    """Return `winner` of game `i` of `BOARD` (n,) and `STATE` (n,), for callers in Python."""
    return winner(boards[i], states[i])


@entry
def rewards_of(boards: Any, states: Any, i: int, margin: bool) -> tuple[float, float]:
    """Return `reward` of both seats of game `i` of `BOARD` (n,) and `STATE` (n,), in Python."""
    return reward(boards[i], states[i], 0, margin), reward(boards[i], states[i], 1, margin)


# Moves (R3.1, R4.1, R5.1)


@kernel
def _moves_of_dice_left(board: BoardRow, s: StateRow) -> int:
    """R2.1: any die that is left; a move is mandatory, or else a stay (R3.7, R4.2)."""
    seat = _decider(s)
    left = int(s["dice_left"])
    merchant = _merchant_moves(board, s, seat)
    artist = _artist_moves(board, s, seat)
    if merchant == 0:
        merchant = 1 << MERCHANT_STAY
    if artist == 0:
        artist = 1 << ARTIST_STAY
    # Products, not branches: a processor cannot predict which dice are left.
    mask = _pilgrim_moves(s, seat) * (left & 1)
    return mask | merchant * (left >> MERCHANT & 1) | artist * (left >> ARTIST & 1)


@kernel
def _moves(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """Return the mask of moves of the character in hand, without stays."""
    die = int(s["die"])
    if die == PILGRIM:
        return _pilgrim_moves(s, seat)
    if die == MERCHANT:
        return _merchant_moves(board, s, seat)
    return _artist_moves(board, s, seat)


@kernel
def _pilgrim_moves(s: StateRow, seat: Seat) -> int:
    """R5.1, R7.1: tranquil cannot be used with a 1."""
    wave = int(s["wave_owner"][PILGRIM]) == seat
    no_use = int(s["wave_side"][PILGRIM]) == TRANQUIL and int(s["dice"][PILGRIM]) == 1
    return 1 << MOVE_PILGRIM | int(wave and not no_use) << MOVE_PILGRIM_WAVE


@kernel
def _merchant_moves(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """R4.1: not to a coastal town that holds either pilgrim or the other merchant."""
    reach = int(board["town_reach"][s["dice"][MERCHANT], s["merchant"][seat]])
    occupied = coast_at(board, int(s["pilgrim"][0])) | coast_at(board, int(s["pilgrim"][1]))
    occupied |= 1 << int(s["merchant"][1 - seat]) & _ALL_COASTS
    return (reach & ~occupied) << MOVE_MERCHANT


@kernel
def _artist_moves(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """R3.1: both artists may share an area."""
    return int64(board["area_reach"][s["dice"][ARTIST], s["artist"][seat]]) << MOVE_ARTIST


@kernel
def _choose_move(board: BoardRow, s: StateRow, phase: int, action: Action) -> int:
    """Take a die and move its character; at REPEAT move it again, or pass (R8)."""
    if action == PASS:
        return _ENDED
    if phase == REPEAT:
        s["hot_spring"] = NO_PLAYER  # R8.2: before the second move
    else:
        die = _character_of_move(action)
        s["dice_left"] = int(s["dice_left"]) & ~(1 << die)
        s["die"] = die
    if action in (MERCHANT_STAY, ARTIST_STAY):
        return _ENDED  # no action and no repeat (R3.7, R4.2, R8.1)
    return _move(board, s, action)


@kernel
def _character_of_move(action: Action) -> int:
    if action < MOVE_MERCHANT:
        return PILGRIM
    return MERCHANT if action < MOVE_ARTIST else ARTIST


@kernel
def _move(board: BoardRow, s: StateRow, action: Action) -> int:
    """Move the character in hand, then offer its effects if there are any (R6.2)."""
    seat = _decider(s)
    die = int(s["die"])
    if die == PILGRIM:
        s["pilgrim"][seat] = pilgrim_arrival(board, s, seat, action == MOVE_PILGRIM_WAVE)
    elif die == MERCHANT:
        s["merchant"][seat] = action - MOVE_MERCHANT
    else:
        s["origin"] = s["artist"][seat]
        s["artist"][seat] = action - MOVE_ARTIST
    effects = _effects(board, s)
    if effects == 0:
        return _ACTED
    s["phase"] = EFFECT
    return effects | 1 << PASS


@kernel
def pilgrim_arrival(board: BoardRow, s: StateRow, seat: Seat, wave: bool) -> int:
    """Return the ring index where a pilgrim arrives, on to the next empty station (R5.1).

    It goes the steps of the die, with `wave`, if that is legal, one more or one fewer (R7.1).
    """
    steps = int(s["dice"][PILGRIM])
    if wave:
        steps += 1 if int(s["wave_side"][PILGRIM]) == HASTY else -1
    size = int(board["ring_size"])
    station = int(s["pilgrim"][seat]) + steps
    if station >= size:
        station -= size
    while _holds_character(board, s, seat, station):
        station = station + 1 if station + 1 < size else 0
    return station


@kernel
def _holds_character(board: BoardRow, s: StateRow, seat: Seat, station: int) -> bool:
    """Return whether a character other than the seat's own pilgrim is at a station."""
    merchants = 1 << int(s["merchant"][0]) | 1 << int(s["merchant"][1])
    return int(s["pilgrim"][1 - seat]) == station or merchants & coast_at(board, station) != 0


@kernel
def coast_at(board: BoardRow, station: int) -> int:
    """Return the coastal town at a ring index as a bit, C1 lowest; 0 if it is no coastal town."""
    areas = int64(board["station_areas"][index(station)])
    return areas & (areas << 1 | areas >> 7)


# Available effects (R3.2, R4.3, R4.4, R5.2 to R5.5)


@kernel
def _effects(board: BoardRow, s: StateRow) -> int:
    """Return the mask of effects of the character in hand at its position, without `pass`."""
    seat = _decider(s)
    die = int64(s["die"])
    if die == PILGRIM:
        return _station_effects(board, s, seat)
    if die == MERCHANT:
        return _town_effects(board, s, seat)
    return _area_effects(board, s, seat)


@kernel
def _station_effects(board: BoardRow, s: StateRow, seat: Seat) -> int:
    kind = int(board["station_kind"][s["pilgrim"][seat]])
    if kind == SEASHORE:
        return _takes(s, seat)
    useful = True
    if kind == TEMPLE:
        useful = int(s["temple"][seat]) < LAST_TEMPLE
    elif kind == GARDEN:
        useful = int(s["garden"][seat]) < LAST_GARDEN
    elif kind == HOT_SPRING:
        useful = int(s["hot_spring"]) != seat
    return 1 << VISIT if useful else 0


@kernel
def _takes(s: StateRow, seat: Seat) -> int:
    """R5.5: wave tiles on the board; if there are none, those of the opponent."""
    on_board = 0
    of_opponent = 0
    for character in range(3):
        owner = int(s["wave_owner"][character])
        if owner == NO_PLAYER:
            on_board |= 1 << TAKE + character
        elif owner != seat:
            of_opponent |= 1 << TAKE + character
    return on_board if on_board != 0 else of_opponent


@kernel
def _town_effects(board: BoardRow, s: StateRow, seat: Seat) -> int:
    town = int(s["merchant"][seat])
    if town >= _COASTS:
        return _draws(board, s, seat, town)
    kind = int(s["boutiques"][town])
    held = int(s["wares"][seat, board["kind_ware"][kind]])
    sales = (1 << held) - 1
    mask = sales << SELL + 1  # R4.4: any number from 1
    if _has_side(s, seat, MERCHANT, CRAFTY):
        mask |= sales << SELL_WAVE + 1  # R7.3
    return mask


@kernel
def _draws(board: BoardRow, s: StateRow, seat: Seat, town: int) -> int:
    """R4.3; R7.3 if it draws more; R4.6 for an empty bag."""
    number = int(board["mountain_number"][town - _COASTS])
    bag = wares_in_bag(s)
    if bag == 0:
        return 0
    mask = 1 << DRAW_WARES
    if bag > number and _has_side(s, seat, MERCHANT, ROBUST):
        mask |= 1 << DRAW_WAVE
    return mask


@kernel
def _area_effects(board: BoardRow, s: StateRow, seat: Seat) -> int:
    mask = 0
    hidden = paintings_hidden(s, seat)
    others = _neighbours(board, s, seat)
    if others > 0 and hidden > 0:
        mask |= 1 << PAINT
    if hidden > others and _has_side(s, seat, ARTIST, PROFICIENT):
        mask |= 1 << PAINT_WAVE  # R7.2
    if int(s["easel_size"][seat]) > 0:
        front = int(s["easel"][seat]) & 3
        if _matching_icons(board, s, seat) & 1 << front:
            mask |= 1 << GIFT
    return mask


@kernel
def _neighbours(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """R3.3: count the other characters in the artist's area, its stations and its towns."""
    area = int(s["artist"][seat])
    others = int(s["artist"][0] == s["artist"][1])
    for player in range(2):
        others += int64(board["station_areas"][s["pilgrim"][player]]) >> area & 1
        others += int64(board["town_areas"][s["merchant"][player]]) >> area & 1
    return others


@kernel
def _matching_icons(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """Return the icons, as bits, of the arrival (R3.5) or, with inspired, of any path (R7.2)."""
    area = int(s["artist"][seat])
    if _has_side(s, seat, ARTIST, INSPIRED):
        return int(board["icons_touched"][int(s["dice"][ARTIST]), int(s["origin"]), area])
    return 1 << int(board["area_icon"][area])


# Effects. Each function returns how the pick continues.


@kernel
def _use_effect(board: BoardRow, s: StateRow, action: Action) -> int:
    seat = _decider(s)
    if action == PASS:
        return _ACTED
    if action == VISIT:
        return _visit(board, s, seat)
    if action < DRAW_WARES:
        return _take_wave(s, seat, action - TAKE)
    if action <= DRAW_WAVE:
        return _start_draw(board, s, seat, action == DRAW_WAVE)
    if action < PAINT:
        return _sell(board, s, seat, action)
    if action < GIFT:
        return _start_paint(board, s, seat, action == PAINT_WAVE)
    return _gift(s, seat)


@kernel
def _visit(board: BoardRow, s: StateRow, seat: Seat) -> int:
    kind = int(board["station_kind"][s["pilgrim"][seat]])
    if kind == HOT_SPRING:
        s["hot_spring"] = seat  # R5.4
        return _ENDED  # R8.1: not usable in the pick in which it was gained
    if kind == COAST:
        _earn(s, seat, _price(board, s, _coast_at(board, s, seat)))  # R5.2
    elif kind == TEMPLE:
        s["temple"][seat] += 1  # R5.3
        if int(s["temple"][seat]) == LAST_TEMPLE:
            s["end_triggered"] = 1
    else:
        s["garden"][seat] += 1
        if int(s["garden"][seat]) == LAST_GARDEN:
            s["end_triggered"] = 1
    return _ACTED


@kernel
def _coast_at(board: BoardRow, s: StateRow, seat: Seat) -> int:
    """Return the coastal town of a pilgrim."""
    coast = 0
    while board["coast_station"][coast] != s["pilgrim"][seat]:
        coast += 1
    return coast


@kernel
def _price(board: BoardRow, s: StateRow, coast: int) -> int:
    return int64(board["kind_price"][s["boutiques"][coast]])


@kernel
def _earn(s: StateRow, seat: Seat, coins: int) -> None:
    """R4.5: coins are traded for gold at once, up to six slabs; the sixth triggers the end.

    No game reaches `MAX_COINS`; only an unreachable position can lose coins here.
    """
    coins += int(s["coins"][seat])
    gold = int(s["gold"][seat])
    while coins >= GOLD_PRICE and gold < LAST_SLAB:
        coins -= GOLD_PRICE
        gold += 1
        if gold == LAST_SLAB:
            s["end_triggered"] = 1
    s["coins"][seat] = min(coins, MAX_COINS)
    s["gold"][seat] = gold


@kernel
def _take_wave(s: StateRow, seat: Seat, character: int) -> int:
    """R5.5; a player who loses robust with six wares returns one (R7.4)."""
    s["wave_owner"][character] = seat
    return _fit_capacity(s, 1 - seat)


@kernel
def _start_draw(board: BoardRow, s: StateRow, seat: Seat, wave: bool) -> int:
    number = int(board["mountain_number"][int(s["merchant"][seat]) - _COASTS])
    if wave:
        number += 1
    s["pending"] = min(number, wares_in_bag(s))
    s["phase"] = DRAW
    s["player"] = NO_PLAYER
    return _CHANCE


@kernel
def _draw_one(s: StateRow, ware: int) -> int:
    seat = picker(s)
    s["bag"][ware] -= 1
    s["wares"][seat, ware] += 1
    s["pending"] -= 1
    if int(s["pending"]) > 0:
        return _CHANCE
    return _fit_capacity(s, seat)


@kernel
def _discard(s: StateRow, ware: int) -> int:
    seat = _decider(s)
    s["wares"][seat, ware] -= 1
    s["bag"][ware] += 1
    return _fit_capacity(s, seat)


@kernel
def _fit_capacity(s: StateRow, seat: Seat) -> int:
    """R4.3: a player returns exactly the excess, one ware at a time."""
    if wares_held(s, seat) <= capacity(s, seat):
        return _ACTED
    s["phase"] = DISCARD
    s["player"] = seat
    return _discards(s)


@kernel
def _discards(s: StateRow) -> int:
    seat = _decider(s)
    mask = 0
    for ware in range(4):
        if int(s["wares"][seat, ware]) > 0:
            mask |= 1 << DISCARD_WARE + ware
    return mask


@kernel
def _sell(board: BoardRow, s: StateRow, seat: Seat, action: Action) -> int:
    wave = action > SELL_WAVE
    number = action - (SELL_WAVE if wave else SELL)
    coast = int64(s["merchant"][seat])
    ware = int(board["kind_ware"][s["boutiques"][coast]])
    s["wares"][seat, ware] -= number
    s["bag"][ware] += number
    _earn(s, seat, number * (_price(board, s, coast) + (1 if wave else 0)))
    return _ACTED


@kernel
def _start_paint(board: BoardRow, s: StateRow, seat: Seat, wave: bool) -> int:
    number = _neighbours(board, s, seat)
    if wave:
        number += 1
    s["pending"] = min(number, paintings_hidden(s, seat))
    s["phase"] = REVEAL
    s["player"] = NO_PLAYER
    return _CHANCE


@kernel
def _reveal_one(s: StateRow, icon: int) -> int:
    """R3.4: a revealed painting joins the back of the queue."""
    seat = picker(s)
    size = int(s["easel_size"][seat])
    s["hidden"][seat, icon] -= 1
    s["easel"][seat] = int(s["easel"][seat]) | icon << 2 * size
    s["easel_size"][seat] = size + 1
    s["pending"] -= 1
    return _CHANCE if int(s["pending"]) > 0 else _ACTED


@kernel
def _gift(s: StateRow, seat: Seat) -> int:
    """R3.5: the front painting leaves the queue; the tenth triggers the end (R3.6)."""
    s["easel"][seat] = int(s["easel"][seat]) >> 2
    s["easel_size"][seat] -= 1
    s["gifted"][seat] += 1
    if int(s["gifted"][seat]) == PAINTINGS:
        s["end_triggered"] = 1
    return _ACTED


# The hot spring token, and the end of picks and rounds


@kernel
def _continue_pick(board: BoardRow, s: StateRow, step: int) -> int:
    """End the pick, unless it continues or the hot spring token can be used.

    Args:
        step: how the pick continues, such as _ACTED.

    Returns:
        The new legal mask.
    """
    if step >= 0:
        return step
    seat = picker(s)
    s["origin"] = UNSET
    if step == _ACTED and int(s["hot_spring"]) == seat:
        moves = _moves(board, s, seat)
        if moves != 0:  # R8.1: a holder may use the die again, if it can move
            s["phase"] = REPEAT
            s["player"] = seat
            return moves | 1 << PASS
    s["die"] = UNSET
    if int(s["dice_left"]) == 0:
        _end_round(board, s)
        return _CHANCE
    s["phase"] = MOVE
    s["player"] = picker(s)
    return _moves_of_dice_left(board, s)


@kernel
def _end_round(board: BoardRow, s: StateRow) -> None:
    s["player"] = NO_PLAYER
    if is_last_round(board, s):
        s["phase"] = OVER
        s["end"] = END_TRIGGERS if int(s["end_triggered"]) else END_CAP
    else:
        s["phase"] = ROLL
        s["lead"] = 1 - int(s["lead"])  # R2.2


# Chance


@kernel
def setup_step(s: StateRow) -> int:
    """Return the number of set-up draws made, 0 to 11: boutiques C1 to C8, three wave sides."""
    step = 0
    while step < _BOUTIQUES and int(s["boutiques"][step]) != UNSET:
        step += 1
    while _BOUTIQUES <= step < _SETUP_STEPS and int(s["wave_side"][step - _BOUTIQUES]) != UNSET:
        step += 1
    return step


@kernel
def _setup_weights(board: BoardRow, s: StateRow, out: Any) -> int:
    number = int(board["kinds"]) if setup_step(s) < _BOUTIQUES else 2
    for outcome in range(number):
        out[outcome] = _setup_weight(board, s, outcome)
    return number


@kernel
def _setup_weight(board: BoardRow, s: StateRow, outcome: Outcome) -> int:
    if setup_step(s) >= _BOUTIQUES:
        return int64(outcome < 2)  # R1.4
    return boutiques_left(board, s, outcome) if outcome < int(board["kinds"]) else 0


@kernel
def _set_up(s: StateRow, outcome: Outcome) -> int:
    step = setup_step(s)
    if step < _BOUTIQUES:
        s["boutiques"][step] = outcome
        return _CHANCE
    s["wave_side"][step - _BOUTIQUES] = outcome
    if step - _BOUTIQUES == ARTIST:
        s["phase"] = ROLL
    return _CHANCE


@kernel
def _roll_weight(board: BoardRow, outcome: Outcome) -> int:
    faces = board["face_count"]
    pilgrim = int(faces[PILGRIM, outcome // 36 + 1])
    merchant = int(faces[MERCHANT, outcome // 6 % 6 + 1])
    return int64(pilgrim * merchant * int(faces[ARTIST, outcome % 6 + 1]))


@kernel
def _roll(board: BoardRow, s: StateRow, outcome: Outcome) -> int:
    roll = index(outcome)
    s["dice"][PILGRIM] = roll // index(36) + index(1)
    s["dice"][MERCHANT] = roll // index(6) % index(6) + index(1)
    s["dice"][ARTIST] = roll % index(6) + index(1)
    s["dice_left"] = 7
    s["round"] += 1
    s["phase"] = MOVE
    s["player"] = s["lead"]
    return _moves_of_dice_left(board, s)


# Small helpers


@kernel
def _decider(s: StateRow) -> Seat:
    """Return the player to decide; `& 1` shows the compiler that it is 0 or 1."""
    return int64(s["player"]) & 1


@kernel
def _has_side(s: StateRow, seat: Seat, character: int, side: int) -> bool:
    owned = int(s["wave_owner"][character]) == seat
    return owned and int(s["wave_side"][character]) == side


@kernel
def _count_bits(three_bits: int) -> int:
    return (three_bits & 1) + (three_bits >> 1 & 1) + (three_bits >> 2 & 1)
