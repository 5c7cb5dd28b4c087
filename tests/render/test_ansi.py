"""The drawing of a position for a terminal: what it shows, where, and that it fits."""

import copy
import itertools
import json
import random
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from positions import (
    AREAS,
    CHARACTERS,
    COASTAL,
    ICONS,
    SIDES,
    TOWNS,
    WARES,
    Position,
    changed,
    other_board_data,
    position,
    shikoku_data,
    some_move,
    write_board,
)

from tokaido_env import Board, Game
from tokaido_env.core.state import Phase
from tokaido_env.render.ansi import HEIGHT, WIDTH, draw
from tokaido_env.render.ansi_map import survey

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
PAWNS = [("P", "M", "A"), ("p", "m", "a")]
MOUNTAINS = TOWNS[8:]

# By name: the stations after each coastal town, and a tree of routes.
OTHER_BOARDS = {
    "ring20": (
        [3, 0, 2, 1, 2, 1, 2, 1],
        "M1-M2 M1-M3 M1-M4 M2-C1 M2-C2 M3-C3 M3-C4 M3-C5 M4-C6 M4-C7 M1-C8",
    ),
    "ring33": (
        [3, 4, 2, 5, 2, 3, 4, 2],
        "M4-M3 M3-M2 M2-M1 M4-C2 M4-C3 M4-C4 M4-C5 M4-C6 M4-C7 M4-C8 M1-C1",
    ),
    "ring40": (
        [4, 4, 4, 4, 4, 4, 4, 4],
        "M1-M2 M2-M3 M3-M4 M1-C1 M1-C2 M2-C3 M3-C4 M4-C5 M4-C6 M3-C7 M2-C8",
    ),
}


def board_data(name: str) -> dict[str, Any]:
    if name == "shikoku":
        return shikoku_data()
    if name == "other":
        return other_board_data() | {"max_rounds": 200}
    gaps, routes = OTHER_BOARDS[name]
    kinds = itertools.cycle(["hot spring", "seashore", "temple", "garden", "seashore"])
    data = shikoku_data() | {"name": name}
    data["ring"]["stations"] = [
        station
        for town, gap in zip(COASTAL, gaps, strict=True)
        for station in (town, *itertools.islice(kinds, gap))
    ]
    data["routes"]["pairs"] = [route.split("-") for route in routes.split()]
    return data


# Routes of family:28 are hard to keep apart, those of family:16 so hard that it takes many seconds.
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in (*OTHER_BOARDS, "family:16")]


@pytest.fixture(scope="module", params=["shikoku", "other", "family:28", *SLOW])
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Board:
    if request.param.startswith("family:"):
        return Board.load(request.param)
    path: Path = tmp_path_factory.mktemp("boards") / "board.toml"
    return Board.load(write_board(path, board_data(request.param)))


@pytest.fixture(scope="module")
def seen(board: Board) -> list[Position]:
    """Positions of random games, every phase among them."""
    some: list[Position] = []
    for seed in range(9):
        game = list(random_game(board, seed))
        some += [*game[:13:3], *game[13::7], game[-1]]
        if seed >= 2 and {one["phase"] for one in some} == set(Phase.__members__):
            return some
    raise AssertionError("a phase is missing")


@pytest.fixture(scope="module")
def drawings(board: Board, seen: list[Position]) -> list[str]:
    """The plain drawings of the positions seen."""
    return [drawn(board, one) for one in seen]


def drawn(board: Board, one: Position, like: Position | None = None, *, color: bool = False) -> str:
    """Draw a position; if no game can reach it, with the points of one `like` it."""
    scene = Game.from_dict(like or one, board=board, seed=0, chance="explicit").scene()
    return draw(replace(scene, position=one), color=color)


def random_game(board: Board, seed: int) -> Iterator[Position]:
    game, rng = Game(board, seed=seed, chance="explicit"), random.Random(seed)
    yield game.to_dict()
    while not game.is_over:
        game.play(some_move(game, rng))
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


def test_colour_changes_no_sign(board: Board, seen: list[Position], drawings: list[str]) -> None:
    for one, plain in zip(seen, drawings, strict=True):
        coloured = drawn(board, one, color=True)
        assert "\x1b" not in plain
        assert "\x1b" in coloured
        assert ESCAPE.sub("", coloured) == plain


def test_no_colour_runs_on(board: Board, seen: list[Position]) -> None:
    for line in drawn(board, seen[-1], color=True).split("\n"):
        codes = ESCAPE.findall(line)
        assert codes[1::2] == ["\x1b[0m"] * (len(codes) // 2)
        assert len(codes) % 2 == 0


@pytest.mark.parametrize("name", ["\x1b[2J\n\tevil", "四国" * 40, "long " * 40])
def test_a_board_may_have_any_name(name: str) -> None:
    lines = drawn(Board.load(), position(board=name), position()).split("\n")
    assert len(lines) == HEIGHT
    assert all(line.isprintable() and len(line) <= WIDTH for line in lines)


# It shows everything


def test_a_position_in_full() -> None:
    one = position(
        phase="EFFECT",
        player=1,
        dice=(4, 3, 2),
        left=["pilgrim"],
        die="artist",
        origin="A2",
        round=21,
        hot_spring=1,
        waves={"pilgrim": ("tranquil", 1), "merchant": ("robust", 0), "artist": ("inspired", 1)},
        mine={"pilgrim": 22, "merchant": "C3", "artist": "A1", "wares": {"fan": 6}},
        theirs={
            **{"pilgrim": "C5", "merchant": "M3", "artist": "A1", "temple": 7, "garden": 6},
            **{"coins": 3, "gold": 5, "easel": ["bamboo", "moon"], "gifted": 6},
            "wares": {"kimono": 1, "doll": 1},
        },
    )
    near = one | {"origin": "A3"}  # a move from A2 is one step, and no game has it
    assert drawn(Board.load(), one, near) == IN_FULL.strip("\n")


IN_FULL = """
 Tokaido Duo · round 21 · player_0 leads · shikoku
 EFFECT · player_1 chooses an effect · artist in hand · from A2 · last round
                            C2                             C3                  hot
                garden   kimono 4  seashore    temple   pottery 4  temple    spring
             ╭─►───○─────────■─────────○──────────○─────────M─────────○─────────○─────╮
             │               │                              │                         │
      temple ○   A1 Aa       │                              │                         ○ garden
             │   ≋ waterfall │                 A2           │   A3                    │
 C1 kimono 4 ■────────────╮  │                 ╫ bamboo     │   ☾ moon   ╭────────────■ C4 pottery 3
             │            │  ╰───────────╮                  │            │            │
    seashore ○            │              │                  │            │            ○ garden
             │       ╭────┴─────╮   ╭────┴─────╮    ╭───────┴──╮   ╭─────┴────╮       │
      temple ○       │ M1 +3    ├───┤ M2 +2    ├────┤ M3 +4 m  ├───┤ M4 +3    │       ○ temple
             │       ╰────┬─────╯   ╰──┬───────╯    ╰─────┬────╯   ╰─────┬────╯       │
      garden ○  A8        │            │                  │              │ A4         ○ seashore
             │  ☾ moon    │            │                  │              │ ▲ mountain │
    C8 fan 2 ■────────────╯  A7        │    A6            │  A5          ╰────────────p C5 doll 3
             │               ╫ bamboo  │    ▲ mountain    │  ≋ waterfall              │
      garden ○                         │                  ╰───────────╮               ○ temple
             │                         │                              │               │
             ╰─────P─────────○─────────■──────────○─────────○─────────■─────────○─────╯
                  hot     temple      C7       temple   seashore     C6      garden
                spring               fan 2                         doll 2

       pilgrim              merchant             artist               hot spring  bag
 die   4 left               3 taken              2 in hand            player_1    kimono 4  doll 6
 wave  tranquil, player_1   robust, player_0     inspired, player_1               pottery 6  fan 2

╭─ player_0 ────────────────────────── total 1 ─╮  ╭─ player_1 ─ decides ─────────────── total 95 ─╮
│ P pilgrim  hot spring 22  temple ■········  1 │  │ p pilgrim  C5 14          temple ■■■■■■■··  7 │
│ M merchant C3             garden ■·····     1 │  │ m merchant M3             garden ■■■■■■     6 │
│ A artist   A1 ≋           gold   ······     0 │  │ a artist   A1 ≋           gold   ■■■■■·     5 │
│ coins      0              gifted ·········· 0 │  │ coins      3   hot spring gifted ■■■■■■···· 6 │
│ points     faith 1  commerce 0  culture 0     │  │ points     faith 42  commerce 35  culture 18  │
│ wares      kimono 0  pottery 0  doll 0  fan 6 │  │ wares      kimono 1  pottery 0  doll 1  fan 0 │
│ easel      –                                  │  │ easel      front ╫ ☾                          │
│ hidden     ☾ 3  ≋ 3  ▲ 2  ╫ 2                 │  │ hidden     ☾ 0  ≋ 0  ▲ 1  ╫ 1                 │
│ waves      robust                             │  │ waves      tranquil, inspired                 │
╰───────────────────────────────────────────────╯  ╰───────────────────────────────────────────────╯
"""


def test_different_positions_draw_differently(seen: list[Position], drawings: list[str]) -> None:
    assert len(set(drawings)) == len({json.dumps(one) for one in seen})


def test_each_fact_changes_the_drawing(
    board: Board, seen: list[Position], drawings: list[str]
) -> None:
    rng = random.Random(0)
    for phase in Phase.__members__:
        chosen = rng.choice([k for k, one in enumerate(seen) if one["phase"] == phase])
        for where, values in domains(board, seen[chosen]):
            old: Any = seen[chosen]
            for key in where.split("."):
                old = old[int(key) if key.isdigit() else key]
            value = rng.choice([value for value in values if value != old])
            other = changed(seen[chosen], where, value)
            assert drawn(board, other, seen[chosen]) != drawings[chosen], (where, value)


def domains(board: Board, one: Position) -> Iterator[tuple[str, list[Any]]]:
    """Yield where each fact of a position is, and what may be put there."""
    seats = [None, 0, 1]
    yield "board", ["another"]
    yield "phase", [phase for phase in Phase.__members__ if phase != "OVER"]
    yield "player", seats
    yield "lead", [0, 1]
    yield "round", list(range(one["round"] + 3))
    yield "die", [None, *CHARACTERS]
    yield "origin", [None, *AREAS]
    yield "pending", list(range(11))
    yield "end", [None, "triggers", "cap"]
    yield "hot_spring", seats
    if not one["end"]:
        yield "end_triggered", [False, True]
    if one["dice"]:
        yield "dice", [None]
        subsets = [list(some) for n in range(4) for some in itertools.combinations(CHARACTERS, n)]
        yield "dice_left", [some for some in subsets if set(some) != set(one["dice_left"])]
    for character in CHARACTERS:
        if one["dice"]:
            yield f"dice.{character}", list(range(1, 7))
        yield f"waves.{character}.side", [None, *SIDES[character]]
        yield f"waves.{character}.owner", seats
    for town in COASTAL:
        yield f"boutiques.{town}", [None, *map(list, board.kinds)]
    for ware in WARES:
        yield f"bag.{ware}", list(range(9))
    for seat, player in enumerate(one["players"]):
        for name, values in player_domains(board, player):
            yield f"players.{seat}.{name}", values


def player_domains(board: Board, player: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    limits = {"temple": (1, 9), "garden": (1, 6), "coins": (0, 63), "gold": (0, 6)}
    for name, (low, high) in (limits | {"gifted": (0, 10)}).items():
        yield name, list(range(low, high + 1))
    yield "pilgrim", list(range(len(board.stations)))
    yield "merchant", list(TOWNS)
    yield "artist", list(AREAS)
    for ware in WARES:
        yield f"wares.{ware}", list(range(9))
    for icon in ICONS:
        yield f"hidden.{icon}", list(range(4))
    easel = player["easel"]
    yield "easel", [easel[1:], easel[:-1], easel[::-1], *([*easel[:9], icon] for icon in ICONS)]


def test_points_are_those_of_the_game(board: Board) -> None:
    game, chooser = Game(board, seed=11), random.Random(11)
    drawing = ""
    while not game.is_over:
        game.play(chooser.choice(game.legal_actions()))
        if game.is_over or not game.rounds % 5:
            drawing = draw(game.scene(), color=False)
            totals = [int(total) for total in re.findall(r" total (\d+) ", drawing)]
            assert totals == [score["total"] for score in game.scores()]
    winner = game.winner()
    told = "shared victory" if winner is None else f"player_{winner} wins"
    assert told in drawing


@pytest.mark.parametrize(
    ("end", "coins", "told"),
    [
        ("triggers", (3, 3), "shared victory, 9 : 9"),
        ("triggers", (2, 3), "player_1 wins, 9 : 9"),
        ("triggers", (3, 2), "player_0 wins, 9 : 9"),
        ("cap", (3, 2), "nobody wins"),
    ],
)
def test_the_result_of_equal_points(end: str, coins: tuple[int, int], told: str) -> None:
    temple, last = (9, 1) if end == "triggers" else (1, 200)
    mine, theirs = ({"coins": number, "temple": temple} for number in coins)
    over = position(phase="OVER", left=[], end=end, round=last, mine=mine, theirs=theirs)
    assert told in drawn(Board.load(), over)


def test_drawing_leaves_the_position_alone() -> None:
    scene = Game.from_dict(position(), seed=0).scene()
    before = copy.deepcopy(scene)
    first = draw(scene)
    assert scene == before
    assert draw(before) == first


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
        return min(MOUNTAINS, key=lambda town: self.to_box(cell, town))

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
        if town in COASTAL:
            to_label = [island.distance(other, island.find(town)) for other in island.nodes]
            assert island.nodes[to_label.index(min(to_label))] == node


def test_characters_stand_where_they_are(
    board: Board, seen: list[Position], drawings: list[str]
) -> None:
    for one, drawing in zip(seen, drawings, strict=True):
        island = Island(drawing)
        for player, (pilgrim, merchant, artist) in zip(one["players"], PAWNS, strict=True):
            assert island.sign(*island.nodes[player["pilgrim"]]) == pilgrim
            if player["merchant"] in COASTAL:
                node = island.nodes[board.stations.index(player["merchant"])]
                assert island.sign(*node) == merchant
            else:
                assert merchant in island.after(player["merchant"], 6)
            assert artist in island.after(player["artist"], 3)


def test_routes_lead_where_the_board_says(board: Board, drawings: list[str]) -> None:
    island = Island(drawings[0])
    coasts = {f"node {board.stations.index(town)}": town for town in COASTAL}
    drawn = set()
    for town in MOUNTAINS:
        for door in island.doors(town):
            end = island.town(island.follow(*door))
            drawn.add(frozenset((town, coasts.get(end, end))))
    assert drawn == {frozenset(route) for route in board.routes}


def test_areas_lie_between_their_towns(board: Board, drawings: list[str]) -> None:
    island = Island(drawings[0])
    towns = [board.stations.index(town) for town in COASTAL]
    ends = (*towns, len(board.stations))
    for index, area in enumerate(AREAS):
        assert island.stations_around(area) == list(range(ends[index] + 1, ends[index + 1]))


@pytest.mark.parametrize(
    "numbers", [(1, 3, 5, 28), pytest.param((*range(6), 16), marks=pytest.mark.slow)], ids=len
)
def test_maps_of_drawn_boards_write_no_cell_twice(numbers: tuple[int, ...]) -> None:
    """A name of an area may hide a cell or two of a route where there is no other room."""
    hidden = 0
    for number in numbers:
        chart = survey(Board.generate(number))
        towns = [(corner, (12, 3)) for corner in chart.towns.values()]
        taken = [cell for corner, size in towns for cell in cells(corner, size)]
        names = [cell for corner, size in chart.areas.values() for cell in cells(corner, size)]
        assert len(set(taken + names)) == len(taken + names), number
        assert not {cell for cell, _ in chart.stations} & {*taken, *names}, number
        assert chart.flaws < 4, number  # no crossing, which counts 1,000
        hidden += len(chart.lines.keys() & {*names})
    assert hidden <= len(numbers) / 4


def cells(corner: tuple[int, int], size: tuple[int, int]) -> list[tuple[int, int]]:
    (left, top), (width, height) = corner, size
    return [(x, y) for x in range(left, left + width) for y in range(top, top + height)]
