"""Tests of the board features: they hold all that affects play, and nothing else."""

import random
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import other_board_data, shikoku_data, write_board

from tokaido_env import Board
from tokaido_env.boards.board import built_in_boards
from tokaido_env.core.board_features import BOARD_FEATURES, N_BOARD_FEATURES, board_features_of
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, ICONS, STATIONS, TOWNS

TRACKS = (
    ("commerce", "points"),
    ("culture", "points"),
    ("temple", "numbers"),
    ("garden", "numbers"),
)


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> list[Board]:
    other = write_board(tmp_path_factory.mktemp("boards") / "other.toml", other_board_data())
    names = [*built_in_boards(), *(f"family:{number}" for number in range(60))]
    return [Board.load(other), *map(Board.load, names)]


def block(board: Board, dtype: str = "float32") -> npt.NDArray[Any]:
    (numbers,) = board_features_of(board.record, dtype)
    return np.asarray(numbers)


# A decoder, written from the meanings of the table alone


def test_board_features_of__can_be_decoded(boards: list[Board]) -> None:
    for board in boards:
        values = read(block(board))
        assert values == read(block(board, "uint8"), raw=True)
        assert values["max_rounds"] == [board.max_rounds]
        faces = np.reshape(values["dice_faces"], (3, 6))
        assert [faces_of(counts) for counts in faces] == [tuple(sorted(f)) for f in board.faces]
        assert stations(values) == [s if s in STATIONS else "coastal town" for s in board.stations]
        assert values["ring_size"] == [len(board.stations)]
        assert routes(values) == {frozenset(route) for route in board.routes}
        assert tuple(values["mountain_numbers"]) == board.mountain_numbers
        assert tuple(picks(values["area_icons"], ICONS)) == board.area_icons
        for seat, start in enumerate(board.starts):
            space, town, area = (values[f"start_{character}"][seat] for character in CHARACTERS)
            assert (space, TOWNS[town], AREAS[area]) == start
        assert tokens(values) == sorted(board.boutiques)
        for name in ("commerce", "culture"):
            both = zip(values[name], values[f"{name}_beyond"], strict=True)
            assert tuple(map(sum, both)) == getattr(board, name)
        assert (tuple(values["temple"]), tuple(values["garden"])) == (board.temple, board.garden)


def read(numbers: npt.NDArray[Any], raw: bool = False) -> dict[str, list[int]]:
    """Return the raw values of each feature; assert that they are whole numbers."""
    values = {}
    for feature in BOARD_FEATURES:
        exact = numbers[feature.slice] * (1 if raw else feature.scale)
        whole = np.rint(exact).astype(int)
        assert np.abs(exact - whole).max() < 1e-4, feature.name
        values[feature.name] = whole.tolist()
    return values


def picks(bits: list[int], names: Sequence[str]) -> list[str | None]:
    """Return the name with a set bit in each row of a one-hot, None for zeros."""
    rows = np.reshape(bits, (-1, len(names))).tolist()
    assert all(sorted(row)[:-1] == [0] * (len(names) - 1) for row in rows)
    return [names[row.index(1)] if any(row) else None for row in rows]


def faces_of(counts: npt.NDArray[Any]) -> tuple[int, ...]:
    return tuple(value for value in range(1, 7) for _ in range(counts[value - 1]))


def stations(values: dict[str, list[int]]) -> list[str | None]:
    ring = picks(values["ring"], STATIONS)
    size = ring.index(None) if None in ring else len(ring)
    assert not any(ring[size:])
    return ring[:size]


def routes(values: dict[str, list[int]]) -> set[frozenset[str | None]]:
    inner = zip(combinations(TOWNS[8:], 2), values["mountain_routes"], strict=True)
    outer = zip(COASTAL_TOWNS, picks(values["coast_routes"], TOWNS[8:]), strict=True)
    return {frozenset(way) for way in (*outer, *(way for way, is_one in inner if is_one))}


def tokens(values: dict[str, list[int]]) -> list[tuple[str, int]]:
    kinds = product(("kimono", "pottery", "doll", "fan"), (2, 3, 4))
    counted = zip(kinds, values["boutiques"], strict=True)
    return sorted(kind for kind, number in counted for _ in range(number))


def test_board_features_of__range_from_0_to_1(tmp_path: Path) -> None:
    highest = other_board_data() | {"max_rounds": 400}
    for entry, key in TRACKS:
        highest[entry][key] = [255] * len(highest[entry][key])
    numbers = board_features_of(Board.load(write_board(tmp_path / "high.toml", highest)).record)
    assert (numbers.dtype, numbers.shape) == (np.float32, (1, N_BOARD_FEATURES))
    assert (numbers.min(), numbers.max()) == (0, 1)
    points = [f for f in BOARD_FEATURES if f.name.startswith(("commerce", "culture", "temple"))]
    assert all((numbers[0, feature.slice] == 1).all() for feature in points)


def test_board_features_of__ignore_orders_that_do_not_affect_play() -> None:
    rng, data = random.Random(0), shikoku_data()
    for die in data["dice"].values():
        rng.shuffle(die["faces"])
    rng.shuffle(data["boutiques"]["tokens"])
    pairs = data["routes"]["pairs"]
    data["routes"]["pairs"] = [rng.sample(pair, 2) for pair in rng.sample(pairs, 11)]
    board = Board.from_dict(data)
    assert board.record.tobytes() != Board.load().record.tobytes()
    assert block(board).tobytes() == block(Board.load()).tobytes()


def test_board_features_of__refuses_rounds_that_uint8_cannot_hold() -> None:
    record = Board.from_dict(shikoku_data() | {"max_rounds": 256}).record
    assert board_features_of(record)[0, 0] * 400 == 256
    with pytest.raises(ValueError, match="max_rounds of at most 255"):
        board_features_of(record, "uint8")
