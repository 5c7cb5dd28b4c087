"""Tests of render/ansi.py and render/ansi_map.py: contents and layout of text pictures."""

import itertools
import math
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from positions import Position, changed, other_board_data, position, random_walk, write_board

from tokaido_env import Board, Game
from tokaido_env.core.constants import AREAS, COASTAL_TOWNS, TOWNS
from tokaido_env.core.state import Phase
from tokaido_env.render.ansi import HEIGHT, WIDTH, draw
from tokaido_env.render.ansi_map import terminal_map_of

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
    """Positions of random games, with every phase."""
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
    """Draw a position; an impossible one with the points of a similar one, `like`."""
    scene = Game.from_dict(like or one, board=board, seed=0, chance="explicit").scene()
    return draw(replace(scene, position=one), color=color)


def test_draw__fits_the_terminal_with_and_without_colour(
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
def test_draw__accepts_any_board_name(name: str) -> None:
    lines = drawn(Board.load(), position(board=name), position()).split("\n")
    assert len(lines) == HEIGHT
    assert all(line.isprintable() and len(line) <= WIDTH for line in lines)


# Contents


def test_draw__shows_a_whole_position() -> None:
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
 EFFECT · player_1 chooses an effect · selected die: artist · from A2 · last round
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
 die   4 available          3 taken              2 selected           player_1    kimono 4  doll 6
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


def test_draw__shows_each_value(board: Board, seen: list[Position], drawings: list[str]) -> None:
    """Replace each value with one from another position; the picture must change."""
    known: defaultdict[str, list[Any]] = defaultdict(list)
    for one in seen:
        for where, value in values_of(one):
            known[where].append(value)
    rng, tried = random.Random(0), set()
    for phase in Phase.__members__:
        chosen = rng.choice([k for k, one in enumerate(seen) if one["phase"] == phase])
        one = seen[chosen]
        for where, old in values_of(one):
            others = [value for value in known[where] if value not in (old, "OVER")]
            unseen = {"end_triggered": one["end"], "dice_left": not one["dice"]}
            if others and not unseen.get(where):
                other = changed(one, where, rng.choice(others))
                assert drawn(board, other, one) != drawings[chosen], where
                tried.add(where)
    assert len(tried) > 60


def values_of(data: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the key of each value, as for `changed`, and the value."""
    if isinstance(data, dict) or where == "players":
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from values_of(value, f"{where}.{key}" if where else str(key))
    else:
        yield where, data


@pytest.mark.parametrize(
    ("end", "coins", "result"),
    [
        ("triggers", (3, 3), "shared victory, 9 : 9"),
        ("triggers", (2, 3), "player_1 wins, 9 : 9"),
        ("triggers", (3, 2), "player_0 wins, 9 : 9"),
        ("cap", (3, 2), "nobody wins"),
    ],
)
def test_draw__shows_the_result(end: str, coins: tuple[int, int], result: str) -> None:
    temple, last = (9, 1) if end == "triggers" else (1, 200)
    mine, theirs = ({"coins": number, "temple": temple} for number in coins)
    over = position(phase="OVER", left=[], end=end, round=last, mine=mine, theirs=theirs)
    assert result in drawn(Board.load(), over)


# The map


STEPS = {1: (0, -1), 2: (1, 0), 4: (0, 1), 8: (-1, 0)}  # bits of lines
BACK = {1: 4, 2: 8, 4: 1, 8: 2}
Cell = tuple[int, int]


def step(cell: Cell, heading: int) -> Cell:
    return cell[0] + STEPS[heading][0], cell[1] + STEPS[heading][1]


def test_draw__follows_the_map(board: Board, seen: list[Position], drawings: list[str]) -> None:
    layout = terminal_map_of(board)
    lines = dict(zip(range(1, 16), "╵╶╰╷│╭├╴╯─┴╮┤┬┼", strict=True))
    stations = {cell for cell, _ in layout.stations}
    marks = {*stations, (15, 4)}  # and the arrow that shows the direction
    for one, drawing in zip(seen, drawings, strict=True):
        rows = [line.ljust(WIDTH) for line in drawing.split("\n")]
        hidden = {cell for site in layout.areas.values() for cell in cells(*site)}
        for (x, y), line in layout.lines.items():
            assert rows[y][x] == lines[line] or (x, y) in marks | hidden
        for number, town in enumerate(board.stations):
            (x, y), _ = layout.stations[number]
            around = "".join(row[max(0, x - 16) : x + 13] for row in rows[y - 2 : y + 3])
            assert town not in COASTAL_TOWNS or town in around
        for player, (pilgrim, merchant, artist) in zip(one["players"], PAWNS, strict=True):
            x, y = layout.stations[player["pilgrim"]][0]
            assert rows[y][x] == pilgrim
            town = player["merchant"]
            if town in COASTAL_TOWNS:
                x, y = layout.stations[board.stations.index(town)][0]
                assert rows[y][x] == merchant
            else:
                x, y = layout.towns[town]
                assert rows[y + 1][x + 2 : x + 4] == town
                assert merchant in rows[y + 1][x + 8 : x + 10]
            x, y = layout.areas[player["artist"]][0]
            assert rows[y][x : x + 2] == player["artist"]
            assert artist in rows[y][x + 3 : x + 5]


def test_terminal_map__has_stations_clockwise(board: Board) -> None:
    cells = [cell for cell, _ in terminal_map_of(board).stations]
    assert len(set(cells)) == len(board.stations)
    angles = [math.atan2((y - 12) * 2, x - 49.5) for x, y in cells]
    turns = [(b - a) % math.tau for a, b in itertools.pairwise([*angles, angles[0]])]
    assert sum(turns) == pytest.approx(math.tau)


def test_terminal_map__connects_the_towns_of_routes(board: Board) -> None:
    layout = terminal_map_of(board)
    places = {cell: town for town, at in layout.towns.items() for cell in cells(at, (12, 3))}
    places |= {cell: board.stations[i] for i, (cell, _) in enumerate(layout.stations)}
    routes = set()
    for start, town in places.items():
        for heading in STEPS if town in MOUNTAINS else ():
            cell = step(start, heading)
            if not layout.lines.get(start, 0) & heading or places.get(cell) == town:
                continue
            while cell not in places:
                heading = layout.lines[cell] - BACK[heading]
                cell = step(cell, heading)
            routes.add(frozenset((town, places[cell])))
    assert routes == {frozenset(route) for route in board.routes}


def test_terminal_map__has_areas_between_their_towns(board: Board) -> None:
    layout = terminal_map_of(board)
    towns = [board.stations.index(town) for town in COASTAL_TOWNS]
    for index, area in enumerate(AREAS):
        reached, edge = set(), {layout.areas[area][0]}
        while edge:  # the land around the name up to the lines
            reached |= edge
            edge = {step(cell, h) for cell in edge for h in STEPS} - reached - layout.lines.keys()
        seen = [i for i, (at, inland) in enumerate(layout.stations) if step(at, inland) in reached]
        end = [*towns, len(board.stations)][index + 1]
        assert [i for i in seen if i not in towns] == list(range(towns[index] + 1, end))


def test_terminal_map__uses_no_cell_twice() -> None:
    """The name of an area may hide one or two cells of a route."""
    numbers = (1, 3, 5, 28)
    hidden = 0
    for number in numbers:
        layout = terminal_map_of(Board.generate(number))
        towns = [(corner, (12, 3)) for corner in layout.towns.values()]
        taken = [cell for corner, size in towns for cell in cells(corner, size)]
        names = [cell for corner, size in layout.areas.values() for cell in cells(corner, size)]
        assert len(set(taken + names)) == len(taken + names), number
        assert not {cell for cell, _ in layout.stations} & {*taken, *names}, number
        assert layout.flaws < 4, number  # no crossing, which counts 1,000
        hidden += len(layout.lines.keys() & {*names})
    assert hidden <= len(numbers) / 4


def cells(corner: tuple[int, int], size: tuple[int, int]) -> list[tuple[int, int]]:
    (left, top), (width, height) = corner, size
    return [(x, y) for x in range(left, left + width) for y in range(top, top + height)]
