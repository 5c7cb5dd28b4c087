"""What other libraries take of a batch: turns, observations and masks by hand, memory as it is."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tokaido_env import Batch
from tokaido_env.agent import Agent
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import ALIGNMENT, STATE
from tokaido_env.observing import masks, observe
from tokaido_env.position import PositionError


def played(board: str = "shikoku", n: int = 40, **options: Any) -> Batch:
    """Games at different depths, some at their end."""
    batch = Batch(n, board, autoreset=False, **options)
    batch.reset(seed=3)
    for depth in range(60):
        games = np.flatnonzero((np.arange(n) > depth // 2) & ~batch.over)
        last = N_ACTIONS - 1 - batch.masks(games)[:, ::-1].argmax(axis=1)
        batch.advance(games, last)
    return batch


@pytest.mark.parametrize("board", ["shikoku", "family:valid/5"])
@pytest.mark.parametrize(
    ("observation", "see_board"),
    [("float32", False), ("float32", True), ("uint8", False), ("entities", False)],
)
def test_positions_are_observed_by_hand(board: str, observation: Any, see_board: bool) -> None:
    batch = played(board, observation=observation, see_board=see_board)
    boards = batch.boards_of(batch.all_games)
    for seats in (None, np.zeros(len(batch), np.int8), [1] * len(batch)):
        seen = observe(boards, batch.states, seats, observation, see_board)
        own = batch.states["player"] if seats is None else seats
        expected = batch.observe(batch.all_games, own)
        for one, other in zip(parts(seen), parts(expected), strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)


def parts(seen: Any) -> list[Any]:
    return [seen[name] for name in sorted(seen)] if isinstance(seen, dict) else [seen]


def test_masks_are_bits_told_apart() -> None:
    batch = played()
    assert np.array_equal(masks(batch.legal), batch.masks(batch.all_games))
    assert masks(batch.legal).shape == (len(batch), N_ACTIONS)
    assert masks([5]).nonzero()[1].tolist() == [0, 2]
    assert masks(np.zeros(0, np.uint64)).shape == (0, N_ACTIONS)


def test_an_agent_of_the_outside_plays_by_both() -> None:
    class First(Agent):
        spec = "first"

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
            assert observe(boards, states).shape == (len(states), 337)
            return masks(legal).argmax(axis=1)

    batch = Batch(8, autoreset=False)
    batch.reset(seed=1)
    while not batch.over.all():
        games = np.flatnonzero(~batch.over)
        assert np.array_equal(batch.masks(games).argmax(axis=1), batch.decide(First(), games))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda b, s: (b, s[0]), "states: expected an array of STATE"),
        (lambda b, s: (b, s.view(np.uint8)), "states: expected an array of STATE"),
        (lambda b, s: (s, s), "boards: expected an array of BOARD"),
        (lambda b, s: (b, [1, 2]), "states: expected an array of STATE"),
    ],
)
def test_what_is_no_position_is_refused(change: Any, error: str) -> None:
    batch = played(n=3)
    with pytest.raises((TypeError, ValueError), match=error):
        observe(*change(batch.boards, batch.states))
    broken = np.zeros(2, STATE)
    broken["pilgrim"] = 99
    with pytest.raises(PositionError, match="number 0 of 2"):
        observe(batch.boards, broken)
    with pytest.raises(ValueError, match="seats: expected"):
        observe(batch.boards, batch.states, [0, 1, 2])
    with pytest.raises(ValueError, match="observation: expected"):
        observe(batch.boards, batch.states, observation="pixels")  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [True, False])
def test_a_turn_is_read_after_games_began(copied: bool) -> None:
    batch, other = Batch(6, copy=copied), Batch(6)
    told = other.reset(seed=4)
    batch.begin(batch.all_games, 4)
    for one, same in zip(batch.turn(), told, strict=True):
        assert np.array_equal(one, same)
    some = np.array([1, 4])
    batch.begin(some)
    turn = batch.turn()
    assert np.array_equal(turn.mask.astype(bool), batch.masks(batch.all_games))
    assert (turn.observation[some] != told.observation[some]).any()


@pytest.mark.parametrize("observation", ["float32", "uint8"])
def test_buffers_are_aligned_and_contiguous(observation: Any) -> None:
    for n in (1, 7, 4096):
        batch = Batch(n, observation=observation, copy=False)
        turn = batch.reset(seed=1)
        for one in (turn.observation, turn.legal, batch.padded_mask):
            assert one.ctypes.data % ALIGNMENT == 0
            assert one.flags.c_contiguous
        assert np.shares_memory(turn.mask, batch.padded_mask)
        assert np.array_equal(batch.padded_mask[:, :N_ACTIONS], turn.mask)
        assert not batch.padded_mask[:, N_ACTIONS:].any()


def test_copies_play_on_alike() -> None:
    batch = Batch(5, copy=False)
    batch.reset(seed=2)
    for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        turn = other.step(other.masks(other.all_games).argmax(axis=1))
        assert np.shares_memory(turn.mask, other.padded_mask)
        assert np.array_equal(turn.mask.astype(bool), other.masks(other.all_games))


def test_torch_takes_the_buffers_as_they_are() -> None:
    torch = pytest.importorskip("torch")
    batch = Batch(64, copy=False)
    turn = batch.reset(seed=1)
    for one in (turn.observation, turn.mask, batch.padded_mask):
        taken = torch.from_dlpack(one)
        assert taken.data_ptr() == one.ctypes.data
        assert np.array_equal(taken.numpy(), one)
    seen = torch.from_dlpack(turn.observation)
    batch.step(turn.mask.argmax(axis=1))
    assert np.array_equal(seen.numpy(), turn.observation)  # it has changed with the batch


def test_jax_takes_the_buffers_as_they_are() -> None:
    jax = pytest.importorskip("jax")
    batch = Batch(64, copy=False)
    turn = batch.reset(seed=1)
    for one in (turn.observation, batch.padded_mask):
        taken = jax.dlpack.from_dlpack(one, copy=False)
        assert taken.unsafe_buffer_pointer() == one.ctypes.data
        assert np.array_equal(np.asarray(taken), one)
