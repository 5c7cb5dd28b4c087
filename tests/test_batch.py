"""Batches: each game is its seed and its actions, whatever is played beside it and wherever."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt
import pytest
from positions import other_board_data, shikoku_data, write_board

from tokaido_env import Game, IllegalMove, SeedError
from tokaido_env.batch import Batch
from tokaido_env.bots import random_actions
from tokaido_env.jit import INTERPRETED, PARALLEL_FROM
from tokaido_env.observation import N_FEATURES, encode_game

Ints = npt.NDArray[np.int64]

MANY = PARALLEL_FROM + 200


def step_at_random(batch: Batch, games: Ints) -> Ints:
    """One decision of each of the given games; what it is depends on the game alone."""
    actions = np.empty(len(games), np.int64)
    random_actions(batch.legal[games], batch.keys(games), actions)
    batch.step(games, actions)
    return actions


def running(batch: Batch) -> Ints:
    return np.flatnonzero(~batch.over)


def contents(batch: Batch) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in batch.snapshot().items()}


# Game i is Game(seed)


def test_each_game_is_the_game_of_its_seed() -> None:
    seeds = [7, 0, 2**53 - 1, 8]
    batch, games = Batch(seeds), [Game(seed=seed) for seed in seeds]
    while len(running(batch)):
        for i, game in enumerate(games):
            assert batch.states[i].tobytes() == game.states.tobytes()
            assert int(batch.legal[i]) == game.legal_mask
            assert batch.over[i] == game.is_over
            assert batch.players[i] == (-1 if game.player is None else game.player)
        moved = running(batch)
        for i, action in zip(moved, step_at_random(batch, moved), strict=True):
            games[i].play(int(action))
    assert all(game.is_over for game in games)
    assert batch.states.tobytes() == b"".join(game.states.tobytes() for game in games)


def test_what_games_tell_is_what_single_games_tell() -> None:
    seeds = [3, 1, 4]
    batch, games = Batch(seeds), [Game(seed=seed) for seed in seeds]
    every = np.arange(3)
    for _ in range(5000):
        for seat in (0, 1):
            observed = batch.observe(every, np.full(3, seat, np.int8))
            for i, game in enumerate(games):
                alone = np.empty(N_FEATURES, np.float32)
                encode_game(game.boards, game.states, 0, seat, alone)
                assert np.array_equal(observed[i], alone)
        for mask, game in zip(batch.masks(every), games, strict=True):
            assert np.flatnonzero(mask).tolist() == game.legal_actions()
        moved = running(batch)
        if not len(moved):
            break
        for i, action in zip(moved, step_at_random(batch, moved), strict=True):
            games[i].play(int(action))
    winners = [game.winner() for game in games]
    for seat in (0, 1):
        rewards = batch.rewards(every, np.full(3, seat, np.int8))
        assert rewards.tolist() == [1.0 if winner == seat else -1.0 for winner in winners]
        margins = batch.rewards(every, np.full(3, seat, np.int8), margin=True)
        totals = [[score["total"] for score in game.scores()] for game in games]
        assert margins.tolist() == [(t[seat] - t[1 - seat]) / 100 for t in totals]


def test_size_order_and_company_make_no_difference() -> None:
    alone = {}
    for seed in range(12):
        batch = Batch([seed])
        while len(running(batch)):
            step_at_random(batch, running(batch))
        alone[seed] = batch.states.tobytes()
    rng = np.random.default_rng(0)
    for size in (2, 5, 12):
        seeds = rng.permutation(12)[:size]
        batch = Batch(seeds)
        while len(moved := running(batch)):
            some = rng.permutation(moved)[: rng.integers(1, len(moved) + 1)]
            step_at_random(batch, some)
        assert {int(s): batch.states[i].tobytes() for i, s in enumerate(seeds)} == {
            int(s): alone[int(s)] for s in seeds
        }


def test_games_that_are_not_stepped_stay_as_they_are() -> None:
    batch = Batch([1, 2, 3])
    before = batch.states.copy()
    step_at_random(batch, np.array([1]))
    assert (batch.states == before).tolist() == [True, False, True]
    assert batch.decisions.tolist() == [0, 1, 0]


def test_a_game_begins_anew() -> None:
    batch = Batch([1, 2, 3])
    for _ in range(30):
        step_at_random(batch, np.arange(3))
    others = batch.states[[0, 2]].tobytes()
    batch.restart(np.array([1]), np.array([77]))
    assert batch.states[1].tobytes() == Game(seed=77).states.tobytes()
    assert (batch.seeds.tolist(), batch.decisions.tolist()) == ([1, 77, 3], [30, 0, 30])
    assert batch.states[[0, 2]].tobytes() == others
    fresh = Batch([77])
    for _ in range(30):
        step_at_random(batch, np.array([1]))
        step_at_random(fresh, np.array([0]))
    assert batch.states[1].tobytes() == fresh.states[0].tobytes()


def test_the_cap_is_told_from_triggers_and_pays_nobody(tmp_path: Path) -> None:
    batch = Batch(
        range(5), write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 1})
    )
    while len(running(batch)):
        step_at_random(batch, running(batch))
    assert batch.capped.all()
    for margin in (False, True):
        assert not batch.rewards(np.arange(5), np.zeros(5, np.int8), margin=margin).any()


def test_another_board(tmp_path: Path) -> None:
    board = write_board(tmp_path / "other.toml", other_board_data())
    batch, game = Batch([5], board), Game(board, seed=5)
    while not game.is_over:
        game.play(int(step_at_random(batch, np.array([0]))[0]))
    assert batch.states.tobytes() == game.states.tobytes()


def test_keys_differ_by_game_seat_and_decision() -> None:
    batch = Batch(range(50))
    keys = []
    for _ in range(50):
        keys += batch.keys(np.arange(50)).tolist()
        step_at_random(batch, np.arange(50))
    assert len(set(keys)) == 2500
    assert not set(keys) & set(batch.luck["key"].tolist())


# Errors


@pytest.mark.parametrize("action", [48, 49, -1, 64, 2**40])
def test_an_illegal_action_names_the_game_and_steps_nothing(action: int) -> None:
    batch = Batch(range(6))
    before = contents(batch)
    legal = Game(seed=4).legal_actions()[0]
    with pytest.raises(IllegalMove, match=f"game 2: illegal action {action}: legal are pilgrim, "):
        batch.step(np.array([4, 2]), np.array([legal, action]))
    assert contents(batch) == before


def test_a_game_that_is_over_has_no_legal_action() -> None:
    batch = Batch([0])
    while len(running(batch)):
        step_at_random(batch, np.array([0]))
    with pytest.raises(IllegalMove, match="game 0: illegal action 0: legal are none"):
        batch.step(np.array([0]), np.array([0]))


@pytest.mark.parametrize("seed", [-1, 2**53])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(SeedError, match="seed: expected an integer from 0 to 9007199254740991"):
        Batch([0, seed])


# Snapshots


def test_a_snapshot_continues_identically() -> None:
    batch = Batch(range(20))
    told = []
    for _ in range(60):
        step_at_random(batch, running(batch))
    snapshot = batch.snapshot()
    for _ in range(2):
        for _ in range(60):
            step_at_random(batch, running(batch))
        told.append(contents(batch))
        batch.restore(snapshot)
    assert told[0] == told[1]
    other = Batch(range(20))
    other.restore(snapshot)
    for _ in range(60):
        step_at_random(other, running(other))
    assert contents(other) == told[0]


# Serial, parallel, interpreted, forked


def played(seeds: Ints, decisions: int) -> dict[str, bytes]:
    """Everything a batch tells after so many decisions of each game."""
    batch = Batch(seeds)
    every = np.arange(len(seeds))
    for _ in range(decisions):
        step_at_random(batch, running(batch))
    batch.restart(every[::3], batch.seeds[::3] + 1)
    seats = (every % 2).astype(np.int8)
    return contents(batch) | {
        "observations": batch.observe(every, seats).tobytes(),
        "masks": batch.masks(every).tobytes(),
        "rewards": batch.rewards(every, seats).tobytes(),
    }


@pytest.mark.skipif(INTERPRETED, reason="compares compiled forms")
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="there is one thread only")
def test_serial_and_parallel_give_the_same_bytes() -> None:
    seeds = np.arange(MANY)
    threads = numba.get_num_threads()
    parallel = played(seeds, 250)
    numba.set_num_threads(1)
    try:
        assert played(seeds, 250) == parallel
    finally:
        numba.set_num_threads(threads)
    few = played(seeds[:9], 250)  # too few for threads
    assert parallel["states"].startswith(few["states"])


def run_script(script: str, **environment: str) -> str:
    """Run Python in a process of its own, beside this file; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parent,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


DIGEST = """
import hashlib, numpy
from test_batch import played
for name, content in played(numpy.arange(5), 150).items():
    print(name, hashlib.sha256(content).hexdigest())
"""


def test_interpreted_and_compiled_give_the_same_bytes() -> None:
    digest = run_script(DIGEST, NUMBA_DISABLE_JIT="1")
    assert len(digest.splitlines()) == 8
    assert digest == run_script(DIGEST, NUMBA_DISABLE_JIT="0")


FORK = f"""
import multiprocessing, os, numpy
from concurrent.futures import ProcessPoolExecutor
from test_batch import played

seeds = numpy.arange({MANY})
here = played(seeds, 20)  # in threads, where there are some
with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
    assert pool.submit(played, seeds, 20).result() == here
if os.fork() == 0:
    os._exit(0 if played(seeds, 20) == here else 1)
print("child:", os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(INTERPRETED, reason="nothing runs in threads")
def test_a_forked_child_plays_on() -> None:
    assert run_script(FORK) == "child: 0\n"
