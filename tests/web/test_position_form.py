"""Tests of web/position_form.py: every position of a game fits the form, there and back."""

from typing import Any

import pytest
from positions import random_walk

from tokaido_env import Game
from tokaido_env.position import PositionError
from tokaido_env.web.position_form import form_data, position_form, position_from_form


def value_at(data: Any, key: str) -> Any:
    for part in key.replace("[", ".").replace("]", "").split("."):
        data = data[int(part) if part.isdigit() else part]
    return data


def allows(field: dict[str, Any], value: Any) -> bool:
    """Return whether a field of the form can show a value."""
    if field["kind"] == "number":
        return bool(field["min"] <= value <= field["max"])
    options = [option for option, _ in field["options"]]
    if field["kind"] == "choice":
        return value in options
    return len(value) <= field.get("most", 3) and all(one in options for one in value)


@pytest.mark.parametrize("board", ["shikoku", "family:3", "family:4"])
def test_position_form__holds_every_position(board: str) -> None:
    for seed in range(3):
        played = random_walk(seed, 10_000, board).trajectory()
        form = position_form(played.board, ("a", "b"))
        fields = [field for group in form for field in group["fields"]]
        assert len({field["key"] for field in fields}) == len(fields)
        for row in range(len(played.states)):
            data = form_data(played.position(row))
            for field in fields:
                assert allows(field, value_at(data, field["key"])), field["key"]
            for derived in ("bag", "end_triggered"):
                del data[derived]
            for player in data["players"]:
                del player["gifted"]
            assert position_from_form(data) == played.position(row)


def test_position_form__has_all_values_that_do_not_follow() -> None:
    game = Game(seed=1)
    keys = {f["key"] for group in position_form(game.board, ("a", "b")) for f in group["fields"]}

    def leaves(data: Any, key: str) -> set[str]:
        if isinstance(data, dict) and data:
            inner = (
                leaves(value, f"{key}.{name}" if key else name) for name, value in data.items()
            )
            return set().union(*inner)
        if isinstance(data, list) and data and isinstance(data[0], dict):
            return set().union(*(leaves(one, f"{key}[{i}]") for i, one in enumerate(data)))
        return {key}

    known = {"board", "end_triggered", "players[0].gifted", "players[1].gifted"}
    bag = {f"bag.{ware}" for ware in game.to_dict()["bag"]}
    assert leaves(form_data(game.to_dict()), "") - keys == known | bag
    assert keys <= leaves(form_data(game.to_dict()), "")


@pytest.mark.parametrize("data", [None, [], {}, {"players": 3}, {"players": [{}, {}]}, "x"])
def test_position_from_form__refuses_other_data(data: Any) -> None:
    with pytest.raises(PositionError, match="expected the fields of the form"):
        position_from_form(data)
