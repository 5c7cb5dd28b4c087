"""The family of boards: what each keeps, what is drawn with what odds, and that it is frozen."""

import itertools
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import shikoku_data

from tokaido_env.agents import make
from tokaido_env.agents.study import analysis
from tokaido_env.boards.board import BOARDS_FOLDER, Board, built_in_boards

DRAWN = range(40)

# What each built-in board changes of the default one.
CHANGES = {
    "shikoku": set(),
    "shikoku_art": {"areas", "culture"},
    "shikoku_dice": {"dice"},
    "shikoku_market": {"mountains", "boutiques"},
    "shikoku_remix": {
        *("areas", "culture", "dice", "mountains", "boutiques", "ring", "routes", "starts")
    },
    "shikoku_ring": {"ring"},
    "shikoku_routes": {"routes"},
}


def board_data(board: str | int) -> dict[str, Any]:
    """A board file: a built-in one by its name, one of the family by its number."""
    if isinstance(board, str):
        return tomllib.loads((BOARDS_FOLDER / f"{board}.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.toml"
        Board.generate(board).save(path)
        return tomllib.loads(path.read_text(encoding="utf-8"))


def walks(routes: dict[str, set[str]], start: str, steps: int) -> list[list[str]]:
    """The ways of so many steps that enter no space twice."""
    ways = [[start]]
    for _ in range(steps):
        ways = [[*way, to] for way in ways for to in sorted(routes[way[-1]]) if to not in way]
    return ways


def towns_of(data: dict[str, Any]) -> dict[str, set[str]]:
    routes: dict[str, set[str]] = {}
    for a, b in data["routes"]["pairs"]:
        routes.setdefault(a, set()).add(b)
        routes.setdefault(b, set()).add(a)
    return routes


# Boards


@pytest.mark.parametrize("board", [*CHANGES, *DRAWN])
def test_boards_keep_what_is_printed_in_the_rulebook(board: str | int) -> None:
    data = board_data(board)
    pilgrim, merchant, artist = (data["dice"][die]["faces"] for die in data["dice"])
    assert 4 in pilgrim
    assert set(pilgrim) <= {1, 2, 3, 4}
    assert 2 in merchant
    assert 2 in artist
    assert set(merchant + artist) <= {1, 2, 3}
    stations = data["ring"]["stations"]
    assert {s for s in stations if s[0] != "C"} == {"temple", "garden", "seashore", "hot spring"}
    assert set(data["mountains"]["numbers"].values()) == {2, 3, 4}
    icons = sorted(data["areas"]["icons"].values())
    assert icons == sorted(["moon", "waterfall", "mountain", "bamboo"] * 2)
    tokens = data["boutiques"]["tokens"]
    assert ["pottery", 3] in tokens
    assert {ware for ware, _ in tokens} == {"kimono", "pottery", "doll", "fan"}
    assert data["culture"]["points"][6] == 18
    default = shikoku_data()
    for entry in ("commerce", "temple", "garden"):
        assert without_labels(data[entry]) == without_labels(default[entry])


@pytest.mark.parametrize("board", [*CHANGES, *DRAWN])
def test_boards_let_the_worked_examples_happen(board: str | int) -> None:
    data = board_data(board)
    routes, numbers = towns_of(data), data["mountains"]["numbers"]
    ends = {town: sorted(way[2] for way in walks(routes, town, 2)) for town in routes}
    mountains = {town: [e for e in ends[town] if e[0] == "M"] for town in routes}
    # A 2 with one mountain town and one coastal town to choose from; others may be occupied.
    assert any(len(mountains[t]) == 1 and 1 <= len(ends[t]) - 1 <= 4 for t in routes)
    # A 2 to a town that gives three, then a 2 to a coastal town.
    threes = {end for town in routes for end in mountains[town] if numbers[end] == 3}
    assert any(len(ends[town]) > len(mountains[town]) for town in threes)
    # A 2 through bamboo to a waterfall: areas that share a route are neighbours.
    icons = list(data["areas"]["icons"].values())
    coast = [f"C{n}" for n in range(1, 9)]
    borders = []
    for start, end in zip(coast, coast[1:] + coast[:1], strict=True):
        (way,) = [w for n in range(8) for w in walks(routes, start, n) if w[-1] == end]
        borders.append({frozenset(step) for step in itertools.pairwise(way)})
    assert any(
        icons[middle] == "bamboo" and icons[end] == "waterfall"
        for start, middle, end in itertools.permutations(range(8), 3)
        if borders[start] & borders[middle] and borders[middle] & borders[end]
    )


@pytest.mark.parametrize("name", CHANGES)
def test_built_in_boards_change_what_they_say(name: str) -> None:
    data, default = board_data(name), shikoku_data()
    told = {"name", "format", "max_rounds"}
    values = {
        key: without_labels(data[key]) != without_labels(default[key]) for key in data.keys() - told
    }
    assert {key for key, differs in values.items() if differs} == CHANGES[name]
    assert data["name"] == name
    assert data["max_rounds"] == default["max_rounds"]


def without_labels(table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    return {k: without_labels(v) for k, v in table.items() if k not in ("provenance", "note")}


def test_every_built_in_board_is_looked_at_here() -> None:
    assert set(built_in_boards()) == set(CHANGES)


def test_all_boards_are_different_and_can_be_played_to_the_end() -> None:
    boards = [Board.load(name) for name in CHANGES] + [Board.generate(seed) for seed in DRAWN]
    assert len({board.hash for board in boards}) == len(boards)
    greedy = make("greedy")
    for board in boards:
        games, _ = analysis.play_alone(greedy, board, np.arange(8))
        assert (games["end"] == 1).mean() > 0.5
