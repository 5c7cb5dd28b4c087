"""What an agent sees: the FEATURES table and the encoder that fills it.

One float32 vector in [0, 1] for either seat: all that is open to both players (R1.9) and nothing
that is hidden (the order of face-down paintings, the next draw or roll). Each number is a raw value
divided by its feature's scale; as uint8 it is the raw value itself. Two positions that differ as
`Game.to_dict` differ in it.

`python -m tokaido_env features` prints the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.core.constants import MAX_DIE, MAX_ROUNDS, PAINTINGS, RING_SIZES, Row, Seat
from tokaido_env.core.jit import entry, index, int64, kernel
from tokaido_env.core.state import MAX_COINS, MAX_PENDING, UNSET

Entry = tuple[str, int, int, str]
"""A row of a table: name, size, scale, meaning."""


class Feature(NamedTuple):
    """One entry of a layout: `size` numbers from `start`, each a raw value / `scale`."""

    name: str
    start: int
    size: int
    scale: int
    meaning: str

    @property
    def slice(self) -> slice:
        """Where the feature stands in the vector."""
        return slice(self.start, self.start + self.size)


def layout_of(table: Iterable[Entry]) -> tuple[Feature, ...]:
    """Return the features of a table one after the other, the first from 0."""
    features: list[Feature] = []
    start = 0
    for name, size, scale, meaning in table:
        features.append(Feature(name, start, size, scale, meaning))
        start += size
    return tuple(features)


def width(features: tuple[Feature, ...]) -> int:
    """Return how many numbers a layout has."""
    return sum(feature.size for feature in features)


def layout_hash(layout: Any) -> str:
    """Return sixteen hex digits that change when anything in a layout does, its words included."""
    return hashlib.sha256(repr(layout).encode()).hexdigest()[:16]


def scales_of(features: tuple[Feature, ...]) -> npt.NDArray[np.float32]:
    """Return what each raw number of a layout is divided by: float32, read-only."""
    scales = np.repeat(
        np.array([feature.scale for feature in features], np.float32),
        [feature.size for feature in features],
    )
    scales.flags.writeable = False
    return scales


_COINS = 9  # the most before the sixth slab

_TABLE = (
    ("seat", 1, 1, "1 when seen from player_1"),
    ("phase", 9, 1, "one-hot: SETUP ROLL MOVE EFFECT DRAW REVEAL DISCARD REPEAT OVER"),
    ("decides", 2, 1, "one-hot: the decision is mine, is theirs; zeros at chance and at the end"),
    ("leads", 2, 1, "one-hot: I lead the round, they do"),
    ("round", 1, MAX_ROUNDS, "rolls made"),
    (
        "dice",
        3 * MAX_DIE,
        1,
        "one-hot 1 to 6 for each character's die; zeros before the first roll",
    ),
    ("dice_left", 3, 1, "the die is not taken yet: pilgrim, merchant, artist"),
    ("die", 3, 1, "one-hot: the character in hand; zeros for none"),
    ("origin", 8, 1, "one-hot: the artist's area before the move in hand; zeros for none"),
    ("pending", 1, MAX_PENDING, "draws or reveals still to come"),
    ("end_triggered", 1, 1, "the game ends with this round"),
    ("end", 2, 1, "one-hot: over by a trigger, by the cap on rounds"),
    ("boutique_ware", 8 * 4, 1, "one-hot kimono pottery doll fan, for C1 to C8; zeros until drawn"),
    ("boutique_price", 8, 4, "coins, for C1 to C8"),
    ("bag", 4, 8, "wares in the bag: kimono pottery doll fan"),
    ("hot_spring", 2, 1, "one-hot: the token is mine, is theirs; zeros on the board"),
    ("wave_side", 3 * 2, 1, "one-hot: tranquil hasty, crafty robust, proficient inspired"),
    ("wave_owner", 3 * 2, 1, "one-hot mine, theirs, for each wave; zeros on the board"),
)
_PLAYER_TABLE = (
    ("pilgrim", RING_SIZES[1], 1, "one-hot: space of the ring, C1 first, clockwise"),
    ("merchant", 12, 1, "one-hot: town, C1 to C8, M1 to M4"),
    ("artist", 8, 1, "one-hot: area"),
    ("temple", 1, 9, "peg"),
    ("garden", 1, 6, "peg"),
    ("coins", 1, _COINS, "coins, clipped at nine"),
    ("coins_beyond", 1, MAX_COINS - _COINS, "coins beyond nine, kept after the sixth slab"),
    ("gold", 1, 6, "gold slabs"),
    ("wares", 4, 8, "kimono pottery doll fan"),
    ("hidden", 4, 3, "face-down paintings: moon waterfall mountain bamboo"),
    ("easel", PAINTINGS * 4, 1, "one-hot icon of each revealed painting, front first"),
    ("gifted", 1, PAINTINGS, "paintings given"),
)


def _whose(whose: str) -> list[Entry]:
    return [(f"{whose}_{name}", size, scale, text) for name, size, scale, text in _PLAYER_TABLE]


FEATURES = layout_of((*_TABLE, *_whose("my"), *_whose("their")))
"""The layout of the observation, in order. Appended to, never reordered."""

N_FEATURES = width(FEATURES)
LAYOUT_HASH = layout_hash(FEATURES)

SCALES = scales_of(FEATURES)
"""What each number of a uint8 observation is divided by to give the float32 one: (N_FEATURES,)."""

_START = {feature.name: feature.start for feature in FEATURES}
_PLAYER_SIZE = sum(row[1] for row in _PLAYER_TABLE)

# Quotients come from tables, [scale, raw value]: a division costs more than all else in a number.
_MAX_RAW = MAX_ROUNDS
_SCALE_LIST = tuple(dict.fromkeys(feature.scale for feature in FEATURES))
_RAW = np.arange(_MAX_RAW + 1)
_UNITS: dict[str, npt.NDArray[Any]] = {
    "float32": (_RAW / np.array(_SCALE_LIST)[:, None]).astype(np.float32),
    "uint8": np.tile(np.minimum(_RAW, 255), (len(_SCALE_LIST), 1)).astype(np.uint8),
}
OBSERVATION_DTYPES = tuple(_UNITS)
FLOAT_QUOTIENTS = _UNITS["float32"]


def _scale_of(name: str) -> int:
    """Return the row of the tables of quotients that a feature reads."""
    return _SCALE_LIST.index(next(f.scale for f in FEATURES if f.name == name))


_BY_ROUND, _BY_PENDING, _BY_PRICE, _BY_BAG = (
    _scale_of(name) for name in ("round", "pending", "boutique_price", "bag")
)
_BY_TEMPLE, _BY_GARDEN, _BY_COINS, _BY_BEYOND, _BY_GOLD, _BY_WARES, _BY_HIDDEN, _BY_GIFTED = (
    _scale_of(f"my_{name}")
    for name in ("temple", "garden", "coins", "coins_beyond", "gold", "wares", "hidden", "gifted")
)


# Globals that the kernel reads as constants.
_SEAT, _PHASE, _DECIDES, _LEADS, _ROUND = (
    _START[name] for name in ("seat", "phase", "decides", "leads", "round")
)
_DICE, _DICE_LEFT, _DIE, _ORIGIN, _PENDING = (
    _START[name] for name in ("dice", "dice_left", "die", "origin", "pending")
)
_END_TRIGGERED, _END, _BOUTIQUE_WARE, _BOUTIQUE_PRICE, _BAG = (
    _START[name] for name in ("end_triggered", "end", "boutique_ware", "boutique_price", "bag")
)
_HOT_SPRING, _WAVE_SIDE, _WAVE_OWNER = (
    _START[name] for name in ("hot_spring", "wave_side", "wave_owner")
)
_PILGRIM, _MERCHANT, _ARTIST, _TEMPLE, _GARDEN = (
    _START[f"my_{name}"] for name in ("pilgrim", "merchant", "artist", "temple", "garden")
)
_MY_COINS, _COINS_BEYOND, _GOLD, _WARES, _HIDDEN, _EASEL, _GIFTED = (
    _START[f"my_{name}"]
    for name in ("coins", "coins_beyond", "gold", "wares", "hidden", "easel", "gifted")
)


def quotients(dtype: str) -> npt.NDArray[Any]:
    """Return the quotients that `encode` reads: of dtype "float32" or "uint8"."""
    return _UNITS[dtype]


def check_fits(boards: npt.NDArray[np.void], dtype: str) -> None:
    """Raise `ValueError` if a game on one of the boards has numbers that the dtype cannot hold."""
    rounds = int(boards["max_rounds"].max())
    if dtype == "uint8" and rounds > 255:
        raise ValueError(
            f"observation: a board with max_rounds {rounds} does not fit 'uint8', "
            "expected at most 255 rounds; use 'float32'"
        )


@kernel
def encode(board: Row, s: Row, seat: Seat, unit: Any, out: Any) -> None:
    """Write the observation of a seat, mover or not, at any phase.

    Args:
        unit: `units` of the dtype of `out`.
        out: a float32 or uint8 array of shape (N_FEATURES,), overwritten whole.
    """
    out[:] = 0
    out[_SEAT] = seat
    _encode_turn(s, seat, unit, out)
    _encode_tokens(board, s, seat, unit, out)
    _encode_player(s, seat, unit, out, 0)
    _encode_player(s, 1 - seat, unit, out, _PLAYER_SIZE)


@entry
def encode_game(boards: Any, states: Any, i: int, seat: Seat, out: Any) -> None:
    """`encode` of game `i` as float32, for callers in Python."""
    encode(boards[i], states[i], seat, FLOAT_QUOTIENTS, out)


# Flags are written as 0 or 1 rather than skipped by a branch, which a processor guesses badly.


@kernel
def _encode_turn(s: Row, seat: Seat, unit: Any, out: Any) -> None:
    out[index(_PHASE + int(s["phase"]))] = 1
    for whose in range(2):
        out[_DECIDES + whose] = int(s["player"]) == seat ^ whose
    out[index(_LEADS + (seat ^ int(s["lead"])))] = 1
    out[_ROUND] = unit[_BY_ROUND, index(s["round"])]
    left = int(s["dice_left"])
    for character in range(3):
        value = int(s["dice"][character])
        if value > 0:
            out[index(_DICE + MAX_DIE * character + value - 1)] = 1
        out[_DICE_LEFT + character] = left >> character & 1 != 0
        out[_DIE + character] = int(s["die"]) == character
    if int(s["origin"]) != UNSET:
        out[index(_ORIGIN + int(s["origin"]))] = 1
    out[_PENDING] = unit[_BY_PENDING, index(s["pending"])]
    out[_END_TRIGGERED] = int(s["end_triggered"])
    if int(s["end"]) > 0:
        out[index(_END + int(s["end"]) - 1)] = 1


@kernel
def _encode_tokens(board: Row, s: Row, seat: Seat, unit: Any, out: Any) -> None:
    for coast in range(8):
        kind = int(s["boutiques"][coast])
        if kind != UNSET:
            ware = int64(board["kind_ware"][index(kind)])
            out[index(_BOUTIQUE_WARE + 4 * coast + ware)] = 1
            price = index(board["kind_price"][index(kind)])
            out[_BOUTIQUE_PRICE + coast] = unit[_BY_PRICE, price]
    for ware in range(4):
        out[_BAG + ware] = unit[_BY_BAG, index(s["bag"][ware])]
    for whose in range(2):
        player = seat ^ whose
        out[_HOT_SPRING + whose] = int(s["hot_spring"]) == player
        for character in range(3):
            owned = int(s["wave_owner"][character]) == player
            out[_WAVE_OWNER + 2 * character + whose] = owned
            # Of the two sides, by the same count.
            shown = int(s["wave_side"][character]) == whose
            out[_WAVE_SIDE + 2 * character + whose] = shown


@kernel
def _encode_player(s: Row, player: int, unit: Any, out: Any, shift: int) -> None:
    """Write one player's block; `shift` is 0 for mine and the block's size for theirs."""
    out[index(_PILGRIM + shift + int(s["pilgrim"][player]))] = 1
    out[index(_MERCHANT + shift + int(s["merchant"][player]))] = 1
    out[index(_ARTIST + shift + int(s["artist"][player]))] = 1
    out[_TEMPLE + shift] = unit[_BY_TEMPLE, index(s["temple"][player])]
    out[_GARDEN + shift] = unit[_BY_GARDEN, index(s["garden"][player])]
    coins = int64(s["coins"][player])
    out[_MY_COINS + shift] = unit[_BY_COINS, index(min(coins, _COINS))]
    out[_COINS_BEYOND + shift] = unit[_BY_BEYOND, index(max(coins - _COINS, 0))]
    out[_GOLD + shift] = unit[_BY_GOLD, index(s["gold"][player])]
    for kind in range(4):
        out[_WARES + shift + kind] = unit[_BY_WARES, index(s["wares"][player, kind])]
        out[_HIDDEN + shift + kind] = unit[_BY_HIDDEN, index(s["hidden"][player, kind])]
    easel = int64(s["easel"][player])
    size = int64(s["easel_size"][player])
    for place in range(PAINTINGS):
        icon = easel >> 2 * place & 3
        out[index(_EASEL + shift + 4 * place + icon)] = place < size
    out[_GIFTED + shift] = unit[_BY_GIFTED, index(s["gifted"][player])]
