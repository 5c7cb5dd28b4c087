"""Tests of render/map_layout.py: room and geometry on the maps of many boards."""

import itertools
import math
from collections.abc import Iterable

import pytest
from positions import other_board_data, write_board

from tokaido_env import Board
from tokaido_env.boards.board import built_in_boards
from tokaido_env.core.constants import AREAS, COASTAL_TOWNS
from tokaido_env.render import map_layout
from tokaido_env.render.map_layout import MapLayout, Point, map_layout_of

Path = pytest.importorskip("matplotlib.path").Path

Layouts = list[tuple[Board, MapLayout]]


def sites_of(board: Board, layout: MapLayout) -> dict[str, Point]:
    """Return the points of all towns."""
    places = {town: layout.stations[board.stations.index(town)] for town in COASTAL_TOWNS}
    return places | dict(layout.towns)


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Layouts:
    """Boards of all kinds with their layouts; `pytest --games 20000` adds many boards."""
    path = tmp_path_factory.mktemp("mapped") / "other.toml"
    drawn = range(max(6, pytestconfig.getoption("games") // 100))
    every = [
        *map(Board.load, built_in_boards()),
        Board.load(write_board(path, other_board_data())),
        *(Board.generate(number) for number in (193, *drawn)),  # a crowded one first
    ]
    return [(board, map_layout_of(board)) for board in every]


def min_distance(some: Iterable[Point], others: Iterable[Point]) -> float:
    """Return the smallest distance between different points of two groups."""
    return min(math.dist(*pair) for pair in itertools.product(some, others) if len({*pair}) > 1)


def distance_to_segment(point: Point, start: Point, end: Point) -> float:
    """Return the distance of a point to a segment."""
    (px, py), (ax, ay), (bx, by) = point, start, end
    square = (bx - ax) ** 2 + (by - ay) ** 2
    along = ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / square
    along = min(max(along, 0), 1)
    return math.dist(point, (ax + along * (bx - ax), ay + along * (by - ay)))


def test_map_layout__keeps_stations_towns_and_areas_apart(mapped: Layouts) -> None:
    for board, layout in mapped:
        assert len(layout.stations) == len(board.stations)
        towns, areas = layout.towns.values(), layout.areas.values()
        assert min_distance(layout.stations, layout.stations) > 28, board.name  # radii 13 and 15
        assert min_distance(towns, towns) > 56, board.name  # hills 48 wide, a name below
        assert min_distance(towns, layout.stations) > 55, board.name
        assert min_distance(towns, areas) > 42, board.name  # a sign of radius 15
        for x, y in layout.stations:
            assert 55 < x < map_layout.WIDTH - 55, board.name  # room for tokens in the sea
            assert 55 < y < map_layout.HEIGHT - 55, board.name


def test_map_layout__keeps_routes_clear_of_everything_else(mapped: Layouts) -> None:
    for board, layout in mapped:
        places = sites_of(board, layout)
        for route in board.routes:
            ends = [places[town] for town in route]
            for town, site in layout.towns.items():
                assert town in route or distance_to_segment(site, *ends) > 36, (board.name, town)
            for name, site in zip(board.stations, layout.stations, strict=True):
                assert name in route or distance_to_segment(site, *ends) > 22, (board.name, route)
            for area, site in layout.areas.items():
                assert distance_to_segment(site, *ends) > 23, (board.name, area)


def test_map_layout__has_no_crossings_and_middles_inside_areas(mapped: Layouts) -> None:
    for board, layout in mapped:
        places = sites_of(board, layout)
        for one, other in itertools.combinations(board.routes, 2):
            roads = [Path([places[a], places[b]]) for a, b in (one, other)]
            assert {*one} & {*other} or not roads[0].intersects_path(roads[1]), board.name
        for area, other in itertools.product(AREAS, AREAS):
            inside = Path(layout.outlines[other]).contains_point(layout.areas[area])
            assert inside == (area == other), (board.name, area, other)


def test_map_layout__keeps_pawns_apart_and_inside_areas(mapped: Layouts) -> None:
    for board, layout in mapped:
        for area, points in layout.pawns.items():
            assert math.dist(*points) > 22, board.name  # pawns of radius 11
            for point in points:
                assert Path(layout.outlines[area]).contains_point(point), (board.name, area)
                assert 22 < math.dist(point, layout.areas[area]) < 55, (board.name, area)


def test_map_layouts__have_c1_in_the_north_west(mapped: Layouts) -> None:
    for board, layout in mapped[: len(built_in_boards())]:
        for axis in (0, 1):
            where = [station[axis] for station in layout.stations]
            assert 2 * where[0] <= min(where) + max(where), board.name
