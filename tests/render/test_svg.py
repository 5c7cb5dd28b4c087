"""The drawn board: what it shows of a position, where, and that any board draws."""

import itertools
import math
import pathlib
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from positions import other_board_data, write_board

from tokaido_env import Board, Game
from tokaido_env.boards.board import built_in_boards
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS
from tokaido_env.core.state import Phase
from tokaido_env.render import map_layout
from tokaido_env.render.ansi_map import terminal_map_of
from tokaido_env.render.map_layout import MapLayout, Point, map_layout_of
from tokaido_env.render.scene import choices_of, place_of, scene_of
from tokaido_env.render.style import THEMES, style
from tokaido_env.render.svg import draw, panels_of

Path = pytest.importorskip("matplotlib.path").Path
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "style", "g", "title", "text", "path", "rect", "circle", "line"}
HOSTILE = "</title></svg><script>alert('1')</script>&\""


def played(moves: int, seed: int = 5, board: str | Board = "shikoku") -> Game:
    """A game after some random decisions; it passes only when it must."""
    game, luck = Game(board, seed=seed), random.Random(seed)
    for _ in range(moves):
        if game.is_over:
            break
        labels = [label for label in game.legal_labels() if label != "pass"]
        game.play(luck.choice(labels or ["pass"]))
    return game


def first_pick(game: Game) -> Game:
    """Go on to the first pick of a round, where all dice are left."""
    while game.phase != Phase.MOVE or len(game.to_dict()["dice_left"]) < 3:
        game.play(game.legal_actions()[0])
    return game


def titles(svg: str) -> list[str]:
    return [str(title.text) for title in ET.fromstring(svg).iter(f"{SVG}title")]


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def mapped(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> list[tuple[Board, MapLayout]]:
    """Boards of all kinds with their maps; `pytest --games 20000` draws many more."""
    path = tmp_path_factory.mktemp("mapped") / "other.toml"
    drawn = range(max(12, pytestconfig.getoption("games") // 100))
    every = [
        *map(Board.load, built_in_boards()),
        Board.load(write_board(path, other_board_data())),
        *(Board.generate(number) for number in (193, *drawn)),  # a crowded one first
    ]
    return [(board, map_layout_of(board)) for board in every]


def sites_of(board: Board, layout: MapLayout) -> dict[str, Point]:
    """Where all towns are."""
    places = {town: layout.stations[board.stations.index(town)] for town in COASTAL_TOWNS}
    return places | dict(layout.towns)


def nearest(some: Iterable[Point], others: Iterable[Point]) -> float:
    """How far apart the nearest two of some points and others are."""
    return min(math.dist(*pair) for pair in itertools.product(some, others) if len({*pair}) > 1)


def from_segment(point: Point, start: Point, end: Point) -> float:
    """How far a point is from a line between two others."""
    (px, py), (ax, ay), (bx, by) = point, start, end
    square = (bx - ax) ** 2 + (by - ay) ** 2
    along = ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / square
    along = min(max(along, 0), 1)
    return math.dist(point, (ax + along * (bx - ax), ay + along * (by - ay)))


def test_every_board_has_a_map_on_which_nothing_meets(
    mapped: list[tuple[Board, MapLayout]],
) -> None:
    for board, layout in mapped:
        assert len(layout.stations) == len(board.stations)
        towns, areas = layout.towns.values(), layout.areas.values()
        assert nearest(layout.stations, layout.stations) > 28, board.name  # radii 13 and 15
        assert nearest(towns, towns) > 56, board.name  # hills 48 wide, a name below
        assert nearest(towns, layout.stations) > 55, board.name
        assert nearest(towns, areas) > 42, board.name  # a sign of radius 15
        for x, y in layout.stations:
            assert 55 < x < map_layout.WIDTH - 55, board.name  # room for tokens in the sea
            assert 55 < y < map_layout.HEIGHT - 55, board.name


def test_routes_keep_clear_of_other_towns_stations_and_signs(
    mapped: list[tuple[Board, MapLayout]],
) -> None:
    for board, layout in mapped:
        places = sites_of(board, layout)
        for route in board.routes:
            ends = [places[town] for town in route]
            for town, site in layout.towns.items():
                assert town in route or from_segment(site, *ends) > 36, (board.name, town)
            for name, site in zip(board.stations, layout.stations, strict=True):
                assert name in route or from_segment(site, *ends) > 24, (board.name, route)
            for area, site in layout.areas.items():
                assert from_segment(site, *ends) > 23, (board.name, area)


def test_routes_do_not_cross_and_areas_hold_their_middles(
    mapped: list[tuple[Board, MapLayout]],
) -> None:
    for board, layout in mapped:
        places = sites_of(board, layout)
        for one, other in itertools.combinations(board.routes, 2):
            roads = [Path([places[a], places[b]]) for a, b in (one, other)]
            assert {*one} & {*other} or not roads[0].intersects_path(roads[1]), board.name
        for area, other in itertools.product(AREAS, AREAS):
            inside = Path(layout.outlines[other]).contains_point(layout.areas[area])
            assert inside == (area == other), (board.name, area, other)


def test_artists_stand_in_their_areas_and_apart(mapped: list[tuple[Board, MapLayout]]) -> None:
    for board, layout in mapped:
        for area, stands in layout.pawns.items():
            assert math.dist(*stands) > 22, board.name  # pawns of radius 11
            for stand in stands:
                assert Path(layout.outlines[area]).contains_point(stand), (board.name, area)
                assert 22 < math.dist(stand, layout.areas[area]) < 55, (board.name, area)


@pytest.mark.parametrize("moves", [20, 90, 400])
def test_every_thing_of_a_position_has_a_title(moves: int) -> None:
    game = played(moves)
    found = titles(draw(game.scene()))
    position = game.to_dict()
    for seat, score in enumerate(game.scores()):
        assert found.count(f"player_{seat}, {score['total']} points") == 1
        for part in ("faith", "commerce", "culture"):
            assert f"{part}: {score[part]} points" in found
    for seat, player in enumerate(position["players"]):
        for character in CHARACTERS:
            place = place_of(game.board, player, character)
            name = f"{game.board.stations[place]}, space {place}" if place in range(28) else place
            assert f"player_{seat}'s {character}, {name}" in found
        assert f"{player['gold']} gold slabs, {player['coins']} coins" in found
        assert any(t.startswith(f"temple: {player['temple']}, slot") for t in found)
        revealed = ", ".join(player["easel"]) or "none"
        gifted = f"{player['gifted']} paintings given; revealed, the front first: {revealed}"
        assert gifted in found
    for town, (ware, price) in position["boutiques"].items():
        assert f"boutique at {town}: {ware}, {price} coins" in found
    for town, number in zip(MOUNTAIN_TOWNS, game.board.mountain_numbers, strict=True):
        assert f"mountain town {town}, {number} wares" in found
    for area, icon in zip(AREAS, game.board.area_icons, strict=True):
        assert f"area {area}, {icon}" in found


def test_legal_destinations_are_where_the_characters_come_to_stand() -> None:
    game = first_pick(played(33))
    marks = [title for title in titles(draw(game.scene())) if title.startswith("legal: ")]
    *places, everything = marks  # the list of all actions is drawn last
    assert everything == "legal: " + ", ".join(game.legal_labels())
    assert sorted(", ".join(places).replace("legal: ", "").split(", ")) == sorted(
        game.legal_labels()
    )
    for choice in choices_of(game.board, game.states):
        after = game.copy()
        after.play(choice.label)
        character = choice.label.partition(":")[0]
        player = after.to_dict()["players"][int(game.player or 0)]
        assert place_of(game.board, player, character) == choice.place


def test_the_last_step_is_the_newest_move_of_a_character() -> None:
    game, luck = Game(seed=4), random.Random(4)
    assert game.scene().last is None
    moved, repeated = None, 0
    while repeated < 2:
        before, seat, phase = game.to_dict(), int(game.player or 0), game.phase
        label = luck.choice([label for label in game.legal_labels() if label != "pass"] or ["pass"])
        game.play(label)
        character = label.partition(":")[0]
        if character in CHARACTERS:
            start, end = (
                place_of(game.board, position["players"][seat], character)
                for position in (before, game.to_dict())
            )
            moved = (seat, character, start, end)
        if phase == Phase.REPEAT or luck.random() < 0.1:
            assert game.scene().last == moved
            repeated += phase == Phase.REPEAT


def test_the_line_of_a_merchant_runs_along_routes() -> None:
    seen = 0
    for seed in range(3):
        game = Game(seed=seed)
        sites = sites_of(game.board, map_layout_of(game.board))
        routes = {frozenset((sites[a], sites[b])) for a, b in game.board.routes}
        luck = random.Random(seed)
        for _ in range(60):
            before = len(game.events())
            game.play(luck.choice(game.legal_labels()))
            if not (step := game.scene().last) or step[1] != "merchant" or not before:
                continue
            line = re.search(r'<path d="M([^"]*)" class="way[01]"', draw(game.scene(), "light"))
            assert line
            points = [tuple(map(float, point.split())) for point in line[1].split("L")]
            assert {frozenset(two) for two in itertools.pairwise(points[1:-1])} <= routes
            ends = [game.board.stations[at] if isinstance(at, int) else at for at in step[2:]]
            assert [points[1], points[-2]] == [sites[end] for end in ends]
            seen += len(points) > 4
    assert seen > 5


def test_c1_is_in_the_north_west_of_both_drawings(mapped: list[tuple[Board, MapLayout]]) -> None:
    for board, layout in mapped[: len(built_in_boards())]:
        drawn, written = layout.stations, [cell for cell, _ in terminal_map_of(board).stations]
        for stations in (drawn, written):
            for axis in (0, 1):
                where = [station[axis] for station in stations]
                assert 2 * where[0] <= min(where) + max(where), board.name


def test_an_agent_is_asked_for_shares_and_a_value() -> None:
    game = played(33)
    scene = game.scene("mcts:sims=50")
    assert sum(choice.probability or 0 for choice in scene.choices) == pytest.approx(1)
    assert scene.value is not None
    assert -1 <= scene.value <= 1
    found = " ".join(texts(draw(scene)))
    assert f"player_0 {(scene.value + 1) / 2:.0%}" in found
    best = max(scene.choices, key=lambda choice: choice.probability or 0)
    assert f"{best.label} {best.probability:.0%}" in found
    silent = first_pick(game).scene("greedy")
    assert [choice.probability for choice in silent.choices].count(1.0) == 1
    assert silent.value is None
    shares = [word for text in texts(draw(silent)) for word in text.split() if word.endswith("%")]
    assert shares == ["100%", "100%"]  # on the island and in the list: of what it does alone


def boxes_of(svg: str, title: str) -> Iterator[tuple[float, float]]:
    """Where the things are whose title begins so."""
    found = re.findall(rf'translate\(([\d.-]+) ([\d.-]+)\)" class=""><title>{title}', svg)
    return ((float(x), float(y)) for x, y in found)


@pytest.mark.parametrize("board", [*built_in_boards(), "family:3", "family:4"])
def test_letters_of_choices_lie_on_no_boutique(board: str) -> None:
    """Of all coastal towns at once: a letter is 10 high, with a share at most 48 wide."""
    game = first_pick(Game(board, seed=3))
    scene = game.scene("random")
    towns = [game.board.stations.index(town) for town in COASTAL_TOWNS]
    choices = tuple(scene.choices[0]._replace(place=index) for index in towns)
    parts = panels_of(replace(scene, choices=choices))["island"]
    letters = re.findall(r'x="([\d.-]+)" y="([\d.-]+)"', parts["letters"])
    assert len(letters) == len(towns) == 8
    boutiques = [at for part in parts.values() for at in boxes_of(part, "boutique")]
    assert len(boutiques) == 8
    for x, y in ((float(x), float(y)) for x, y in letters):
        for left, top in boutiques:
            assert abs(x - left) > 21 + 24 or not top - 14 < y < top + 14 + 10


@pytest.mark.parametrize("seat", [0, 1])
def test_a_long_name_ends_before_what_stands_beside_it(seat: int) -> None:
    """At 11 units a sign, more than bold letters have: before the pill, and in half of the bar."""
    game = first_pick(played(33))
    names = ("champion:sims=400,chance=sampled", "policy:runs/a-long-folder/best")
    scene = replace(game.scene(), names=names, value=-1.0)
    written = [text for text in texts(draw(scene)) if text.endswith("…") or "… " in text]
    whole = [text for text in written if "%" not in text]
    assert [len(text) for text in whole] == [17 if game.player == i else 24 for i in (0, 1)]
    assert 36 + 17 * 11 < 228
    assert [len(text) <= 16 + len(" 100%") for text in written if "%" in text] == [True, True]
    assert names[seat][:15] in whole[seat]


@pytest.mark.parametrize("name", [HOSTILE, "\x00", "\x1b[31m", "\ud800", "\ufffe", "名前"])
def test_any_name_makes_a_picture_that_can_be_read(name: str) -> None:
    game = played(10)
    svg = draw(scene_of(game.board, game.states, names=(name, "b")))
    assert any(text.startswith(name[:1] if name.isprintable() else "\ufffd") for text in texts(svg))
    assert {tag.tag.removeprefix(SVG) for tag in ET.fromstring(svg).iter()} == DRAWN
    svg.encode()


@pytest.mark.parametrize("theme", THEMES)
def test_a_theme_styles_only_its_own_pictures(theme: str) -> None:
    svg = draw(played(10).scene(), theme)  # type: ignore[arg-type]
    assert f'class="tokaido tokaido-{theme}"' in svg
    rules = re.sub(r"@media[^{]*\{", "", style(theme))  # type: ignore[arg-type]
    assert all(rule.startswith(f".tokaido-{theme}") for rule in re.findall(r"([^{}]+)\{", rules))
    with pytest.raises(ValueError, match="theme: expected one of 'light', 'dark', 'auto'"):
        draw(played(10).scene(), "blue")  # type: ignore[arg-type]


def test_a_game_shows_itself(tmp_path: pathlib.Path) -> None:
    game = played(33)
    picture = game.show()
    assert game._repr_svg_() == picture.svg == picture._repr_svg_()
    picture.save(tmp_path / "board.svg")
    assert (tmp_path / "board.svg").read_text(encoding="utf-8") == picture.svg + "\n"
    assert "%" not in "".join(texts(picture.svg))
    assert "%" in "".join(texts(game.show("random").svg))


@pytest.mark.parametrize("name", ["board.png", "board", "board.svg.gz"])
def test_a_picture_is_saved_as_svg_only(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = rf"^path: expected a name that ends in \.svg, got '{name}'; for PNG, "
    with pytest.raises(ValueError, match=found):
        played(33).show().save(name)
    assert not list(tmp_path.iterdir())
