"""Whether a state is possible: whether a game could stand so, as far as the state tells.

Kernels index by what states hold and look at none of it. These are the states that
`position.from_dict` accepts, which says what is wrong with the others. Legal moves, and outcomes
that have a weight, lead from possible states to possible ones only; so it is enough to check what
comes from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.actions import PASS
from tokaido_env.core.box import (
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
    NOBODY,
    NOT_ENDED,
    OVER,
    REPEAT,
    REVEAL,
    ROLL,
    SETUP,
    STATE,
)

FINE = -1

_COASTS = 8
_SETUP_STEPS = 11

# The lowest and the highest of each number of a state; ring, tokens and rounds go by the board.
_LIMITS: dict[str, tuple[Any, Any]] = {
    "easel": (0, 4**PAINTINGS - 1),
    "round": (0, 0),
    "phase": (SETUP, OVER),
    "player": (NOBODY, 1),
    "lead": (0, 1),
    "dice": (0, 6),
    "dice_left": (0, 7),
    "die": (NOBODY, ARTIST),
    "origin": (NOBODY, 7),
    "pending": (0, MAX_PENDING),
    "end_triggered": (0, 1),
    "end": (NOT_ENDED, END_CAP),
    "boutiques": (NOBODY, 0),
    "bag": (0, WARE_COUNTS),
    "hot_spring": (NOBODY, 1),
    "wave_side": (NOBODY, 1),
    "wave_owner": (NOBODY, 1),
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
    """Return the lowest and the highest of each field of a state on a board, a row of `BOARD`."""
    return _LIMITS | {
        "round": (0, int(board["max_rounds"])),
        "pilgrim": (0, int(board["ring_size"]) - 1),
        "boutiques": (NOBODY, int(board["kinds"]) - 1),
    }


def bounds(limits: Mapping[str, tuple[Any, Any]], dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Return limits as two records, shape (2,): the lowest of each field, the highest."""
    ends = np.zeros(2, dtype)
    for name, (low, high) in limits.items():
        ends[name] = [np.broadcast_to(end, dtype[name].shape) for end in (low, high)]
    return ends


# Of the numbers of a byte, all from `phase` on, as the widest board has them.
_FIRST_BYTE: int = STATE.fields["phase"][1]  # type: ignore[index]
_BYTE_BOUNDS = bounds(_LIMITS | {"pilgrim": (0, 127), "boutiques": (NOBODY, _COASTS - 1)}, STATE)
_LOWEST, _HIGHEST = _BYTE_BOUNDS.view(np.int8).reshape(2, -1)[:, _FIRST_BYTE:].copy()


@entry
def first_impossible(boards: Any, which: Any, states: Any, numbers: Any) -> int:
    """Return the place of the first game that cannot stand so, else -1.

    Args:
        boards: `BOARD` (b,).
        which: integers (k,), the index of the board of each game.
        states: `STATE` (k,) or (1,).
        numbers: the same as int8 (k or 1, bytes).
    """
    for j in range(len(which)):
        i = j if len(states) > 1 else 0
        if not _is_within_limits(boards[which[j]], states[i], numbers[i]):
            return j
        if not _is_possible(boards[which[j]], states[i]):
            return j
    return FINE


@kernel
def _is_within_limits(board: Row, s: Row, numbers: Any) -> bool:
    """Return whether each number of a state is one that a kernel may index by."""
    for place in range(len(_LOWEST)):
        if not _LOWEST[place] <= numbers[_FIRST_BYTE + place] <= _HIGHEST[place]:
            return False
    for coast in range(_COASTS):
        if int(s["boutiques"][coast]) >= int(board["kinds"]):
            return False
    for seat in range(2):
        if int(s["pilgrim"][seat]) >= int(board["ring_size"]):
            return False
        if int(s["easel"][seat]) >> 2 * int(s["easel_size"][seat]) != 0:
            return False
    return 0 <= int(s["round"]) <= int(board["max_rounds"])


@kernel
def _is_possible(board: Row, s: Row) -> bool:
    """Return whether a state within the limits is possible, as `position.from_dict` has it."""
    if not (_adds_up(board, s) and _owns_what_it_may(s, 0) and _owns_what_it_may(s, 1)):
        return False
    if not (_has_room(board, s) and _is_set_up(s) and _has_dice(board, s)):
        return False
    return _asks(s) and _holds(board, s) and _ends(board, s) and _has_choice(board, s)


@kernel
def _adds_up(board: Row, s: Row) -> bool:
    """No ware and no token is lost or made (R1.2, R1.3)."""
    for ware in range(4):
        wares = int(s["wares"][0, ware]) + int(s["wares"][1, ware])
        if int(s["bag"][ware]) + wares != WARE_COUNTS[ware]:
            return False
    fewest = 0
    for kind in range(int(board["kinds"])):
        fewest = min(fewest, boutiques_left(board, s, kind))
    return fewest == 0


@kernel
def _owns_what_it_may(s: Row, seat: Seat) -> bool:
    """Ten paintings (R1.7), and ten coins are a slab while there is room for one (R4.5)."""
    size = int(s["easel_size"][seat])
    if int(s["gifted"][seat]) != PAINTINGS - size - paintings_hidden(s, seat):
        return False
    for icon in range(4):
        count = int(s["hidden"][seat, icon])
        for place in range(size):
            count += int64(int(s["easel"][seat]) >> 2 * place & 3 == icon)
        if count > PAINTING_COUNTS[seat][icon]:
            return False
    return int(s["coins"][seat]) < GOLD_PRICE or int(s["gold"][seat]) == LAST_SLAB


@kernel
def _has_room(board: Row, s: Row) -> bool:
    """A station holds one character (R4.1, R5.1)."""
    if int(s["pilgrim"][0]) == int(s["pilgrim"][1]):
        return False
    for seat in range(2):
        town = int(s["merchant"][seat])
        if town >= _COASTS:
            continue
        station = int(board["coast_station"][town])
        if station in (int(s["pilgrim"][0]), int(s["pilgrim"][1])):
            return False
        if town == int(s["merchant"][1 - seat]):
            return False
    return True


@kernel
def _is_set_up(s: Row) -> bool:
    """Tokens and sides are drawn in order, all of them before the first roll (R1.2, R1.4)."""
    drawn = 0
    for coast in range(_COASTS):
        drawn += int64(int(s["boutiques"][coast]) != NOBODY)
    rolled = 0
    for character in range(3):
        drawn += int64(int(s["wave_side"][character]) != NOBODY)
        rolled += int64(int(s["dice"][character]) > 0)
    phase, first = int(s["phase"]), int(s["round"]) == 0
    if drawn != setup_step(s) or (phase == SETUP) != (drawn < _SETUP_STEPS):
        return False
    if rolled != (0 if first else 3):
        return False
    return phase == ROLL or (phase == SETUP) == first


@kernel
def _has_dice(board: Row, s: Row) -> bool:
    """The dice left, the one in hand and the artist's origin are those of the phase."""
    phase, die, left = int(s["phase"]), int(s["die"]), picks_left(s)
    in_hand = phase in (EFFECT, DRAW, REVEAL, DISCARD, REPEAT)
    if (die != NOBODY) != in_hand:
        return False
    if in_hand:
        if int(s["dice_left"]) >> die & 1:
            return False
    elif (left > 0) != (phase == MOVE):
        return False
    if (phase == DRAW and die != MERCHANT) or (phase == REVEAL and die != ARTIST):
        return False
    origin = int(s["origin"])
    if (origin != NOBODY) != (die == ARTIST and phase in (EFFECT, REVEAL)):
        return False
    if origin == NOBODY:
        return True
    reach = int64(board["area_reach"][int(s["dice"][ARTIST]), origin])
    return reach >> int(s["artist"][picker(s)]) & 1 != 0


@kernel
def _asks(s: Row) -> bool:
    """It is the picker's decision; at DISCARD it may be the other's (R7.4)."""
    phase, player = int(s["phase"]), int(s["player"])
    if phase == DISCARD:
        if player == NOBODY:
            return False
        die = MERCHANT if player == picker(s) else PILGRIM
        return int(s["die"]) == die and wares_held(s, player) > capacity(s, player)
    asked = phase in (MOVE, EFFECT, REPEAT)
    return player == (picker(s) if asked else NOBODY)


@kernel
def _holds(board: Row, s: Row) -> bool:
    """Draws and reveals to come, and wares held, are no more than the phase has (R4.3, R7.3)."""
    phase, pending, seat = int(s["phase"]), int(s["pending"]), picker(s)
    draws = _most_draws(board, s, seat)
    most = 0
    if phase == DRAW:
        most = min(draws, wares_in_bag(s))
    elif phase == REVEAL:
        most = paintings_hidden(s, seat)
    if not int64(phase in (DRAW, REVEAL)) <= pending <= most:
        return False
    for player in range(2):
        held = capacity(s, player)
        if phase == DISCARD and player == int(s["player"]) and player != seat:
            held = CAPACITY + 1  # robust is lost (R7.4)
        elif phase in (DRAW, DISCARD) and player == seat:
            held += draws - pending
        if wares_held(s, player) > held:
            return False
    return True


@kernel
def _most_draws(board: Row, s: Row, seat: Seat) -> int:
    """Return what a seat may draw at most where its merchant stands, 0 if it may not."""
    town = int(s["merchant"][seat]) - _COASTS
    if town < 0 or int(s["die"]) != MERCHANT:
        return 0
    return int(board["mountain_number"][town]) + capacity(s, seat) - CAPACITY


@kernel
def _ends(board: Row, s: Row) -> bool:
    """The end is as pegs, slabs, paintings and rounds have it (R9.1, R10.1)."""
    triggered = False
    for seat in range(2):
        triggered |= int(s["temple"][seat]) == LAST_TEMPLE or int(s["garden"][seat]) == LAST_GARDEN
        triggered |= int(s["gold"][seat]) == LAST_SLAB or int(s["gifted"][seat]) == PAINTINGS
    if (int(s["end_triggered"]) != 0) != triggered:
        return False
    phase, end = int(s["phase"]), int(s["end"])
    last = int(s["round"]) == int(board["max_rounds"])
    if phase != OVER:
        return end == NOT_ENDED and not (phase == ROLL and (triggered or last))
    return end == END_TRIGGERS if triggered else end == END_CAP and last


@kernel
def _has_choice(board: Row, s: Row) -> bool:
    """EFFECT and REPEAT are asked where there is something besides `pass` (R6.2, R8.1)."""
    phase = int(s["phase"])
    if phase == REPEAT and int(s["hot_spring"]) != picker(s):
        return False
    if phase in (EFFECT, REPEAT):
        return bool(legal(board, s) & ~(np.uint64(1) << np.uint64(PASS)) != np.uint64(0))
    return True
