"""Boards written to files: what is read again is the same board."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import changed, other_board_data, shikoku_data, write_board

from tokaido_env import Board, BoardError
from tokaido_env.boards.board import built_in_boards
from tokaido_env.boards.reader import PROVENANCES
from tokaido_env.files import OutputError, read_toml

DRAWN = 200  # of the family, in every run
NAMES = [
    "with \"quotes\" and 'others'",
    "back\\slash \\n \\u0041",
    "new\nline\r\nand\ttab",
    "\x00\x01\x1b[31m\x7f\x80\x9f",
    "日本 🏯 \u2028 \u202e \ufeff \ud7ff \uffff",
    "'''\"\"\"",
    "# = [dice]",
    " ",
    "x" * 1000,
]


def again(board: Board, path: Path) -> Board:
    """The board as it is read from what was written."""
    board.save(path)
    return Board.load(path)


def check(board: Board, path: Path) -> None:
    """Fail unless a board comes back the same but for where it was read."""
    back = again(board, path)
    assert dataclasses.replace(back, source=board.source) == board
    assert back.provenance == board.provenance
    assert back.record.tobytes() == board.record.tobytes()
    assert back.hash == board.hash


@pytest.mark.parametrize("name", built_in_boards())
def test_built_in_boards(name: str, tmp_path: Path) -> None:
    check(Board.load(name), tmp_path / "board.toml")


def test_drawn_boards(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """`pytest --games 20000` reads back 2,000."""
    for number in range(max(DRAWN, pytestconfig.getoption("games") // 10)):
        check(Board.generate(number), tmp_path / f"{number}.toml")


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_survive(name: str, tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    check(dataclasses.replace(Board.load(), name=name), path)
    twice = tmp_path / "twice.toml"
    again(Board.load(path), twice)
    assert read_toml(twice) == read_toml(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("starts.player_0.pilgrim", 1),
        ("starts.player_0.merchant", "C3"),
        ("dice.artist.faces", [6, 1, 5, 1, 2, 2]),
        ("temple.numbers", [0] * 9),
        ("culture.points", [255] * 11),
        ("max_rounds", 400),
        ("ring.provenance", "box"),
        ("garden.provenance", "public source"),
    ],
)
def test_whatever_loads_can_be_written(tmp_path: Path, key: str, value: Any) -> None:
    path = write_board(tmp_path / "mine.toml", changed(shikoku_data(), key, value))
    check(Board.load(path), tmp_path / "board.toml")


def test_a_board_of_ones_own_and_from_a_hostile_path(tmp_path: Path) -> None:
    path = write_board(tmp_path / "a\nformat = 2\x1b\u2028'.toml", other_board_data())
    check(Board.load(path), tmp_path / "board.toml")


def test_a_board_of_numpy_numbers_and_unknown_provenance(tmp_path: Path) -> None:
    numbers = tuple(np.arange(2, 13, dtype=np.int16))
    board = dataclasses.replace(Board.load(), culture=numbers, provenance={})
    back = again(board, tmp_path / "board.toml")
    assert back.culture == tuple(range(2, 13))
    assert set(back.provenance.values()) == {"reconstruction"}


def test_entries_say_where_they_come_from(tmp_path: Path) -> None:
    path = tmp_path / "seven.toml"
    Board.generate(7).save(path)
    data = read_toml(path)
    tables = {key: table for key, table in data.items() if isinstance(table, dict)}
    tables |= {f"dice.{die}": table for die, table in tables.pop("dice").items()}
    for entry, table in tables.items():
        certain = entry in ("commerce", "temple", "garden")
        assert table["provenance"] in PROVENANCES
        assert (table["provenance"] == "reconstruction") == (not certain)
        assert ("family:7" in table.get("note", "")) == (not certain)
    assert path.read_text().startswith("# Written from family:7\n")


def test_the_same_bytes_again(tmp_path: Path) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    Board.generate(7).save(one)
    Board.generate(7).save(str(other))
    assert one.read_bytes() == other.read_bytes()
    Board.generate(8).save(one)
    assert Board.load(one).hash == Board.generate(8).hash


@pytest.mark.parametrize("name", ["board", "board.json", "board.toml.txt", "BOARD.TOML"])
def test_mistake__a_name_that_would_not_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(BoardError, match=r"^path: expected a name that ends in \.toml, got .*$"):
        Board.load().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_mistake__nowhere_to_write(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"gone"):
        Board.load().save(tmp_path / "gone" / "board.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(OutputError, match=r"folder\.toml: expected a file or nothing there"):
        Board.load().save(tmp_path / "folder.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.toml"]
