"""Tests of web/board_form.py: the form holds every value; corrections set provenances."""

import re
import tomllib
from typing import Any

import pytest
from positions import changed

from tokaido_env import Board
from tokaido_env.boards.board import built_in_boards
from tokaido_env.boards.reader import BoardError
from tokaido_env.web.board_form import board_changes, board_form, corrected_board, corrected_values

BOARDS = [*built_in_boards(), "family:3", "family:11"]


def value_at(data: Any, key: str) -> Any:
    for part in key.split("."):
        data = data[int(part) if isinstance(data, list) else part]
    return data


@pytest.mark.parametrize("name", BOARDS)
def test_board_form__holds_every_value(name: str) -> None:
    board = Board.load(name)
    form = board_form(board)
    fields = [field for group in form["form"] for field in group["fields"]]
    for field in fields:
        value = value_at(form["data"], field["key"])
        if field["kind"] == "choice":
            assert value in [option for option, _ in field["options"]], field["key"]
        elif field["kind"] == "list":
            assert {*value} <= {option for option, _ in field["options"]}
            assert len(value) <= field["most"]
        elif field["kind"] == "number":
            assert field["min"] <= value <= field["max"]
    keys = tuple(field["key"] for field in fields)
    labels = ("provenance", "provenance_of", "note")

    def check(data: Any, key: str) -> None:
        if key in keys or key in ("format", "max_rounds") or key.rpartition(".")[2] in labels:
            return
        assert isinstance(data, dict | list), key
        for inner, value in data.items() if isinstance(data, dict) else enumerate(data):
            check(value, f"{key}.{inner}" if key else str(inner))

    check(form["data"], "")


@pytest.mark.parametrize("name", BOARDS)
def test_corrected_board__of_an_unchanged_form_is_the_same_board(name: str) -> None:
    board = Board.load(name)
    again = corrected_board(board, board_form(board)["data"], {})
    assert again.hash == board.hash
    assert again.provenance == board.provenance
    assert again.notes == (board.notes or Board.from_dict(board.to_dict()).notes)
    assert again.name != board.name  # built-in names are refused
    assert corrected_values(board, again) == []


def test_corrected_board__marks_compared_values() -> None:
    board = Board.load()
    data = board_form(board)["data"]
    data = changed(data, "mountains.numbers.M1", 2)
    data = changed(data, "mountains.numbers.M2", 3)
    data = changed(data, "commerce.points.6", 46)
    compared = {"temple": "matches", "mountains": "differs", "commerce": "differs"}
    own = corrected_board(board, data, compared)
    assert own.mountain_numbers == (2, 3, 4, 3)
    assert [one.name for one in corrected_values(board, own)] == [
        "mountains.M1",
        "mountains.M2",
        "commerce.6",
    ]
    assert own.provenance_of("temple") == "box"
    assert own.provenance_of("mountains.M1") == own.provenance_of("commerce.6") == "box"
    for name in ("mountains", "mountains.M3", "garden", "commerce.4", "commerce.0"):
        assert own.provenance_of(name) == board.provenance_of(name)
    found = board_changes(board, own)
    again = Board.from_dict(tomllib.loads(found["toml"]))
    assert (again.hash, again.provenance, again.notes) == (own.hash, own.provenance, own.notes)
    assert found["changes"][0] == ["mountains.M1", 3, 2]
    lines = found["difference"].splitlines()
    assert lines[:2] == ["--- shikoku", "+++ my_shikoku"]
    assert '+provenance_of = { M1 = "box", M2 = "box" }' in lines


def test_corrected_board__drops_provenances_of_changed_lists() -> None:
    board = Board.load().with_provenance(["ring.27", "routes.3"])
    data = board_form(board)["data"]
    del data["ring"]["stations"][27]
    data["routes"]["pairs"][3] = ["M2", "C1"]
    data["routes"]["pairs"][5] = ["M1", "C2"]
    data = changed(data, "routes.pairs.3", ["M1", "C1"])
    data = changed(data, "routes.pairs.5", ["M2", "C2"])
    own = corrected_board(board, data, {"ring": "differs"})
    assert len(own.stations) == 27
    assert "ring.27" not in own.provenance


@pytest.mark.parametrize(
    ("key", "value", "at"),
    [
        ("name", "shikoku", "name"),
        ("name", "family:7", "name"),
        ("name", "", "name"),
        ("culture.points.3", 99, "culture.points"),
        ("culture.points.3", "x", "culture.points.3"),
        ("dice.artist.faces.0", 9, "dice.artist.faces.0"),
        ("routes.pairs.0", ["M1", "M3"], "routes.pairs"),
        ("areas.icons.A1", "sun", "areas.icons.A1"),
        ("starts.player_0.pilgrim", "C5", "starts"),
        ("boutiques.tokens.2", ["doll", 9], "boutiques.tokens.2"),
    ],
)
def test_corrected_board__names_the_field_of_an_error(key: str, value: Any, at: str) -> None:
    data = changed(board_form(Board.load())["data"], key, value)
    with pytest.raises(BoardError) as error:
        corrected_board(Board.load(), data, {})
    assert error.value.key.startswith(at)
    assert re.search("expected|choose another name", str(error.value))


@pytest.mark.parametrize(
    "compared", [None, 3, {"temple": "maybe"}, {"sea": "matches"}, {"temple": []}]
)
def test_corrected_board__refuses_invalid_comparisons(compared: Any) -> None:
    board = Board.load()
    with pytest.raises(BoardError, match="expected"):
        corrected_board(board, board_form(board)["data"], compared)
