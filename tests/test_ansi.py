"""The drawing of a position for a terminal: what it shows, where, and that it fits."""

import copy
import itertools
import json
import random
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.board import (
    AREAS,
    BOARDS_FOLDER,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    MOUNTAIN_TOWNS,
    TOWNS,
    WARES,
    Board,
)
from tokaido_env.game import Game
from tokaido_env.render.ansi import HEIGHT, WIDTH, draw
from tokaido_env.state import SIDES, Phase

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
PAWNS = [("P", "M", "A"), ("p", "m", "a")]

# By size of the ring: the stations after each coastal town, and a tree of routes.
OTHER_BOARDS = {
    20: (
        [3, 0, 2, 1, 2, 1, 2, 1],
        "M1-M2 M1-M3 M1-M4 M2-C1 M2-C2 M3-C3 M3-C4 M3-C5 M4-C6 M4-C7 M1-C8",
    ),
    33: (
        [3, 4, 2, 5, 2, 3, 4, 2],
        "M4-M3 M3-M2 M2-M1 M4-C2 M4-C3 M4-C4 M4-C5 M4-C6 M4-C7 M4-C8 M1-C1",
    ),
    40: (
        [4, 4, 4, 4, 4, 4, 4, 4],
        "M1-M2 M2-M3 M3-M4 M1-C1 M1-C2 M2-C3 M3-C4 M4-C5 M4-C6 M3-C7 M2-C8",
    ),
}


def other_board(size: int, folder: Path) -> Board:
    gaps, routes = OTHER_BOARDS[size]
    kinds = itertools.cycle(["hot spring", "seashore", "temple", "garden", "seashore"])
    ring = []
    for town, gap in zip(COASTAL_TOWNS, gaps, strict=True):
        ring += [town, *itertools.islice(kinds, gap)]
    assert len(ring) == size
    pairs = [route.split("-") for route in routes.split()]
    text = (BOARDS_FOLDER / "shikoku.toml").read_text(encoding="utf-8")
    text = re.sub(r"stations = \[.*?\]", f"stations = {json.dumps(ring)}", text, flags=re.S)
    text = re.sub(r"pairs = \[.*?\n\]", f"pairs = {json.dumps(pairs)}", text, flags=re.S)
    path = folder / f"ring{size}.toml"
    path.write_text(text.replace('name = "shikoku"', f'name = "ring{size}"'), encoding="utf-8")
    return Board.load(path)


@pytest.fixture(scope="module", params=["shikoku", *OTHER_BOARDS])
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Board:
    if request.param == "shikoku":
        return Board.load()
    return other_board(request.param, tmp_path_factory.mktemp("boards"))


@pytest.fixture(scope="module")
def positions(board: Board) -> list[dict[str, Any]]:
    """Positions of two random games, every phase among them."""
    games = [list(random_game(board, seed)) for seed in range(2)]
    seen = [position for game in games for position in (*game[:13:3], *game[13::5], game[-1])]
    assert {position["phase"] for position in seen} == set(Phase.__members__)
    return seen


@pytest.fixture(scope="module")
def drawings(board: Board, positions: list[dict[str, Any]]) -> list[str]:
    """The plain drawings of the positions."""
    return [draw(board, position, color=False) for position in positions]


def random_game(board: Board, seed: int) -> Iterator[dict[str, Any]]:
    game, chooser = Game(board, seed=seed, chance="explicit"), random.Random(seed)
    yield game.to_dict()
    while not game.is_over:
        game.play(chooser.choice(game.legal_labels() or [label for label, _ in game.outcomes()]))
        yield game.to_dict()


# It fits


def test_lines_fit_the_terminal(drawings: list[str]) -> None:
    for drawing in drawings:
        lines = drawing.split("\n")
        assert len(lines) == HEIGHT <= 40
        assert max(map(len, lines)) <= WIDTH == 100


def test_every_sign_is_one_column_wide(drawings: list[str]) -> None:
    for sign in set("".join(drawings)) - {"\n"}:
        assert sign.isprintable()
        assert unicodedata.east_asian_width(sign) not in "WF"
        assert not unicodedata.combining(sign)


def test_colour_changes_no_sign(
    board: Board, positions: list[dict[str, Any]], drawings: list[str]
) -> None:
    for position, plain in zip(positions, drawings, strict=True):
        coloured = draw(board, position)
        assert "\x1b" not in plain
        assert "\x1b" in coloured
        assert ESCAPE.sub("", coloured) == plain


def test_no_colour_runs_on(board: Board, positions: list[dict[str, Any]]) -> None:
    for line in draw(board, positions[-1]).split("\n"):
        codes = ESCAPE.findall(line)
        assert codes[1::2] == ["\x1b[0m"] * (len(codes) // 2)
        assert len(codes) % 2 == 0


# It shows everything


def test_different_positions_draw_differently(
    positions: list[dict[str, Any]], drawings: list[str]
) -> None:
    assert len(set(drawings)) == len({json.dumps(position) for position in positions})


def test_each_fact_changes_the_drawing(
    board: Board, positions: list[dict[str, Any]], drawings: list[str]
) -> None:
    chooser = random.Random(0)
    for phase in Phase.__members__:
        at_phase = [k for k, position in enumerate(positions) if position["phase"] == phase]
        chosen = chooser.choice(at_phase)
        for path, value in changes(board, positions[chosen], chooser):
            changed = replaced(positions[chosen], path, value)
            assert draw(board, changed, color=False) != drawings[chosen], (path, value)


def replaced(position: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(position)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def changes(
    board: Board, position: dict[str, Any], chooser: random.Random
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield where each fact of a position is, with other values to put there."""
    for path, values in domains(board, position):
        old: Any = position
        for key in path:
            old = old[key]
        others = [value for value in values if value != old]
        yield from ((path, value) for value in chooser.sample(others, min(1, len(others))))


def domains(board: Board, position: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    seats = [None, 0, 1]
    yield ("board",), ["another"]
    yield ("phase",), [phase for phase in Phase.__members__ if phase != "OVER"]
    yield ("player",), seats
    yield ("lead",), [0, 1]
    yield ("round",), list(range(position["round"] + 3))
    yield ("die",), [None, *CHARACTERS]
    yield ("origin",), [None, *AREAS]
    yield ("pending",), list(range(11))
    yield ("end",), [None, "triggers", "cap"]
    yield ("hot_spring",), seats
    if not position["end"]:
        yield ("end_triggered",), [False, True]
    if position["dice"]:
        yield ("dice",), [None]
        for size in range(4):
            subsets = map(list, itertools.combinations(CHARACTERS, size))
            yield ("dice_left",), [dice for dice in subsets if differs(position, dice)]
    for character, sides in zip(CHARACTERS, SIDES, strict=True):
        if position["dice"]:
            yield ("dice", character), list(range(1, 7))
        yield ("waves", character, "side"), [None, *sides]
        yield ("waves", character, "owner"), seats
    for town in COASTAL_TOWNS:
        yield ("boutiques", town), [None, *map(list, board.kinds)]
    for ware in WARES:
        yield ("bag", ware), list(range(9))
    for seat in range(2):
        yield from player_domains(board, position, seat)


def differs(position: dict[str, Any], dice: list[str]) -> bool:
    """Whether it is another set of dice left: their order means nothing."""
    return set(dice) != set(position["dice_left"])


def player_domains(
    board: Board, position: dict[str, Any], seat: int
) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    limits = {"temple": (1, 9), "garden": (1, 6), "coins": (0, 63), "gold": (0, 6)}
    for name, (low, high) in (limits | {"gifted": (0, 10)}).items():
        yield ("players", seat, name), list(range(low, high + 1))
    yield ("players", seat, "pilgrim"), list(range(len(board.stations)))
    yield ("players", seat, "merchant"), list(TOWNS)
    yield ("players", seat, "artist"), list(AREAS)
    for ware in WARES:
        yield ("players", seat, "wares", ware), list(range(9))
    for icon in ICONS:
        yield ("players", seat, "hidden", icon), list(range(4))
    easel = position["players"][seat]["easel"]
    easels = [easel[1:], easel[:-1], easel[::-1], *([*easel, icon][-10:] for icon in ICONS)]
    yield ("players", seat, "easel"), easels


def test_a_players_board_and_the_table() -> None:
    position = Game(seed=1).to_dict() | {
        **{"dice": {"pilgrim": 4, "merchant": 3, "artist": 2}, "dice_left": ["pilgrim"]},
        **{"phase": "EFFECT", "player": 1, "die": "artist", "origin": "A2", "hot_spring": 1},
        "bag": {"kimono": 4, "pottery": 5, "doll": 6, "fan": 7},
        "waves": {
            "pilgrim": {"side": "tranquil", "owner": 1},
            "merchant": {"side": "robust", "owner": 0},
            "artist": {"side": "inspired", "owner": 1},
        },
    }
    position["players"][1] = {
        **{"pilgrim": 22, "merchant": "M3", "artist": "A1", "temple": 7, "garden": 6},
        **{"coins": 3, "gold": 5, "wares": {"kimono": 1, "pottery": 0, "doll": 1, "fan": 1}},
        **{"easel": ["bamboo", "moon"], "gifted": 6},
        "hidden": {"moon": 0, "waterfall": 1, "mountain": 0, "bamboo": 1},
    }
    lines = draw(Board.load(), position, color=False).split("\n")
    assert lines[1] == " EFFECT · player_1 chooses an effect · artist in hand · from A2"
    assert lines[-15:-12] == [
        "       pilgrim              merchant             artist               hot spring  bag",
        " die   4 left               3 taken              2 in hand            player_1    "
        "kimono 4  doll 6",
        " wave  tranquil, player_1   robust, player_0     inspired, player_1               "
        "pottery 5  fan 7",
    ]
    assert lines[-10][13:20].strip() == "A8 ☾"[: len(lines[-10][13:20].strip())]
    assert [line[51:] for line in lines[-11:]] == [
        "╭─ player_1 ─ decides ──────────────── total 95 ─╮",
    ]


def test_points_are_those_of_the_game(board: Board) -> None:
    game, chooser = Game(board, seed=11), random.Random(11)
    drawing = ""
    while not game.is_over:
        game.play(chooser.choice(game.legal_actions()))
        if game.is_over or not game.rounds % 5:
            drawing = draw(board, game.to_dict(), color=False)
            totals = [int(total) for total in re.findall(r" total (\d+) ", drawing)]
            assert totals == [score["total"] for score in game.scores()]
    winner = game.winner()
    told = "shared victory" if winner is None else f"player_{winner} wins"
    assert told in drawing


@pytest.mark.parametrize(
    ("end", "coins", "told"),
    [
        ("triggers", (3, 3), "shared victory, 1 : 1"),
        ("triggers", (2, 3), "player_1 wins, 1 : 1"),
        ("triggers", (3, 2), "player_0 wins, 1 : 1"),
        ("cap", (3, 2), "nobody wins"),
    ],
)
def test_the_result_of_equal_points(end: str, coins: tuple[int, int], told: str) -> None:
    game = Game(seed=1)
    position = game.to_dict() | {"phase": "OVER", "player": None, "end": end}
    for player, number in zip(position["players"], coins, strict=True):
        player["coins"] = number
    assert told in draw(game.board, position, color=False)


def test_drawing_leaves_the_position_alone() -> None:
    game = Game(seed=5)
    position = game.to_dict()
    before = copy.deepcopy(position)
    first = draw(game.board, position)
    assert position == before
    assert draw(game.board, json.loads(json.dumps(position))) == first


# The island is the board's


CONNECTIONS = dict(zip("╵╶╰╷│╭├╴╯─┴╮┤┬┼", range(1, 16), strict=True))
STEPS = {1: (0, -1), 2: (1, 0), 4: (0, 1), 8: (-1, 0)}
BACK = {1: 4, 2: 8, 4: 1, 8: 2}


class Island:
    """Reads the map back from a drawing."""

    def __init__(self, drawing: str) -> None:
        self.rows = [line.ljust(WIDTH) for line in drawing.split("\n")]
        self.top = next(y for y, row in enumerate(self.rows) if "╭" in row)
        self.left, self.right = self.rows[self.top].index("╭"), self.rows[self.top].rindex("╮")
        below = range(self.top + 1, HEIGHT)
        self.bottom = next(y for y in below if self.rows[y][self.left] == "╰")
        self.nodes = [cell for cell in self.coast() if self.sign(*cell) in "■○PMApma"]
        first = min(self.nodes, key=lambda cell: self.distance(cell, self.find("C1")))
        start = self.nodes.index(first)
        self.nodes = self.nodes[start:] + self.nodes[:start]

    def sign(self, x: int, y: int) -> str:
        return self.rows[y][x]

    def find(self, word: str) -> tuple[int, int]:
        """Where a word begins on the map or just outside it."""
        for y in range(self.top - 2, self.bottom + 3):
            if found := re.search(rf"\b{word}\b", self.rows[y]):
                return found.start(), y
        raise AssertionError(f"no {word} on the map")

    @staticmethod
    def distance(a: tuple[int, int], b: tuple[int, int]) -> int:
        return abs(a[0] - b[0]) + 5 * abs(a[1] - b[1])

    def coast(self) -> list[tuple[int, int]]:
        """The cells of the coast, clockwise from the top left."""
        columns, rows = range(self.left, self.right), range(self.top, self.bottom)
        return [
            *((x, self.top) for x in columns),
            *((self.right, y) for y in rows),
            *((x + 1, self.bottom) for x in reversed(columns)),
            *((self.left, y + 1) for y in reversed(rows)),
        ]

    def inland(self, cell: tuple[int, int]) -> int:
        return {self.top: 4, self.bottom: 1}.get(cell[1]) or {self.left: 2, self.right: 8}[cell[0]]

    def follow(self, cell: tuple[int, int], heading: int) -> tuple[int, int]:
        """Walk along a line to where it ends: at a box or at the coast."""
        while True:
            dx, dy = STEPS[heading]
            cell = cell[0] + dx, cell[1] + dy
            ways = CONNECTIONS.get(self.sign(*cell), 0) - BACK[heading]
            if cell in self.nodes or ways not in STEPS:
                return cell
            heading = ways

    def town(self, cell: tuple[int, int]) -> str:
        """The town at the end of a route."""
        if cell in self.nodes:
            return f"node {self.nodes.index(cell)}"
        return min(MOUNTAIN_TOWNS, key=lambda town: self.to_box(cell, town))

    def to_box(self, cell: tuple[int, int], town: str) -> float:
        """How far a cell is from the middle of a mountain town; up to 1 is within."""
        x, y = self.find(town)
        return max(abs(cell[0] - (x + 3.5)) / 5.5, abs(cell[1] - y))

    def after(self, word: str, columns: int) -> str:
        """The two signs so many columns after the beginning of a word."""
        x, y = self.find(word)
        return self.rows[y][x + columns : x + columns + 2]

    def doors(self, town: str) -> list[tuple[tuple[int, int], int]]:
        """Where routes leave the box of a mountain town."""
        x, y = self.find(town)
        left, right = x - 2, x + 9
        rims = [((cx, y - 1), "┴", 1) for cx in range(left, right)]
        rims += [((cx, y + 1), "┬", 4) for cx in range(left, right)]
        rims += [((left, y), "┤", 8), ((right, y), "├", 2)]
        return [(cell, heading) for cell, sign, heading in rims if self.sign(*cell) == sign]

    def stations_around(self, area: str) -> list[int]:
        """The stations that an area's name sees without crossing a line."""
        reached, edge = set(), {self.find(area)}
        while edge:
            reached |= edge
            near = {(x + dx, y + dy) for x, y in edge for dx, dy in STEPS.values()}
            lines = set(CONNECTIONS) | {"►"}
            edge = {c for c in near - reached if self.sign(*c) not in lines} - set(self.nodes)
        near = {(x + dx, y + dy) for x, y in reached for dx, dy in STEPS.values()}
        return [index for index, node in enumerate(self.nodes) if node in near]


def test_stations_stand_in_order(board: Board, drawings: list[str]) -> None:
    island = Island(drawings[0])
    assert len(island.nodes) == len(board.stations)
    for node, town in zip(island.nodes, board.stations, strict=True):
        if town in COASTAL_TOWNS:
            to_label = [island.distance(other, island.find(town)) for other in island.nodes]
            assert island.nodes[to_label.index(min(to_label))] == node


def test_characters_stand_where_they_are(
    board: Board, positions: list[dict[str, Any]], drawings: list[str]
) -> None:
    for position, drawing in zip(positions, drawings, strict=True):
        island = Island(drawing)
        for player, (pilgrim, merchant, artist) in zip(position["players"], PAWNS, strict=True):
            assert island.sign(*island.nodes[player["pilgrim"]]) == pilgrim
            if player["merchant"] in COASTAL_TOWNS:
                node = island.nodes[board.stations.index(player["merchant"])]
                assert island.sign(*node) == merchant
            else:
                assert merchant in island.after(player["merchant"], 6)
            assert artist in island.after(player["artist"], 3)


def test_routes_lead_where_the_board_says(board: Board, drawings: list[str]) -> None:
    island = Island(drawings[0])
    coasts = {f"node {board.stations.index(town)}": town for town in COASTAL_TOWNS}
    drawn = set()
    for town in MOUNTAIN_TOWNS:
        for door in island.doors(town):
            end = island.town(island.follow(*door))
            drawn.add(frozenset((town, coasts.get(end, end))))
    assert drawn == {frozenset(route) for route in board.routes}


def test_areas_lie_between_their_towns(board: Board, drawings: list[str]) -> None:
    island = Island(drawings[0])
    towns = [board.stations.index(town) for town in COASTAL_TOWNS]
    ends = (*towns, len(board.stations))
    for index, area in enumerate(AREAS):
        assert island.stations_around(area) == list(range(ends[index] + 1, ends[index + 1]))


@pytest.mark.parametrize("name", ["\x1b[2J\n\tevil", "四国" * 40, "long " * 40])
def test_a_board_may_have_any_name(name: str) -> None:
    game = Game(seed=3)
    lines = draw(game.board, game.to_dict() | {"board": name}, color=False).split("\n")
    assert len(lines) == HEIGHT
    assert all(line.isprintable() and len(line) <= WIDTH for line in lines)
