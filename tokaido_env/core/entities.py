"""What an agent sees as entities: stations, towns, areas and the rest, for attention and graphs.

The facts of the observation (`FEATURES`) and of the board (`BOARD_FEATURES`), each told where it
belongs: a pilgrim at its station, a boutique at its town, an icon at its area. With them what
relates one entity to another: the areas that a station or a town borders, routes, neighbours, how
far a station lies ahead of each pilgrim, where the mover's pilgrim would arrive.

Tokens are numbered in one order: the globals, 40 stations, 12 towns, 8 areas (`TOKENS`);
`ACTION_ENTITY` is the token that each action is about. A ring shorter than 40 leaves its last
stations empty: zeros, as in `token_mask`.

All arrays of a game lie in one row of `N_ENTITY_NUMBERS` numbers, of which `entity_arrays` gives
the views. What the board alone says is filled in once (`board_entities`) and copied.

`python -m tokaido_env features` prints the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.actions import MOVE_ARTIST, MOVE_MERCHANT, MOVE_PILGRIM, N_ACTIONS
from tokaido_env.core.board_features import BOARD_FEATURES, board_blocks
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
    width,
)
from tokaido_env.core.rules import legal, pilgrim_arrival

_SPACES, _TOWNS, _AREAS = RING_SIZES[1], len(TOWNS), len(AREAS)
_COASTS = len(COASTAL_TOWNS)

# Where features of the observation and of the board are told instead: an entity's own features.
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
# Features of the board in a form of their own: adjacency, numbers of some towns, whose start.
_IN_ANOTHER_FORM = (
    *("coast_routes", "mountain_routes", "mountain_numbers"),
    *("start_pilgrim", "start_merchant", "start_artist"),
)


def _of_globals() -> Iterator[Entry]:
    elsewhere = {*_OF_STATIONS, *_OF_TOWNS, *_OF_AREAS, *_IN_ANOTHER_FORM}
    for feature in (*FEATURES, *BOARD_FEATURES):
        if feature.name not in elsewhere:
            yield feature.name, feature.size, feature.scale, feature.meaning


def _both(name: str, size: int, scale: int, meaning: str) -> tuple[Entry, Entry]:
    """Return the entries of what there is of mine and of theirs."""
    return (
        (f"my_{name}", size, scale, meaning.format("my", "I")),
        (f"their_{name}", size, scale, meaning.format("their", "they")),
    )


ENTITY_FEATURES: dict[str, tuple[Feature, ...]] = {
    "globals": layout_of(_of_globals()),
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
            *_both("start", 1, 1, "{} pilgrim began here"),
            *_both("pilgrim", 1, 1, "{} pilgrim is here"),
            *_both("merchant", 1, 1, "{} merchant is in its town"),
            *_both("steps", 1, _SPACES - 1, "steps clockwise from {} pilgrim"),
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
            *_both("start", 1, 1, "{} merchant began here"),
            *_both("merchant", 1, 1, "{} merchant is here"),
            *_both("pilgrim", 1, 1, "{} pilgrim is at its station"),
        )
    ),
    "areas": layout_of(
        (
            ("area", _AREAS, 1, "one-hot A1 to A8"),
            ("icon", len(ICONS), 1, "one-hot moon waterfall mountain bamboo"),
            *_both("start", 1, 1, "{} artist began here"),
            *_both("artist", 1, 1, "{} artist is here"),
            ("origin", 1, 1, "the artist in hand was here before its move"),
        )
    ),
}
"""The layout of each kind of entity, in order: of one row of `stations`, `towns` or `areas`, and
of the one vector `globals`. Values lie in [0, 1]: raw values / scale."""

TOKENS = {"globals": 1, "stations": _SPACES, "towns": _TOWNS, "areas": _AREAS}
"""How many tokens there are of each kind, in their order."""

N_TOKENS = sum(TOKENS.values())

ENTITY_SHAPES: dict[str, tuple[int, ...]] = {
    "globals": (width(ENTITY_FEATURES["globals"]),),
    **{kind: (TOKENS[kind], width(ENTITY_FEATURES[kind])) for kind in list(TOKENS)[1:]},
    "token_mask": (N_TOKENS,),
    "town_adjacency": (_TOWNS, _TOWNS),
    "area_adjacency": (_AREAS, _AREAS),
}
"""The arrays of one game, float32, in the order in which they lie in a row: the features of each
kind of entity, which tokens exist, and between which towns and areas one step leads (0 or 1)."""

_SIZES = [math.prod(shape) for shape in ENTITY_SHAPES.values()]
N_ENTITY_NUMBERS = sum(_SIZES)
_SLICES = {
    name: slice(end - size, end)
    for name, size, end in zip(ENTITY_SHAPES, _SIZES, np.cumsum(_SIZES).tolist(), strict=True)
}
ENTITY_LAYOUT_HASH = layout_hash((ENTITY_FEATURES, ENTITY_SHAPES))


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
"""The token that each action is about, int16 (N_ACTIONS,): the town or the area where a merchant or
an artist goes, else the globals, 0. Where the pilgrim goes depends on the position: the features
`arrival` and `arrival_wave` of the stations tell it."""


def entity_arrays(rows: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    """Return views of rows (…, N_ENTITY_NUMBERS), by name: (…, *ENTITY_SHAPES[name])."""
    before = rows.shape[:-1]
    return {
        name: rows[..., where].reshape(*before, *ENTITY_SHAPES[name])
        for name, where in _SLICES.items()
    }


def _places(kind: str, name: str) -> npt.NDArray[np.int64]:
    """Return where a feature of each entity of a kind stands in a row: (entities, size)."""
    feature = next(each for each in ENTITY_FEATURES[kind] if each.name == name)
    entities = _SLICES[kind].start + np.arange(TOKENS[kind]) * width(ENTITY_FEATURES[kind])
    return np.asarray(entities[:, None] + np.arange(feature.start, feature.start + feature.size))


def _place_of(feature: Feature) -> npt.NDArray[np.int64]:
    """Return where the numbers of a feature of the observation or the board stand in a row."""
    for kind, names in (("stations", _OF_STATIONS), ("towns", _OF_TOWNS), ("areas", _OF_AREAS)):
        if feature.name in names:
            return _places(kind, names[feature.name]).reshape(-1)[: feature.size]
    return _places("globals", feature.name).reshape(-1)


def board_entities(boards: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
    """Return what boards alone say of their entities, (b, N_ENTITY_NUMBERS), zeros elsewhere.

    Args:
        boards: `BOARD` (b,).
    """
    rows = np.zeros((len(boards), N_ENTITY_NUMBERS), np.float32)
    blocks = board_blocks(boards)
    for feature in BOARD_FEATURES:
        if feature.name not in _IN_ANOTHER_FORM:
            rows[:, _place_of(feature)] = blocks[:, feature.slice]
        if feature.name == "mountain_numbers":
            mountains = _places("towns", "mountain_number")[_COASTS:, 0]
            rows[:, mountains] = blocks[:, feature.slice]
    exists = np.arange(_SPACES) < boards["ring_size"][:, None]
    coasts = boards["coast_station"][:, None, :] == np.arange(_SPACES)[:, None]
    rows[:, _places("stations", "space")[:, 0]] = exists * (np.arange(_SPACES) / (_SPACES - 1))
    rows[:, _places("stations", "coast")] = coasts
    rows[:, _places("stations", "areas")] = _bits(boards["station_areas"], _AREAS)
    rows[:, _places("towns", "town")] = np.eye(_TOWNS)
    rows[:, _places("towns", "areas")] = _bits(boards["town_areas"], _AREAS)
    rows[:, _places("areas", "area")] = np.eye(_AREAS)
    arrays = entity_arrays(rows)
    arrays["token_mask"][:] = 1
    arrays["token_mask"][:, 1 : 1 + _SPACES] = exists
    arrays["town_adjacency"][:] = _bits(boards["town_reach"][:, 1], _TOWNS)
    arrays["area_adjacency"][:] = _bits(boards["area_reach"][:, 1], _AREAS)
    return rows


def _bits(masks: npt.NDArray[Any], number: int) -> npt.NDArray[Any]:
    """Return the lowest bits of each mask: one dimension more, of `number`."""
    return np.asarray(masks[..., None] >> np.arange(number) & 1)


# What the kernels read as constants.
_TARGETS = np.concatenate([_place_of(feature) for feature in FEATURES])
"""Where each number of the observation stands in a row."""
_STEPS = (np.arange(_SPACES) / (_SPACES - 1)).astype(np.float32)


def _first(kinds: Iterable[str], name: str) -> tuple[int, ...]:
    return tuple(int(_places(kind, name)[0, 0]) for kind in kinds)


_STATION, _TOWN, _AREA = (width(ENTITY_FEATURES[kind]) for kind in ("stations", "towns", "areas"))
_START_STATION, _START_TOWN, _START_AREA = _first(("stations", "towns", "areas"), "my_start")
(_STATION_MERCHANT,) = _first(("stations",), "my_merchant")
(_STATION_STEPS,) = _first(("stations",), "my_steps")
(_STATION_ARRIVAL,) = _first(("stations",), "arrival")
(_TOWN_PILGRIM,) = _first(("towns",), "my_pilgrim")


@kernel
def encode_entities(board: Row, s: Row, seat: Seat, flat: Any, out: Any) -> None:
    """Write the entities as a seat sees them, mover or not, at any phase.

    Args:
        flat: float32 (N_FEATURES,), overwritten: the observation.
        out: float32 (N_ENTITY_NUMBERS,), the board's row of `board_entities` or what any seat saw
            on that board: all else is overwritten.
    """
    encode(board, s, seat, FLOAT_QUOTIENTS, flat)
    for k in range(N_FEATURES):
        out[index(_TARGETS[k])] = flat[k]
    _mark_starts(board, seat, out)
    for whose in range(2):
        _relate_player(board, s, seat ^ whose, whose, out)
    _mark_arrivals(board, s, out)


@kernel
def _mark_arrivals(board: Row, s: Row, out: Any) -> None:
    """Write where the mover's pilgrim would arrive."""
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
    """Write where each side began: first nobody, for both may have begun in one place."""
    for mark in range(2):
        for whose in range(2):
            start = board["start"][seat ^ whose]
            for side in range(2):
                if mark == 0 or side == whose:
                    out[index(_START_STATION + side + _STATION * int64(start[0]))] = mark
                    out[index(_START_TOWN + side + _TOWN * int64(start[1]))] = mark
                    out[index(_START_AREA + side + _AREA * int64(start[2]))] = mark


@kernel
def _relate_player(board: Row, s: Row, player: Seat, whose: int, out: Any) -> None:
    """Write what relates the pilgrim and the merchant of a player to towns and stations."""
    pilgrim, merchant = int64(s["pilgrim"][player]), int64(s["merchant"][player])
    for coast in range(_COASTS):
        station = int64(board["coast_station"][coast])
        out[index(_STATION_MERCHANT + whose + _STATION * station)] = coast == merchant
        out[index(_TOWN_PILGRIM + whose + _TOWN * coast)] = station == pilgrim
    size = int64(board["ring_size"])
    for station in range(size):
        steps = station - pilgrim + (size if station < pilgrim else 0)
        out[index(_STATION_STEPS + whose + _STATION * station)] = _STEPS[index(steps)]


@entry
def encode_entities_of_game(
    boards: Any, states: Any, i: int, seat: Seat, flat: Any, out: Any
) -> None:
    """`encode_entities` of game `i`, for callers in Python."""
    encode_entities(boards[i], states[i], seat, flat, out)
