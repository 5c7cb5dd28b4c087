"""The board as data: read a board file, check it, derive its geometry, compile it to one record.

A board file holds only what is printed on a board (see `boards/shikoku.toml`). Everything else is
derived here, once: which areas border which stations and towns, which areas are neighbours, what a
merchant or an artist reaches with each die, which icons an artist can touch on the way.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

CHARACTERS = ("pilgrim", "merchant", "artist")
WARES = ("kimono", "pottery", "doll", "fan")
ICONS = ("moon", "waterfall", "mountain", "bamboo")
COASTAL_TOWNS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8")
MOUNTAIN_TOWNS = ("M1", "M2", "M3", "M4")
TOWNS = COASTAL_TOWNS + MOUNTAIN_TOWNS
AREAS = ("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8")
STATIONS = ("coastal town", "temple", "garden", "hot spring", "seashore")
COAST, TEMPLE, GARDEN, HOT_SPRING, SEASHORE = range(5)

PROVENANCES = ("rulebook", "public source", "inferred", "reconstruction", "box")
RING_SIZES = (20, 40)
MAX_DIE = 6
MAX_ROUNDS = 400

BOARDS_FOLDER = Path(__file__).resolve().parent

# Signed throughout: a mix of signed and unsigned integers becomes a float in a kernel.
BOARD = np.dtype(
    [
        ("max_rounds", "<i2"),  # R10.1
        ("town_reach", "<i2", (MAX_DIE + 1, 12)),  # [die, town]: bit t = town t is that far (R4.1)
        ("area_reach", "<i2", (MAX_DIE + 1, 8)),  # [die, area]: bit a = area a is that far (R3.1)
        ("icons_touched", "<i2", (MAX_DIE + 1, 8, 8)),  # [die, from, to]: bit = icon (R7.2)
        ("area_icon", "i1", 8),  # index into ICONS
        ("town_areas", "<i2", 12),  # bit a = the town borders area a (R3.3)
        ("station_areas", "<i2", RING_SIZES[1]),  # bit a = the station borders area a
        ("station_kind", "i1", RING_SIZES[1]),  # index into STATIONS
        ("station_coast", "<i2", RING_SIZES[1]),  # bit c = coastal town c is the station
        ("coast_station", "i1", 8),  # ring index of each coastal town
        ("ring_size", "i1"),
        ("mountain_number", "i1", 4),  # wares drawn (R4.3)
        ("face_count", "i1", (3, MAX_DIE + 1)),  # [character, value]: faces with that value
        ("faces", "i1", (3, 6)),  # [character, face]: its value
        ("kinds", "i1"),  # different boutique tokens (ware, price)
        ("kind_ware", "i1", 8),
        ("kind_price", "i1", 8),
        ("kind_count", "i1", 8),
        ("commerce", "<i2", 7),  # by gold slabs (R9.2)
        ("culture", "<i2", 11),  # by paintings given
        ("temple", "<i2", 10),  # by peg, 1 to 9
        ("garden", "<i2", 7),  # by peg, 1 to 6
        ("start", "i1", (2, 3)),  # [seat, character]: ring index, town, area
    ]
)


class BoardError(ValueError):
    """A board that cannot be used: the message names the file, the key and what was expected."""


@dataclass(frozen=True)
class Board:
    """A validated board. Load one with `Board.load`; `record` is what the kernels read."""

    name: str
    source: str  # the file it came from
    max_rounds: int
    faces: tuple[tuple[int, ...], ...]  # by character
    stations: tuple[str, ...]  # clockwise from C1; a coastal town by its name
    routes: tuple[tuple[str, str], ...]
    mountain_numbers: tuple[int, ...]  # M1 … M4
    area_icons: tuple[str, ...]  # A1 … A8
    starts: tuple[tuple[int, str, str], ...]  # by seat: ring index, town, area
    boutiques: tuple[tuple[str, int], ...]  # ware and price of each token
    commerce: tuple[int, ...]
    culture: tuple[int, ...]
    temple: tuple[int, ...]
    garden: tuple[int, ...]
    provenance: dict[str, str] = field(compare=False)  # entry of the file -> where it comes from

    @classmethod
    def load(cls, board: str | Path | Board = "shikoku") -> Board:
        """Load a board by the name of a built-in one or from your own TOML file.

        Args:
            board: a built-in name, the path of a file (recognised by its `.toml`), or a `Board`,
                which is returned as it is.

        Raises:
            BoardError: if there is no such board or the file breaks a rule of the game.
        """
        if isinstance(board, Board):
            return board
        path = Path(board)
        if path.suffix != ".toml":
            path = BOARDS_FOLDER / f"{board}.toml"
            if str(board) not in built_in_boards():
                names = ", ".join(built_in_boards())
                raise BoardError(
                    f"unknown board {str(board)!r}: expected one of {names}, or a path to a .toml"
                )
        if not path.is_file():
            raise BoardError(f"{path}: no such board file")
        stat = path.stat()
        return _load_file(path, stat.st_mtime_ns, stat.st_size)

    @functools.cached_property
    def hash(self) -> str:
        """Sixteen hex digits that change when anything that affects play changes."""
        skipped = ("name", "source", "provenance")
        data = {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}
        text = json.dumps({k: v for k, v in data.items() if k not in skipped}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @functools.cached_property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """The different boutique tokens, in the file's order: the outcomes of their setup."""
        return tuple(dict.fromkeys(self.boutiques))

    @functools.cached_property
    def borders(self) -> tuple[frozenset[str], ...]:
        """The towns around each area: those on the route between its two coastal towns (R3.3)."""
        return tuple(frozenset(path) for path in _area_paths(self.routes))

    @functools.cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The areas that share a route with each area, ascending (R3.1)."""
        edges = [_edges(path) for path in _area_paths(self.routes)]
        return tuple(tuple(b for b in range(8) if b != a and edges[a] & edges[b]) for a in range(8))

    @functools.cached_property
    def record(self) -> npt.NDArray[np.void]:
        """The lookup tables of the kernels: a `BOARD` array of shape (1,)."""
        return _compile(self)


def built_in_boards() -> list[str]:
    """Return the names of the boards that come with the package."""
    return sorted(path.stem for path in BOARDS_FOLDER.glob("*.toml"))


@functools.lru_cache(maxsize=64)
def _load_file(path: Path, modified_ns: int, size: int) -> Board:
    """Read and check a file; time and size are in the key so that an edited file is read anew."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BoardError(f"{path}: not a TOML file: {error}") from None
    return _BoardFile(str(path), data).board()


class _BoardFile:
    """Checks one parsed file entry by entry, so that each mistake gives one clear error."""

    def __init__(self, source: str, data: Mapping[str, Any]) -> None:
        self.source = source
        self.data = data
        self.provenance: dict[str, str] = {}

    def board(self) -> Board:
        self._expect_keys("the file", self.data, _ENTRIES)
        self._integer("format", self.data["format"], 1, 1)
        stations = self._stations()
        return Board(
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
        self._expect(isinstance(name, str) and name != "", "name", "a word", name)
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
        reached = _component("C1", routes)
        lost = [town for town in TOWNS if town not in reached]
        self._expect(not lost, key, "every town reachable from C1", f"no way to {', '.join(lost)}")
        self._expect(len(routes) == 11, key, "11 routes, a tree on 12 towns", f"{len(routes)}")
        for town in TOWNS:
            degree = sum(town in route for route in routes)
            right = degree == 1 if town in COASTAL_TOWNS else degree > 1
            wanted = "one route at each coastal town, two or more at each mountain town"
            self._expect(right, key, wanted, f"{degree} at {town}")
        shared: dict[frozenset[str], int] = {}
        for path in _area_paths(routes):
            for edge in _edges(path):
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
            raise BoardError(f"{self.source}: {key}: expected {wanted}, got {got!s}")


_LABELS = ("provenance", "note")
_ENTRIES = (
    *("format", "name", "max_rounds", "dice", "ring", "routes", "mountains", "areas"),
    *("starts", "boutiques", "commerce", "culture", "temple", "garden"),
)


def _size(value: Any) -> str:
    return str(len(value)) if isinstance(value, list) else f"{value!r}"


def _component(town: str, routes: tuple[tuple[str, str], ...]) -> set[str]:
    reached = {town}
    for _ in routes:
        reached |= {t for route in routes if reached & set(route) for t in route}
    return reached


def _area_paths(routes: tuple[tuple[str, str], ...]) -> list[tuple[str, ...]]:
    """Return, for each area, the towns on the way between its two coastal towns."""
    graph = _graph(routes)
    ends = zip(COASTAL_TOWNS, COASTAL_TOWNS[1:] + COASTAL_TOWNS[:1], strict=True)
    return [next(_paths(graph, start, end)) for start, end in ends]


def _graph(routes: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    return {
        town: [other for route in routes if town in route for other in route if other != town]
        for town in TOWNS
    }


def _paths(
    graph: Mapping[str, list[str]], start: str, end: str, before: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    path = (*before, start)
    if start == end:
        yield path
    for town in graph[start]:
        if town not in path:
            yield from _paths(graph, town, end, path)


def _edges(path: tuple[str, ...]) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in itertools.pairwise(path)}


def _compile(board: Board) -> npt.NDArray[np.void]:
    """Lay a board out as the kernels' lookup tables."""
    record = np.zeros(1, BOARD)
    row = record[0]
    row["max_rounds"] = board.max_rounds
    _fill_ring(row, board)
    _fill_merchant_reach(row, board)
    _fill_artist_reach(row, board)
    _fill_dice_and_tokens(row, board)
    row["mountain_number"] = board.mountain_numbers
    row["area_icon"] = [ICONS.index(icon) for icon in board.area_icons]
    row["commerce"] = board.commerce
    row["culture"] = board.culture
    row["temple"][1:] = board.temple
    row["garden"][1:] = board.garden
    for seat, (pilgrim, merchant, artist) in enumerate(board.starts):
        row["start"][seat] = (pilgrim, TOWNS.index(merchant), AREAS.index(artist))
    return record


def _fill_ring(row: np.void, board: Board) -> None:
    """An area holds the stations from one coastal town to the next, both included (R3.3)."""
    row["ring_size"] = len(board.stations)
    area = -1
    for index, station in enumerate(board.stations):
        if station in COASTAL_TOWNS:
            coast = COASTAL_TOWNS.index(station)
            row["station_coast"][index] = 1 << coast
            row["coast_station"][coast] = index
            row["station_areas"][index] = 1 << coast | 1 << (coast - 1) % 8
            area = coast
        else:
            row["station_kind"][index] = STATIONS.index(station)
            row["station_areas"][index] = 1 << area
    for area, towns in enumerate(board.borders):
        for town in towns:
            row["town_areas"][TOWNS.index(town)] |= 1 << area


def _fill_merchant_reach(row: np.void, board: Board) -> None:
    graph = _graph(board.routes)
    for start, end in itertools.product(range(12), repeat=2):
        # In a tree there is one simple path between two towns.
        distance = len(next(_paths(graph, TOWNS[start], TOWNS[end]))) - 1
        if distance <= MAX_DIE:
            row["town_reach"][distance, start] |= 1 << end


def _fill_artist_reach(row: np.void, board: Board) -> None:
    for start in range(8):
        for path in _simple_walks(board.neighbours, (start,)):
            distance, end = len(path) - 1, path[-1]
            row["area_reach"][distance, start] |= 1 << end
            for area in path:
                icon = ICONS.index(board.area_icons[area])
                row["icons_touched"][distance, start, end] |= 1 << icon


def _simple_walks(
    neighbours: tuple[tuple[int, ...], ...], path: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """Yield every simple path that begins with the given one, up to the longest die."""
    yield path
    if len(path) <= MAX_DIE:
        for area in neighbours[path[-1]]:
            if area not in path:
                yield from _simple_walks(neighbours, (*path, area))


def _fill_dice_and_tokens(row: np.void, board: Board) -> None:
    for character, faces in enumerate(board.faces):
        row["faces"][character] = faces
        for value in faces:
            row["face_count"][character, value] += 1
    row["kinds"] = len(board.kinds)
    for kind, (ware, price) in enumerate(board.kinds):
        row["kind_ware"][kind] = WARES.index(ware)
        row["kind_price"][kind] = price
        row["kind_count"][kind] = board.boutiques.count((ware, price))
