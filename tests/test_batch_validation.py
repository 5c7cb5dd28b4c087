"""Arguments of `Batch`: taken, or refused without any change."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import (
    game_at,
    other_board_data,
    play,
    player,
    random_position,
    random_walk,
    write_board,
)

from tokaido_env import Game, PositionError
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.bots import GREEDY
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.observation import N_FEATURES, encode_game
from tokaido_env.core.rules import legal_mask
from tokaido_env.core.state import MAX_COINS, STATE, Phase
from tokaido_env.core.state_validation import limits
from tokaido_env.position import from_dict, to_dict

BOARD = Board.load()
N = 4


def contents(games: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in games.snapshot().items()}


@contextmanager
def unchanged(games: Any, error: type[Exception], match: str) -> Iterator[Any]:
    """Expect a short error that changes nothing of the games."""
    before = contents(games)
    with pytest.raises(error, match=match) as raised:
        yield raised
    assert contents(games) == before
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 500


def running_batch(n: int = N, plies: int = 40, **options: Any) -> Batch:
    batch = Batch(n, **options)
    batch.reset(seed=0)
    for _ in range(plies):
        batch.play("random")
    return batch


# Unchecked moves

EXTREMES = (-(2**63), 2**63 - 1, -(2**32), 2**32, 2**31, -1, -2, 10**6, 255, 256, *range(48, 72))
COMPARED = ("seed", "episode", "decisions")


def random_moves(batch: Batch, chance: str, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return a move for each game; about half of them are legal."""
    n = len(batch)
    weights = np.zeros((n, 256))
    weights[:, :49] = batch.masks(np.arange(n))
    if chance == "explicit":
        weights[:, :216] += batch.outcome_weights() > 0
    legal = (weights * rng.random(weights.shape)).argmax(axis=1)
    whole = rng.integers(-(2**63), 2**63 - 1, n, endpoint=True)
    kinds = [whole, rng.integers(0, 301, n), rng.choice(EXTREMES, n), legal]
    return np.choose(np.minimum(rng.integers(0, 8, n), 3), kinds)


def check(batch: Batch) -> None:
    """Check that states are valid, masks are the legal moves and observations are in bounds."""
    games = np.arange(len(batch))
    masks = batch.masks(games)
    for i in games.tolist():
        board = batch.pool[int(batch.episode_info["board"][i])]
        states = batch.states[i : i + 1].copy()
        assert is_position(board, states), f"game {i}"
        mask = legal_mask(board.record, states, 0)
        assert mask == batch.legal[i] == sum(1 << int(a) for a in np.flatnonzero(masks[i]))
    for seat in range(2):
        observation = batch.observe(games, np.full(len(games), seat))
        assert ((observation >= 0) & (observation <= 1)).all()


@pytest.mark.parametrize("autoreset", [True, False])
@pytest.mark.parametrize("chance", ["sampled", "explicit"])
def test_unchecked_moves__ignores_garbage(chance: Any, autoreset: bool, tmp_path: Path) -> None:
    """A batch that checks its moves plays the legal ones; both must have the same states."""
    n, rng, ignored = 24, np.random.default_rng(0), 0
    boards = ["shikoku", write_board(tmp_path / "other.toml", other_board_data())]
    batch, checked = (
        Batch(n, boards, chance=chance, autoreset=autoreset, check=check, copy=check)
        for check in (False, True)
    )
    for each in (batch, checked):
        each.set_bots(np.arange(2), np.array([[0, 1], [2, 0]]))
        each.reset(seed=0)
    for _ in range(600):
        moves = random_moves(checked, chance, rng)
        _, wrong = checked.check_moves(np.arange(n), moves)
        players, ignored_here = batch.states["player"].copy(), wrong & ~batch.over
        ignored += int(wrong.sum())
        turn = batch.step(moves)
        checked.advance(np.flatnonzero(~wrong), moves[~wrong])
        assert (turn.player == np.where(wrong, -1, players)).all()
        assert (turn.next_player == batch.states["player"])[ignored_here].all()
        assert not turn.reward[ignored_here].any()
        assert not turn.terminated[ignored_here].any()
        for name in ("states", "luck", "legal"):
            assert getattr(batch, name).tobytes() == getattr(checked, name).tobytes()
        for name in COMPARED:
            assert np.array_equal(batch.episode_info[name], checked.episode_info[name])
        over = np.flatnonzero(batch.over)
        if len(over) > n // 2:
            batch.begin(over)
            checked.begin(over)
    check(batch)
    batch.finish("random")
    check(batch)
    assert ignored > 300
    assert int(batch.episode_info["episode"].max()) > 0


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_unchecked_moves__stay_within_bounds() -> None:
    """The same again, with kernels that check their indices."""
    command = [sys.executable, "-m", "pytest", "-q", __file__, "-k", "ignores_garbage"]
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, env=env
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_check_moves__agrees_with_outcome_weights() -> None:
    batch = Batch(6, chance="explicit")
    batch.reset(seed=0)
    rng, phases = np.random.default_rng(0), set()
    games = np.arange(len(batch))
    for _ in range(40 if INTERPRETED else 150):
        weights = batch.outcome_weights()
        waiting = weights.any(axis=1)
        phases |= {Phase(phase) for phase in batch.states["phase"][waiting]}
        for outcome in (-1, 216, 217, 2**40, *range(216)):
            _, wrong = batch.check_moves(games, np.full(len(games), outcome))
            possible = weights[:, outcome] > 0 if 0 <= outcome < 216 else np.zeros(6, bool)
            assert (~wrong[waiting] == possible[waiting]).all(), outcome
        actions = (batch.masks(games) * rng.random((6, 49))).argmax(axis=1)
        outcomes = (weights * rng.random(weights.shape)).argmax(axis=1)
        batch.step(np.where(waiting, outcomes, actions))
    assert phases == {Phase.SETUP, Phase.ROLL, Phase.DRAW, Phase.REVEAL}


# States


def state_of_walk(name: str = "shikoku", seed: int = 3, steps: int = 120) -> npt.NDArray[np.void]:
    return random_walk(seed, steps, name).states.copy()


def beyond_limits() -> Iterator[tuple[str, int, int]]:
    """Yield values beyond the limits of each number of a state: just beyond, and extreme."""
    for name, ends in limits(BOARD.record[0]).items():
        shape = STATE[name].shape
        low, high = (np.broadcast_to(end, shape).ravel() for end in ends)
        widest = np.iinfo(STATE[name].base)
        for place in range(low.size):
            for value in {low[place] - 1, high[place] + 1, widest.min, widest.max}:
                yield name, place, int(value)


def put(states: npt.NDArray[np.void], name: str, place: int, value: int) -> None:
    states[name].reshape(-1)[place] = value


def test_states__refuses_numbers_beyond_their_limits() -> None:
    batch = running_batch()
    before, snapshot = contents(batch), batch.snapshot()
    for name, place, value in beyond_limits():
        states = batch.snapshot()["states"]
        one = states[2:3].copy()
        put(one, name, place, value)
        states[2:3] = one
        key = name.removesuffix("_size")
        with pytest.raises(PositionError, match=rf"^game 2: \S*{key}\S*: expected "):
            batch.restore(snapshot | {"states": states})
    assert contents(batch) == before


def test_states__refuses_those_of_another_board(tmp_path: Path) -> None:
    other = Board.load(write_board(tmp_path / "other.toml", other_board_data()))
    batch, one = running_batch(board=["shikoku", other]), state_of_walk()
    with unchanged(batch, PositionError, "game 1: "):
        batch.reset(positions=running_batch().states)
    states = batch.states[1:2].copy()
    states["pilgrim"] = (27, 26)  # of the 28 stations of shikoku; the other board has 24
    with unchanged(batch, PositionError, r"^game 1: pilgrim: expected 0 to 23, got "):
        batch.begin(np.array([1]), positions=states)
    one["merchant"] = 120  # one for all games
    with unchanged(batch, PositionError, r"^game 0: merchant: expected 0 to 11, got "):
        batch.reset(positions=one)
    with unchanged(batch, PositionError, "^game 2: merchant: "):
        batch.begin(np.array([2, 0]), positions=one)
    own = running_batch(board=["shikoku", other])
    batch.reset(seed=0, positions=own.states)
    check(batch)


@pytest.mark.parametrize("data", [None, other_board_data()], ids=["shikoku", "other"])
def test_states__takes_exactly_those_of_a_position(data: Any, tmp_path: Path) -> None:
    """A batch takes a row if and only if `to_dict` and `from_dict` return the same row."""
    board = Board.load(write_board(tmp_path / "other.toml", data) if data else "shikoku")
    batch, taken, refused = Batch(1, board), 0, 0
    rng = random.Random(0)
    for seed in range(5 if INTERPRETED else 100):
        states = random_walk(seed, rng.randrange(400), board).states
        if data is None and seed % 2:  # a random position
            states = from_dict(board, random_position(rng))
        for _ in range(12):
            one = disturbed(states, board, rng)
            right = is_position(board, one)
            assert takes(batch, one) == right, to_dict(board, one[0])
            taken, refused = taken + right, refused + (not right)
    assert min(taken, refused) > (20 if INTERPRETED else 200)


def disturbed(
    states: npt.NDArray[np.void], board: Board, rng: random.Random
) -> npt.NDArray[np.void]:
    """Return a state with up to two numbers changed within their limits."""
    one = states.copy()
    for _ in range(rng.randrange(3)):
        name, (low, high) = rng.choice(list(limits(board.record[0]).items()))
        ends = [np.broadcast_to(end, STATE[name].shape).ravel() for end in (low, high)]
        place = rng.randrange(ends[0].size)
        value = rng.randint(int(ends[0][place]), int(ends[1][place]))
        put(one, name, place, rng.choice((value, value, int(one[name].reshape(-1)[place]))))
    return one


def is_position(board: Board, one: npt.NDArray[np.void]) -> bool:
    try:
        return from_dict(board, to_dict(board, one[0])).tobytes() == one.tobytes()
    except PositionError:
        return False


def takes(batch: Batch, one: npt.NDArray[np.void]) -> bool:
    try:
        batch.initialize(np.array([0]), 0, one)
    except PositionError:
        return False
    return True


# Snapshots


WRONG_ARRAYS: list[Callable[[Any], Any]] = [
    *(lambda array: None, lambda array: np.zeros(N), lambda array: np.zeros(N, [("phase", "i1")])),
    *(lambda array: array[:2], lambda array: array.reshape(2, 2), lambda array: array[:0]),
]


@pytest.mark.parametrize("name", ["states", "luck", "legal", "episode_info", "boards"])
def test_restore__refuses_a_wrong_array(name: str) -> None:
    batch = running_batch()
    snapshot = dict(batch.snapshot())
    for spoil in WRONG_ARRAYS:
        with unchanged(batch, ValueError, "snapshot: ") as raised:
            batch.restore(snapshot | {name: spoil(snapshot[name])})
        assert name in str(raised.value) or name == "states"
    del snapshot[name]
    with unchanged(batch, ValueError, f"snapshot: {name}: expected an array"):
        batch.restore(snapshot)


def test_restore__refuses_inconsistent_arrays() -> None:
    batch = running_batch()
    for change, message in (
        (lambda held: held["legal"].__setitem__(2, 2**64 - 1), "legal: expected the legal"),
        (lambda held: held["episode_info"]["bot"].__setitem__(0, GREEDY), "a bot in both"),
        (lambda held: held["episode_info"]["next_player"].__setitem__(1, 2), ": next_player$"),
        (lambda held: held["boards"].__setitem__(3, "0" * 16), "another board than that of game 3"),
    ):
        snapshot = batch.snapshot()
        change(snapshot)
        with unchanged(batch, ValueError, message):
            batch.restore(snapshot)


# Coins


def test_coins__stop_at_the_limit() -> None:
    """R4.5: no game reaches 63 coins with six gold slabs."""
    rich = {"merchant": "C1", "pilgrim": 1, "coins": 63, "gold": 6, "wares": {"kimono": 5}}
    left = ("pilgrim", "artist")
    game = game_at(phase="EFFECT", die="merchant", left=left, mine=rich)
    play(game, "sell:5")
    assert player(game)["coins"] == MAX_COINS
    assert Game.from_dict(game.to_dict()).to_dict() == game.to_dict()
    out = np.empty(N_FEATURES, np.float32)
    for seat in range(2):
        encode_game(game.boards, game.states, 0, seat, out)
        assert 0 <= out.min() <= out.max() <= 1
