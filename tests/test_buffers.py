"""Tests of observation buffers: alignment, sharing with other libraries, reuse of memory."""

import copy
import functools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tokaido_env import Batch
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import STATE
from tokaido_env.gym import TokaidoDuoVectorEnv
from tokaido_env.observers import ALIGNMENT, BufferPool, masks, observe
from tokaido_env.position import PositionError


def played(board: str = "shikoku", n: int = 40, **options: Any) -> Batch:
    """Return games at different depths, some of them finished."""
    batch = Batch(n, board, autoreset=False, **options)
    batch.reset(seed=3)
    for depth in range(60):
        games = np.flatnonzero((np.arange(n) > depth // 2) & ~batch.over)
        last = N_ACTIONS - 1 - batch.masks(games)[:, ::-1].argmax(axis=1)
        batch.advance(games, last)
    return batch


def parts(seen: Any) -> list[Any]:
    return [seen[name] for name in sorted(seen)] if isinstance(seen, dict) else [seen]


def test_masks__unpack_bits() -> None:
    batch = played()
    assert np.array_equal(masks(batch.legal), batch.masks(batch.all_games))
    assert masks([5]).nonzero()[1].tolist() == [0, 2]
    assert masks(np.zeros(0, np.uint64)).shape == (0, N_ACTIONS)


def test_observe__refuses_wrong_arguments() -> None:
    batch = played(n=3)
    with pytest.raises((TypeError, ValueError), match="boards: expected an array of BOARD"):
        observe(batch.states, batch.states)
    broken = np.zeros(2, STATE)
    broken["pilgrim"] = 99
    with pytest.raises(PositionError, match=r"^states\[0\]: expected a state"):
        observe(batch.boards, broken)
    with pytest.raises(ValueError, match="seats: expected"):
        observe(batch.boards, batch.states, [0, 1, 2])


@pytest.mark.parametrize("copied", [True, False])
def test_timestep__is_readable_after_begin(copied: bool) -> None:
    batch, other = Batch(6, copy=copied), Batch(6)
    outputs = other.reset(seed=4)
    batch.begin(batch.all_games, 4)
    for one, same in zip(batch.timestep(), outputs, strict=True):
        assert np.array_equal(one, same)
    some = np.array([1, 4])
    batch.begin(some)
    turn = batch.timestep()
    assert np.array_equal(turn.mask.astype(bool), batch.masks(batch.all_games))
    assert (turn.observation[some] != outputs.observation[some]).any()


@pytest.mark.parametrize(("observation", "sizes"), [("float32", (1, 7, 4096)), ("uint8", (7,))])
def test_buffers__are_aligned_and_contiguous(observation: Any, sizes: tuple[int, ...]) -> None:
    for n in sizes:
        own = Batch(n, observation=observation).reset(seed=1).observation
        assert own.ctypes.data % ALIGNMENT == 0
        assert own.flags.c_contiguous
        assert own.flags.writeable
        batch = Batch(n, observation=observation, copy=False)
        turn = batch.reset(seed=1)
        for one in (turn.observation, turn.legal, batch.padded_mask):
            assert one.ctypes.data % ALIGNMENT == 0
            assert one.flags.c_contiguous
        assert np.shares_memory(turn.mask, batch.padded_mask)
        assert np.array_equal(batch.padded_mask[:, :N_ACTIONS], turn.mask)
        assert not batch.padded_mask[:, N_ACTIONS:].any()


def address_of(array: Any) -> int:
    """Return the memory address of another library's array."""
    found: int = array.data_ptr() if hasattr(array, "data_ptr") else array.unsafe_buffer_pointer()
    return found


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_buffers__are_shared_with_other_libraries_without_a_copy(library: str) -> None:
    module: Any = pytest.importorskip(library)
    take = (
        module.from_dlpack
        if library == "torch"
        else functools.partial(module.dlpack.from_dlpack, copy=False)
    )
    batch = Batch(64, copy=False)
    turn = batch.reset(seed=1)
    kept = turn.observation, batch.padded_mask, *((turn.mask,) if library == "torch" else ())
    taken = [take(one) for one in kept]  # JAX refuses views of rows
    for one, other in zip(kept, taken, strict=True):
        assert address_of(other) == one.ctypes.data
        assert np.array_equal(np.asarray(other), one)
    if library == "torch":  # JAX arrays are immutable
        batch.step(turn.mask.argmax(axis=1))
        assert np.array_equal(taken[0].numpy(), turn.observation)


# Reuse of memory


def pickled(array: Any) -> Any:
    """Pickles an array with its memory out of band."""
    outside: list[pickle.PickleBuffer] = []
    data = pickle.dumps(array, protocol=5, buffer_callback=outside.append)
    return pickle.loads(data, buffers=outside)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda array: array[1:, 3:9],
    "transposed": lambda array: array.T,
    "other dtype": lambda array: array.view(np.uint8),
    "memoryview": memoryview,
    "dlpack": np.from_dlpack,
    "pickled": pickled,
    "interface": lambda array: np.asarray(array.base)[1:],
    "torch": lambda array: pytest.importorskip("torch").from_numpy(array)[1:],
}


@pytest.mark.parametrize("name", VIEWS)
def test_buffer_pool__never_reuses_memory_that_a_view_shows(name: str) -> None:
    pool = BufferPool((4, 24), np.float32)
    array = pool.take()
    array.view(np.uint8)[:] = 7
    address = array.ctypes.data
    view = VIEWS[name](array)
    del array
    for _ in range(3):
        pool.take()[:] = 0.0
    assert set(np.asarray(view).tobytes()) == {7}
    del view
    assert address in {one.ctypes.data for one in [pool.take() for _ in range(3)]}


def test_buffer_pool__reuses_memory_from_any_thread() -> None:
    pool = BufferPool((2, 3), np.uint8)
    taken = [pool.take() for _ in range(50)]
    assert len({array.ctypes.data for array in taken}) == 50
    addresses = {array.ctypes.data for array in taken}
    dropping = threading.Thread(target=taken.clear)
    dropping.start()
    dropping.join()
    assert {array.ctypes.data for array in [pool.take() for _ in range(4)]} <= addresses
    assert len(pool._ring) == 4  # the pool keeps four of fifty buffers


FORMS: list[dict[str, Any]] = [
    {},
    {"observation": "uint8"},
    {"see_board": True},
    {"observation": "afterstates"},
]


def arrays(outputs: Any) -> list[Any]:
    """Return all arrays in nested results of an environment."""
    if isinstance(outputs, np.ndarray) and outputs.dtype != object:
        return [outputs]
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, (tuple, list, np.ndarray)):
        return [array for each in outputs for array in arrays(each)]
    return []


def random_play(kind: str, **form: Any) -> Callable[[], Any]:
    """Return a function that plays a random step and returns its results."""
    if kind == "batch":
        batch = Batch(64, "family:train/9", **form)
        batch.reset(seed=5)
        return lambda: batch.play("random")
    if kind == "gymnasium":
        envs = TokaidoDuoVectorEnv(64, "random", board="family:train/9", **form)
        envs.reset(seed=5)
        return lambda: envs.step(envs.action_masks().argmax(axis=1))
    sb3 = pytest.importorskip("tokaido_env.sb3")
    env = sb3.TokaidoVecEnv(64, "random", 5, board="family:train/9", **form)
    env.reset()
    return lambda: env.step(env.action_masks().argmax(axis=1))


@pytest.mark.parametrize(
    ("kind", "form"),
    [*(("batch", form) for form in FORMS), ("gymnasium", {}), ("sb3", {})],
    ids=str,
)
def test_observations__kept_by_the_caller_never_change(kind: str, form: dict[str, Any]) -> None:
    step, kept, copies = random_play(kind, **form), [], []
    for number in range(70):
        outputs = arrays(step())
        copies += [array.copy() for array in outputs]
        kept += [
            array[2:] if number % 2 else array for array in outputs
        ]  # a slice keeps the whole buffer in use
    for array, one in zip(kept, copies, strict=True):
        assert np.array_equal(array, one[len(one) - len(array) :])


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_observations__reuse_dropped_memory(form: dict[str, Any]) -> None:
    """Reused memory is written in full, also after its holder has changed it."""
    batch, other = (Batch(64, "family:train/9", **form) for _ in range(2))
    outputs = [each.reset(seed=5).observation for each in (batch, other)]
    addresses = set()
    for _ in range(60):
        for mine, right in zip(parts(outputs[0]), parts(outputs[1]), strict=True):
            assert np.array_equal(mine, right)
            mine[:] = 77
        addresses.add(parts(outputs[0])[0].ctypes.data)
        outputs[0] = batch.play("random").observation
        outputs[1] = other.play("random").observation
    assert len(addresses) == 2  # one is in use while the next is written


def test_deepcopy__of_a_batch_shares_no_memory() -> None:
    for copied in (True, False):
        batch = Batch(8, copy=copied)
        batch.reset(seed=5)
        batch.play("random")
        for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
            for each in (batch, other):
                turn = each.play("random")
                assert np.shares_memory(turn.mask, each.padded_mask) != copied
                assert np.array_equal(turn.mask.astype(bool), each.masks(each.all_games))
                del turn
            taken = [each.play("random").observation for each in (batch, other)]
            assert not np.shares_memory(*taken)
