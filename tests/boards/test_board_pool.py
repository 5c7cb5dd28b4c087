"""Tests of boards/board_pool.py: specs, boards of seeds, and games on pools."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import other_board_data, write_board

from tokaido_env import Batch, Board, BoardError, Game, PositionError, record
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import SPLITS
from tokaido_env.core.rng import episode_seed, game_seed

POOL = "family:train/12"


def number_of(board: Board) -> int:
    return int(board.name.removeprefix("family:"))


# Specs


def test_load__has_the_boards_of_the_numbers() -> None:
    assert [number_of(board) for board in BoardPool.load("family:valid/3")] == [
        1_000_000,
        1_000_001,
        1_000_002,
    ]
    assert [number_of(board) for board in BoardPool.load("family:test")] == [
        *range(2_000_000, 2_000_100)
    ]
    assert BoardPool.load("family:far/2").names.tolist() == [
        "family:3000000000",
        "family:3000000001",
    ]
    pool = BoardPool.load(POOL)
    assert pool.records.tobytes() == b"".join(
        Board.generate(number).record.tobytes() for number in range(12)
    )
    assert pool.names.tolist() == [board.name for board in pool]
    assert pool.hashes.tolist() == [board.hash for board in pool]


def test_splits__are_disjoint() -> None:
    numbers = [number for split in SPLITS.values() for number in split]
    assert len(set(numbers)) == len(numbers)


def test_load__makes_a_pool_of_one_board(tmp_path: Path) -> None:
    path = write_board(tmp_path / "other.toml", other_board_data())
    for spec in ("shikoku", path, str(path), Board.load(path), "family:7", "family:007"):
        pool = BoardPool.load(spec)
        board = Board.load(spec)
        assert (len(pool), pool.drawn, pool[0]) == (1, False, board)
        assert (pool.name, pool.hash) == (board.name, board.hash)
        assert pool.board_of_seed(2**53 - 1) == board


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("family:abc", "expected family:NUMBER"),
        ("family:-1", "expected family:NUMBER"),
        ("family:1.5", "expected family:NUMBER"),
        ("family:train/", "expected family:NUMBER"),
        ("family:later/3", "SPLIT is one of train, valid, test"),
        (f"family:{2**31}", "expected 0 to 2147483647"),
        ("family:3000000100", "expected 0 to 2147483647"),
        ("family:" + "9" * 5000, "expected family:NUMBER"),
        ("family:train/0", "expected 1 to 100,000 boards of train"),
        ("family:train", "expected 1 to 100,000 boards of train"),
        ("family:test/101", "expected 1 to 100 boards of test"),
        ([], "an empty sequence"),
        (["shikoku", "family:test"], "expected one board, such as family:2000000"),
        (7, "expected a name"),
    ],
)
def test_load__refuses_invalid_specs(spec: Any, message: str) -> None:
    with pytest.raises(BoardError, match=message) as error:
        BoardPool.load(spec)
    text = str(error.value)
    assert len(text) < 500
    assert "\n" not in text


def test_game__refuses_several_boards_without_a_draw() -> None:
    with pytest.raises(BoardError, match="got a sequence of 2 boards"):
        Game(["shikoku", "family:3"], seed=1)


# Boards of seeds


def test_board_of_seed__is_uniform_and_independent_of_the_game() -> None:
    pool, n = BoardPool.load(POOL), 24_000
    boards = pool.indices_of_seeds(np.arange(n))
    counts = np.bincount(boards, minlength=12)
    assert ((counts - n / 12) ** 2 / (n / 12)).sum() < 31.3  # chi-square, 11 degrees: 0.001
    pairs = np.bincount(12 * boards[:-1] + boards[1:], minlength=144)
    assert ((pairs - n / 144) ** 2 / (n / 144)).sum() < 202  # 143 degrees
    on_pool, alone = Game(POOL, seed=5), Game(pool.board_of_seed(5), seed=5)
    assert on_pool == alone
    assert on_pool.record().events == alone.record().events


def test_board_of_seed__is_frozen() -> None:
    """Records and results contain seeds, so their boards must not change."""
    pool = BoardPool.load("family:train/1000")
    drawn = [pool.board_of_seed(seed).name for seed in (0, 1, 2, 7, 2**53 - 1)]
    assert drawn == ["family:762", "family:838", "family:893", "family:94", "family:87"]


def test_batch__plays_each_episode_on_the_board_of_its_seed() -> None:
    rng = np.random.default_rng(0)
    batch = Batch(6, POOL)
    turn = batch.reset(seed=40)
    seeds, episodes, met = [game_seed(40, i) for i in range(6)], [0] * 6, set()
    games = [Game(POOL, seed=seed) for seed in seeds]
    while min(episodes) < 3:
        for i, game in enumerate(games):
            assert batch.states[i].tobytes() == game.states.tobytes()
            assert batch.boards_of(np.array([i])).tobytes() == game.boards.tobytes()
            assert batch.pool[batch.episode_info["board"][i]] == game.board
            met.add(game.board.name)
        moves = np.where(turn.mask, rng.random(turn.mask.shape), -1).argmax(axis=1)
        turn = batch.step(moves)
        for i, game in enumerate(games):
            game.play(moves[i])
            if game.is_over:
                episodes[i] += 1
                games[i] = Game(POOL, seed=episode_seed(seeds[i], episodes[i]))
    assert len(met) > 6


# Positions, snapshots, records


def test_position__is_played_on_the_board_that_it_names() -> None:
    pool = BoardPool.load(POOL)
    there = Game(pool[4], seed=3)
    there.play(there.legal_actions()[0])
    position = there.to_dict()
    assert Game.from_dict(position, board=POOL, seed=1).board == pool[4]
    assert Game.from_dict(position, seed=1).board == pool[4]  # its number names it
    batch = Batch(3, POOL, chance="explicit")
    batch.reset(0, position)
    assert batch.episode_info["board"].tolist() == [4, 4, 4]
    assert batch.states[2].tobytes() == there.states.tobytes()
    elsewhere = Game("family:99", seed=3).to_dict()
    with pytest.raises(
        PositionError, match="game 0: board: 'family:99' is not in 'family:train/12'"
    ):
        batch.reset(0, elsewhere)
    with pytest.raises(BoardError, match="'family:99' is not in"):
        Game.from_dict(elsewhere, board=POOL)


@pytest.mark.parametrize("name", ["family:train/12", "family:train/1", "family:04", "shikoku"])
def test_index_of_name__refuses_an_unknown_name(name: str) -> None:
    with pytest.raises(BoardError, match="is not in 'family:train/12'"):
        BoardPool.load(POOL).index_of_name(name)


def test_snapshot__keeps_the_boards() -> None:
    batch, other = Batch(5, POOL), Batch(5, POOL)
    batch.reset(seed=0)
    other.reset(seed=50)
    other.restore(batch.snapshot())
    for _ in range(300):
        batch.play("random")
        other.play("random")
    assert batch.states.tobytes() == other.states.tobytes()
    assert batch.episode_info["board"].tolist() == other.episode_info["board"].tolist()
    one = batch.snapshot(np.array([2]))
    other.restore(one)
    assert set(other.episode_info["board"].tolist()) == {int(batch.episode_info["board"][2])}
    with pytest.raises(ValueError, match="on another board"):
        Batch(5, "family:valid").restore(batch.snapshot())


def test_record__needs_no_pool(tmp_path: Path) -> None:
    game = Game(POOL, seed=8)
    while not game.is_over:
        game.play(game.legal_actions()[-1])
    path = tmp_path / "games.jsonl"
    record.save([game.record()], path)
    (loaded,) = record.load(path)
    assert loaded == game.record()
    assert (loaded.board, loaded.board_hash) == (game.board.name, game.board.hash)
    assert record.load(path, POOL) == [loaded]
    with pytest.raises(record.RecordError, match="is not in 'family:test'"):
        record.load(path, "family:test")
