"""What follows from a board alone, kept by board; among it the tables of the evaluation."""

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tokaido_env.agents import board_cache
from tokaido_env.agents.board_cache import BoardCache
from tokaido_env.agents.eval_tables import ANY_DIE, EVAL_TABLES, eval_tables_of
from tokaido_env.agents.policy import LayerSizes
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import MAX_BOARDS
from tokaido_env.core.constants import ARTIST, ICONS, MERCHANT, MOUNTAIN_TOWNS, TOWNS, WARES

POOL = BoardPool.load("family:train/40")


class Counted:
    """Makes rows that tell their boards apart, and counts them."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, boards: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        self.made += len(boards)
        return np.array([sum(board.tobytes()) for board in boards])


def mixed(seed: int, n: int, boards: int = len(POOL)) -> npt.NDArray[np.void]:
    return POOL.records[np.random.default_rng(seed).integers(boards, size=n)]


def agrees(kept: BoardCache, boards: npt.NDArray[np.void]) -> bool:
    table, which = kept.rows(boards)
    return bool((table[which] == Counted()(boards)).all())


def test_each_board_gets_its_own_row_which_is_made_once() -> None:
    make = Counted()
    kept = BoardCache(make, (), np.int64)
    assert agrees(kept, POOL.records[:1])
    assert all(agrees(kept, mixed(seed, n)) for seed, n in enumerate((3, 1, 200, 1, 1000, 7)))
    assert make.made == len(POOL)


def test_boards_that_differ_in_one_byte_are_different() -> None:
    one = POOL.records[:1]
    raw = np.repeat(one.view(np.uint8)[None], one.itemsize, axis=0)
    raw[np.arange(one.itemsize), np.arange(one.itemsize)] ^= 1
    kept = BoardCache(Counted(), (), np.int64)
    assert agrees(kept, raw.reshape(-1).view(one.dtype))


def test_rows_that_were_told_stay_when_all_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Counted()
    kept = BoardCache(make, (), np.int64)
    monkeypatch.setattr(board_cache, "MAX_BYTES", 20 * kept._bytes_per_board())
    boards = mixed(0, 15)
    table, which = kept.rows(boards)
    assert all(agrees(kept, mixed(seed, 15)) for seed in range(1, 30))
    assert agrees(kept, POOL.records)  # more than are kept, at once
    assert make.made > len(POOL)
    assert (table[which] == Counted()(boards)).all()


def test_a_pool_of_the_largest_size_is_held() -> None:
    """Of `EVAL_TABLES`, and of what a network of the usual width reads of boards."""
    for shape, dtype in (((), EVAL_TABLES), ((LayerSizes().first,), np.float32)):
        kept = BoardCache(Counted(), shape, dtype)
        assert MAX_BOARDS * kept._bytes_per_board() <= board_cache.MAX_BYTES


def test_a_board_that_no_row_can_be_made_of_spoils_no_other() -> None:
    wrong = POOL.records[3:4].tobytes()

    def make(boards: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        if any(board.tobytes() == wrong for board in boards):
            raise ValueError("no row")
        return Counted()(boards)

    kept = BoardCache(make, (), np.int64)
    for _ in range(2):
        with pytest.raises(ValueError, match="no row"):
            kept.rows(POOL.records[:8])
        assert agrees(kept, POOL.records[:3])
        assert agrees(kept, POOL.records[:1])


def test_copies_and_threads_get_the_same_rows() -> None:
    kept = copy.deepcopy(BoardCache(Counted(), (), np.int64))
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda seed: agrees(kept, mixed(seed, 50)), range(60)))


# The tables of the evaluation, from the rules instead of the record


def distances(board: Board) -> dict[tuple[str, str], int]:
    """Steps between any two towns, by walking the routes."""
    found = {(town, town): 0 for town in TOWNS}
    for far in range(len(TOWNS)):
        at = [pair for pair, steps in found.items() if steps == far]
        for (start, town), (a, b) in [(pair, route) for pair in at for route in board.routes]:
            if town in (a, b):
                found.setdefault((start, b if town == a else a), far + 1)
    return found


def walks(board: Board, start: int, steps: int) -> list[list[int]]:
    """All walks through areas that enter none twice."""
    paths = [[start]]
    for _ in range(steps):
        paths = [[*p, a] for p in paths for a in board.neighbours[p[-1]] if a not in p]
    return paths


def faces(board: Board, character: int) -> dict[int, int]:
    return {value: board.faces[character].count(value) for value in range(1, 7)}


@pytest.mark.parametrize("name", [*built_in_boards()[:2], "family:0", "family:31"])
def test_the_tables_say_what_is_within_reach(name: str) -> None:
    board = Board.load(name)
    tables: Any = eval_tables_of(np.concatenate([POOL.records[5:9], board.record]))[-1]
    far, dice = distances(board), faces(board, MERCHANT)
    for place, town in enumerate(TOWNS):
        drawn = dict.fromkeys(range(6), 0)
        for die in range(1, 7):
            reached = [m for m in MOUNTAIN_TOWNS if far[town, m] == die]
            numbers = [board.mountain_numbers[MOUNTAIN_TOWNS.index(m)] for m in reached]
            most = max(numbers, default=0)
            assert tables["most_drawn"][die, place] == most
            drawn = {room: drawn[room] + dice[die] * min(room, most) for room in drawn}
        assert tables["draw_faces"][:, place].tolist() == list(drawn.values())
    dice = faces(board, ARTIST)
    for area in range(8):
        sums = np.zeros((2, len(ICONS)), int)
        for die in range(1, 7):
            paths = walks(board, area, die)
            for side, places in enumerate(([p[-1:] for p in paths], paths)):
                icons = {board.area_icons[a] for path in places for a in path}
                seen = np.array([icon in icons for icon in ICONS])
                assert (tables["gift_faces"][side, die, area] == 6 * seen).all()
                sums[side] += dice[die] * seen
        assert (tables["gift_faces"][:, ANY_DIE, area] == sums).all()
    best = [max(price for own, price in board.boutiques if own == ware) for ware in WARES]
    assert tables["best_price"].tolist() == best
