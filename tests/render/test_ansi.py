"""The drawing of a position for a terminal: what it shows, where, and that it fits."""

import json
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from positions import (
    AREAS,
    COASTAL,
    TOWNS,
    Position,
    changed,
    other_board_data,
    position,
    random_walk,
    write_board,
)

from tokaido_env import Board, Game
from tokaido_env.core.state import Phase
from tokaido_env.render.ansi import HEIGHT, WIDTH, draw
from tokaido_env.render.ansi_map import survey

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
PAWNS = [("P", "M", "A"), ("p", "m", "a")]
MOUNTAINS = TOWNS[8:]


@pytest.fixture(scope="module", params=["shikoku", "other", "family:28"])  # the last is crowded
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Board:
    if request.param != "other":
        return Board.load(request.param)
    path: Path = tmp_path_factory.mktemp("boards") / "board.toml"
    return Board.load(write_board(path, other_board_data() | {"max_rounds": 200}))


@pytest.fixture(scope="module")
def seen(board: Board) -> list[Position]:
    """Positions of random games, every phase among them."""
    some: list[Position] = []
    for seed in range(9):
        played = random_walk(seed, 10_000, board).trajectory()
        last = len(played.states) - 1
        some += [played.position(row) for row in (*range(0, 13, 3), *range(13, last, 7), last)]
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


def test_drawings_fit_the_terminal_and_colour_changes_no_sign(
    board: Board, seen: list[Position], drawings: list[str]
) -> None:
    for one, drawing in zip(seen, drawings, strict=True):
        lines = drawing.split("\n")
        assert len(lines) == HEIGHT <= 40
        assert max(map(len, lines)) <= WIDTH == 100
        coloured = drawn(board, one, color=True)
        assert "\x1b" in coloured
        assert ESCAPE.sub("", coloured) == drawing
        for line in coloured.split("\n"):  # no colour runs on
            codes = ESCAPE.findall(line)
            assert codes[1::2] == ["\x1b[0m"] * (len(codes) // 2)
            assert len(codes) % 2 == 0
    for sign in set("".join(drawings)) - {"\n"}:  # one column wide
        assert sign.isprintable()
        assert unicodedata.east_asian_width(sign) not in "WF"
        assert not unicodedata.combining(sign)


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
    """Put what stands there in another position of a game in its place."""
    known: defaultdict[str, list[Any]] = defaultdict(list)
    for one in seen:
        for where, value in facts(one):
            known[where].append(value)
    rng, tried = random.Random(0), set()
    for phase in Phase.__members__:
        chosen = rng.choice([k for k, one in enumerate(seen) if one["phase"] == phase])
        one = seen[chosen]
        for where, old in facts(one):
            others = [value for value in known[where] if value not in (old, "OVER")]
            unseen = {"end_triggered": one["end"], "dice_left": not one["dice"]}
            if others and not unseen.get(where):
                other = changed(one, where, rng.choice(others))
                assert drawn(board, other, one) != drawings[chosen], where
                tried.add(where)
    assert len(tried) > 60


def facts(data: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield where each fact of a position is, as `changed` takes it, and what stands there."""
    if isinstance(data, dict) or where == "players":
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from facts(value, f"{where}.{key}" if where else str(key))
    else:
        yield where, data


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


def test_maps_of_drawn_boards_write_no_cell_twice() -> None:
    """A name of an area may hide a cell or two of a route where there is no other room."""
    numbers = (1, 3, 5, 28)
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
