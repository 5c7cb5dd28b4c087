"""Tests of boards/board.py and boards/reader.py: the default board, errors and the hash."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import DROP, SHIKOKU, changed, other_board_data, shikoku_data, write_board

from tokaido_env import Board, BoardError, Game
from tokaido_env.boards.board import built_in_boards
from tokaido_env.boards.reader import MAX_NOTE_CHARS, BoardNameWarning
from tokaido_env.core.constants import AREAS, COASTAL_TOWNS, TOWNS
from tokaido_env.core.state import BOARD

# The neighbours of each area, from RULES.md.
ADJACENCY = {
    "A1": "A2 A7 A8",
    "A2": "A1 A3 A6",
    "A3": "A2 A4 A5",
    "A4": "A3 A5",
    "A5": "A3 A4 A6",
    "A6": "A2 A5 A7",
    "A7": "A1 A6 A8",
    "A8": "A1 A7",
}
# The towns between the two coastal towns of each area.
BORDERS = {
    "A1": "C1 M1 M2 C2",
    "A2": "C2 M2 M3 C3",
    "A3": "C3 M3 M4 C4",
    "A4": "C4 M4 C5",
    "A5": "C5 M4 M3 C6",
    "A6": "C6 M3 M2 C7",
    "A7": "C7 M2 M1 C8",
    "A8": "C8 M1 C1",
}


@pytest.fixture
def shikoku() -> Board:
    return Board.load()


def names(mask: int, all_names: tuple[str, ...]) -> list[str]:
    return [name for i, name in enumerate(all_names) if mask >> i & 1]


# The default board


def test_default_board__is_built_in(shikoku: Board) -> None:
    assert "shikoku" in built_in_boards()
    assert (shikoku.name, shikoku.max_rounds) == ("shikoku", 200)
    assert Board.load("shikoku") == Board.load(SHIKOKU) == shikoku


@pytest.mark.parametrize("area", AREAS)
def test_default_board__has_the_areas_of_the_rules(shikoku: Board, area: str) -> None:
    index = AREAS.index(area)
    assert [AREAS[i] for i in shikoku.neighbours[index]] == ADJACENCY[area].split()
    assert shikoku.borders[index] == set(BORDERS[area].split())
    bordering = shikoku.record[0]["town_areas"] >> index & 1
    assert {town for town, is_one in zip(TOWNS, bordering, strict=True) if is_one} == set(
        BORDERS[area].split()
    )


def test_record__has_no_padding() -> None:
    assert BOARD.itemsize == sum(BOARD[name].itemsize for name in BOARD.names or ())


# Mistakes in board files


TOO_SMALL = [*COASTAL_TOWNS, *["temple"] * 3]
TOO_LARGE = [*COASTAL_TOWNS, *["temple"] * 33]
RING = shikoku_data()["ring"]["stations"]
ROUTES = shikoku_data()["routes"]["pairs"]
NUMBERS = shikoku_data()["mountains"]["numbers"]
TOKENS = shikoku_data()["boutiques"]["tokens"]


def with_routes(*routes: str, instead: str = "") -> list[list[str]]:
    """Return the default routes with some replaced: `with_routes("M3-C5", instead="M4-C5")`."""
    removed = [route.split("-") for route in instead.split()]
    assert all(route in ROUTES for route in removed)
    return [pair for pair in ROUTES if pair not in removed] + [route.split("-") for route in routes]


MISTAKES: list[tuple[str, Any]] = [
    # the ring
    ("ring.stations", RING[:24] + RING[25:]),
    ("ring.stations", [*RING, "C1"]),
    ("ring.stations", ["C2", *RING[1:3], "C1", *RING[4:]]),
    ("ring.stations", ["temple", *RING]),
    ("ring.stations", [*RING, "shrine"]),
    ("ring.stations", TOO_SMALL),
    ("ring.stations", TOO_LARGE),
    ("ring.stations", "C1"),
    # mountain towns
    ("mountains.numbers", {"M1": 3, "M2": 2, "M3": 4}),
    ("mountains.numbers", NUMBERS | {"M5": 3}),
    ("mountains.numbers.M2", 5),
    # routes
    ("routes.pairs", with_routes("M4-C9", instead="M4-C5")),
    ("routes.pairs", with_routes("M4", instead="M4-C5")),
    ("routes.pairs", with_routes("M4-M4")),
    ("routes.pairs", with_routes("M1-M2", instead="M3-M4")),
    ("routes.pairs", with_routes("M1-M3")),
    ("routes.pairs", with_routes("M3-C2", "M2-C3", instead="M2-C2 M3-C3")),  # they cross
    ("routes.pairs", with_routes("C4-C5", instead="M4-C5")),
    ("routes.pairs", with_routes("M3-C5", "M3-C4", instead="M4-C5 M4-C4")),
    ("routes.pairs", []),
    # dice
    ("dice.pilgrim.faces", [1, 2, 2, 3, 3]),
    ("dice.merchant.faces", [1, 2, 2, 3, 3, 7]),
    ("dice.merchant.faces", [True, 2, 2, 3, 3, 3]),
    ("dice", DROP),
    # areas
    ("areas.icons.A3", "sun"),
    ("areas.icons", shikoku_data()["areas"]["icons"] | {"A9": "moon"}),
    # starts
    ("starts.player_0.pilgrim", "M1"),
    ("starts.player_0.pilgrim", 28),
    ("starts.player_1.pilgrim", -1),
    ("starts.player_1.merchant", "C9"),
    ("starts.player_1.artist", "C1"),
    # tokens
    ("boutiques.tokens", TOKENS[1:]),
    ("boutiques.tokens", [["silk", 3], *TOKENS[1:]]),
    ("boutiques.tokens", [["fan", 5], *TOKENS[1:]]),
    ("boutiques.tokens", [["fan"], *TOKENS[1:]]),
    # points
    ("commerce.points", [0, 5, 11, 18, 26, 35]),
    ("garden.numbers", [1, 2, 3, 4, 5, 4]),
    ("garden.numbers", [1, 2, 3, 4, 5, 256]),
    ("garden.numbers", {"1": 1}),
    # the rest
    ("format", 3),
    ("format", 1),
    ("name", ""),
    ("name", 7),
    ("max_rounds", 401),
    ("ring.provenance", "grandmother"),
    ("ring.provenance", DROP),
    ("mountains.provenance_of", {"M2": "memory"}),
    ("ring.note", "x" * (MAX_NOTE_CHARS + 1)),
    ("ring.note", 5),
]


@pytest.mark.parametrize(("key", "value"), MISTAKES)
def test_reader__names_the_file_and_the_key_of_a_mistake(
    tmp_path: Path, key: str, value: Any
) -> None:
    path = write_board(tmp_path / "mine.toml", changed(shikoku_data(), key, value))
    with pytest.raises(BoardError) as error:
        Board.load(path)
    message = str(error.value)
    table, _, last = key.rpartition(".")
    missing = f"{table}: " if table else f"Object missing required field `{last}`"
    assert message.startswith((f"{path}: {key}", f"{path}: {missing}"))
    assert message.isprintable()


@pytest.mark.parametrize("seat", [0, 1])
def test_reader__refuses_two_characters_on_one_station(seat: int) -> None:
    data = changed(shikoku_data(), f"starts.player_{seat}.merchant", "C5")
    with pytest.raises(BoardError, match=r"player_1.*: expected no two characters on one station"):
        Board.from_dict(data)


def test_load__refuses_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"mine\.toml: no such board file"):
        Board.load(tmp_path / "mine.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(BoardError, match=r"folder\.toml: no such board file"):
        Board.load(tmp_path / "folder.toml")


def test_load__escapes_a_hostile_file_name_in_errors(tmp_path: Path) -> None:
    path = write_board(tmp_path / "\x1b[31m\n.toml", changed(shikoku_data(), "format", 3))
    with pytest.raises(BoardError, match=r"x1b\[31m\\n\.toml: format: ") as error:
        Board.load(path)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "wrong", [None, 5, b"shikoku", {}, "kyoto", "", "../boards/shikoku"], ids=str
)
def test_load__refuses_other_names_and_types(wrong: Any) -> None:
    with pytest.raises(BoardError, match=r"^(board: expected a name|unknown board)"):
        Game(wrong)


# Board files


def test_load__reads_a_board_file_by_its_path(tmp_path: Path) -> None:
    path = write_board(tmp_path / "other.toml", other_board_data())
    game = Game(path, chance="explicit")
    assert (game.board.name, game.board.source) == ("other", str(path))
    assert [p["pilgrim"] for p in game.to_dict()["players"]] == [6, 14]
    assert ("boutique:C1=fan/4", 3 / 8) in game.outcomes()
    assert Game(str(path), seed=3) == Game(Board.load(path), seed=3)


def test_load__reads_an_edited_file_again(tmp_path: Path) -> None:
    path = write_board(tmp_path / "mine.toml", shikoku_data())
    assert Board.load(path).max_rounds == 200
    write_board(path, changed(shikoku_data(), "max_rounds", 50))  # another size
    assert Board.load(path).max_rounds == 50
    write_board(path, changed(shikoku_data(), "max_rounds", 60))  # the same size, later
    os.utime(path, (10**9, 10**9))
    assert Board.load(path).max_rounds == 60


# The hash


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_rounds", 199),
        ("dice.pilgrim.faces", [1, 1, 2, 3, 3, 4]),
        ("dice.merchant.faces", [1, 1, 1, 2, 3, 3]),
        ("dice.artist.faces", [1, 1, 1, 2, 3, 3]),
        ("ring.stations.1", "garden"),
        ("routes.pairs", other_board_data()["routes"]["pairs"]),
        ("mountains.numbers.M1", 4),
        ("areas.icons.A1", "moon"),
        ("starts.player_0.pilgrim", 1),
        ("starts.player_0.merchant", "M2"),
        ("starts.player_1.artist", "A5"),
        ("boutiques.tokens.0", ["kimono", 3]),
        ("commerce.points.6", 46),
        ("culture.points.10", 41),
        ("temple.numbers.8", 10),
        ("garden.numbers.5", 7),
    ],
)
def test_hash__changes_with_what_affects_play(tmp_path: Path, key: str, value: Any) -> None:
    path = write_board(tmp_path / "mine.toml", changed(shikoku_data(), key, value))
    assert Board.load(path).hash != Board.load().hash
    assert not np.array_equal(Board.load(path).record, Board.load().record)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "mine"),
        ("ring.note", "as printed"),
        ("ring.note", DROP),
        ("ring.provenance", "box"),
        ("starts.player_0.pilgrim", 0),
    ],
)
def test_hash__ignores_names_notes_and_provenances(tmp_path: Path, key: str, value: Any) -> None:
    path = write_board(tmp_path / "mine.toml", changed(shikoku_data(), key, value))
    board = Board.load(path)
    assert board.hash == Board.load().hash
    assert re.fullmatch("[0-9a-f]{16}", board.hash)
    assert bytes(board.record) == bytes(Board.load().record)


@pytest.mark.parametrize("name", ["shikoku", "shikoku_ring", "family:7"])
def test_load__warns_of_another_boards_name(name: str, tmp_path: Path) -> None:
    path = write_board(tmp_path / "mine.toml", other_board_data() | {"name": name})
    message = (
        rf"mine\.toml: name: '{name}' is another board, with other values: choose another name"
    )
    with pytest.warns(BoardNameWarning, match=message) as warned:
        board = Board.load(path)
    with pytest.warns(BoardNameWarning, match="the board: name: ") as again:
        assert Board.from_dict(board.to_dict()).name == name
    assert {one.filename for one in (*warned, *again)} == {__file__}


@pytest.mark.parametrize("name", ["shikoku", "mine", "family:99999999999", "family:train/9"])
def test_load__accepts_a_name_of_no_other_board(name: str, tmp_path: Path) -> None:
    data = shikoku_data() if name == "shikoku" else other_board_data()
    assert Board.load(write_board(tmp_path / "mine.toml", data | {"name": name})).name == name
