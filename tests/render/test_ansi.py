"""Tests of render/ansi.py: contents and layout of text boards."""

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
from tokaido_env.core.state import Phase
from tokaido_env.render.ansi import WIDTH, draw

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module", params=["shikoku", "other", "family:9"])  # the last has 40 stations
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
        assert len(lines) <= (28 if board.name == "shikoku" else 36)
        assert max(map(len, lines)) <= WIDTH == 80
        assert all(line and line == line.rstrip() for line in lines)
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


@pytest.mark.parametrize("name", ["\x1b[2J\n\tevil", "四国" * 40])
def test_draw__accepts_any_board_name(name: str) -> None:
    lines = drawn(Board.load(), position(board=name), position()).split("\n")
    assert len(lines) == 27
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
Tokaido Duo · round 21 · shikoku · player_0 leads
EFFECT · player_1 chooses an effect · last round · selected die: artist · from
A2
   COASTAL TOWN    STATIONS AFTER IT              AREA               NEXT TO
 0 C1 kimono 4     temple  garden                 A1 ≋ waterfall[Aa] A2 A7 A8
 3 C2 kimono 4     seashore  temple               A2 ╫ bamboo        A1 A3 A6
 6 C3 pottery 4[M] temple  hot spring  garden     A3 ☾ moon          A2 A4 A5
10 C4 pottery 3    garden  temple  seashore       A4 ▲ mountain      A3 A5
14 C5 doll 3[p]    temple  garden                 A5 ≋ waterfall     A3 A4 A6
17 C6 doll 2       seashore  temple               A6 ▲ mountain      A2 A5 A7
20 C7 fan 2        temple  hot spring[P]  garden  A7 ╫ bamboo        A1 A6 A8
24 C8 fan 2        garden  temple  seashore       A8 ☾ moon          A1 A7
   MOUNTAIN TOWN   ROUTES TO                      IN AREAS
   M1 +3           M2 C1 C8                       A1 A7 A8
   M2 +2           M1 M3 C2 C7                    A1 A2 A6 A7
   M3 +4[m]        M2 M4 C3 C6                    A2 A3 A5 A6
   M4 +3           M3 C4 C5                       A3 A4 A5
SUPPLY   PILGRIM                 MERCHANT                ARTIST
die      4 available             3 taken                 2 selected
wave     tranquil, player_1      robust, player_0        inspired, player_1
bag      kimono 4  pottery 6  doll 6  fan 2              hot spring player_1
PLAYERS  player_0, total 1                   player_1, total 95, decides
pawns    [P] hot spring 22  [M] C3  [A] A1   [p] C5 14  [m] M3  [a] A1
faith    1   temple 1/9  garden 1/6          42  temple 7/9  garden 6/6
commerce 0   gold 0/6  coins 0               35  gold 5/6  coins 3
wares    kimono 0  pottery 0  doll 0  fan 6  kimono 1  pottery 0  doll 1  fan 0
culture  0   gifted 0/10 hidden ☾3 ≋3 ▲2 ╫2  18  gifted 6/10 hidden ☾0 ≋0 ▲1 ╫1
easel    –                                   front ╫ ☾
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
        ("cap", (3, 2), "player_0 wins, 1 : 1"),
    ],
)
def test_draw__shows_the_result(end: str, coins: tuple[int, int], result: str) -> None:
    temple, last = (9, 1) if end == "triggers" else (1, 200)
    mine, theirs = ({"coins": number, "temple": temple} for number in coins)
    over = position(phase="OVER", left=[], end=end, round=last, mine=mine, theirs=theirs)
    assert result in drawn(Board.load(), over)
