"""Reads board files, and the same as plain data, and checks them value by value."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokaido_env.boards.geometry import area_paths, component, edges
from tokaido_env.core.arguments import MAX_NAME_CHARS, MAX_PATH_CHARS, escape_text, str_short
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
"""Of files: the second one may say where single values come from."""
MOST_NOTE = 10_000
"""Characters of a note: a board with as long ones as that can still be written and read again."""


UNKNOWN = "reconstruction"
"""Where a table comes from that does not say."""


class BoardNameWarning(UserWarning):
    """A board file keeps the name of another board, though it plays otherwise."""


class BoardError(ValueError):
    """A board that cannot be used: the message names the file, the key and what was expected.

    Attributes:
        key: the place in the file or the data, such as `mountains.numbers.M1`, in lists counted
            from 0, as `culture.points.6`; where several values are at odds, one of them or what
            holds them; empty if it is no single place.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def single_values(entry: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single values of a table without labels, by their names in it."""
    if entry == "starts":
        seats = table.items()
        return {f"{seat}.{who}": space for seat, start in seats for who, space in start.items()}
    (main,) = table.values()
    items: Iterable[tuple[Any, Any]] = main.items() if isinstance(main, dict) else enumerate(main)
    return {str(key): value for key, value in items}


def table_of(name: str) -> str:
    """Return the table in which a single value stands."""
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
    """Return the fields of a `Board` from what a file of it says.

    Args:
        data: as `tomllib` gives it, or JSON.
        source: what errors call it.

    Raises:
        BoardError: if the data are no board, or break a rule of the game.
    """
    return _BoardReader(source, data).fields()


class DataReader:
    """Checks data value by value: each mistake gives one clear error, which names its place.

    The data may be anything that a program hands in: a type is asked before a value is.

    Args:
        error: of a message and a place.
        prefix: of all messages.
        whole: what messages call the data as a whole.
        table: what they call a table.
    """

    def __init__(
        self, error: Callable[[str, str], Exception], prefix: str, whole: str, table: str
    ) -> None:
        self._error, self._prefix, self._whole, self._table = error, prefix, whole, table

    def _expect(
        self, right: Any, where: str, wanted: str, got: object, key: str | None = None
    ) -> None:
        """Refuse what is not right; `key` is the error's where the message does not begin so."""
        if not right:
            kind = "" if type(got) in _KNOWN_TYPES else f" of type {type(got).__name__}"
            message = f"{self._prefix}{where}: expected {wanted}, got {str_short(got)}{kind}"
            raise self._error(message, where.partition(" ")[0] if key is None else key)

    def _expect_keys(
        self, key: str, table: Any, keys: Collection[str], optional: Collection[str] = ()
    ) -> None:
        """Expect a table of some keys and no others, of which some may be missing."""
        where, within = (key, f"{key}.") if key else (self._whole, "")
        self._expect(isinstance(table, Mapping), where, self._table, table, key)
        for name in keys:
            there = name in table or name in optional
            self._expect(there, where, f"the key {name!r}", "no such key", within + name)
        for name in table:
            if not _is_one_of(name, keys):
                wanted = "only the keys " + ", ".join(keys)
                self._expect(False, where, wanted, name, within + str_short(name))

    def _one_of(self, key: str, value: Any, names: Collection[str]) -> str:
        self._expect(_is_one_of(value, names), key, "one of " + ", ".join(names), value)
        return str(value)

    def _integer(self, key: str, value: Any, low: int, high: int) -> int:
        right = type(value) is int and low <= value <= high
        self._expect(right, key, f"a whole number from {low} to {high}", value)
        return int(value)


_KNOWN_TYPES = (str, int, float, bool, list, dict, type(None))


def _is_one_of(value: object, names: Collection[str]) -> bool:
    return type(value) is str and value in names


class _BoardReader(DataReader):
    """Reads the data of one board."""

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
            self._note_labels(entry, self.data["dice"][character], "faces")
        return tuple(dice)

    def _stations(self) -> tuple[str, ...]:
        key, stations = self._main("ring", self.data["ring"], "stations")
        low, high = RING_SIZES
        right_size = isinstance(stations, list) and low <= len(stations) <= high
        self._expect(right_size, key, f"{low} to {high} stations", _size(stations))
        for i, station in enumerate(stations):
            self._one_of(f"{key}.{i}", station, COASTAL_TOWNS + STATIONS[1:])
        towns = [station for station in stations if station in COASTAL_TOWNS]
        wanted = "the 8 coastal towns C1 to C8, once each, in this order"
        self._expect(tuple(towns) == COASTAL_TOWNS, key, wanted, " ".join(towns) or "none")
        self._expect(stations[0] == "C1", f"{key}.0", "C1 first", stations[0])
        self._note_labels("ring", self.data["ring"], "stations")
        return tuple(stations)

    def _mountains(self) -> tuple[int, ...]:
        key, numbers = self._main("mountains", self.data["mountains"], "numbers")
        self._expect_names(key, numbers, MOUNTAIN_TOWNS, "the 4 mountain towns M1 to M4")
        self._note_labels("mountains", self.data["mountains"], "numbers")
        return tuple(self._integer(f"{key}.{m}", numbers[m], 2, 4) for m in MOUNTAIN_TOWNS)

    def _routes(self) -> tuple[tuple[str, str], ...]:
        key, pairs = self._main("routes", self.data["routes"], "pairs")
        self._expect(isinstance(pairs, list), key, "a list of pairs of towns", pairs)
        wanted = "two different towns in each route"
        for i, pair in enumerate(pairs):
            self._expect(isinstance(pair, list) and len(pair) == 2, f"{key}.{i}", wanted, pair)
            for town in pair:
                known = _is_one_of(town, TOWNS)
                self._expect(known, f"{key}.{i}", "a route between C1 to C8 and M1 to M4", town)
            self._expect(pair[0] != pair[1], f"{key}.{i}", wanted, pair)
        routes = tuple((a, b) for a, b in pairs)
        self._check_tree(key, routes)
        self._note_labels("routes", self.data["routes"], "pairs")
        return routes

    def _check_tree(self, key: str, routes: tuple[tuple[str, str], ...]) -> None:
        """Check that the routes are a planar tree whose ends are the coastal towns (R3, R4)."""
        reached = component("C1", routes)
        lost = [town for town in TOWNS if town not in reached]
        self._expect(not lost, key, "every town reachable from C1", f"no way to {', '.join(lost)}")
        self._expect(len(routes) == 11, key, "11 routes, a tree on 12 towns", f"{len(routes)}")
        for town in TOWNS:
            degree = sum(town in route for route in routes)
            right = degree == 1 if town in COASTAL_TOWNS else degree > 1
            wanted = "one route at each coastal town, two or more at each mountain town"
            self._expect(right, key, wanted, f"{degree} at {town}")
        shared: dict[frozenset[str], int] = {}
        for path in area_paths(routes):
            for edge in edges(path):
                shared[edge] = shared.get(edge, 0) + 1
        for edge, areas in shared.items():
            wanted = "routes that cut the island into 8 areas, each route between two of them"
            got = f"{'-'.join(sorted(edge))} lies on the border of {areas}: routes cross"
            self._expect(areas == 2, key, wanted, got)

    def _areas(self) -> tuple[str, ...]:
        key, icons = self._main("areas", self.data["areas"], "icons")
        self._expect_names(key, icons, AREAS, "the 8 areas A1 to A8")
        self._note_labels("areas", self.data["areas"], "icons")
        return tuple(self._one_of(f"{key}.{area}", icons[area], ICONS) for area in AREAS)

    def _starts(self, stations: tuple[str, ...]) -> tuple[tuple[int, str, str], ...]:
        table = self.data["starts"]
        seats = ("player_0", "player_1")
        self._expect_keys("starts", table, (*seats, *_LABELS), _OPTIONAL)
        starts = tuple(self._start(f"starts.{seat}", table[seat], stations) for seat in seats)
        stands: dict[int, str] = {}  # who stands on a station
        for seat, (pilgrim, merchant, _) in zip(seats, starts, strict=True):
            spaces = [("pilgrim", pilgrim)]
            if merchant in COASTAL_TOWNS:
                spaces.append(("merchant", stations.index(merchant)))
            for character, space in spaces:
                who = f"{seat}.{character}"
                got = f"{stands.get(space)} and {who} on {stations[space]} (ring index {space})"
                wanted, place = "no two characters on one station", f"starts.{who}"
                self._expect(space not in stands, "starts", wanted, got, place)
                stands[space] = who
        self._note_labels("starts", table, *seats)
        return starts

    def _start(self, key: str, start: Any, stations: tuple[str, ...]) -> tuple[int, str, str]:
        self._expect_keys(key, start, CHARACTERS)
        pilgrim, merchant, artist = (start[character] for character in CHARACTERS)
        if _is_one_of(pilgrim, COASTAL_TOWNS):
            pilgrim = stations.index(pilgrim)
        wanted = f"a coastal town or a ring index from 0 to {len(stations) - 1}"
        is_space = type(pilgrim) is int and 0 <= pilgrim < len(stations)
        self._expect(is_space, f"{key}.pilgrim", wanted, pilgrim)
        wanted = "a town, C1 to C8 or M1 to M4"
        self._expect(_is_one_of(merchant, TOWNS), f"{key}.merchant", wanted, merchant)
        self._expect(_is_one_of(artist, AREAS), f"{key}.artist", "an area, A1 to A8", artist)
        return pilgrim, merchant, artist

    def _boutiques(self) -> tuple[tuple[str, int], ...]:
        key, tokens = self._main("boutiques", self.data["boutiques"], "tokens")
        self._expect_list(key, tokens, 8, "tokens")
        for i, token in enumerate(tokens):
            right = isinstance(token, list) and len(token) == 2 and _is_one_of(token[0], WARES)
            wanted, place = "[ware, price] with a ware of " + ", ".join(WARES), f"{key}.{i}"
            self._expect(right, place, wanted, token)
            self._integer(f"{place} price", token[1], 2, 4)
        self._note_labels("boutiques", self.data["boutiques"], "tokens")
        return tuple((ware, price) for ware, price in tokens)

    def _numbers(self, entry: str, key: str, length: int) -> tuple[int, ...]:
        where, numbers = self._main(entry, self.data[entry], key)
        self._expect_list(where, numbers, length, "numbers")
        places = enumerate(numbers)
        values = tuple(self._integer(f"{where}.{i}", number, 0, 255) for i, number in places)
        for i, (one, following) in enumerate(itertools.pairwise(values), 1):
            wanted = f"{one} or more, numbers that never fall"
            self._expect(one <= following, f"{where}.{i}", wanted, following)
        self._note_labels(entry, self.data[entry], key)
        return values

    # Labels

    def _note_labels(self, entry: str, table: Mapping[str, Any], *mains: str) -> None:
        """Note where a table and its values come from and what is said of it: values are right."""
        key = f"{entry}.provenance"
        self.provenance[entry] = self._one_of(key, table["provenance"], PROVENANCES)
        if "provenance_of" in table:
            names = single_values(entry, {main: table[main] for main in mains})
            self._note_single(entry, table["provenance_of"], list(names))
        if "note" in table:
            self.notes[entry] = self._text(f"{entry}.note", table["note"], 0, MOST_NOTE)

    def _note_single(self, entry: str, single: Any, names: Sequence[str]) -> None:
        key = f"{entry}.provenance_of"
        wanted = "format = 2 of a file that says where single values come from"
        self._expect(self.format > 1, key, wanted, f"format = {self.format}")
        self._expect(isinstance(single, dict), key, "a table", single)
        for name, provenance in single.items():
            if not _is_one_of(name, names):
                wanted = f"names of values in [{entry}] only, in quotes: {_listed(names)}"
                self._expect(False, key, wanted, name, f"{key}.{str_short(name)}")
            place = f"{key}.{name}"
            self.provenance[f"{entry}.{name}"] = self._one_of(place, provenance, PROVENANCES)

    # What is expected

    def _main(self, entry: str, table: Any, main: str) -> tuple[str, Any]:
        """Return key and main value of a table after checking which keys it has."""
        self._expect_keys(entry, table, (main, *_LABELS), _OPTIONAL)
        return f"{entry}.{main}", table[main]

    def _expect_names(self, key: str, table: Any, names: Sequence[str], wanted: str) -> None:
        """Expect a table with exactly some keys."""
        self._expect(isinstance(table, dict), key, wanted, table)
        lost = [name for name in names if name not in table]
        more = [name for name in table if not _is_one_of(name, names)]
        if lost or more:
            place = f"{key}.{str_short((lost + more)[0])}"
            self._expect(False, key, wanted, " ".join(map(str_short, table)) or "none", place)

    def _expect_list(self, key: str, value: Any, length: int, what: str) -> None:
        right = isinstance(value, list) and len(value) == length
        self._expect(right, key, f"{length} {what}", _size(value))

    def _text(self, key: str, value: Any, least: int, most: int) -> str:
        right = type(value) is str and least <= len(value) <= most and _is_unicode(value)
        what = "a word" if least else "text"
        self._expect(right, key, f"{what} of at most {most} characters", value)
        return str(value)


_OPTIONAL = ("provenance_of", "note")
_LABELS = ("provenance", *_OPTIONAL)
_ENTRIES = (
    *("format", "name", "max_rounds", "dice", "ring", "routes", "mountains", "areas"),
    *("starts", "boutiques", "commerce", "culture", "temple", "garden"),
)


def _is_unicode(text: str) -> bool:
    """Return whether no half of a surrogate pair is in a text: no file could hold it."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _listed(names: Sequence[str]) -> str:
    return f"{names[0]} to {names[-1]}" if names[-1].isdigit() else ", ".join(names)


def _size(value: Any) -> Any:
    return len(value) if isinstance(value, list) else value
