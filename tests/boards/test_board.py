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
from tokaido_env.boards.reader import BoardNameWarning
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


MISTAKES = [
    # the ring
    ("ring.stations", RING[:24] + RING[25:], "the 8 coastal towns C1 to C8"),
    ("ring.stations", [*RING, "C1"], "the 8 coastal towns C1 to C8"),
    ("ring.stations", ["C2", *RING[1:3], "C1", *RING[4:]], "in this order"),
    ("ring.stations", ["temple", *RING], "C1 first"),
    ("ring.stations", [*RING, "shrine"], "temple, garden, hot spring, seashore"),
    ("ring.stations", TOO_SMALL, "a list of length >= 12"),
    ("ring.stations", TOO_LARGE, "a list of length <= 40"),
    ("ring.stations", "C1", "a list, got 'C1'"),
    # mountain towns
    ("mountains.numbers", {"M1": 3, "M2": 2, "M3": 4}, "a value, got none"),
    ("mountains.numbers", NUMBERS | {"M5": 3}, "no such key"),
    ("mountains.numbers.M2", 5, "an integer <= 4"),
    # routes
    ("routes.pairs", with_routes("M4-C9", instead="M4-C5"), "one of C1, C2"),
    ("routes.pairs", with_routes("M4", instead="M4-C5"), "a list of length 2"),
    ("routes.pairs", with_routes("M4-M4"), "two different towns"),
    ("routes.pairs", with_routes("M1-M2", instead="M3-M4"), "no route to C4, C5, M4"),
    ("routes.pairs", with_routes("M1-M3"), "11 routes, a tree on 12 towns, got 12"),
    ("routes.pairs", with_routes("M3-C2", "M2-C3", instead="M2-C2 M3-C3"), "routes cross"),
    ("routes.pairs", with_routes("C4-C5", instead="M4-C5"), "one route at each coastal town"),
    (
        "routes.pairs",
        with_routes("M3-C5", "M3-C4", instead="M4-C5 M4-C4"),
        "two or more at each mountain town, got '1 at M4'",
    ),
    ("routes.pairs", [], "every town reachable from C1"),
    ("routes.pairs", 11, "a list, got 11"),
    # dice
    ("dice.pilgrim.faces", [1, 2, 2, 3, 3], "a list of length >= 6"),
    ("dice.merchant.faces", [1, 2, 2, 3, 3, 7], "an integer <= 6, got 7"),
    ("dice.merchant.faces", [True, 2, 2, 3, 3, 3], "an integer, got True"),
    # areas
    ("areas.icons.A3", "sun", "one of moon, waterfall, mountain, bamboo"),
    ("areas.icons", shikoku_data()["areas"]["icons"] | {"A9": "moon"}, "no such key"),
    # starts
    ("starts.player_0.pilgrim", "M1", "one of C1, C2"),
    ("starts.player_0.pilgrim", 28, "a coastal town or a ring index from 0 to 27, got 28"),
    ("starts.player_1.pilgrim", -1, "an integer >= 0, got -1"),
    ("starts.player_1.merchant", "C9", "M3, M4, got 'C9'"),
    ("starts.player_1.artist", "C1", "one of A1, A2"),
    # tokens
    ("boutiques.tokens", TOKENS[1:], "a list of length >= 8"),
    ("boutiques.tokens", [["silk", 3], *TOKENS[1:]], "kimono, pottery, doll, fan"),
    ("boutiques.tokens", [["fan", 5], *TOKENS[1:]], "an integer <= 4, got 5"),
    ("boutiques.tokens", [["fan"], *TOKENS[1:]], "a list of length 2"),
    # points
    ("commerce.points", [0, 5, 11, 18, 26, 35], "a list of length >= 7"),
    ("garden.numbers", [1, 2, 3, 4, 5, 4], "a list that never decreases"),
    ("garden.numbers", [1, 2, 3, 4, 5, 256], "an integer <= 255, got 256"),
    ("garden.numbers", {"1": 1}, "a list, got"),
    # the rest
    ("format", 3, "an integer <= 2, got 3"),
    ("format", 1, "an integer >= 2, got 1"),
    ("name", "", "a text of length >= 1"),
    ("name", 7, "a text, got 7"),
    ("max_rounds", 401, "an integer <= 400, got 401"),
    ("ring.provenance", "grandmother", "one of rulebook, public source"),
]


@pytest.mark.parametrize(("key", "value", "wanted"), MISTAKES)
def test_reader__names_file_key_and_expected_value_of_a_mistake(
    tmp_path: Path, key: str, value: Any, wanted: str
) -> None:
    path = write_board(tmp_path / "mine.toml", changed(shikoku_data(), key, value))
    with pytest.raises(BoardError) as error:
        Board.load(path)
    message, place = str(error.value), error.value.key
    assert re.fullmatch(rf"{re.escape(key)}(\.\w+)*", place)
    assert message.startswith(f"{path}: {place}: expected ")
    assert wanted in message
    assert "\n" not in message


@pytest.mark.parametrize("seat", [0, 1])
def test_reader__refuses_two_characters_on_one_station(seat: int) -> None:
    data = changed(shikoku_data(), f"starts.player_{seat}.merchant", "C5")
    with pytest.raises(BoardError, match=r"player_1.*: expected no two characters on one station"):
        Board.from_dict(data)


def test_load__refuses_a_file_that_is_not_toml(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("name shikoku")
    with pytest.raises(BoardError, match=r"mine\.toml: not a TOML file: .*line 1"):
        Board.load(path)
    path.write_bytes(b"name = '\xff\xfe'")
    with pytest.raises(BoardError, match=r"mine\.toml: not a TOML file"):
        Board.load(path)


def test_load__refuses_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"mine\.toml: no such board file"):
        Board.load(tmp_path / "mine.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(BoardError, match=r"folder\.toml: no such board file"):
        Board.load(tmp_path / "folder.toml")


@pytest.mark.parametrize("name", ["a" * 9999, "\0", "\ud800", "a\nb", "\x1b[31m"])
def test_load__refuses_impossible_file_names(name: str) -> None:
    with pytest.raises(BoardError, match=r": no such board file$") as error:
        Board.load(f"{name}.toml")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


def test_load__escapes_a_hostile_file_name_in_errors(tmp_path: Path) -> None:
    path = write_board(tmp_path / "\x1b[31m\n.toml", changed(shikoku_data(), "format", 3))
    with pytest.raises(
        BoardError, match=r"x1b\[31m\\n\.toml: format: expected .* <= 2, got 3$"
    ) as error:
        Board.load(path)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("wrong", [None, 5, True, b"shikoku", {}, np.arange(3)], ids=str)
def test_load__refuses_other_types(wrong: Any) -> None:
    with pytest.raises(BoardError, match=r"^board: expected a name, .* or a Board, got "):
        Game(wrong)


@pytest.mark.parametrize("name", ["kyoto", "", "../boards/shikoku", "Shikoku"])
def test_load__refuses_an_unknown_name(name: str) -> None:
    with pytest.raises(BoardError, match=r"unknown board .*: .*shikoku.*\.toml"):
        Board.load(name)


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
    assert board.name == name
    assert warned[0].filename == __file__


@pytest.mark.parametrize("name", ["shikoku", "mine", "family:99999999999", "family:train/9"])
def test_load__accepts_a_name_of_no_other_board(name: str, tmp_path: Path) -> None:
    data = shikoku_data() if name == "shikoku" else other_board_data()
    assert Board.load(write_board(tmp_path / "mine.toml", data | {"name": name})).name == name
