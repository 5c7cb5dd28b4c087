"""Tests of boards/reader.py and boards/writer.py: provenances, notes, round trips and errors."""

import dataclasses
import json
import pickle
import random
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutants import HostileInt, StrSubclass
from positions import DROP, changed, other_board_data, shikoku_data, write_board

from tokaido_env import Board, BoardError
from tokaido_env.boards.board import BOARDS_FOLDER, built_in_boards
from tokaido_env.boards.reader import MAX_NOTE_CHARS
from tokaido_env.files import OutputError, read_toml

BOARDS = [*built_in_boards(), *(f"family:{number}" for number in (0, 7, 8, 1_000_000, 2**31 - 1))]

# Values of the default board with another provenance than their tables (RULES.md).
SINGLE_VALUES = {
    "dice.pilgrim.0": (1, "public source"),
    "dice.pilgrim.5": (4, "rulebook"),
    "dice.merchant.2": (2, "rulebook"),
    "dice.artist.2": (2, "rulebook"),
    "boutiques.3": (["pottery", 3], "rulebook"),
    "commerce.1": (5, "public source"),
    "commerce.2": (11, "public source"),
    "commerce.3": (18, "public source"),
    "commerce.4": (26, "rulebook"),
    "commerce.5": (35, "rulebook"),
    "culture.6": (18, "rulebook"),
}


def labelled(**values: str) -> dict[str, Any]:
    """Return the default board's data with provenances of a mountain town and of some starts."""
    data = changed(shikoku_data(), "mountains.provenance_of", {"M1": "box"})
    return changed(data, "starts.provenance_of", {"player_0.pilgrim": "inferred", **values})


# Provenances


def test_provenance__of_single_values_on_the_default_board() -> None:
    board = Board.load()
    values = board.values()
    single = {n: (values[n], where) for n, where in board.provenance.items() if n in values}
    assert single == SINGLE_VALUES


@pytest.mark.parametrize("name", built_in_boards())
def test_provenance__of_single_values_is_the_same_on_built_in_boards(name: str) -> None:
    board = Board.load(name)
    values = board.values()
    single = [(values[n], where) for n, where in board.provenance.items() if n in values]
    assert sorted(map(str, single)) == sorted(map(str, SINGLE_VALUES.values()))


def test_provenance_of__defaults_to_the_table() -> None:
    board = Board.from_dict(labelled())
    own = {"mountains.M1": "box", "starts.player_0.pilgrim": "inferred", "culture.6": "rulebook"}
    for name, where in own.items():
        assert board.provenance_of(name) == board.provenance[name] == where
    for name in ("mountains.M2", "starts.player_1.pilgrim", "culture.5", "mountains", "ring.27"):
        assert board.provenance_of(name) == "reconstruction"
    assert board.provenance_of("dice.pilgrim") == board.provenance_of("dice.pilgrim.1")
    assert board.provenance_of("temple.8") == board.provenance_of("temple") == "rulebook"
    assert board.hash == Board.load().hash
    unknown = dataclasses.replace(board, provenance={"temple.1": "box"})
    assert (unknown.provenance_of("temple.1"), unknown.provenance_of("temple")) == (
        "box",
        "reconstruction",
    )


@pytest.mark.parametrize("name", ["culture.11", "dice", "dice.6", "M1", "", "starts.player_0", "x"])
def test_provenance_of__refuses_an_unknown_name(name: str) -> None:
    message = r"^shikoku: expected the name of a table or a value, .* culture\.6, got '"
    for ask in (Board.load().provenance_of, lambda name: Board.load().with_provenance([name])):
        with pytest.raises(BoardError, match=message):
            ask(name)


def test_with_provenance__sets_provenances() -> None:
    board = Board.load()
    after = board.with_provenance(["mountains.M1", "culture.6", "ring"])
    assert after == board
    assert after.provenance == board.provenance | dict.fromkeys(
        ("mountains.M1", "culture.6", "ring"), "box"
    )
    assert Board.from_dict(after.to_dict()).provenance == after.provenance
    assert board.provenance_of("ring") == "reconstruction"
    with pytest.raises(BoardError, match=r"provenance: expected one of .*, got 'memory'"):
        board.with_provenance(["ring"], "memory")


LABEL_MISTAKES = [
    ("mountains.provenance_of.M5", "box", r"in quotes: M1, M2, M3, M4, got 'M5'"),
    ("mountains.provenance_of.M2", "memory", "one of rulebook, .*, box, got 'memory'"),
    ("mountains.provenance_of", "box", "an object, got 'box'"),
    ("culture.provenance_of.11", "box", r"of \[culture\], in quotes: 0 to 10, got '11'"),
    ("culture.provenance_of.-1", "box", "0 to 10, got '-1'"),
    ("starts.provenance_of.player_0", "box", r"in quotes: player_0\.pilgrim, "),
    ("dice.artist.provenance_of.6", "box", r"of \[dice\.artist\]"),
    ("dice.provenance_of", {}, "no such key"),
]


@pytest.mark.parametrize(("key", "value", "wanted"), LABEL_MISTAKES)
def test_from_dict__refuses_invalid_provenances(key: str, value: Any, wanted: str) -> None:
    data = labelled()
    data["dice"]["artist"]["provenance_of"] = {}
    *parents, last = key.split(".")
    table = data
    for parent in parents:
        table = table[parent]
    table[last] = value
    with pytest.raises(BoardError, match=f"^the board: {key}: expected .*{wanted}") as error:
        Board.from_dict(data)
    assert error.value.key == key


# Notes


def test_to_dict__adds_notes_to_boards_of_the_family() -> None:
    board = Board.generate(7)
    assert board.notes == {}
    again = Board.from_dict(board.to_dict())
    assert again.notes["ring"].endswith("leaves open: family:7")
    assert "commerce" not in again.notes
    assert again.to_dict() == board.to_dict()
    assert board.to_toml().startswith("# Written from family:7\n")


@pytest.mark.parametrize(
    "note", ["x" * MAX_NOTE_CHARS, "." * MAX_NOTE_CHARS, "a." * 5000, "\x00" * MAX_NOTE_CHARS]
)
def test_save__keeps_notes_of_the_longest_length(tmp_path: Path, note: str) -> None:
    note *= MAX_NOTE_CHARS // len(note)
    board = dataclasses.replace(
        Board.load(), name="." * 1000, notes=dict.fromkeys(Board.load().notes, note)
    )
    board.save(tmp_path / "long.toml")
    assert Board.load(tmp_path / "long.toml").notes == board.notes


@pytest.mark.parametrize(
    "note", [5, None, ["a"], "x" * (MAX_NOTE_CHARS + 1), "\ud800", StrSubclass("a")]
)
def test_from_dict__refuses_invalid_notes(note: Any) -> None:
    with pytest.raises(BoardError, match=r"expected (a )?text"):
        Board.from_dict(changed(shikoku_data(), "ring.note", note))


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
    names = list(Board.load().values())
    for seed in range(30):
        rng = random.Random(seed)
        board = Board.from_dict(rng.choice((labelled(), other_board_data())))
        for where in ("box", "inferred", "public source"):
            board = board.with_provenance(set(rng.sample(names, 20)) & set(board.values()), where)
        check(board, tmp_path / f"{seed}.toml")


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


@pytest.mark.parametrize("name", ["board", "board.json", "board.toml.txt", "BOARD.TOML"])
def test_save__refuses_other_file_endings(tmp_path: Path, name: str) -> None:
    with pytest.raises(BoardError, match=r"^path: expected a name that ends in \.toml, got .*$"):
        Board.load().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_save__refuses_impossible_paths(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"gone"):
        Board.load().save(tmp_path / "gone" / "board.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(OutputError, match=r"folder\.toml: expected a file or nothing"):
        Board.load().save(tmp_path / "folder.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.toml"]


@pytest.mark.parametrize("name", built_in_boards())
def test_to_dict__is_the_content_of_the_file(name: str) -> None:
    text = (BOARDS_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    assert Board.load(name).to_dict() == tomllib.loads(text)


# Errors

KEYS = [
    ("dice.pilgrim.faces", DROP, "dice.pilgrim.faces"),
    ("dice.pilgrim", DROP, "dice.pilgrim"),
    ("dice", DROP, "dice"),
    ("ring.stations.3", "temple", "ring.stations"),
    ("ring.provenance", DROP, "ring.provenance"),
    ("mountains.numbers.M3", DROP, "mountains.numbers.M3"),
    ("areas.icons.A3", "sun", "areas.icons.A3"),
    ("routes.pairs.3.1", StrSubclass("C1"), "routes.pairs.3.1"),
    ("starts.player_0.merchant", "C5", "starts.player_1.pilgrim"),
    ("starts.player_1.artist", DROP, "starts.player_1.artist"),
    ("boutiques.tokens.2.1", 5, "boutiques.tokens.2.1"),
    ("culture.points.6", 24, "culture.points.7"),
    ("x\n" * 999, 1, "x\\n" * 33 + "…"),
]


@pytest.mark.parametrize(("where", "value", "key"), KEYS)
def test_board_error__has_the_key(where: str, value: Any, key: str) -> None:
    data = changed(shikoku_data(), where, value)
    with pytest.raises(BoardError) as error:
        Board.from_dict(data)
    assert error.value.key == key
    known = pickle.loads(pickle.dumps(error.value))
    assert (str(known), known.key, type(known)) == (str(error.value), key, BoardError)


NO_BOARDS = [None, 3, "shikoku", [], [{}], {}, HostileInt(1), np.zeros(3), b"x"]


@pytest.mark.parametrize("data", NO_BOARDS, ids=range(len(NO_BOARDS)))
def test_from_dict__refuses_other_types(data: Any) -> None:
    with pytest.raises(BoardError, match=r"^the board: (expected an object|format: expected)"):
        Board.from_dict(data)
