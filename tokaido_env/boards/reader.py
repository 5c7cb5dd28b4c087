"""Reader of board files and plain board data, which checks every value."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from msgspec import UNSET, Meta, UnsetType, field, structs

from tokaido_env.boards.geometry import area_paths, component, edges
from tokaido_env.core.arguments import MAX_NAME_CHARS, plain_data
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    MAX_DIE,
    MAX_ROUNDS,
    RING_SIZES,
    STATIONS,
    TOWNS,
    WARES,
)
from tokaido_env.decoding import Source, Struct, one_of
from tokaido_env.files import read_toml

PROVENANCES = ("rulebook", "public source", "inferred", "reconstruction", "box")
UNKNOWN = "reconstruction"
"""Provenance of a table without one."""

FORMAT = 2
MAX_NOTE_CHARS = 10_000
"""Length of a note; a board with notes of this length can still be written and read."""

# The types of a board file; positions share some.

T = TypeVar("T")

Character = Annotated[str, one_of(CHARACTERS)]
Town = Annotated[str, one_of(TOWNS)]
CoastalTown = Annotated[str, one_of(COASTAL_TOWNS)]
Area = Annotated[str, one_of(AREAS)]
Icon = Annotated[str, one_of(ICONS)]
Ware = Annotated[str, one_of(WARES)]
Face = Annotated[int, Meta(ge=1, le=MAX_DIE)]
RingIndex = Annotated[int, Meta(ge=0, lt=RING_SIZES[1])]

_Provenance = Annotated[str, one_of(PROVENANCES)]
_Draws = Annotated[int, Meta(ge=2, le=4)]
_Points = Annotated[int, Meta(ge=0, le=255)]
_Token = tuple[Ware, Annotated[int, Meta(ge=2, le=4)]]  # and price
_Station = Annotated[str, one_of(COASTAL_TOWNS + STATIONS[1:])]


def size(least: int, most: int | None = None) -> Meta:
    """Return the constraint of a list's length: `least` to `most`, or exactly `least` for None."""
    return Meta(min_length=least, max_length=most or least)


class ByCharacter(Struct, Generic[T], frozen=True):
    """A value for each character, in the order of `CHARACTERS`.

    Attributes:
        pilgrim: the pilgrim's.
        merchant: the merchant's.
        artist: the artist's.
    """

    pilgrim: T
    merchant: T
    artist: T


class _Table(Struct, frozen=True, kw_only=True):
    provenance: _Provenance
    provenance_of: dict[str, _Provenance] = field(default_factory=dict)
    note: Annotated[str, Meta(max_length=MAX_NOTE_CHARS)] | UnsetType = UNSET


class _Die(_Table, frozen=True):
    faces: Annotated[tuple[Face, ...], size(6)]


class _Ring(_Table, frozen=True):
    stations: Annotated[tuple[_Station, ...], size(*RING_SIZES)]


class _Routes(_Table, frozen=True):
    pairs: tuple[tuple[Town, Town], ...]


class _Icons(Struct, frozen=True):
    A1: Icon
    A2: Icon
    A3: Icon
    A4: Icon
    A5: Icon
    A6: Icon
    A7: Icon
    A8: Icon


class _Areas(_Table, frozen=True):
    icons: _Icons


class _Start(Struct, frozen=True):
    pilgrim: RingIndex | CoastalTown
    merchant: Town
    artist: Area


class _Starts(_Table, frozen=True):
    player_0: _Start
    player_1: _Start


class _Boutiques(_Table, frozen=True):
    tokens: Annotated[tuple[_Token, ...], size(8)]


class _Mountains(Struct, frozen=True):
    M1: _Draws
    M2: _Draws
    M3: _Draws
    M4: _Draws


class _Numbers(_Table, Generic[T], frozen=True):
    numbers: T


class _Track(_Table, Generic[T], frozen=True):
    points: T


class _BoardFile(Struct, frozen=True):
    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT)]
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARS)]
    max_rounds: Annotated[int, Meta(ge=1, le=MAX_ROUNDS)]
    dice: ByCharacter[_Die]
    ring: _Ring
    routes: _Routes
    mountains: _Numbers[_Mountains]
    areas: _Areas
    starts: _Starts
    boutiques: _Boutiques
    commerce: _Track[Annotated[tuple[_Points, ...], size(7)]]
    culture: _Track[Annotated[tuple[_Points, ...], size(11)]]
    temple: _Numbers[Annotated[tuple[_Points, ...], size(9)]]
    garden: _Numbers[Annotated[tuple[_Points, ...], size(6)]]


class BoardNameWarning(UserWarning):
    """A board file has the name of another board with different values."""


class BoardError(ValueError):
    """An invalid board or board spec; the message names the file, the key and the expectation."""


def read_board_file(path: Path) -> dict[str, Any]:
    """Return the fields of a `Board` from a TOML file.

    Raises:
        BoardError: if the file breaks a rule of the game.
    """
    try:
        data = read_toml(path)
    except ValueError as error:
        raise BoardError(str(error)) from None
    return read_board_data(data, str(path))


def read_board_data(data: object, source: str) -> dict[str, Any]:
    """Return the fields of a `Board` from the content of a board file.

    Args:
        data: as from `tomllib` or JSON.
        source: the name of the data in errors.

    Raises:
        BoardError: if the data are no board or break a rule of the game.
    """
    read = Source(source, plain_data(data), BoardError)
    board = read.decode(_BoardFile)
    stations, routes, tables = board.ring.stations, board.routes.pairs, _tables(board)
    _check_stations(read, stations)
    _check_tree(read, routes)
    _check_tracks(read, board)
    starts = board.starts.player_0, board.starts.player_1
    places = tuple(_start(read, seat, start, stations) for seat, start in enumerate(starts))
    _check_starts(read, places, stations)
    return dict(
        name=board.name,
        source=source,
        max_rounds=board.max_rounds,
        faces=tuple(die.faces for die in structs.astuple(board.dice)),
        stations=stations,
        mountain_numbers=structs.astuple(board.mountains.numbers),
        routes=routes,
        area_icons=structs.astuple(board.areas.icons),
        starts=places,
        boutiques=board.boutiques.tokens,
        commerce=board.commerce.points,
        culture=board.culture.points,
        temple=board.temple.numbers,
        garden=board.garden.numbers,
        provenance=_provenances(tables),
        notes={name: table.note for name, table in tables.items() if table.note is not UNSET},
    )


def _check_stations(read: Source, stations: Sequence[str]) -> None:
    towns = tuple(station for station in stations if station in COASTAL_TOWNS)
    expected = "the 8 coastal towns C1 to C8, once each, in this order"
    read.expect(towns == COASTAL_TOWNS, "ring.stations", expected, " ".join(towns) or "none")
    read.expect(stations[0] == "C1", "ring.stations[0]", "C1 first", stations[0])


def _check_tree(read: Source, routes: tuple[tuple[str, str], ...]) -> None:
    """Check that the routes are a planar tree with the coastal towns as leaves (R3, R4)."""
    key = "routes.pairs"
    for i, (one, other) in enumerate(routes):
        read.expect(one != other, f"{key}[{i}]", "two different towns", one)
    reached = component("C1", routes)
    missing = [town for town in TOWNS if town not in reached]
    got = f"no route to {', '.join(missing)}"
    read.expect(not missing, key, "every town reachable from C1", got)
    read.expect(len(routes) == 11, key, "11 routes, a tree on 12 towns", len(routes))
    for town in TOWNS:
        degree = sum(town in route for route in routes)
        valid = degree == 1 if town in COASTAL_TOWNS else degree > 1
        expected = "one route at each coastal town, two or more at each mountain town"
        read.expect(valid, key, expected, f"{degree} at {town}")
    shared: dict[frozenset[str], int] = {}
    for path in area_paths(routes):
        for edge in edges(path):
            shared[edge] = shared.get(edge, 0) + 1
    for edge, areas in shared.items():
        expected = "routes that divide the island into 8 areas, each route between two of them"
        got = f"{'-'.join(sorted(edge))} on the border of {areas}: routes cross"
        read.expect(areas == 2, key, expected, got)


def _check_tracks(read: Source, board: _BoardFile) -> None:
    tracks = {
        "commerce.points": board.commerce.points,
        "culture.points": board.culture.points,
        "temple.numbers": board.temple.numbers,
        "garden.numbers": board.garden.numbers,
    }
    for key, values in tracks.items():
        for i, (value, following) in enumerate(itertools.pairwise(values), 1):
            expected = f"{value} or more, in a list that never decreases"
            read.expect(value <= following, f"{key}[{i}]", expected, following)


def _start(read: Source, seat: int, start: _Start, stations: Sequence[str]) -> tuple[int, str, str]:
    """Return a start with the pilgrim's ring index."""
    pilgrim = start.pilgrim
    index = stations.index(pilgrim) if isinstance(pilgrim, str) else pilgrim
    expected = f"a coastal town or a ring index from 0 to {len(stations) - 1}"
    read.expect(index < len(stations), f"starts.player_{seat}.pilgrim", expected, pilgrim)
    return index, start.merchant, start.artist


def _check_starts(
    read: Source, starts: Sequence[tuple[int, str, str]], stations: Sequence[str]
) -> None:
    """Check that no two characters start on one station."""
    characters: dict[int, str] = {}  # by station
    for seat, (pilgrim, merchant, _) in enumerate(starts):
        spaces = [("pilgrim", pilgrim)]
        if merchant in COASTAL_TOWNS:
            spaces.append(("merchant", stations.index(merchant)))
        for character, space in spaces:
            key = f"starts.player_{seat}.{character}"
            got = f"{characters.get(space)} on {stations[space]}, space {space}"
            read.expect(space not in characters, key, "no two characters on one station", got)
            characters[space] = key


def _tables(board: _BoardFile) -> dict[str, _Table]:
    """Return the tables by name, such as `dice.pilgrim` and `ring`, in the order of the file."""
    found = {f"dice.{name}": die for name, die in structs.asdict(board.dice).items()}
    return found | {n: one for n, one in structs.asdict(board).items() if isinstance(one, _Table)}


def _provenances(tables: Mapping[str, _Table]) -> dict[str, str]:
    """Return the provenances of tables and of single values, by name."""
    found = {}
    for entry, table in tables.items():
        found[entry] = table.provenance
        found |= {f"{entry}.{name}": one for name, one in table.provenance_of.items()}
    return found
