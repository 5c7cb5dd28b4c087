"""The features of a board: their layout, the BOARD_FEATURES table, and the encoder.

They describe the board in numbers in [0, 1], to append to the observation. They are the same for
both seats and all positions of a game. Two boards have the same features exactly if they play
alike. Areas and reach are not among them, because they follow from the ring, the routes and the
icons. Nor are the names and sources of boards, the order of the kinds of boutique tokens, and the
order of a die's faces.

`python -m tokaido_env features` prints the table, with the order of numbers within each feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.arguments import check_choice
from tokaido_env.core.constants import (
    CHARACTERS,
    ICONS,
    MAX_DIE,
    MAX_ROUNDS,
    MOUNTAIN_TOWNS,
    RING_SIZES,
    STATIONS,
    WARES,
)
from tokaido_env.core.observation import (
    OBSERVATION_DTYPES,
    check_fits,
    layout_hash,
    layout_of,
    scales_of,
    width,
)

_SPACES = RING_SIZES[1]
_HILLS = len(MOUNTAIN_TOWNS)
_PRICES = (2, 3, 4)
_FACES = 6
_TOKENS = 8
_POINTS = 63  # scale of points of a track; board files allow up to 255
_BEYOND = 255 - _POINTS
_PAIRS = np.triu_indices(_HILLS, 1)

BOARD_FEATURES = layout_of(
    (
        ("max_rounds", 1, MAX_ROUNDS, "the last round"),
        (
            "dice_faces",
            len(CHARACTERS) * MAX_DIE,
            _FACES,
            "faces with 1 to 6, of each character's die",
        ),
        ("ring_size", 1, _SPACES, "stations"),
        (
            "ring",
            _SPACES * len(STATIONS),
            1,
            "one-hot for each space of the ring, C1 first, clockwise: coastal town, temple, "
            "garden, hot spring, seashore; zeros past its end",
        ),
        ("coast_routes", 8 * _HILLS, 1, "one-hot M1 to M4: where the route of C1 to C8 leads"),
        (
            "mountain_routes",
            len(_PAIRS[0]),
            1,
            "there is a route: M1-M2 M1-M3 M1-M4 M2-M3 M2-M4 M3-M4",
        ),
        ("mountain_numbers", _HILLS, 4, "wares drawn at M1 to M4"),
        ("area_icons", 8 * len(ICONS), 1, "one-hot moon waterfall mountain bamboo, for A1 to A8"),
        ("start_pilgrim", 2, _SPACES - 1, "space of the ring where player_0, player_1 begins"),
        (
            "start_merchant",
            2,
            11,
            "town where player_0, player_1 begins: C1 to C8, M1 to M4 as 0 to 11",
        ),
        ("start_artist", 2, 7, "area where player_0, player_1 begins: A1 to A8 as 0 to 7"),
        (
            "boutiques",
            len(WARES) * len(_PRICES),
            _TOKENS,
            "tokens at 2, 3, 4 coins, of kimono, of pottery, of doll, of fan",
        ),
        ("commerce", 7, _POINTS, "points with 0 to 6 gold slabs, clipped at 63"),
        ("commerce_beyond", 7, _BEYOND, "points beyond 63 with 0 to 6 gold slabs"),
        ("culture", 11, _POINTS, "points with 0 to 10 paintings given, clipped at 63"),
        ("culture_beyond", 11, _BEYOND, "points beyond 63 with 0 to 10 paintings given"),
        ("temple", 9, 255, "numbers of the slots 1 to 9"),
        ("garden", 6, 255, "numbers of the slots 1 to 6"),
    )
)
"""The layout of the board features. New features are appended only."""

N_BOARD_FEATURES = width(BOARD_FEATURES)
BOARD_LAYOUT_HASH = layout_hash(BOARD_FEATURES)

BOARD_SCALES = scales_of(BOARD_FEATURES)
"""The divisors that turn uint8 features into float32 ones: float32 (N_BOARD_FEATURES,)."""


def board_features_of(boards: npt.NDArray[np.void], dtype: str = "float32") -> npt.NDArray[Any]:
    """Return the features of boards.

    Args:
        boards: `BOARD` (b,).
        dtype: "float32" for numbers in [0, 1], "uint8" for the raw values (`BOARD_SCALES`).

    Returns:
        A new array (b, N_BOARD_FEATURES) of the dtype.

    Raises:
        ValueError: `dtype` is unknown, or it cannot hold the numbers of a board.
    """
    check_choice("dtype", dtype, OBSERVATION_DTYPES)
    if len(boards):
        check_fits(boards, dtype)
    values = _raw_values(boards)
    blocks = np.empty((len(boards), N_BOARD_FEATURES), np.int16)
    for feature in BOARD_FEATURES:
        blocks[:, feature.slice] = values[feature.name].reshape(len(boards), feature.size)
    return blocks.astype(np.uint8) if dtype == "uint8" else (blocks / BOARD_SCALES).astype("f4")


def _raw_values(boards: npt.NDArray[np.void]) -> Mapping[str, npt.NDArray[Any]]:
    """Return the raw values of each feature: (b, …), with `size` numbers for each board."""
    spaces = np.arange(_SPACES) < boards["ring_size"][:, None]
    ring = _one_hot(boards["station_kind"], len(STATIONS)) & spaces[..., None]
    # Towns one step away from each other are connected by a route.
    routes = boards["town_reach"][:, 1, :, None] >> np.arange(12) & 1
    start = boards["start"]
    commerce, culture = boards["commerce"], boards["culture"]
    return {
        "max_rounds": boards["max_rounds"],
        "dice_faces": boards["face_count"][:, :, 1:],
        "ring_size": boards["ring_size"],
        "ring": ring,
        "coast_routes": routes[:, :8, 8:],
        "mountain_routes": routes[:, 8:, 8:][:, *_PAIRS],
        "mountain_numbers": boards["mountain_number"],
        "area_icons": _one_hot(boards["area_icon"], len(ICONS)),
        "start_pilgrim": start[:, :, 0],
        "start_merchant": start[:, :, 1],
        "start_artist": start[:, :, 2],
        "boutiques": _tokens(boards),
        "commerce": commerce.clip(max=_POINTS),
        "commerce_beyond": (commerce - _POINTS).clip(min=0),
        "culture": culture.clip(max=_POINTS),
        "culture_beyond": (culture - _POINTS).clip(min=0),
        "temple": boards["temple"][:, 1:],
        "garden": boards["garden"][:, 1:],
    }


def _one_hot(values: npt.NDArray[Any], kinds: int) -> npt.NDArray[np.bool_]:
    """Return the one-hot encoding of values from 0 to `kinds` - 1, along a new last axis."""
    return np.asarray(values[..., None] == np.arange(kinds))


def _tokens(boards: npt.NDArray[np.void]) -> npt.NDArray[Any]:
    """Return the number of tokens of each ware and price, (b, wares, prices)."""
    wares = _one_hot(boards["kind_ware"], len(WARES))[..., :, None]
    prices = (boards["kind_price"][..., None] == _PRICES)[..., None, :]
    counts = boards["kind_count"][..., None, None]
    return np.asarray((counts * (wares & prices)).sum(axis=1))
