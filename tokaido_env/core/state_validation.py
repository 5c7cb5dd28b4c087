"""Checks that a state is possible: that a game can reach it, as far as the state itself shows.

Kernels use the numbers of states as indices without checks. Legal moves and possible outcomes lead
from possible states to possible states, so only states from outside are checked. `position` turns
faults into messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.actions import PASS
from tokaido_env.core.constants import (
    ARTIST,
    CAPACITY,
    GOLD_PRICE,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    MERCHANT,
    PAINTING_COUNTS,
    PAINTINGS,
    PILGRIM,
    WARE_COUNTS,
    Row,
    Seat,
)
from tokaido_env.core.jit import entry, int64, kernel
from tokaido_env.core.rules import (
    boutiques_left,
    capacity,
    legal,
    paintings_hidden,
    picker,
    picks_left,
    setup_step,
    wares_held,
    wares_in_bag,
)
from tokaido_env.core.state import (
    DISCARD,
    DRAW,
    EFFECT,
    END_CAP,
    END_TRIGGERS,
    MAX_COINS,
    MAX_PENDING,
    MOVE,
    NO_PLAYER,
    NOT_ENDED,
    OVER,
    REPEAT,
    REVEAL,
    ROLL,
    SETUP,
    STATE,
    UNSET,
)

Rows = npt.NDArray[np.void]

NOT_FOUND = -1  # the index of a game, if no game is at fault

# Reasons of faults. A fault is `reason << 8 | seat << 4 | number`: the seat at fault, else 0, and a
# number for the message. 0 is no fault.
OUT_OF_LIMITS, EASEL_BEYOND_SIZE, WARES_SUM, BOUTIQUES, PAINTINGS_SUM = range(1, 6)
PAINTINGS_OF_ICON, COINS_FOR_GOLD, TWO_PILGRIMS, MERCHANT_STATION, BOUTIQUE_SKIPPED = range(6, 11)
LEFT_TO_DRAW, ALL_DRAWN, DICE_ROLLED, ROUND_BEGUN, ROUND_AT_SETUP = range(11, 16)
DIE_IN_HAND, NO_DIE_IN_HAND, DIE_TAKEN, DICE_LEFT, NO_DICE_LEFT, DIE_OF_PHASE = range(16, 22)
ORIGIN, NO_ORIGIN, ORIGIN_REACH, MERCHANT_AT_DRAW, PENDING, NO_PENDING = range(22, 28)
PICKER, PLAYER_NOT_NONE, PLAYER_AT_DISCARD, WARES_TO_RETURN, WARES_HELD = range(28, 33)
TRIGGERED, END, OVER_WHEN_TRIGGERED, ROUND_AT_ROLL, ROUND_AT_CAP = range(33, 38)
HOT_SPRING_AT_REPEAT, CHOICE, SIDE_SKIPPED = range(38, 41)

_COASTS = 8
_SETUP_STEPS = 11

# Lowest and highest value of each field of a state. Those of rounds, pilgrims and boutiques depend
# on the board.
_LIMITS: dict[str, tuple[Any, Any]] = {
    "easel": (0, 4**PAINTINGS - 1),
    "round": (0, 0),
    "phase": (SETUP, OVER),
    "player": (NO_PLAYER, 1),
    "lead": (0, 1),
    "dice": (0, 6),
    "dice_left": (0, 7),
    "die": (UNSET, ARTIST),
    "origin": (UNSET, 7),
    "pending": (0, MAX_PENDING),
    "end_triggered": (0, 1),
    "end": (NOT_ENDED, END_CAP),
    "boutiques": (UNSET, 0),
    "bag": (0, WARE_COUNTS),
    "hot_spring": (NO_PLAYER, 1),
    "wave_side": (UNSET, 1),
    "wave_owner": (NO_PLAYER, 1),
    "pilgrim": (0, 0),
    "merchant": (0, 11),
    "artist": (0, 7),
    "temple": (1, LAST_TEMPLE),
    "garden": (1, LAST_GARDEN),
    "coins": (0, MAX_COINS),
    "gold": (0, LAST_SLAB),
    "wares": (0, WARE_COUNTS),
    "hidden": (0, PAINTING_COUNTS),
    "easel_size": (0, PAINTINGS),
    "gifted": (0, PAINTINGS),
}


def limits(board: np.void) -> dict[str, tuple[Any, Any]]:
    """Return the lowest and highest value of each field of a state on a board, a `BOARD` row."""
    return _LIMITS | {
        "round": (0, int(board["max_rounds"])),
        "pilgrim": (0, int(board["ring_size"]) - 1),
        "boutiques": (UNSET, int(board["kinds"]) - 1),
    }


# Bounds of the fields of one byte, which are all from `phase` on, for any board.
_FIRST_BYTE: int = STATE.fields["phase"][1]  # type: ignore[index]
_BYTE_BOUNDS = np.zeros(2, STATE)
for _name, _ends in (_LIMITS | {"pilgrim": (0, 127), "boutiques": (UNSET, _COASTS - 1)}).items():
    _BYTE_BOUNDS[_name] = [np.broadcast_to(_end, STATE[_name].shape) for _end in _ends]
_LOWEST, _HIGHEST = _BYTE_BOUNDS.view(np.int8).reshape(2, -1)[:, _FIRST_BYTE:].copy()


def first_fault(boards: Rows, which: npt.NDArray[Any], states: Rows) -> tuple[int, int]:
    """Return the index of the first impossible state and its fault, else NOT_FOUND and 0.

    Args:
        boards: `BOARD` (b,).
        which: integers (k,), the index of the board of each game.
        states: `STATE` (k,), or (1,) for all games; contiguous.
    """
    numbers = states.view(np.int8).reshape(len(states), STATE.itemsize)
    game, fault = _first_fault(boards, which, states, numbers)
    return int(game), int(fault)


@entry
def _first_fault(boards: Any, which: Any, states: Any, numbers: Any) -> tuple[int, int]:
    for j in range(len(which)):
        i = j if len(states) > 1 else 0
        board, s = boards[which[j]], states[i]
        fault = _out_of_limits(board, s, numbers[i]) or _fault(board, s)
        if fault:
            return j, fault
    return NOT_FOUND, 0


@kernel
def _fault(board: Row, s: Row) -> int:
    """Return the first fault of a state within the limits, else 0."""
    return (
        _fault_of_pieces(board, s)
        or _fault_of_player(s, 0)
        or _fault_of_player(s, 1)
        or _fault_of_places(board, s)
        or _fault_of_setup(s)
        or _fault_of_dice(s)
        or _fault_of_origin(board, s)
        or _fault_of_pending(board, s)
        or _fault_of_mover(s)
        or _fault_of_wares_held(board, s)
        or _fault_of_end(board, s)
        or _fault_of_choice(board, s)
    )


@kernel
def _fault_code(reason: int, seat: int, number: int) -> int:
    return int64(reason) << 8 | int64(seat) << 4 | int64(number)


@kernel
def _out_of_limits(board: Row, s: Row, numbers: Any) -> int:
    """Each number of a state is within its limits, so kernels may use it as an index."""
    valid = 0 <= int(s["round"]) <= int(board["max_rounds"])
    for byte in range(len(_LOWEST)):
        valid &= _LOWEST[byte] <= numbers[_FIRST_BYTE + byte] <= _HIGHEST[byte]
    for coast in range(_COASTS):
        valid &= int(s["boutiques"][coast]) < int(board["kinds"])
    for seat in range(2):
        valid &= int(s["pilgrim"][seat]) < int(board["ring_size"])
    if not valid:
        return _fault_code(OUT_OF_LIMITS, 0, 0)
    for seat in range(2):
        if int(s["easel"][seat]) >> 2 * int(s["easel_size"][seat]) != 0:
            return _fault_code(EASEL_BEYOND_SIZE, seat, 0)
    return 0


@kernel
def _fault_of_pieces(board: Row, s: Row) -> int:
    """The numbers of wares and boutique tokens are constant (R1.2, R1.3)."""
    for ware in range(4):
        wares = int(s["wares"][0, ware]) + int(s["wares"][1, ware])
        if int(s["bag"][ware]) + wares != WARE_COUNTS[ware]:
            return _fault_code(WARES_SUM, 0, ware)
    for kind in range(int(board["kinds"])):
        if boutiques_left(board, s, kind) < 0:
            return _fault_code(BOUTIQUES, 0, kind)
    return 0


@kernel
def _fault_of_player(s: Row, seat: Seat) -> int:
    """A player has ten paintings (R1.7), and below ten coins until the sixth slab (R4.5)."""
    size = int(s["easel_size"][seat])
    given = PAINTINGS - size - paintings_hidden(s, seat)
    if int(s["gifted"][seat]) != given:
        return _fault_code(PAINTINGS_SUM, seat, max(given, 0))
    for icon in range(4):
        count = int(s["hidden"][seat, icon])
        for place in range(size):
            count += int64(int(s["easel"][seat]) >> 2 * place & 3 == icon)
        if count > PAINTING_COUNTS[seat][icon]:
            return _fault_code(PAINTINGS_OF_ICON, seat, icon)
    if int(s["coins"][seat]) >= GOLD_PRICE and int(s["gold"][seat]) != LAST_SLAB:
        return _fault_code(COINS_FOR_GOLD, seat, 0)
    return 0


@kernel
def _fault_of_places(board: Row, s: Row) -> int:
    """A station holds at most one character (R4.1, R5.1)."""
    if int(s["pilgrim"][0]) == int(s["pilgrim"][1]):
        return _fault_code(TWO_PILGRIMS, 0, 0)
    for seat in range(2):
        town = int(s["merchant"][seat])
        if town < _COASTS:
            station = int(board["coast_station"][town])
            taken = station in (int(s["pilgrim"][0]), int(s["pilgrim"][1]))
            if taken or town == int(s["merchant"][1 - seat]):
                return _fault_code(MERCHANT_STATION, seat, 0)
    return 0


@kernel
def _fault_of_setup(s: Row) -> int:
    """Tokens and wave sides are drawn in order, before the first roll (R1.2, R1.4)."""
    drawn = 0
    for coast in range(_COASTS):
        drawn += int64(int(s["boutiques"][coast]) != UNSET)
    rolled = 0
    for character in range(3):
        drawn += int64(int(s["wave_side"][character]) != UNSET)
        rolled += int64(int(s["dice"][character]) > 0)
    phase, first = int(s["phase"]), int(s["round"]) == 0
    step = setup_step(s)
    if drawn != step:
        if step < _COASTS:
            return _fault_code(BOUTIQUE_SKIPPED, 0, step)
        return _fault_code(SIDE_SKIPPED, 0, step - _COASTS)
    if (phase == SETUP) != (drawn < _SETUP_STEPS):
        return _fault_code(ALL_DRAWN if phase == SETUP else LEFT_TO_DRAW, 0, 0)
    if rolled != (0 if first else 3):
        return _fault_code(DICE_ROLLED, 0, 0)
    if phase != ROLL and (phase == SETUP) != first:
        return _fault_code(ROUND_AT_SETUP if phase == SETUP else ROUND_BEGUN, 0, 0)
    return 0


@kernel
def _fault_of_dice(s: Row) -> int:
    """The selected die and the dice left match the phase."""
    phase, die, left = int(s["phase"]), int(s["die"]), picks_left(s)
    in_hand = phase in (EFFECT, DRAW, REVEAL, DISCARD, REPEAT)
    if (die != UNSET) != in_hand:
        return _fault_code(DIE_IN_HAND if in_hand else NO_DIE_IN_HAND, 0, 0)
    if in_hand and int(s["dice_left"]) >> die & 1:
        return _fault_code(DIE_TAKEN, 0, 0)
    if not in_hand and (left > 0) != (phase == MOVE):
        return _fault_code(DICE_LEFT if phase == MOVE else NO_DICE_LEFT, 0, 0)
    if (phase == DRAW and die != MERCHANT) or (phase == REVEAL and die != ARTIST):
        return _fault_code(DIE_OF_PHASE, 0, MERCHANT if phase == DRAW else ARTIST)
    return 0


@kernel
def _fault_of_origin(board: Row, s: Row) -> int:
    """During an effect, the artist's origin is as far from its area as its die says."""
    origin = int(s["origin"])
    needed = int(s["die"]) == ARTIST and int(s["phase"]) in (EFFECT, REVEAL)
    if (origin != UNSET) != needed:
        return _fault_code(ORIGIN if needed else NO_ORIGIN, 0, 0)
    if needed:
        reach = int64(board["area_reach"][int(s["dice"][ARTIST]), origin])
        area = int(s["artist"][picker(s)])
        if not reach >> area & 1:
            return _fault_code(ORIGIN_REACH, 0, area)
    return 0


@kernel
def _fault_of_pending(board: Row, s: Row) -> int:
    """The number of draws or reveals left is possible in the phase (R4.3, R7)."""
    phase, pending, seat = int(s["phase"]), int(s["pending"]), picker(s)
    if phase == DRAW:
        most = min(_most_draws(board, s, seat), wares_in_bag(s))
        if most < 1:
            return _fault_code(MERCHANT_AT_DRAW, seat, 0)
    elif phase == REVEAL:
        most = paintings_hidden(s, seat)
    else:
        return 0 if pending == 0 else _fault_code(NO_PENDING, 0, 0)
    return 0 if 1 <= pending <= most else _fault_code(PENDING, 0, most)


@kernel
def _most_draws(board: Row, s: Row, seat: Seat) -> int:
    """Return the most wares that a seat may draw at its merchant's town, 0 elsewhere."""
    town = int(s["merchant"][seat]) - _COASTS
    if town < 0 or int(s["die"]) != MERCHANT:
        return 0
    return int(board["mountain_number"][town]) + capacity(s, seat) - CAPACITY


@kernel
def _fault_of_mover(s: Row) -> int:
    """The picker decides; at DISCARD the other player may (R7.4)."""
    phase, player = int(s["phase"]), int(s["player"])
    if phase == DISCARD:
        die = MERCHANT if player == picker(s) else PILGRIM
        if player == NO_PLAYER or int(s["die"]) != die:
            return _fault_code(PLAYER_AT_DISCARD, 0, 0)
        most = capacity(s, player)
        return 0 if wares_held(s, player) > most else _fault_code(WARES_TO_RETURN, player, most)
    if phase in (MOVE, EFFECT, REPEAT):
        return 0 if player == picker(s) else _fault_code(PICKER, picker(s), 0)
    return 0 if player == NO_PLAYER else _fault_code(PLAYER_NOT_NONE, 0, 0)


@kernel
def _fault_of_wares_held(board: Row, s: Row) -> int:
    """Only a seat that draws or returns wares holds more than its capacity (R4.3, R7.3)."""
    phase, seat = int(s["phase"]), picker(s)
    for player in range(2):
        most = capacity(s, player)
        if phase == DISCARD and player == int(s["player"]) and player != seat:
            most = CAPACITY + 1  # robust is lost (R7.4)
        elif phase in (DRAW, DISCARD) and player == seat:
            most += _most_draws(board, s, seat) - int(s["pending"])
        if wares_held(s, player) > most:
            return _fault_code(WARES_HELD, player, most)
    return 0


@kernel
def _fault_of_end(board: Row, s: Row) -> int:
    """The end matches pegs, slabs, paintings and rounds (R9.1, R10.1)."""
    triggered = False
    for seat in range(2):
        triggered |= int(s["temple"][seat]) == LAST_TEMPLE or int(s["garden"][seat]) == LAST_GARDEN
        triggered |= int(s["gold"][seat]) == LAST_SLAB or int(s["gifted"][seat]) == PAINTINGS
    if (int(s["end_triggered"]) != 0) != triggered:
        return _fault_code(TRIGGERED, 0, int64(triggered))
    phase, end = int(s["phase"]), NOT_ENDED
    if phase == OVER:
        end = END_TRIGGERS if triggered else END_CAP
    if int(s["end"]) != end:
        return _fault_code(END, 0, end)
    last = int(s["round"]) == int(board["max_rounds"])
    if phase == ROLL and triggered:
        return _fault_code(OVER_WHEN_TRIGGERED, 0, 0)
    if phase == ROLL and last:
        return _fault_code(ROUND_AT_ROLL, 0, 0)
    return _fault_code(ROUND_AT_CAP, 0, 0) if end == END_CAP and not last else 0


@kernel
def _fault_of_choice(board: Row, s: Row) -> int:
    """At EFFECT and REPEAT there is an action other than `pass` (R6.2, R8.1)."""
    phase = int(s["phase"])
    if phase == REPEAT and int(s["hot_spring"]) != picker(s):
        return _fault_code(HOT_SPRING_AT_REPEAT, picker(s), 0)
    if phase != EFFECT and phase != REPEAT:
        return 0
    only_pass = legal(board, s) == np.uint64(1) << np.uint64(PASS)
    return _fault_code(CHOICE, 0, 0) if only_pass else 0
