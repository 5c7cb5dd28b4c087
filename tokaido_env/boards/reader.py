"""Reader of board files and plain board data, which checks every value."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokaido_env.boards.geometry import area_paths, component, edges
from tokaido_env.core.arguments import (
    MAX_NAME_CHARS,
    MAX_PATH_CHARS,
    escape_text,
    plain_data,
    str_short,
)
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    MAX_DIE,
    MAX_ROUNDS,
    MOUNTAIN_TOWNS,
    RING_SIZES,
    STATIONS,
    TOWNS,
    WARES,
)
from tokaido_env.files import read_toml

PROVENANCES = ("rulebook", "public source", "inferred", "reconstruction", "box")
FORMATS = (1, 2)
"""Versions of board files; only version 2 has provenances of single values."""
MAX_NOTE_CHARS = 10_000
"""Length of a note; a board with notes of this length can still be written and read."""


UNKNOWN = "reconstruction"
"""Provenance of a table without one."""


class BoardNameWarning(UserWarning):
    """A board file has the name of another board with different values."""


class BoardError(ValueError):
    """An invalid board or board spec; the message names the file, the key and the expected value.

    Attributes:
        key: the place in the file or the data, such as `mountains.numbers.M1` or
            `culture.points.6` (lists count from 0). It is one of several conflicting values or
            their table, and "" without a single place.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def single_values(entry: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single values of a table without labels, by their names within the table."""
    if entry == "starts":
        starts = table.items()
        return {f"{seat}.{name}": place for seat, start in starts for name, place in start.items()}
    (main,) = table.values()
    items: Iterable[tuple[Any, Any]] = main.items() if isinstance(main, dict) else enumerate(main)
    return {str(key): value for key, value in items}


def table_of(name: str) -> str:
    """Return the name of a single value's table."""
    return ".".join(name.split(".")[: 2 if name.startswith("dice.") else 1])


def read_board_file(path: Path) -> dict[str, Any]:
    """Return the fields of a `Board` from a TOML file.

    Raises:
        BoardError: if the file breaks a rule of the game.
    """
    try:
        data = read_toml(path)
    except ValueError as error:
        raise BoardError(escape_text(str(error), MAX_PATH_CHARS + 250)) from None
    return read_board_data(data, str(path))


def read_board_data(data: object, source: str) -> dict[str, Any]:
    """Return the fields of a `Board` from the content of a board file.

    Args:
        data: as from `tomllib` or JSON.
        source: the name of the data in errors.

    Raises:
        BoardError: if the data are no board or break a rule of the game.
    """
    return _BoardReader(source, plain_data(data)).fields()


class DataReader:
    """Checks of untrusted data, each with an error that names the place.

    Args:
        error: makes an exception from a message and a key.
        prefix: of all messages.
        whole: the name of the data in messages.
        table: the name of a table in messages.
    """

    def __init__(
        self, error: Callable[[str, str], Exception], prefix: str, whole: str, table: str
    ) -> None:
        self._error, self._prefix, self._whole, self._table = error, prefix, whole, table

    def _expect(
        self, valid: Any, place: str, expected: str, got: object, key: str | None = None
    ) -> None:
        """Raise an error if a value is invalid; `key` is the error's (default: from `place`)."""
        if not valid:
            kind = "" if type(got) in _KNOWN_TYPES else f" of type {type(got).__name__}"
            message = f"{self._prefix}{place}: expected {expected}, got {str_short(got)}{kind}"
            raise self._error(message, place.partition(" ")[0] if key is None else key)

    def _expect_keys(
        self, key: str, table: Any, keys: Collection[str], optional: Collection[str] = ()
    ) -> None:
        """Expect a table with these keys only; optional ones may be missing."""
        place, prefix = (key, f"{key}.") if key else (self._whole, "")
        self._expect(isinstance(table, Mapping), place, self._table, table, key)
        for name in keys:
            present = name in table or name in optional
            self._expect(present, place, f"the key {name!r}", "no such key", prefix + name)
        for name in table:
            if not _is_one_of(name, keys):
                expected = "only the keys " + ", ".join(keys)
                self._expect(False, place, expected, name, prefix + str_short(name))

    def _one_of(self, key: str, value: Any, names: Collection[str]) -> str:
        self._expect(_is_one_of(value, names), key, "one of " + ", ".join(names), value)
        return str(value)

    def _integer(self, key: str, value: Any, low: int, high: int) -> int:
        valid = type(value) is int and low <= value <= high
        self._expect(valid, key, f"a whole number from {low} to {high}", value)
        return int(value)


_KNOWN_TYPES = (str, int, float, bool, list, dict, type(None))


def _is_one_of(value: object, names: Collection[str]) -> bool:
    return type(value) is str and value in names


class _BoardReader(DataReader):
    """Reader of the data of one board."""

    def __init__(self, source: str, data: Any) -> None:
        super().__init__(
            BoardError, f"{escape_text(source, MAX_PATH_CHARS)}: ", "the top level", "a table"
        )
        self.source = source
        self.data = data
        self.format = FORMATS[-1]
        self.provenance: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def fields(self) -> dict[str, Any]:
        self._expect_keys("", self.data, _ENTRIES)
        self.format = self._integer("format", self.data["format"], FORMATS[0], FORMATS[-1])
        stations = self._stations()
        return dict(
            name=self._text("name", self.data["name"], 1, MAX_NAME_CHARS),
            source=self.source,
            max_rounds=self._integer("max_rounds", self.data["max_rounds"], 1, MAX_ROUNDS),
            faces=self._dice(),
            stations=stations,
            mountain_numbers=self._mountains(),
            routes=self._routes(),
            area_icons=self._areas(),
            starts=self._starts(stations),
            boutiques=self._boutiques(),
            commerce=self._numbers("commerce", "points", 7),
            culture=self._numbers("culture", "points", 11),
            temple=self._numbers("temple", "numbers", 9),
            garden=self._numbers("garden", "numbers", 6),
            provenance=self.provenance,
            notes=self.notes,
        )

    # The tables

    def _dice(self) -> tuple[tuple[int, ...], ...]:
        self._expect_keys("dice", self.data["dice"], CHARACTERS)
        dice = []
        for character in CHARACTERS:
            entry = f"dice.{character}"
            key, faces = self._main(entry, self.data["dice"][character], "faces")
            self._expect_list(key, faces, 6, "faces")
            places = enumerate(faces)
            dice.append(tuple(self._integer(f"{key}.{i}", face, 1, MAX_DIE) for i, face in places))
            self._read_labels(entry, self.data["dice"][character], "faces")
        return tuple(dice)

    def _stations(self) -> tuple[str, ...]:
        key, stations = self._main("ring", self.data["ring"], "stations")
        low, high = RING_SIZES
        valid = isinstance(stations, list) and low <= len(stations) <= high
        self._expect(valid, key, f"{low} to {high} stations", _size(stations))
        for i, station in enumerate(stations):
            self._one_of(f"{key}.{i}", station, COASTAL_TOWNS + STATIONS[1:])
        towns = [station for station in stations if station in COASTAL_TOWNS]
        expected = "the 8 coastal towns C1 to C8, once each, in this order"
        self._expect(tuple(towns) == COASTAL_TOWNS, key, expected, " ".join(towns) or "none")
        self._expect(stations[0] == "C1", f"{key}.0", "C1 first", stations[0])
        self._read_labels("ring", self.data["ring"], "stations")
        return tuple(stations)

    def _mountains(self) -> tuple[int, ...]:
        key, numbers = self._main("mountains", self.data["mountains"], "numbers")
        self._expect_names(key, numbers, MOUNTAIN_TOWNS, "the 4 mountain towns M1 to M4")
        self._read_labels("mountains", self.data["mountains"], "numbers")
        return tuple(self._integer(f"{key}.{m}", numbers[m], 2, 4) for m in MOUNTAIN_TOWNS)

    def _routes(self) -> tuple[tuple[str, str], ...]:
        key, pairs = self._main("routes", self.data["routes"], "pairs")
        self._expect(isinstance(pairs, list), key, "a list of pairs of towns", pairs)
        expected = "two different towns in each route"
        for i, pair in enumerate(pairs):
            self._expect(isinstance(pair, list) and len(pair) == 2, f"{key}.{i}", expected, pair)
            for town in pair:
                known = _is_one_of(town, TOWNS)
                self._expect(known, f"{key}.{i}", "a route between C1 to C8 and M1 to M4", town)
            self._expect(pair[0] != pair[1], f"{key}.{i}", expected, pair)
        routes = tuple((a, b) for a, b in pairs)
        self._check_tree(key, routes)
        self._read_labels("routes", self.data["routes"], "pairs")
        return routes

    def _check_tree(self, key: str, routes: tuple[tuple[str, str], ...]) -> None:
        """Check that the routes are a planar tree with the coastal towns as leaves (R3, R4)."""
        reached = component("C1", routes)
        missing = [town for town in TOWNS if town not in reached]
        got = f"no route to {', '.join(missing)}"
        self._expect(not missing, key, "every town reachable from C1", got)
        self._expect(len(routes) == 11, key, "11 routes, a tree on 12 towns", f"{len(routes)}")
        for town in TOWNS:
            degree = sum(town in route for route in routes)
            valid = degree == 1 if town in COASTAL_TOWNS else degree > 1
            expected = "one route at each coastal town, two or more at each mountain town"
            self._expect(valid, key, expected, f"{degree} at {town}")
        shared: dict[frozenset[str], int] = {}
        for path in area_paths(routes):
            for edge in edges(path):
                shared[edge] = shared.get(edge, 0) + 1
        for edge, areas in shared.items():
            expected = "routes that divide the island into 8 areas, each route between two of them"
            got = f"{'-'.join(sorted(edge))} on the border of {areas}: routes cross"
            self._expect(areas == 2, key, expected, got)

    def _areas(self) -> tuple[str, ...]:
        key, icons = self._main("areas", self.data["areas"], "icons")
        self._expect_names(key, icons, AREAS, "the 8 areas A1 to A8")
        self._read_labels("areas", self.data["areas"], "icons")
        return tuple(self._one_of(f"{key}.{area}", icons[area], ICONS) for area in AREAS)

    def _starts(self, stations: tuple[str, ...]) -> tuple[tuple[int, str, str], ...]:
        table = self.data["starts"]
        seats = ("player_0", "player_1")
        self._expect_keys("starts", table, (*seats, *_LABELS), _OPTIONAL)
        starts = tuple(self._start(f"starts.{seat}", table[seat], stations) for seat in seats)
        characters: dict[int, str] = {}  # by station
        for seat, (pilgrim, merchant, _) in zip(seats, starts, strict=True):
            spaces = [("pilgrim", pilgrim)]
            if merchant in COASTAL_TOWNS:
                spaces.append(("merchant", stations.index(merchant)))
            for character, space in spaces:
                name = f"{seat}.{character}"
                got = f"{characters.get(space)} and {name} on {stations[space]}, space {space}"
                expected = "no two characters on one station"
                self._expect(space not in characters, "starts", expected, got, f"starts.{name}")
                characters[space] = name
        self._read_labels("starts", table, *seats)
        return starts

    def _start(self, key: str, start: Any, stations: tuple[str, ...]) -> tuple[int, str, str]:
        self._expect_keys(key, start, CHARACTERS)
        pilgrim, merchant, artist = (start[character] for character in CHARACTERS)
        if _is_one_of(pilgrim, COASTAL_TOWNS):
            pilgrim = stations.index(pilgrim)
        expected = f"a coastal town or a ring index from 0 to {len(stations) - 1}"
        valid = type(pilgrim) is int and 0 <= pilgrim < len(stations)
        self._expect(valid, f"{key}.pilgrim", expected, pilgrim)
        expected = "a town, C1 to C8 or M1 to M4"
        self._expect(_is_one_of(merchant, TOWNS), f"{key}.merchant", expected, merchant)
        self._expect(_is_one_of(artist, AREAS), f"{key}.artist", "an area, A1 to A8", artist)
        return pilgrim, merchant, artist

    def _boutiques(self) -> tuple[tuple[str, int], ...]:
        key, tokens = self._main("boutiques", self.data["boutiques"], "tokens")
        self._expect_list(key, tokens, 8, "tokens")
        for i, token in enumerate(tokens):
            valid = isinstance(token, list) and len(token) == 2 and _is_one_of(token[0], WARES)
            expected, place = "[ware, price] with a ware of " + ", ".join(WARES), f"{key}.{i}"
            self._expect(valid, place, expected, token)
            self._integer(f"{place} price", token[1], 2, 4)
        self._read_labels("boutiques", self.data["boutiques"], "tokens")
        return tuple((ware, price) for ware, price in tokens)

    def _numbers(self, entry: str, key: str, length: int) -> tuple[int, ...]:
        place, numbers = self._main(entry, self.data[entry], key)
        self._expect_list(place, numbers, length, "numbers")
        items = enumerate(numbers)
        values = tuple(self._integer(f"{place}.{i}", number, 0, 255) for i, number in items)
        for i, (value, following) in enumerate(itertools.pairwise(values), 1):
            expected = f"{value} or more, in a list that never decreases"
            self._expect(value <= following, f"{place}.{i}", expected, following)
        self._read_labels(entry, self.data[entry], key)
        return values

    # Labels

    def _read_labels(self, entry: str, table: Mapping[str, Any], *mains: str) -> None:
        """Read the provenances and the note of a table with valid values."""
        key = f"{entry}.provenance"
        self.provenance[entry] = self._one_of(key, table["provenance"], PROVENANCES)
        if "provenance_of" in table:
            names = single_values(entry, {main: table[main] for main in mains})
            self._read_single(entry, table["provenance_of"], list(names))
        if "note" in table:
            self.notes[entry] = self._text(f"{entry}.note", table["note"], 0, MAX_NOTE_CHARS)

    def _read_single(self, entry: str, single: Any, names: Sequence[str]) -> None:
        """Read the provenances of a table's single values."""
        key = f"{entry}.provenance_of"
        expected = "format = 2 in a file with provenances of single values"
        self._expect(self.format > 1, key, expected, f"format = {self.format}")
        self._expect(isinstance(single, dict), key, "a table", single)
        for name, provenance in single.items():
            if not _is_one_of(name, names):
                expected = f"names of values in [{entry}] only, in quotes: {_listed(names)}"
                self._expect(False, key, expected, name, f"{key}.{str_short(name)}")
            place = f"{key}.{name}"
            self.provenance[f"{entry}.{name}"] = self._one_of(place, provenance, PROVENANCES)

    # Checks

    def _main(self, entry: str, table: Any, main: str) -> tuple[str, Any]:
        """Check the keys of a table; return the key and the value of its main entry."""
        self._expect_keys(entry, table, (main, *_LABELS), _OPTIONAL)
        return f"{entry}.{main}", table[main]

    def _expect_names(self, key: str, table: Any, names: Sequence[str], expected: str) -> None:
        """Expect a table with exactly these keys."""
        self._expect(isinstance(table, dict), key, expected, table)
        missing = [name for name in names if name not in table]
        extra = [name for name in table if not _is_one_of(name, names)]
        if missing or extra:
            place = f"{key}.{str_short((missing + extra)[0])}"
            self._expect(False, key, expected, " ".join(map(str_short, table)) or "none", place)

    def _expect_list(self, key: str, value: Any, length: int, items: str) -> None:
        valid = isinstance(value, list) and len(value) == length
        self._expect(valid, key, f"{length} {items}", _size(value))

    def _text(self, key: str, value: Any, least: int, most: int) -> str:
        valid = type(value) is str and least <= len(value) <= most and _is_unicode(value)
        self._expect(valid, key, f"text of {least} to {most} characters", value)
        return str(value)


_OPTIONAL = ("provenance_of", "note")
_LABELS = ("provenance", *_OPTIONAL)
_ENTRIES = (
    *("format", "name", "max_rounds", "dice", "ring", "routes", "mountains", "areas"),
    *("starts", "boutiques", "commerce", "culture", "temple", "garden"),
)


def _is_unicode(text: str) -> bool:
    """Return whether a text has no unpaired surrogate, which UTF-8 cannot encode."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _listed(names: Sequence[str]) -> str:
    return f"{names[0]} to {names[-1]}" if names[-1].isdigit() else ", ".join(names)


def _size(value: Any) -> Any:
    return len(value) if isinstance(value, list) else value
