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

# Reasons of faults, in the order of the checks. A fault is `reason << 8 | seat << 4 | item`: the
# seat at fault, and the index of the item, such as a ware; else 0. 0 is no fault.
OUT_OF_LIMITS, EASEL, BAG, BOUTIQUES, GIFTED, HIDDEN, COINS, STATION = range(1, 9)
DRAW_ORDER, SET_UP, ROLLED, DIE, DICE_LEFT, ORIGIN, TOWN_AT_DRAW, PENDING = range(9, 17)
PLAYER, WARES, TRIGGERED, END, ENDED, ROUND, HOT_SPRING, CHOICE = range(17, 25)

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
    """Return the lowest and highest value of each `STATE` field by name, for a row of `BOARD`."""
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

    A fault is `reason << 8 | seat << 4 | item`, which `position.fault_error` turns into words.

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


@entry
def first_wrong_mask(boards: Any, board_index: Any, states: Any, masks: Any) -> int:
    """Return the index of the first state with other legal actions than its mask, or -1.

    Args:
        boards: `BOARD` (b,).
        board_index: integers (n,), the board of each state.
        states: `STATE` (n,), valid.
        masks: uint64 (n,).
    """
    for j in range(len(masks)):
        if masks[j] != legal(boards[board_index[j]], states[j]):
            return j
    return NOT_FOUND


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
        or _fault_of_end(s)
        or _fault_of_round(board, s)
        or _fault_of_choice(board, s)
    )


@kernel
def _fault_code(reason: int, seat: int = 0, item: int = 0) -> int:
    return int64(reason) << 8 | int64(seat) << 4 | int64(item)


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
        return _fault_code(OUT_OF_LIMITS)
    for seat in range(2):
        if int(s["easel"][seat]) >> 2 * int(s["easel_size"][seat]) != 0:
            return _fault_code(EASEL, seat)
    return 0


@kernel
def _fault_of_pieces(board: Row, s: Row) -> int:
    """The numbers of wares and boutique tokens are constant (R1.2, R1.3)."""
    for ware in range(4):
        wares = int(s["wares"][0, ware]) + int(s["wares"][1, ware])
        if int(s["bag"][ware]) + wares != WARE_COUNTS[ware]:
            return _fault_code(BAG, 0, ware)
    for kind in range(int(board["kinds"])):
        if boutiques_left(board, s, kind) < 0:
            return _fault_code(BOUTIQUES)
    return 0


@kernel
def _fault_of_player(s: Row, seat: Seat) -> int:
    """A player has ten paintings (R1.7), and below ten coins until the sixth slab (R4.5)."""
    size = int(s["easel_size"][seat])
    if size + paintings_hidden(s, seat) + int(s["gifted"][seat]) != PAINTINGS:
        return _fault_code(GIFTED, seat)
    for icon in range(4):
        count = int(s["hidden"][seat, icon])
        for place in range(size):
            count += int64(int(s["easel"][seat]) >> 2 * place & 3 == icon)
        if count > PAINTING_COUNTS[seat][icon]:
            return _fault_code(HIDDEN, seat, icon)
    if int(s["coins"][seat]) >= GOLD_PRICE and int(s["gold"][seat]) != LAST_SLAB:
        return _fault_code(COINS, seat)
    return 0


@kernel
def _fault_of_places(board: Row, s: Row) -> int:
    """A station holds at most one character (R4.1, R5.1)."""
    if int(s["pilgrim"][0]) == int(s["pilgrim"][1]):
        return _fault_code(STATION, 1, PILGRIM)
    for seat in range(2):
        town = int(s["merchant"][seat])
        if town < _COASTS:
            station = int(board["coast_station"][town])
            taken = station in (int(s["pilgrim"][0]), int(s["pilgrim"][1]))
            if taken or town == int(s["merchant"][1 - seat]):
                return _fault_code(STATION, seat, MERCHANT)
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
    if drawn != setup_step(s):
        return _fault_code(DRAW_ORDER, 0, setup_step(s))
    if (int(s["phase"]) == SETUP) != (drawn < _SETUP_STEPS):
        return _fault_code(SET_UP)
    return 0 if rolled == (0 if int(s["round"]) == 0 else 3) else _fault_code(ROLLED)


@kernel
def _fault_of_dice(s: Row) -> int:
    """The selected die and the dice left match the phase."""
    phase, die, left = int(s["phase"]), int(s["die"]), picks_left(s)
    in_hand = phase in (EFFECT, DRAW, REVEAL, DISCARD, REPEAT)
    if (die != UNSET) != in_hand:
        return _fault_code(DIE)
    if (phase == DRAW and die != MERCHANT) or (phase == REVEAL and die != ARTIST):
        return _fault_code(DIE)
    if in_hand:
        return _fault_code(DICE_LEFT) if int(s["dice_left"]) >> die & 1 else 0
    return 0 if (left > 0) == (phase == MOVE) else _fault_code(DICE_LEFT)


@kernel
def _fault_of_origin(board: Row, s: Row) -> int:
    """During an effect, the artist's origin is as far from its area as its die says."""
    origin = int(s["origin"])
    needed = int(s["die"]) == ARTIST and int(s["phase"]) in (EFFECT, REVEAL)
    if not needed or origin == UNSET:
        return 0 if not needed and origin == UNSET else _fault_code(ORIGIN)
    reach = int64(board["area_reach"][int(s["dice"][ARTIST]), origin])
    return 0 if reach >> int(s["artist"][picker(s)]) & 1 else _fault_code(ORIGIN)


@kernel
def _fault_of_pending(board: Row, s: Row) -> int:
    """The number of draws or reveals left is possible in the phase (R4.3, R7)."""
    phase, pending, seat = int(s["phase"]), int(s["pending"]), picker(s)
    if phase == DRAW:
        most = min(_most_draws(board, s, seat), wares_in_bag(s))
        if most < 1:
            return _fault_code(TOWN_AT_DRAW, seat)
    elif phase == REVEAL:
        most = paintings_hidden(s, seat)
    else:
        return 0 if pending == 0 else _fault_code(PENDING)
    return 0 if 1 <= pending <= most else _fault_code(PENDING)


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
        valid = player != NO_PLAYER
        valid &= int(s["die"]) == (MERCHANT if player == picker(s) else PILGRIM)
    elif phase in (MOVE, EFFECT, REPEAT):
        valid = player == picker(s)
    else:
        valid = player == NO_PLAYER
    return 0 if valid else _fault_code(PLAYER)


@kernel
def _fault_of_wares_held(board: Row, s: Row) -> int:
    """Only a seat that draws or returns wares holds more than its capacity (R4.3, R7.3)."""
    phase, seat = int(s["phase"]), picker(s)
    for player in range(2):
        held, most = wares_held(s, player), capacity(s, player)
        returns = phase == DISCARD and player == int(s["player"])
        valid = held > most or not returns
        if returns and player != seat:
            most = CAPACITY + 1  # robust is lost (R7.4)
        elif phase in (DRAW, DISCARD) and player == seat:
            most += _most_draws(board, s, seat) - int(s["pending"])
        if not valid or held > most:
            return _fault_code(WARES, player)
    return 0


@kernel
def _fault_of_end(s: Row) -> int:
    """The end matches pegs, slabs and paintings (R9.1)."""
    triggered = False
    for seat in range(2):
        triggered |= int(s["temple"][seat]) == LAST_TEMPLE or int(s["garden"][seat]) == LAST_GARDEN
        triggered |= int(s["gold"][seat]) == LAST_SLAB or int(s["gifted"][seat]) == PAINTINGS
    if (int(s["end_triggered"]) != 0) != triggered:
        return _fault_code(TRIGGERED)
    phase, end = int(s["phase"]), NOT_ENDED
    if phase == OVER:
        end = END_TRIGGERS if triggered else END_CAP
    if int(s["end"]) != end:
        return _fault_code(END)
    return _fault_code(ENDED) if phase == ROLL and triggered else 0


@kernel
def _fault_of_round(board: Row, s: Row) -> int:
    """The round is 0 before the first roll, and the last one at the cap (R10.1)."""
    phase, number, last = int(s["phase"]), int(s["round"]), int(board["max_rounds"])
    if phase == SETUP:
        valid = number == 0
    elif phase == ROLL:
        valid = number < last
    else:
        valid = number == last or (number > 0 and int(s["end"]) != END_CAP)
    return 0 if valid else _fault_code(ROUND)


@kernel
def _fault_of_choice(board: Row, s: Row) -> int:
    """At EFFECT and REPEAT there is an action other than `pass` (R6.2, R8.1)."""
    phase = int(s["phase"])
    if phase == REPEAT and int(s["hot_spring"]) != picker(s):
        return _fault_code(HOT_SPRING)
    if phase != EFFECT and phase != REPEAT:
        return 0
    only_pass = legal(board, s) == np.uint64(1) << np.uint64(PASS)
    return _fault_code(CHOICE) if only_pass else 0
