"""The observation: its layout, the FEATURES table, and its encoder.

An observation is one vector for a seat. It holds all public information (R1.9) and nothing hidden:
not the order of face-down paintings, nor the next draw or roll. As float32 each number is a raw
value divided by its feature's scale, in [0, 1]; as uint8 it is the raw value. If `Game.to_dict`
differs between two positions, so do their observations.

`python -m tokaido_env features` prints the table, with the order of numbers within each feature.
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
    """One entry of a layout: `size` numbers from index `start`, each a raw value / `scale`.

    Attributes:
        name: of the entry.
        start: index of its first number.
        size: how many numbers it has.
        scale: the largest raw value.
        meaning: what the numbers say, in their order.
    """

    name: str
    start: int
    size: int
    scale: int
    meaning: str

    @property
    def slice(self) -> slice:
        """The indices of the feature's numbers in the vector, `start` to `start + size`."""
        return slice(self.start, self.start + self.size)


INDEX_FORMULAS = {
    "dice": "6 * character + value - 1",
    "boutique_ware": "4 * coastal town + ware",
    "wave_side": "2 * character + side",
    "wave_owner": "2 * character + (0 mine, 1 theirs)",
    "easel": "4 * place + icon: moon waterfall mountain bamboo",
    "dice_faces": "6 * character + value - 1",
    "ring": "5 * space + kind",
    "coast_routes": "4 * coastal town + mountain town",
    "area_icons": "4 * area + icon",
    "boutiques": "3 * ware + price - 2",
}
"""The index of a number within a feature of two axes, by the name of a feature of `FEATURES`
(without `my_` or `their_`) or `BOARD_FEATURES`. Each index counts from 0 in the order of the
meaning's words; values and prices are the numbers themselves."""


def layout_of(table: Iterable[Entry]) -> tuple[Feature, ...]:
    """Return the features of a table of (name, size, scale, meaning), the first from index 0."""
    features: list[Feature] = []
    start = 0
    for name, size, scale, meaning in table:
        features.append(Feature(name, start, size, scale, meaning))
        start += size
    return tuple(features)


def width(features: tuple[Feature, ...]) -> int:
    """Return how many numbers a layout has: the sum of its features' sizes."""
    return sum(feature.size for feature in features)


def layout_hash(*layouts: Iterable[tuple[Any, ...]]) -> str:
    """Return a hash of the names, starts, sizes and scales of layouts, without the meanings.

    A change of an entry's numbers that leaves these four alone needs a new name.

    Args:
        layouts: entries that begin with name, start, size, and scale or unit, as `Feature` does.
    """
    return short_hash([[entry[:4] for entry in layout] for layout in layouts])


def short_hash(value: Any) -> str:
    """Return the first sixteen hex digits of the SHA-256 of a value's `repr`."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def scales_of(features: tuple[Feature, ...]) -> npt.NDArray[np.float32]:
    """Return the scale of each number of a layout, float32 (numbers,), read-only."""
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


def _player_entries(prefix: str) -> list[Entry]:
    return [(f"{prefix}_{name}", size, scale, text) for name, size, scale, text in _PLAYER_TABLE]


FEATURES = layout_of((*_TABLE, *_player_entries("my"), *_player_entries("their")))
"""The layout of the observation. New features are appended only."""

N_FEATURES = width(FEATURES)
LAYOUT_HASH = layout_hash(FEATURES)

SCALES = scales_of(FEATURES)
"""The divisors that turn a uint8 observation into the float32 one: float32 (N_FEATURES,)."""

_START = {feature.name: feature.start for feature in FEATURES}
_PLAYER_SIZE = sum(row[1] for row in _PLAYER_TABLE)

# Tables of quotients, [scale, raw value]: a division would cost more than the rest of a number.
_MAX_RAW = MAX_ROUNDS
_SCALE_LIST = tuple(dict.fromkeys(feature.scale for feature in FEATURES))
_RAW = np.arange(_MAX_RAW + 1)
_QUOTIENTS: dict[str, npt.NDArray[Any]] = {
    "float32": (_RAW / np.array(_SCALE_LIST)[:, None]).astype(np.float32),
    "uint8": np.tile(np.minimum(_RAW, 255), (len(_SCALE_LIST), 1)).astype(np.uint8),
}
OBSERVATION_DTYPES = tuple(_QUOTIENTS)
FLOAT_QUOTIENTS = _QUOTIENTS["float32"]


def _scale_row(name: str) -> int:
    """Return the row of the tables of quotients for a feature."""
    return _SCALE_LIST.index(next(f.scale for f in FEATURES if f.name == name))


_BY_ROUND, _BY_PENDING, _BY_PRICE, _BY_BAG = (
    _scale_row(name) for name in ("round", "pending", "boutique_price", "bag")
)
_BY_TEMPLE, _BY_GARDEN, _BY_COINS, _BY_BEYOND, _BY_GOLD, _BY_WARES, _BY_HIDDEN, _BY_GIFTED = (
    _scale_row(f"my_{name}")
    for name in ("temple", "garden", "coins", "coins_beyond", "gold", "wares", "hidden", "gifted")
)


# Start indices, which the kernels read as constants.
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


def quotient_table(dtype: str) -> npt.NDArray[Any]:
    """Return the numbers that `encode` writes for each scale and raw value: (scales, raw values).

    With `dtype` "float32" they are raw value / scale, with "uint8" the raw value, at most 255.
    """
    return _QUOTIENTS[dtype]


def check_fits(boards: npt.NDArray[np.void], dtype: str) -> None:
    """Raise `ValueError` if the dtype cannot hold the numbers of a game on one of the boards.

    Args:
        boards: `BOARD` (b,).
        dtype: "float32" or "uint8".
    """
    rounds = int(boards["max_rounds"].max())
    if dtype == "uint8" and rounds > 255:
        raise ValueError(
            f"observation: expected max_rounds of at most 255 for 'uint8', got {rounds}: "
            "use 'float32'"
        )


@kernel
def encode(board: Row, s: Row, seat: Seat, quotients: Any, out: Any) -> None:
    """Write the observation of either seat, at any phase.

    Args:
        board: a row of `BOARD`; `s` is a row of `STATE`.
        quotients: `quotient_table` of the dtype of `out`.
        out: float32 or uint8, N_FEATURES numbers or more; only the first N_FEATURES are written.
    """
    out[:N_FEATURES] = 0
    out[_SEAT] = seat
    _encode_turn(s, seat, quotients, out)
    _encode_tokens(board, s, seat, quotients, out)
    _encode_player(s, seat, quotients, out, 0)
    _encode_player(s, 1 - seat, quotients, out, _PLAYER_SIZE)


@entry
def encode_game(boards: Any, states: Any, i: int, seat: Seat, out: Any) -> None:
    """Write the observation of a seat of game `i` as float32 in [0, 1], for callers in Python.

    Args:
        boards: `BOARD` (n,), the board of each game.
        states: `STATE` (n,).
        i: index of the game.
        seat: the observing seat.
        out: float32 (N_FEATURES,), overwritten.
    """
    encode(boards[i], states[i], seat, FLOAT_QUOTIENTS, out)


# Flags are written as 0 or 1: branches that skip the zeros would be mispredicted.


@kernel
def _encode_turn(s: Row, seat: Seat, quotients: Any, out: Any) -> None:
    out[index(_PHASE + int(s["phase"]))] = 1
    for relative in range(2):
        out[_DECIDES + relative] = int(s["player"]) == seat ^ relative
    out[index(_LEADS + (seat ^ int(s["lead"])))] = 1
    out[_ROUND] = quotients[_BY_ROUND, index(s["round"])]
    left = int(s["dice_left"])
    for character in range(3):
        value = int(s["dice"][character])
        if value > 0:
            out[index(_DICE + MAX_DIE * character + value - 1)] = 1
        out[_DICE_LEFT + character] = left >> character & 1 != 0
        out[_DIE + character] = int(s["die"]) == character
    if int(s["origin"]) != UNSET:
        out[index(_ORIGIN + int(s["origin"]))] = 1
    out[_PENDING] = quotients[_BY_PENDING, index(s["pending"])]
    out[_END_TRIGGERED] = int(s["end_triggered"])
    if int(s["end"]) > 0:
        out[index(_END + int(s["end"]) - 1)] = 1


@kernel
def _encode_tokens(board: Row, s: Row, seat: Seat, quotients: Any, out: Any) -> None:
    for coast in range(8):
        kind = int(s["boutiques"][coast])
        if kind != UNSET:
            ware = int64(board["kind_ware"][index(kind)])
            out[index(_BOUTIQUE_WARE + 4 * coast + ware)] = 1
            price = index(board["kind_price"][index(kind)])
            out[_BOUTIQUE_PRICE + coast] = quotients[_BY_PRICE, price]
    for ware in range(4):
        out[_BAG + ware] = quotients[_BY_BAG, index(s["bag"][ware])]
    for relative in range(2):
        player = seat ^ relative
        out[_HOT_SPRING + relative] = int(s["hot_spring"]) == player
        for character in range(3):
            owned = int(s["wave_owner"][character]) == player
            out[_WAVE_OWNER + 2 * character + relative] = owned
            # The same index counts the two sides.
            out[_WAVE_SIDE + 2 * character + relative] = int(s["wave_side"][character]) == relative


@kernel
def _encode_player(s: Row, player: int, quotients: Any, out: Any, shift: int) -> None:
    """Write one player's block: at `shift` 0 for mine, `_PLAYER_SIZE` for theirs."""
    out[index(_PILGRIM + shift + int(s["pilgrim"][player]))] = 1
    out[index(_MERCHANT + shift + int(s["merchant"][player]))] = 1
    out[index(_ARTIST + shift + int(s["artist"][player]))] = 1
    out[_TEMPLE + shift] = quotients[_BY_TEMPLE, index(s["temple"][player])]
    out[_GARDEN + shift] = quotients[_BY_GARDEN, index(s["garden"][player])]
    coins = int64(s["coins"][player])
    out[_MY_COINS + shift] = quotients[_BY_COINS, index(min(coins, _COINS))]
    out[_COINS_BEYOND + shift] = quotients[_BY_BEYOND, index(max(coins - _COINS, 0))]
    out[_GOLD + shift] = quotients[_BY_GOLD, index(s["gold"][player])]
    for kind in range(4):
        out[_WARES + shift + kind] = quotients[_BY_WARES, index(s["wares"][player, kind])]
        out[_HIDDEN + shift + kind] = quotients[_BY_HIDDEN, index(s["hidden"][player, kind])]
    easel = int64(s["easel"][player])
    size = int64(s["easel_size"][player])
    for place in range(PAINTINGS):
        icon = easel >> 2 * place & 3
        out[index(_EASEL + shift + 4 * place + icon)] = place < size
    out[_GIFTED + shift] = quotients[_BY_GIFTED, index(s["gifted"][player])]
