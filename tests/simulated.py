"""Compares `CudaBatch` in Numba's GPU simulator with `Batch`; run in a separate process.

    NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python -W ignore tests/simulated.py [CASE ...]

It prints the name of each case that passes; without an argument it runs all cases.

The simulator cannot call functions compiled for a CPU, so both batches are interpreted. Other tests
compare compiled with interpreted batches. `-W ignore` is for NumPy's warnings of random numbers
that wrap around.
"""

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import cuda
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from positions import shikoku_data

from tokaido_env import Batch, Board, Game
from tokaido_env.agents import make
from tokaido_env.agents.cuda_agents import CudaHeuristic, CudaPolicy
from tokaido_env.agents.inference import evaluate_all
from tokaido_env.core.actions import NO_ACTION
from tokaido_env.core.arguments import IllegalMove
from tokaido_env.cuda import CudaBatch


def row_or_array(self: Any, key: Any) -> Any:
    """Index an array in a kernel as a GPU does; a row of records can be assigned.

    The simulator returns a wrapper, which NumPy cannot assign to another row.
    """
    found = self._ary[key]
    return FakeCUDAArray(found) if type(found) is np.ndarray else found


FakeCUDAArray.__getitem__ = row_or_array


def assert_same_step(result: Any, expected: Any) -> None:
    for name, value in expected._asdict().items():
        if value is None:
            assert getattr(result, name) is None
            continue
        copied = np.asarray(getattr(result, name).copy_to_host())
        assert copied.dtype == value.dtype or name == "terminated", name
        assert np.array_equal(copied, value), name


def assert_same_games(gpu: CudaBatch, cpu: Batch) -> None:
    expected = cpu.snapshot()
    for name, value in gpu.snapshot().items():
        assert value.tobytes() == expected[name].tobytes(), name


def random_moves(n: int, steps: int, every: int = 1, **options: Any) -> None:
    """The same random moves in both batches; results are compared at every `every`-th step."""
    gpu, cpu = CudaBatch(n, **options), Batch(n, **options)
    assert_same_step(gpu.reset(seed=5), cpu.reset(seed=5))
    rng = np.random.default_rng(0)
    for step in range(steps):
        moves = draw(rng, cpu.masks(cpu.all_games))
        result, expected = gpu.step(moves), cpu.step(moves)
        if step % every == 0:
            assert_same_step(result, expected)
    assert_same_games(gpu, cpu)


def draw(rng: np.random.Generator, choices: Any) -> Any:
    """Return a random column that is not 0 of each row, int64 (n,)."""
    return (rng.random(choices.shape, np.float32) * (choices > 0)).argmax(axis=1)


def with_bots() -> None:
    """Bots that play one move, a whole game or a seat."""
    gpu, cpu = CudaBatch(3, autoreset=False), Batch(3, autoreset=False)
    gpu.reset(seed=8)
    cpu.reset(seed=8)
    for bot in ("random", "greedy", "greedy"):
        assert_same_step(gpu.play(bot), cpu.play(bot))
    keys = gpu.keys().copy_to_host()
    assert np.array_equal(keys, cpu.keys(cpu.all_games))
    assert_same_step(gpu.finish("random"), cpu.finish("random"))
    assert_same_games(gpu, cpu)
    bots = np.array([[0, 2], [1, 0], [0, 1]])
    assert_same_step(gpu.reset(), cpu.reset())
    seeds = [None, 6, None]  # None continues
    assert_same_step(gpu.reset(seeds), cpu.reset(seeds))
    gpu.set_bots(bots)
    cpu.set_bots(cpu.all_games, bots)
    for _ in range(5):
        moves = [int(mask.argmax()) for mask in cpu.masks(cpu.all_games)]
        assert_same_step(gpu.step(moves), cpu.step(moves))
    assert_same_games(gpu, cpu)


def across_ends() -> None:
    """Games that end and begin their next episode, on two boards with caps of few rounds."""
    short = (shikoku_data() | {"name": f"cap {n}", "max_rounds": n} for n in (2, 3))
    options: dict[str, Any] = {"board": [*map(Board.from_dict, short)], "observation": None}
    gpu, cpu = CudaBatch(2, **options), Batch(2, **options)
    gpu.reset(seed=2)
    cpu.reset(seed=2)
    ended = 0
    for _ in range(100):
        result, expected = gpu.play("random"), cpu.play("random")
        assert_same_step(result, expected)
        ended += int(expected.terminated.sum())
    assert ended >= 2
    assert_same_games(gpu, cpu)


def snapshots_and_positions() -> None:
    """Positions, and snapshots restored from one batch to the other."""
    gpu, cpu = CudaBatch(4, observation=None), Batch(4, observation=None)
    gpu.reset(seed=1)
    cpu.reset(seed=1)
    cpu.play("random")
    snapshot = cpu.snapshot()
    gpu.play("random")
    gpu.restore(snapshot)
    assert_same_games(gpu, cpu)
    position = Game(seed=3).to_dict()
    assert_same_step(gpu.reset(7, position), cpu.reset(7, position))
    seats = [0, 1, 0, 1]
    assert np.array_equal(gpu.observe(seats).copy_to_host(), cpu.observe(cpu.all_games, seats))


def bad_input() -> None:
    """Errors name the argument and change no game."""
    gpu = CudaBatch(3)
    with raises(RuntimeError, "game 0 has not begun"):
        gpu.step([0, 0, 0])
    gpu.reset(seed=1)
    before = gpu.snapshot()
    with raises(IllegalMove, "game 1: illegal action 48"):
        gpu.step([int(gpu.padded_mask.copy_to_host()[0].argmax()), 48, 48])
    with raises(ValueError, "moves: expected integers of shape (3,)"):
        gpu.step([1, 2])
    with raises(ValueError, "expected int64 of shape (3,)"):
        gpu.step(cuda.to_device(np.zeros(3, np.float32)))
    with raises(ValueError, "bot: expected"):
        gpu.play("champion")
    with raises(ValueError, "observation: expected"):
        CudaBatch(3, observation="afterstates")  # type: ignore[arg-type]
    after = gpu.snapshot()
    assert all(after[name].tobytes() == value.tobytes() for name, value in before.items())
    lenient, cpu = CudaBatch(3, check=False), Batch(3, check=False)
    lenient.reset(seed=1)
    cpu.reset(seed=1)
    assert_same_step(lenient.step([48, -1, 10**9]), cpu.step([48, -1, 10**9]))


def agents() -> None:
    """The heuristic and a network choose the moves of their CPU agents."""
    gpu = CudaBatch(3, board="family:train/3", autoreset=False, observation=None)
    gpu.reset(seed=4)
    cpu = Batch(3, board="family:train/3", autoreset=False, observation=None)
    cpu.reset(seed=4)
    heuristic = CudaHeuristic(gpu)
    for _ in range(6):
        moves = heuristic.decide()
        expected = cpu.decide(make("heuristic"), cpu.all_games)
        assert np.array_equal(moves.copy_to_host(), expected)
        gpu.step(moves)
    agent = make("champion")
    network = CudaPolicy(gpu, agent.policy)
    states, legal = cpu.states.copy(), cpu.legal.copy()
    logits, values = evaluate_all(agent.network, cpu.boards_of(cpu.all_games), states, legal)
    moves = network.decide()
    assert np.array_equal(network.logits.copy_to_host(), logits)
    assert np.array_equal(network.values.copy_to_host(), values)
    assert np.array_equal(moves.copy_to_host(), cpu.decide(agent, cpu.all_games))
    gpu.finish("random")
    assert np.array_equal(heuristic.decide().copy_to_host(), [NO_ACTION] * 3)
    assert np.array_equal(network.decide().copy_to_host(), [NO_ACTION] * 3)
    assert np.array_equal(network.values.copy_to_host(), [0.0] * 3)


@contextlib.contextmanager
def raises(kind: type[Exception], text: str) -> Iterator[None]:
    with pytest.raises(kind, match=re.escape(text)):
        yield


CASES: dict[str, Callable[[], None]] = {
    "random_moves": lambda: random_moves(4, 25),
    "pool": lambda: random_moves(
        4, 15, board="family:train/20", see_board=True, observation="uint8"
    ),
    "margin": lambda: random_moves(3, 25, reward="margin", observation=None),
    "with_bots": with_bots,
    "across_ends": across_ends,
    "snapshots_and_positions": snapshots_and_positions,
    "agents": agents,
    "bad_input": bad_input,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        CASES[name]()
        print(name, flush=True)
