"""Tests of boards/generator.py: the family's known values, and that it is frozen."""

import hashlib
import itertools
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import shikoku_data

from tokaido_env import Board, BoardError
from tokaido_env.agents import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board import BOARDS_FOLDER

DRAWN = range(40)
MAX_NUMBER = 2**31 - 1
# SHA-256 of the boards' hashes by numbers; a change would need a family 2.
FROZEN = {
    range(256): "22fffddebffe3710b55d1a28c7f3dba41c6d5709f085eee57dd48e140bbb7304",
    range(1_000_000, 1_000_032): "1de06d9d92f8f163bd179c79c138bad021f04246c0497d2e4c38fe738ff32bdb",
    range(2_000_000, 2_000_032): "606dbc1e054fbacdaada1778ca292478bbe2e57d1e7d8cef56e53334f7a25443",
    range(
        3_000_000_000, 3_000_000_100
    ): "73a4c068a5d016f962ef228eeabafc9510f2ba9b9e8dd2b0ad0377729e2e810d",
    range(
        MAX_NUMBER, MAX_NUMBER + 1
    ): "99b75b4dffafc9f7c9891d75073636e74d8dd7a1750da8bb56b54c3643fed23a",
}

FAR = range(3_000_000_000, 3_000_000_100)

# The tables in which each built-in board differs from the default one.
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
    """Return the data of a built-in board by name, or of a family board by number."""
    if isinstance(board, str):
        return tomllib.loads((BOARDS_FOLDER / f"{board}.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.toml"
        Board.generate(board).save(path)
        return tomllib.loads(path.read_text(encoding="utf-8"))


def simple_paths(routes: dict[str, set[str]], start: str, steps: int) -> list[list[str]]:
    """Return the paths of a number of steps without repeated places."""
    ways = [[start]]
    for _ in range(steps):
        ways = [[*way, to] for way in ways for to in sorted(routes[way[-1]]) if to not in way]
    return ways


def adjacent_towns(data: dict[str, Any]) -> dict[str, set[str]]:
    routes: dict[str, set[str]] = {}
    for a, b in data["routes"]["pairs"]:
        routes.setdefault(a, set()).add(b)
        routes.setdefault(b, set()).add(a)
    return routes


# Boards


@pytest.mark.parametrize("board", [*CHANGES, *DRAWN])
def test_boards__have_the_values_of_the_rulebook(board: str | int) -> None:
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
def test_boards__allow_the_examples_of_the_rulebook(board: str | int) -> None:
    data = board_data(board)
    routes, numbers = adjacent_towns(data), data["mountains"]["numbers"]
    ends = {town: sorted(way[2] for way in simple_paths(routes, town, 2)) for town in routes}
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
        (way,) = [w for n in range(8) for w in simple_paths(routes, start, n) if w[-1] == end]
        borders.append({frozenset(step) for step in itertools.pairwise(way)})
    assert any(
        icons[middle] == "bamboo" and icons[end] == "waterfall"
        for start, middle, end in itertools.permutations(range(8), 3)
        if borders[start] & borders[middle] and borders[middle] & borders[end]
    )


@pytest.mark.parametrize("name", CHANGES)
def test_built_in_boards__change_the_tables_of_their_names(name: str) -> None:
    data, default = board_data(name), shikoku_data()
    other = {"name", "format", "max_rounds"}
    values = {
        key: without_labels(data[key]) != without_labels(default[key])
        for key in data.keys() - other
    }
    assert {key for key, differs in values.items() if differs} == CHANGES[name]
    assert data["name"] == name
    assert data["max_rounds"] == default["max_rounds"]


LABELS = ("provenance", "provenance_of", "note")


def without_labels(table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    return {k: without_labels(v) for k, v in table.items() if k not in LABELS}


def test_boards__differ_and_games_on_them_end() -> None:
    boards = [Board.load(name) for name in CHANGES] + [Board.generate(seed) for seed in DRAWN]
    assert len({board.hash for board in boards}) == len(boards)
    greedy = make("greedy")
    for board in boards:
        games = play_match(greedy, greedy, 16, 0, board).games[:, 0]
        assert (games["end"] == 1).mean() > 0.5


# The family


def train_entries(data: dict[str, Any]) -> dict[str, bool]:
    """Return for each entry of a board whether a board of `train` can have it."""
    pilgrim, merchant, artist = (set(data["dice"][die]["faces"]) for die in data["dice"])
    stations = data["ring"]["stations"]
    towns = [i for i, station in enumerate(stations) if station[0] == "C"]
    kinds = {"temple": 2, "garden": 2, "seashore": 2, "hot spring": 1}
    routes = adjacent_towns(data)
    ends = {town: [way[2] for way in simple_paths(routes, town, 2)] for town in routes}
    hills = {town: sum(end[0] == "M" for end in ends[town]) for town in routes}
    icons, tokens = [*data["areas"]["icons"].values()], data["boutiques"]["tokens"]
    points = data["culture"]["points"]
    steps = [b - a for a, b in itertools.pairwise(points)]
    return {
        "pilgrim": pilgrim == {1, 2, 3, 4},
        "merchant": merchant == {1, 2, 3},
        "artist": artist == {1, 2, 3},
        "gaps": all(b - a > 1 for a, b in itertools.pairwise([*towns, len(stations)])),
        "kinds": all(stations.count(kind) >= least for kind, least in kinds.items()),
        "routes": any(hills[t] == 1 and 1 <= len(ends[t]) - 1 <= 4 for t in routes),
        "mountains": set(data["mountains"]["numbers"].values()) == {2, 3, 4},
        "icons": all(icons.count(icon) == 2 for icon in icons),
        "boutiques": ["pottery", 3] in tokens and {price for _, price in tokens} == {2, 3, 4},
        "commerce": data["commerce"]["points"] == [0, 5, 11, 18, 26, 35, 45],
        "culture": points[6] == 18 and all(0 <= b - a <= 2 for a, b in itertools.pairwise(steps)),
    }


def test_far_boards__lie_outside_train_in_every_entry() -> None:
    for number in DRAWN:
        assert all(train_entries(board_data(number)).values()), number
    boards = [board_data(number) for number in FAR]
    for data in boards:
        assert not any(train_entries(data).values()), data["name"]
    lengths = {len(data["ring"]["stations"]) for data in boards}
    assert (min(lengths), max(lengths)) == (12, 40)
    assert len({Board.generate(number).hash for number in FAR}) == len(FAR)


@pytest.mark.parametrize("numbers", FROZEN, ids=str)
def test_generate__is_frozen(numbers: range) -> None:
    hashes = "".join(Board.generate(number).hash for number in numbers)
    assert hashlib.sha256(hashes.encode()).hexdigest() == FROZEN[numbers]


def test_generate__gives_the_same_board_for_the_same_number() -> None:
    board = Board.generate(7)
    assert (board.name, board.source, board.max_rounds) == ("family:7", "family:7", 200)
    assert board == Board.generate(7) == Board.generate(np.int64(7)) == Board.load("family:7")
    tables = {name for name in Board.load().provenance if name.rpartition(".")[0] in ("", "dice")}
    assert set(board.provenance) == tables


@pytest.mark.parametrize("number", [-1, 2**31, 10**30, 1.0, True, "7", None, [7]], ids=str)
def test_generate__refuses_invalid_numbers(number: Any) -> None:
    with pytest.raises(BoardError, match=r"^board number: expected 0 to 2147483647, got .*$"):
        Board.generate(number)


def test_generate__imports_lazily_and_without_numba() -> None:
    code = (
        "import sys, tokaido_env; tokaido_env.Board.load(); "
        "late = {'tokaido_env.boards.generator'}; "
        "assert not late & sys.modules.keys(); "
        "tokaido_env.Board.generate(7).record; assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
