"""Tests of boards/board.py: the kernels' lookup tables against the naive reference."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import reference
from positions import WARES, other_board_data, write_board

from tokaido_env import Board
from tokaido_env.boards.board import BOARDS_FOLDER, built_in_boards
from tokaido_env.core.constants import AREAS, COASTAL_TOWNS, ICONS, TOWNS
from tokaido_env.core.state import BOARD

STATIONS = ["", "temple", "garden", "hot spring", "seashore"]


@pytest.mark.parametrize("name", built_in_boards())
def test_record__of_built_in_boards_is_that_of_the_reference(name: str) -> None:
    compare(BOARDS_FOLDER / f"{name}.toml")


def test_record__of_a_board_file_is_that_of_the_reference(tmp_path: Path) -> None:
    compare(write_board(tmp_path / "other.toml", other_board_data()))


def test_record__of_generated_boards_is_that_of_the_reference(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The reference reads files of `Board.save`, so this tests both."""
    for number in range(pytestconfig.getoption("games") // 10):
        path = tmp_path / f"{number}.toml"
        Board.generate(number).save(path)
        compare(path)
        assert Board.generate(number).record.tobytes() == Board.load(path).record.tobytes()


def compare(path: Path) -> None:
    """Check that the record of a board file is that of the reference, byte for byte."""
    record, expected = Board.load(path).record, reference_record(reference.Board(path))
    for name in BOARD.names or ():
        assert np.array_equal(record[name], expected[name]), f"{path.name}: {name}"
    assert record.tobytes() == expected.tobytes()


def reference_record(board: reference.Board) -> npt.NDArray[np.void]:
    """Return all tables, filled element by element."""
    record = np.zeros(1, BOARD)
    row = record[0]
    fill_reach(row, board)
    fill_ring(row, board)
    fill_draws(row, board)
    fill_gifts(row, board)
    for character, faces in enumerate(board.faces.values()):
        row["faces"][character] = faces
        for face in faces:
            row["face_count"][character, face] += 1
    kinds = list(dict.fromkeys(board.tokens))
    row["kinds"] = len(kinds)
    for kind, (ware, price) in enumerate(kinds):
        row["kind_ware"][kind] = list(WARES).index(ware)
        row["kind_price"][kind] = price
        bits = {2: 1, 3: 1 << 32, 4: 1 | 1 << 32}[price]
        row["kind_bits"][kind] = bits << 8 * list(WARES).index(ware)
        row["kind_count"][kind] = board.tokens.count((ware, price))
    row["max_rounds"] = board.max_rounds
    row["mountain_number"] = [board.mountains[town] for town in reference.MOUNTAIN]
    row["area_icon"] = [list(ICONS).index(board.icons[area]) for area in AREAS]
    row["commerce"], row["culture"] = board.commerce, board.culture
    row["temple"], row["garden"] = [0, *board.temple], [0, *board.garden]
    for seat, start in enumerate(board.starts):
        pilgrim = start["pilgrim"]
        station = board.ring.index(pilgrim) if pilgrim in COASTAL_TOWNS else pilgrim
        towns, areas = TOWNS.index(start["merchant"]), AREAS.index(start["artist"])
        row["start"][seat] = (station, towns, areas)
    return record


def fill_reach(row: Any, board: reference.Board) -> None:
    for steps in range(7):
        for start, town in enumerate(TOWNS):
            for end in {path[-1] for path in board.paths(town, steps)}:
                row["town_reach"][steps, start] |= 1 << TOWNS.index(end)
        for start, area in enumerate(AREAS):
            for path in board.paths(area, steps):
                end = AREAS.index(path[-1])
                row["area_reach"][steps, start] |= 1 << end
                for touched in path:
                    icon = list(ICONS).index(board.icons[touched])
                    row["icons_touched"][steps, start, end] |= 1 << icon


def fill_ring(row: Any, board: reference.Board) -> None:
    row["ring_size"] = len(board.ring)
    row["ring_kinds"][0] = len(COASTAL_TOWNS)
    for index, station in enumerate(board.ring):
        if station in COASTAL_TOWNS:
            row["coast_station"][COASTAL_TOWNS.index(station)] = index
        else:
            row["station_kind"][index] = STATIONS.index(station)
            row["ring_kinds"][STATIONS.index(station)] += 1
    for area, name in enumerate(AREAS):
        for index in board.area_stations[name]:
            row["station_areas"][index] |= 1 << area
        for town in board.area_towns[name]:
            row["town_areas"][TOWNS.index(town)] |= 1 << area


def fill_draws(row: Any, board: reference.Board) -> None:
    """Fill the wares that a merchant can draw, and the best price of each ware."""
    faces = board.faces["merchant"]
    for start, town in enumerate(TOWNS):
        for steps in range(7):
            ends = {path[-1] for path in board.paths(town, steps)}
            numbers = [board.mountains[end] for end in ends & set(board.mountains)]
            row["most_drawn"][steps, start] = most = max(numbers, default=0)
            for room in range(6):
                row["draw_faces"][room, start] += faces.count(steps) * min(room, most)
    for ware, price in board.tokens:
        at = list(WARES).index(ware)
        row["best_price"][at] = max(row["best_price"][at], price)


def fill_gifts(row: Any, board: reference.Board) -> None:
    """Fill the icons that a gift can match, of the area of arrival or of all on the way."""
    faces = board.faces["artist"]
    for start, area in enumerate(AREAS):
        for steps in range(1, 7):
            paths = board.paths(area, steps)
            for side, touched in enumerate(([path[-1:] for path in paths], paths)):
                for icon in {board.icons[each] for path in touched for each in path}:
                    at = list(ICONS).index(icon)
                    row["gift_faces"][side, steps, start, at] = 6
                    row["gift_faces"][side, 0, start, at] += faces.count(steps)
