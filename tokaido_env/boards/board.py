"""Validated boards: load and save them, and compile them for the kernels.

A board file holds only the values printed on a board (see `boards/shikoku.toml`). This module
derives the rest once: the borders of areas, neighbouring areas, and the places and icons that a
merchant or an artist reaches with each die.

A board also has provenances, of tables or of single values, and notes; neither affects play. Files,
text (`to_toml`) and plain data (`to_dict`) have the same content and pass the same checks.
"""

from __future__ import annotations

import functools
import hashlib
import json
import warnings
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.geometry import (
    area_paths,
    areas_on_the_way,
    neighbours,
    town_areas,
    town_reach,
)
from tokaido_env.boards.procedural import family_numbers, is_family
from tokaido_env.boards.reader import BoardError, BoardNameWarning, read_board_data, read_board_file
from tokaido_env.boards.writer import board_data, board_text
from tokaido_env.core.arguments import repr_short, short_path, unknown_name
from tokaido_env.core.constants import (
    ANY_DIE,
    AREAS,
    ARTIST,
    CAPACITY,
    COAST,
    COASTAL_TOWNS,
    ICONS,
    MAX_DIE,
    MERCHANT,
    SIXTHS,
    STATIONS,
    TOWNS,
    WARES,
)
from tokaido_env.core.state import BOARD, initial_states
from tokaido_env.files import file_sha256, is_file, write_text

BOARDS_FOLDER = Path(__file__).resolve().parent
_KINDS = {**dict.fromkeys(COASTAL_TOWNS, COAST), **{kind: i for i, kind in enumerate(STATIONS)}}


@dataclass(frozen=True)
class Board:
    """A validated board: load one with `Board.load`. The kernels use `record`.

    `==` and `hash` ignore `provenance` and `notes`.

    Attributes:
        name: of the board.
        source: the file or number that it came from.
        max_rounds: the cap on rounds.
        faces: six numbers for each character's die.
        stations: clockwise from C1; a coastal town by its name.
        routes: pairs of towns.
        mountain_numbers: wares drawn at M1 to M4.
        area_icons: of A1 to A8.
        starts: ring index of the pilgrim, town of the merchant and area of the artist, by seat.
        boutiques: ware and price of each token.
        commerce: points with 0 to 6 gold slabs.
        culture: points with 0 to 10 paintings given.
        temple: numbers of the slots 1 to 9.
        garden: numbers of the slots 1 to 6.
        provenance: of tables (`"culture"`, `"dice.pilgrim"`), and of single values that differ from
            their tables (`"culture.6"`, `"mountains.M1"`, `"starts.player_0.pilgrim"`).
        notes: texts by table.
    """

    name: str
    source: str
    max_rounds: int
    faces: tuple[tuple[int, ...], ...]
    stations: tuple[str, ...]
    routes: tuple[tuple[str, str], ...]
    mountain_numbers: tuple[int, ...]
    area_icons: tuple[str, ...]
    starts: tuple[tuple[int, str, str], ...]
    boutiques: tuple[tuple[str, int], ...]
    commerce: tuple[int, ...]
    culture: tuple[int, ...]
    temple: tuple[int, ...]
    garden: tuple[int, ...]
    provenance: dict[str, str] = field(compare=False)
    notes: dict[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def load(cls, board: str | Path | Board = "shikoku") -> Board:
        """Load a board by name, from a file or by its number in the family.

        Args:
            board: a built-in name, the path of a file (recognised by its `.toml`), a number of the
                family (`family:7`), or a `Board`, which is returned unchanged.

        Raises:
            BoardError: if there is no such board or the file breaks a rule of the game.
        """
        if isinstance(board, Board):
            return board
        if not isinstance(board, str | Path):
            raise BoardError(
                f"board: expected a name, the path of a .toml or a Board, got {repr_short(board)}"
            )
        if is_family(board):
            return cls._from_family(str(board))
        path = Path(board)
        if path.suffix != ".toml":
            path = BOARDS_FOLDER / f"{board}.toml"
            if str(board) not in built_in_boards():
                raise BoardError(f"{_unknown(str(board))} or a path that ends in .toml")
        if not is_file(path):
            raise BoardError(f"{short_path(path)}: no such board file")
        return _load_file(path, file_sha256(path))

    @classmethod
    def by_name(cls, name: str) -> Board:
        """Load a built-in board or one of the family; refuse paths, as `name` may be untrusted.

        Raises:
            BoardError: if there is no such board.
        """
        if not is_family(name) and name not in built_in_boards():
            raise BoardError(f"{_unknown(name)} or its board file")
        return cls.load(name)

    @classmethod
    def _from_family(cls, spec: str) -> Board:
        numbers = family_numbers(spec)
        if len(numbers) > 1:
            raise BoardError(
                f"board: expected one board, such as family:{numbers[0]}, got {spec}, a pool of "
                f"{len(numbers):,}"
            )
        return cls.generate(numbers[0])

    @classmethod
    def generate(cls, number: int) -> Board:
        """Return a board of the family; `boards.generator` has the distribution.

        Args:
            number: from 0 to 2**31 - 1, or of the split `far` (`procedural.SPLITS`). The board's
                name is `family:<number>`.

        Raises:
            BoardError: if the number is out of range.
        """
        from tokaido_env.boards.generator import draw_board

        return cls(**draw_board(number))

    def save(self, path: str | Path) -> None:
        """Write the board to a file atomically; the file loads to the same record.

        Args:
            path: must end in `.toml`, by which `Board.load` recognises files.

        Raises:
            BoardError: if the path does not end in `.toml`.
            OSError: if the file cannot be written.
        """
        file = Path(path)
        if file.suffix != ".toml":
            raise BoardError(f"path: expected a name that ends in .toml, got {short_path(file)}")
        write_text(file, self.to_toml())

    def to_toml(self) -> str:
        """Return the TOML text that `save` writes."""
        return board_text(self._fields())

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file of `save` as dicts, lists, strings and integers."""
        return board_data(self._fields())

    @classmethod
    def from_dict(cls, data: object, source: str = "the board") -> Board:
        """Return a board from plain data, such as those of `to_dict`, `tomllib` or JSON.

        Args:
            data: not trusted; checked as a file is.
            source: the name of the data in errors, and `Board.source`.

        Raises:
            BoardError: if the data are no board or break a rule of the game.
        """
        board = cls(**read_board_data(data, source))
        _warn_of_name(board, source, stacklevel=3)
        return board

    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @functools.cached_property
    def hash(self) -> str:
        """Sixteen hex digits of the SHA-256 of all values that affect play."""
        ignored = ("name", "source", "provenance", "notes")
        data = {name: value for name, value in self._fields().items() if name not in ignored}
        text = json.dumps(data, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @functools.cached_property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """The different boutique tokens, (ware, price in coins), by their outcome id at set-up."""
        return tuple(dict.fromkeys(self.boutiques))

    @functools.cached_property
    def borders(self) -> tuple[frozenset[str], ...]:
        """The towns around each area, on the path between its two coastal towns (R3.3)."""
        return tuple(frozenset(path) for path in area_paths(self.routes))

    @functools.cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The areas next to each area, ascending (R3.1)."""
        return neighbours(self.routes)

    @functools.cached_property
    def record(self) -> npt.NDArray[np.void]:
        """The board's lookup tables for the kernels, `BOARD` (1,)."""
        return _compile(self)

    @functools.cached_property
    def start(self) -> bytes:
        """The state before the set-up (R1), as the bytes of `STATE` (1,)."""
        return initial_states(self.record).tobytes()


def built_in_boards() -> list[str]:
    """Return the names of the boards that come with the package."""
    return sorted(path.stem for path in BOARDS_FOLDER.glob("*.toml"))


def _unknown(name: str) -> str:
    return f"{unknown_name('board', name, built_in_boards())}; or give family:NUMBER"


@functools.lru_cache(maxsize=64)
def _load_file(path: Path, sha256: str) -> Board:
    """Read and check a file; its SHA-256 is in the cache key, as files can change."""
    board = Board(**read_board_file(path))
    if path.parent != BOARDS_FOLDER:
        _warn_of_name(board, short_path(path), stacklevel=4)
    return board


def _warn_of_name(board: Board, source: str, stacklevel: int) -> None:
    """Warn if the name is that of another board, to which records and positions would refer."""
    try:
        known = Board.by_name(board.name)
    except BoardError:
        return
    if known.hash != board.hash:
        warnings.warn(
            f"{source}: name: {repr_short(board.name)} is another board, with other values: "
            "choose another name, because positions and records refer to that board",
            BoardNameWarning,
            stacklevel=stacklevel,
        )


def _compile(board: Board) -> npt.NDArray[np.void]:
    """Return a board's lookup tables for the kernels, `BOARD` (1,)."""
    record = np.zeros(1, BOARD)
    row = record[0]
    row["max_rounds"] = board.max_rounds
    row["town_reach"] = town_reach(board.routes)
    row["town_areas"] = town_areas(board.routes)
    _fill_ring(row, board)
    row["mountain_number"] = board.mountain_numbers
    _fill_dice_and_tokens(row, board)
    _fill_artist_reach(row, board)
    _fill_draws(row)
    row["area_icon"] = [ICONS.index(icon) for icon in board.area_icons]
    row["commerce"] = board.commerce
    row["culture"] = board.culture
    row["temple"][1:] = board.temple
    row["garden"][1:] = board.garden
    for seat, (pilgrim, merchant, artist) in enumerate(board.starts):
        row["start"][seat] = (pilgrim, TOWNS.index(merchant), AREAS.index(artist))
    return record


def _fill_ring(row: np.void, board: Board) -> None:
    """Fill the ring's tables; an area has the stations between two coastal towns (R3.3)."""
    size = len(board.stations)
    row["ring_size"] = size
    row["station_kind"][:size] = kinds = [_KINDS[station] for station in board.stations]
    row["ring_kinds"] = np.bincount(kinds, minlength=len(STATIONS))
    coast_station, station_areas = row["coast_station"], row["station_areas"]
    area = -1
    for index, station in enumerate(board.stations):
        if station in COASTAL_TOWNS:
            area += 1
            coast_station[area] = index
            station_areas[index] = 1 << (area - 1) % 8
        station_areas[index] |= 1 << area


def _fill_artist_reach(row: np.void, board: Board) -> None:
    touched = areas_on_the_way(board.neighbours)
    reached = touched != 0
    row["area_reach"] = reached @ (1 << np.arange(len(AREAS)))
    has_icon = np.equal.outer(board.area_icons, ICONS)  # (areas, icons)
    areas = (1 << np.arange(len(AREAS))) @ has_icon  # of each icon
    passed = touched[..., None] & areas != 0
    row["icons_touched"] = passed @ (1 << np.arange(len(ICONS)))
    matched = np.stack([reached @ has_icon, passed.any(axis=2)])
    row["gift_faces"] = SIXTHS * matched
    row["gift_faces"][:, ANY_DIE] = np.tensordot(row["face_count"][ARTIST], matched, (0, 1))


def _fill_draws(row: np.void) -> None:
    """Fill the wares that a merchant can draw after a move, from the other tables."""
    mountains = row["town_reach"][..., None] >> len(COASTAL_TOWNS) + np.arange(4) & 1
    most = (mountains * row["mountain_number"]).max(axis=-1)  # (dice, towns)
    row["most_drawn"] = most
    drawn = np.minimum(most, np.arange(CAPACITY + 1)[:, None, None])
    row["draw_faces"] = np.tensordot(row["face_count"][MERCHANT], drawn, (0, 1))


def _fill_dice_and_tokens(row: np.void, board: Board) -> None:
    for character, faces in enumerate(board.faces):
        row["faces"][character] = faces
        row["face_count"][character] = [faces.count(value) for value in range(MAX_DIE + 1)]
    row["kinds"] = kinds = len(board.kinds)
    row["kind_ware"][:kinds] = [WARES.index(ware) for ware, _ in board.kinds]
    row["kind_price"][:kinds] = [price for _, price in board.kinds]
    row["kind_bits"][:kinds] = [
        (1 - price % 2 | (price > 2) << 32) << 8 * WARES.index(ware) for ware, price in board.kinds
    ]
    row["kind_count"][:kinds] = [board.boutiques.count(kind) for kind in board.kinds]
    np.maximum.at(row["best_price"], row["kind_ware"][:kinds], row["kind_price"][:kinds])
