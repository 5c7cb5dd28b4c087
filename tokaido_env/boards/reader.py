"""Reads board files and checks them entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokaido_env.boards.geometry import area_paths, component, edges
from tokaido_env.core.box import (
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
from tokaido_env.core.checks import MOST_NAME, MOST_PATH, brief, plain
from tokaido_env.files import read_toml

PROVENANCES = ("rulebook", "public source", "inferred", "reconstruction", "box")


class BoardError(ValueError):
    """A board that cannot be used: the message names the file, the key and what was expected."""


def read_board_file(path: Path) -> dict[str, Any]:
    """Return the fields of a `Board` from a TOML file.

    Raises:
        BoardError: if the file breaks a rule of the game.
    """
    try:
        data = read_toml(path)
    except ValueError as error:
        raise BoardError(plain(str(error), MOST_PATH + 250)) from None
    return _BoardFile(str(path), data).fields()


class _BoardFile:
    """Checks one parsed file entry by entry, so that each mistake gives one clear error."""

    def __init__(self, source: str, data: Mapping[str, Any]) -> None:
        self.source = source
        self.data = data
        self.provenance: dict[str, str] = {}

    def fields(self) -> dict[str, Any]:
        self._expect_keys("the file", self.data, _ENTRIES)
        self._integer("format", self.data["format"], 1, 1)
        stations = self._stations()
        return dict(
            name=self._name(),
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
        )

    def _name(self) -> str:
        name = self.data["name"]
        right = isinstance(name, str) and 0 < len(name) <= MOST_NAME
        self._expect(right, "name", f"a word of at most {MOST_NAME} characters", name)
        return str(name)

    def _dice(self) -> tuple[tuple[int, ...], ...]:
        self._expect_keys("[dice]", self.data["dice"], CHARACTERS)
        dice = []
        for character in CHARACTERS:
            key = f"dice.{character}"
            faces = self._entry(key, self.data["dice"][character], "faces")
            self._expect_list(f"{key}.faces", faces, 6, "faces")
            dice.append(tuple(self._integer(f"{key}.faces", f, 1, MAX_DIE) for f in faces))
        return tuple(dice)

    def _stations(self) -> tuple[str, ...]:
        stations = self._entry("ring", self.data["ring"], "stations")
        key = "ring.stations"
        low, high = RING_SIZES
        right_size = isinstance(stations, list) and low <= len(stations) <= high
        self._expect(right_size, key, f"{low} to {high} stations", _size(stations))
        known = COASTAL_TOWNS + STATIONS[1:]
        for station in stations:
            self._expect(station in known, key, "one of " + ", ".join(known), station)
        towns = [station for station in stations if station in COASTAL_TOWNS]
        wanted = "the 8 coastal towns C1 to C8, once each, in this order"
        self._expect(tuple(towns) == COASTAL_TOWNS, key, wanted, " ".join(towns) or "none")
        self._expect(stations[0] == "C1", key, "C1 first", stations[0])
        return tuple(stations)

    def _mountains(self) -> tuple[int, ...]:
        numbers = self._entry("mountains", self.data["mountains"], "numbers")
        key = "mountains.numbers"
        wanted = "the 4 mountain towns M1 to M4"
        right = isinstance(numbers, dict) and set(numbers) == set(MOUNTAIN_TOWNS)
        self._expect(
            right, key, wanted, " ".join(numbers) if isinstance(numbers, dict) else numbers
        )
        return tuple(self._integer(f"{key}.{m}", numbers[m], 2, 4) for m in MOUNTAIN_TOWNS)

    def _routes(self) -> tuple[tuple[str, str], ...]:
        pairs = self._entry("routes", self.data["routes"], "pairs")
        key = "routes.pairs"
        self._expect(isinstance(pairs, list), key, "a list of pairs of towns", pairs)
        for pair in pairs:
            right = isinstance(pair, list) and len(pair) == 2 and pair[0] != pair[1]
            self._expect(right, key, "two different towns in each route", pair)
            for town in pair:
                self._expect(town in TOWNS, key, "a route between C1 to C8 and M1 to M4", town)
        routes = tuple((str(a), str(b)) for a, b in pairs)
        self._check_tree(key, routes)
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
        icons = self._entry("areas", self.data["areas"], "icons")
        key = "areas.icons"
        right = isinstance(icons, dict) and set(icons) == set(AREAS)
        self._expect(right, key, "the 8 areas A1 to A8", icons)
        for area in AREAS:
            wanted = "one of " + ", ".join(ICONS)
            self._expect(icons[area] in ICONS, f"{key}.{area}", wanted, icons[area])
        return tuple(icons[area] for area in AREAS)

    def _starts(self, stations: tuple[str, ...]) -> tuple[tuple[int, str, str], ...]:
        table = self.data["starts"]
        seats = ("player_0", "player_1")
        self._expect_keys("[starts]", table, (*seats, *_LABELS))
        self._note_provenance("starts", table)
        starts = tuple(self._start(f"starts.{seat}", table[seat], stations) for seat in seats)
        spaces = [stations[start[0]] + f"#{start[0]}" for start in starts]
        spaces += [f"{s[1]}#{stations.index(s[1])}" for s in starts if s[1] in COASTAL_TOWNS]
        right = len(set(spaces)) == len(spaces)
        self._expect(right, "starts", "no two characters on one station", " ".join(spaces))
        return starts

    def _start(self, key: str, start: Any, stations: tuple[str, ...]) -> tuple[int, str, str]:
        self._expect_keys(f"[{key}]", start, CHARACTERS)
        pilgrim, merchant, artist = (start[character] for character in CHARACTERS)
        if pilgrim in COASTAL_TOWNS:
            pilgrim = stations.index(pilgrim)
        wanted = f"a coastal town or a ring index from 0 to {len(stations) - 1}"
        is_space = type(pilgrim) is int and 0 <= pilgrim < len(stations)
        self._expect(is_space, f"{key}.pilgrim", wanted, pilgrim)
        self._expect(merchant in TOWNS, f"{key}.merchant", "a town, C1 to C8 or M1 to M4", merchant)
        self._expect(artist in AREAS, f"{key}.artist", "an area, A1 to A8", artist)
        return pilgrim, merchant, artist

    def _boutiques(self) -> tuple[tuple[str, int], ...]:
        tokens = self._entry("boutiques", self.data["boutiques"], "tokens")
        key = "boutiques.tokens"
        self._expect_list(key, tokens, 8, "tokens")
        for token in tokens:
            right = isinstance(token, list) and len(token) == 2 and token[0] in WARES
            wanted = "[ware, price] with a ware of " + ", ".join(WARES)
            self._expect(right, key, wanted, token)
        return tuple((ware, self._integer(key + " price", price, 2, 4)) for ware, price in tokens)

    def _numbers(self, entry: str, key: str, length: int) -> tuple[int, ...]:
        numbers = self._entry(entry, self.data[entry], key)
        where = f"{entry}.{key}"
        self._expect_list(where, numbers, length, "numbers")
        values = tuple(self._integer(where, number, 0, 255) for number in numbers)
        self._expect(list(values) == sorted(values), where, "numbers that never fall", values)
        return values

    def _entry(self, name: str, table: Any, key: str) -> Any:
        """Return the value of an entry after checking its keys and noting its provenance."""
        self._expect_keys(f"[{name}]", table, (key, *_LABELS))
        self._note_provenance(name, table)
        return table[key]

    def _note_provenance(self, name: str, table: Mapping[str, Any]) -> None:
        provenance = table["provenance"]
        wanted = "one of " + ", ".join(PROVENANCES)
        self._expect(provenance in PROVENANCES, f"{name}.provenance", wanted, provenance)
        self.provenance[name] = provenance

    def _expect_keys(self, where: str, table: Any, keys: tuple[str, ...]) -> None:
        self._expect(isinstance(table, dict), where, "a table", table)
        for key in keys:
            self._expect(key in table or key == "note", where, f"the key {key!r}", "no such key")
        for key in table:
            self._expect(key in keys, where, "only the keys " + ", ".join(keys), key)

    def _expect_list(self, key: str, value: Any, length: int, what: str) -> None:
        right = isinstance(value, list) and len(value) == length
        self._expect(right, key, f"{length} {what}", _size(value))

    def _integer(self, key: str, value: Any, low: int, high: int) -> int:
        right = type(value) is int and low <= value <= high
        self._expect(right, key, f"a whole number from {low} to {high}", value)
        return int(value)

    def _expect(self, right: bool, key: str, wanted: str, got: object) -> None:
        if not right:
            source = plain(self.source, MOST_PATH)
            raise BoardError(f"{source}: {key}: expected {wanted}, got {brief(got)}")


_LABELS = ("provenance", "note")
_ENTRIES = (
    *("format", "name", "max_rounds", "dice", "ring", "routes", "mountains", "areas"),
    *("starts", "boutiques", "commerce", "culture", "temple", "garden"),
)


def _size(value: Any) -> str:
    return str(len(value)) if isinstance(value, list) else f"{value!r}"
