"""The entity observation: stations, towns and areas as tokens, for attention and graph networks.

It holds the facts of the observation (`FEATURES`) and of the board (`BOARD_FEATURES`), each as a
feature of its entity: a pilgrim of its station, a boutique of its town, an icon of its area. It
adds relations between entities: the areas that a station or a town borders, routes, neighbours,
the distance of each station from the pilgrims, and the station where the mover's pilgrim would
arrive.

The order of tokens is the globals, 40 stations, 12 towns, 8 areas (`TOKENS`); `ACTION_ENTITY` maps
actions to tokens. On a ring of fewer than 40 stations the last stations are zeros, as is their
`token_mask`.

The arrays of a game lie in one row of `N_ENTITY_NUMBERS` numbers; `entity_arrays` returns views of
them. `board_entities` writes the numbers that depend on the board only.

`python -m tokaido_env features` prints the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.actions import MOVE_ARTIST, MOVE_MERCHANT, MOVE_PILGRIM, N_ACTIONS
from tokaido_env.core.board_features import BOARD_FEATURES, board_features_of
from tokaido_env.core.constants import (
    AREAS,
    COASTAL_TOWNS,
    ICONS,
    RING_SIZES,
    STATIONS,
    TOWNS,
    Row,
    Seat,
)
from tokaido_env.core.jit import entry, index, int64, kernel
from tokaido_env.core.observation import (
    FEATURES,
    FLOAT_QUOTIENTS,
    N_FEATURES,
    Entry,
    Feature,
    encode,
    layout_hash,
    layout_of,
    short_hash,
    width,
)
from tokaido_env.core.rules import legal, pilgrim_arrival

_SPACES, _TOWNS, _AREAS = RING_SIZES[1], len(TOWNS), len(AREAS)
_COASTS = len(COASTAL_TOWNS)

# Features of the observation and the board that become features of entities: old name, new name.
_OF_STATIONS = {"my_pilgrim": "my_pilgrim", "their_pilgrim": "their_pilgrim", "ring": "kind"}
_OF_TOWNS = {
    "boutique_ware": "boutique_ware",
    "boutique_price": "boutique_price",
    "my_merchant": "my_merchant",
    "their_merchant": "their_merchant",
}
_OF_AREAS = {
    "origin": "origin",
    "my_artist": "my_artist",
    "their_artist": "their_artist",
    "area_icons": "icon",
}
# Features of the board that entities express differently: adjacency, numbers of some towns, starts.
_EXPRESSED_DIFFERENTLY = (
    *("coast_routes", "mountain_routes", "mountain_numbers"),
    *("start_pilgrim", "start_merchant", "start_artist"),
)


def _global_entries() -> Iterator[Entry]:
    elsewhere = {*_OF_STATIONS, *_OF_TOWNS, *_OF_AREAS, *_EXPRESSED_DIFFERENTLY}
    for feature in (*FEATURES, *BOARD_FEATURES):
        if feature.name not in elsewhere:
            yield feature.name, feature.size, feature.scale, feature.meaning


def _for_both_players(name: str, size: int, scale: int, meaning: str) -> tuple[Entry, Entry]:
    """Return an entry for me and one for the opponent."""
    return (
        (f"my_{name}", size, scale, meaning.format("my")),
        (f"their_{name}", size, scale, meaning.format("their")),
    )


ENTITY_FEATURES: dict[str, tuple[Feature, ...]] = {
    "globals": layout_of(_global_entries()),
    "stations": layout_of(
        (
            ("space", 1, _SPACES - 1, "of the ring: C1 is 0, clockwise"),
            (
                "kind",
                len(STATIONS),
                1,
                "one-hot coastal town, temple, garden, hot spring, seashore",
            ),
            ("coast", _COASTS, 1, "one-hot C1 to C8; zeros for no town"),
            ("areas", _AREAS, 1, "it borders A1 to A8"),
            *_for_both_players("start", 1, 1, "{} pilgrim began here"),
            *_for_both_players("pilgrim", 1, 1, "{} pilgrim is here"),
            *_for_both_players("merchant", 1, 1, "{} merchant is in its town"),
            *_for_both_players("steps", 1, _SPACES - 1, "steps clockwise from {} pilgrim"),
            ("arrival", 1, 1, "where the mover would arrive with `pilgrim`, if it is legal now"),
            ("arrival_wave", 1, 1, "where the mover would arrive with `pilgrim:wave`, if legal"),
        )
    ),
    "towns": layout_of(
        (
            ("town", _TOWNS, 1, "one-hot C1 to C8, M1 to M4"),
            ("mountain_number", 1, 4, "wares drawn here; 0 at the coast"),
            ("areas", _AREAS, 1, "it borders A1 to A8"),
            ("boutique_ware", 4, 1, "one-hot kimono pottery doll fan; zeros until drawn"),
            ("boutique_price", 1, 4, "coins"),
            *_for_both_players("start", 1, 1, "{} merchant began here"),
            *_for_both_players("merchant", 1, 1, "{} merchant is here"),
            *_for_both_players("pilgrim", 1, 1, "{} pilgrim is at its station"),
        )
    ),
    "areas": layout_of(
        (
            ("area", _AREAS, 1, "one-hot A1 to A8"),
            ("icon", len(ICONS), 1, "one-hot moon waterfall mountain bamboo"),
            *_for_both_players("start", 1, 1, "{} artist began here"),
            *_for_both_players("artist", 1, 1, "{} artist is here"),
            ("origin", 1, 1, "the artist in hand was here before its move"),
        )
    ),
}
"""The layout of the vector `globals`, and of a row of `stations`, `towns` and `areas`. Values are
raw values / scale, in [0, 1]."""

TOKENS = {"globals": 1, "stations": _SPACES, "towns": _TOWNS, "areas": _AREAS}
"""The number of tokens of each kind, in their order."""

N_TOKENS = sum(TOKENS.values())

ENTITY_SHAPES: dict[str, tuple[int, ...]] = {
    "globals": (width(ENTITY_FEATURES["globals"]),),
    **{kind: (TOKENS[kind], width(ENTITY_FEATURES[kind])) for kind in list(TOKENS)[1:]},
    "token_mask": (N_TOKENS,),
    "town_adjacency": (_TOWNS, _TOWNS),
    "area_adjacency": (_AREAS, _AREAS),
}
"""The float32 arrays of one game, in their order within a row: the features of each kind of
entity, `token_mask` (1 = it exists), and the adjacency of towns and areas (1 = one step apart)."""

_SIZES = [math.prod(shape) for shape in ENTITY_SHAPES.values()]
N_ENTITY_NUMBERS = sum(_SIZES)
_SLICES = {
    name: slice(end - size, end)
    for name, size, end in zip(ENTITY_SHAPES, _SIZES, np.cumsum(_SIZES).tolist(), strict=True)
}
ENTITY_LAYOUT_HASH = short_hash((layout_hash(*ENTITY_FEATURES.values()), ENTITY_SHAPES))


def _first_token(kind: str) -> int:
    kinds = list(TOKENS)
    return sum(TOKENS[each] for each in kinds[: kinds.index(kind)])


def _action_entity() -> npt.NDArray[np.int16]:
    tokens = np.zeros(N_ACTIONS, np.int16)
    for first, kind in ((MOVE_MERCHANT, "towns"), (MOVE_ARTIST, "areas")):
        tokens[first : first + TOKENS[kind]] = _first_token(kind) + np.arange(TOKENS[kind])
    tokens.flags.writeable = False
    return tokens


ACTION_ENTITY = _action_entity()
"""The token of each action, int16 (N_ACTIONS,): the destination of a merchant or an artist, else 0,
the globals. The destination of a pilgrim depends on the position: see the features `arrival` and
`arrival_wave` of stations."""


def entity_arrays(rows: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    """Return views of rows by name: float32 (…, *ENTITY_SHAPES[name]).

    Args:
        rows: float32 (…, N_ENTITY_NUMBERS).
    """
    before = rows.shape[:-1]
    return {
        name: rows[..., where].reshape(*before, *ENTITY_SHAPES[name])
        for name, where in _SLICES.items()
    }


def _indices(kind: str, name: str) -> npt.NDArray[np.int64]:
    """Return the indices in a row of a feature of each entity of a kind: (entities, size)."""
    feature = next(each for each in ENTITY_FEATURES[kind] if each.name == name)
    entities = _SLICES[kind].start + np.arange(TOKENS[kind]) * width(ENTITY_FEATURES[kind])
    return np.asarray(entities[:, None] + np.arange(feature.start, feature.start + feature.size))


def _feature_indices(feature: Feature) -> npt.NDArray[np.int64]:
    """Return the indices in a row of a feature of the observation or the board: (size,)."""
    for kind, names in (("stations", _OF_STATIONS), ("towns", _OF_TOWNS), ("areas", _OF_AREAS)):
        if feature.name in names:
            return _indices(kind, names[feature.name]).reshape(-1)[: feature.size]
    return _indices("globals", feature.name).reshape(-1)


def board_entities(boards: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
    """Return rows (b, N_ENTITY_NUMBERS) with the numbers that depend on boards only, else zeros.

    Args:
        boards: `BOARD` (b,).
    """
    rows = np.zeros((len(boards), N_ENTITY_NUMBERS), np.float32)
    blocks = board_features_of(boards)
    for feature in BOARD_FEATURES:
        if feature.name not in _EXPRESSED_DIFFERENTLY:
            rows[:, _feature_indices(feature)] = blocks[:, feature.slice]
        if feature.name == "mountain_numbers":
            mountains = _indices("towns", "mountain_number")[_COASTS:, 0]
            rows[:, mountains] = blocks[:, feature.slice]
    exists = np.arange(_SPACES) < boards["ring_size"][:, None]
    coasts = boards["coast_station"][:, None, :] == np.arange(_SPACES)[:, None]
    rows[:, _indices("stations", "space")[:, 0]] = exists * (np.arange(_SPACES) / (_SPACES - 1))
    rows[:, _indices("stations", "coast")] = coasts
    rows[:, _indices("stations", "areas")] = _bits(boards["station_areas"], _AREAS)
    rows[:, _indices("towns", "town")] = np.eye(_TOWNS)
    rows[:, _indices("towns", "areas")] = _bits(boards["town_areas"], _AREAS)
    rows[:, _indices("areas", "area")] = np.eye(_AREAS)
    arrays = entity_arrays(rows)
    arrays["token_mask"][:] = 1
    arrays["token_mask"][:, 1 : 1 + _SPACES] = exists
    arrays["town_adjacency"][:] = _bits(boards["town_reach"][:, 1], _TOWNS)
    arrays["area_adjacency"][:] = _bits(boards["area_reach"][:, 1], _AREAS)
    return rows


def _bits(masks: npt.NDArray[Any], number: int) -> npt.NDArray[Any]:
    """Return the lowest `number` bits of each mask along a new last axis."""
    return np.asarray(masks[..., None] >> np.arange(number) & 1)


# Constants of the kernels.
_TARGETS = np.concatenate([_feature_indices(feature) for feature in FEATURES])
"""The index in a row of each number of the observation."""
_STEPS = (np.arange(_SPACES) / (_SPACES - 1)).astype(np.float32)


def _first(kinds: Iterable[str], name: str) -> tuple[int, ...]:
    return tuple(int(_indices(kind, name)[0, 0]) for kind in kinds)


_STATION, _TOWN, _AREA = (width(ENTITY_FEATURES[kind]) for kind in ("stations", "towns", "areas"))
_START_STATION, _START_TOWN, _START_AREA = _first(("stations", "towns", "areas"), "my_start")
(_STATION_MERCHANT,) = _first(("stations",), "my_merchant")
(_STATION_STEPS,) = _first(("stations",), "my_steps")
(_STATION_ARRIVAL,) = _first(("stations",), "arrival")
(_TOWN_PILGRIM,) = _first(("towns",), "my_pilgrim")


@kernel
def encode_entities(board: Row, s: Row, seat: Seat, flat: Any, out: Any) -> None:
    """Write the entity observation of either seat, at any phase.

    Args:
        flat: float32 (N_FEATURES,), overwritten with the observation.
        out: float32 (N_ENTITY_NUMBERS,). Must hold the board's row of `board_entities` or any
            entity observation on that board; the other numbers are overwritten.
    """
    encode(board, s, seat, FLOAT_QUOTIENTS, flat)
    for k in range(N_FEATURES):
        out[index(_TARGETS[k])] = flat[k]
    _mark_starts(board, seat, out)
    for relative in range(2):
        _relate_player(board, s, seat ^ relative, relative, out)
    _mark_arrivals(board, s, out)


@kernel
def _mark_arrivals(board: Row, s: Row, out: Any) -> None:
    """Mark the stations where the mover's pilgrim would arrive."""
    for station in range(_SPACES):
        for wave in range(2):
            out[index(_STATION_ARRIVAL + wave + _STATION * station)] = 0
    moves = legal(board, s)
    for wave in range(2):
        if moves >> np.uint64(MOVE_PILGRIM + wave) & np.uint64(1) != np.uint64(0):
            station = pilgrim_arrival(board, s, int64(s["player"]), wave == 1)
            out[index(_STATION_ARRIVAL + wave + _STATION * station)] = 1


@kernel
def _mark_starts(board: Row, seat: Seat, out: Any) -> None:
    """Mark the starts of both players; clear all marks first, as both may start in one place."""
    for mark in range(2):
        for relative in range(2):
            start = board["start"][seat ^ relative]
            for side in range(2):
                if mark == 0 or side == relative:
                    out[index(_START_STATION + side + _STATION * int64(start[0]))] = mark
                    out[index(_START_TOWN + side + _TOWN * int64(start[1]))] = mark
                    out[index(_START_AREA + side + _AREA * int64(start[2]))] = mark


@kernel
def _relate_player(board: Row, s: Row, player: Seat, relative: int, out: Any) -> None:
    """Write the relations of a player's pilgrim and merchant to towns and stations."""
    pilgrim, merchant = int64(s["pilgrim"][player]), int64(s["merchant"][player])
    for coast in range(_COASTS):
        station = int64(board["coast_station"][coast])
        out[index(_STATION_MERCHANT + relative + _STATION * station)] = coast == merchant
        out[index(_TOWN_PILGRIM + relative + _TOWN * coast)] = station == pilgrim
    size = int64(board["ring_size"])
    for station in range(size):
        steps = station - pilgrim + (size if station < pilgrim else 0)
        out[index(_STATION_STEPS + relative + _STATION * station)] = _STEPS[index(steps)]


@entry
def encode_entities_of_game(
    boards: Any, states: Any, i: int, seat: Seat, flat: Any, out: Any
) -> None:
    """`encode_entities` of game `i`, for Python callers.

    Args:
        boards: `BOARD` (n,), the board of each game.
        states: `STATE` (n,).
        i: index of the game.
        seat: as for `encode_entities`.
        flat: as for `encode_entities`.
        out: as for `encode_entities`.
    """
    encode_entities(boards[i], states[i], seat, flat, out)
