"""Tests of boards/reader.py and boards/writer.py: provenances, notes and round trips."""

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import changed, other_board_data, shikoku_data, write_board

from tokaido_env import Board, BoardError
from tokaido_env.boards.board import BOARDS_FOLDER, built_in_boards
from tokaido_env.boards.reader import MAX_NOTE_CHARS
from tokaido_env.files import OutputError, read_toml

BOARDS = [*built_in_boards(), *(f"family:{number}" for number in (0, 7, 8, 1_000_000, 2**31 - 1))]

# Values of the default board with another provenance than their tables (RULES.md).
SINGLE_VALUES = {
    "dice.pilgrim.0": "public source",
    "dice.pilgrim.5": "rulebook",
    "dice.merchant.2": "rulebook",
    "dice.artist.2": "rulebook",
    "boutiques.3": "rulebook",
    "commerce.1": "public source",
    "commerce.2": "public source",
    "commerce.3": "public source",
    "commerce.4": "rulebook",
    "commerce.5": "rulebook",
    "culture.6": "rulebook",
}


def labelled() -> dict[str, Any]:
    """Return the default board's data with provenances of a mountain town and of some starts."""
    data = changed(shikoku_data(), "mountains.provenance_of", {"M1": "box"})
    return changed(data, "starts.provenance_of", {"player_0.pilgrim": "inferred"})


# Provenances


@pytest.mark.parametrize("name", built_in_boards())
def test_provenance__of_single_values_of_built_in_boards(name: str) -> None:
    provenance = Board.load(name).provenance
    single = {
        key: where for key, where in provenance.items() if key.rpartition(".")[0] in provenance
    }
    assert sorted(single.values()) == sorted(SINGLE_VALUES.values())
    assert name != "shikoku" or single == SINGLE_VALUES


# Notes


def test_to_dict__adds_notes_to_boards_of_the_family() -> None:
    board = Board.generate(7)
    assert board.notes == {}
    again = Board.from_dict(board.to_dict())
    assert again.notes["ring"].endswith("leaves open: family:7")
    assert "commerce" not in again.notes
    assert again.to_dict() == board.to_dict()
    assert board.to_toml().startswith("# Written from family:7\n")


def test_to_toml__names_no_folder_of_the_machine() -> None:
    assert Board.load().to_toml().startswith("# Written from shikoku.toml\n")


@pytest.mark.parametrize("note", ["x" * MAX_NOTE_CHARS, "\x00" * MAX_NOTE_CHARS])
def test_save__keeps_notes_of_the_longest_length(tmp_path: Path, note: str) -> None:
    notes = dict.fromkeys(Board.load().notes, note)
    board = dataclasses.replace(Board.load(), name="." * 1000, notes=notes)
    board.save(tmp_path / "long.toml")
    assert Board.load(tmp_path / "long.toml").notes == board.notes


# Round trips


def check(board: Board, path: Path) -> None:
    """Check that file, text and data have the same content and give the same board."""
    data = board.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert tomllib.loads(board.to_toml()) == data
    board.save(path)
    assert path.read_text(encoding="utf-8") == board.to_toml()
    for back in (Board.from_dict(data, board.source), Board.load(path)):
        assert dataclasses.replace(back, source=board.source) == board
        assert back.hash == board.hash
        assert back.provenance == board.provenance
        assert (
            back.notes == board.notes or not board.notes
        )  # a family board has notes in its file only
        assert back.to_dict() == data


@pytest.mark.parametrize("name", BOARDS)
def test_round_trip__by_data_text_and_file(name: str, tmp_path: Path) -> None:
    check(Board.load(name), tmp_path / "board.toml")


def test_round_trip__keeps_provenances(tmp_path: Path) -> None:
    check(Board.from_dict(labelled()), tmp_path / "board.toml")


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


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_round_trip__keeps_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    check(dataclasses.replace(Board.load(), name=name, notes={"ring": name}), path)
    twice = tmp_path / "twice.toml"
    Board.load(path).save(twice)
    assert read_toml(twice) == read_toml(path)


def test_round_trip__of_a_board_with_a_hostile_path(tmp_path: Path) -> None:
    path = write_board(tmp_path / "a\nformat = 2\x1b\u2028'.toml", other_board_data())
    check(Board.load(path), tmp_path / "board.toml")


def test_save__accepts_numpy_numbers_and_missing_provenances(tmp_path: Path) -> None:
    numbers = tuple(np.arange(2, 13, dtype=np.int16))
    board = dataclasses.replace(Board.load(), culture=numbers, provenance={})
    board.save(tmp_path / "board.toml")
    back = Board.load(tmp_path / "board.toml")
    assert back.culture == tuple(range(2, 13))
    assert set(back.provenance.values()) == {"reconstruction"}


def test_save__refuses_impossible_paths(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"^path: expected a name that ends in \.toml, got .*$"):
        Board.load().save(tmp_path / "board.json")
    with pytest.raises(OSError, match=r"gone"):
        Board.load().save(tmp_path / "gone" / "board.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(OutputError, match=r"folder\.toml: expected a regular file or nothing"):
        Board.load().save(tmp_path / "folder.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.toml"]


@pytest.mark.parametrize("name", built_in_boards())
def test_to_dict__is_the_content_of_the_file(name: str) -> None:
    text = (BOARDS_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    assert Board.load(name).to_dict() == tomllib.loads(text)
