"""Measurements of `bench.py`: games through every interface, search, and process start.

Each function measures once, or returns a function that does.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import tokaido_env
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board

GAMES = 4096
_SEARCHED = 64  # games
_BOARDS = 200
_LAUNCHED = 16  # plies on a GPU
_SECONDS = 0.4  # of a measurement

_TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"


@dataclass(frozen=True)
class Throughput:
    """A number of finished things, counted from their results, and the seconds they took."""

    count: int
    seconds: float

    @property
    def rate(self) -> float:
        """Number per second."""
        return self.count / self.seconds


def random_play(observation: str | None, **options: Any) -> Callable[[], Throughput]:
    """Return a measure of random play of a batch, one kernel call per ply, in decisions.

    Args:
        observation: of the batch.
        options: of the batch; `copy` is False by default.
    """

    @cache
    def started() -> Batch:
        batch = Batch(GAMES, **{"observation": observation, "copy": False, **options})
        batch.reset(seed=0)
        for _ in range(400):  # games at all stages
            batch.play("random")
        return batch

    def measure() -> Throughput:
        batch = started()
        last: list[Any] = []

        def ply() -> None:
            last[:] = [batch.play("random")]  # a training loop keeps it during the next ply too

        plies = _repeated(ply)
        return Throughput(len(batch) * plies.count, plies.seconds)

    return measure


def afterstates() -> Throughput:
    """Count the afterstates of a batch of games at all stages, with the inputs of the networks."""
    batch = _games_at_all_stages()
    rows: list[int] = []
    done = _repeated(lambda: rows.append(len(batch.afterstates().action)))
    return Throughput(sum(rows), done.seconds)


@cache
def _games_at_all_stages() -> Batch:
    batch = Batch(GAMES, observation=None)
    batch.reset(seed=0)
    for _ in range(400):
        batch.play("random")
    return batch


def draw_boards() -> float:
    """Return the milliseconds to generate and compile a procedural board."""
    began = time.perf_counter()
    for number in range(_BOARDS):
        Board.generate(number).record.tobytes()
    return 1e3 * (time.perf_counter() - began) / _BOARDS


def searching(spec: str) -> Callable[[], Throughput]:
    """Return a measure of an agent in positions from games of `greedy`.

    It counts simulations by the visits of the search, or decisions if the agent does not search.
    """

    @cache
    def started() -> tuple[Any, Batch, npt.NDArray[np.int64]]:
        from tokaido_env.agents.registry import cost_of, make

        agent = make(spec)
        games = _SEARCHED if cost_of(spec) else GAMES
        batch = Batch(games, observation=None, autoreset=False)
        batch.reset(seed=0)
        for _ in range(60):
            batch.play("greedy")
        several = batch.legal & (batch.legal - np.uint64(1)) != 0  # a single action needs no search
        return agent, batch, np.flatnonzero(several)

    def measure() -> Throughput:
        from tokaido_env.agents.search import SearchAgent, search
        from tokaido_env.agents.workspaces import PositionBatch

        agent, batch, games = started()
        states, legal, keys = batch.states[games], batch.legal[games], batch.keys(games)
        began = time.perf_counter()
        if isinstance(agent, SearchAgent):
            positions = PositionBatch(batch.boards, states, legal)
            found = search(agent.network, agent.config, positions, keys).visits
            return Throughput(int(found.sum()), time.perf_counter() - began)
        actions = agent.act(batch.boards, states, legal, keys)
        return Throughput(len(actions), time.perf_counter() - began)

    return measure


def stepping() -> Callable[[], Throughput]:
    """Return a measure of `Batch.step` with checked actions, in decisions."""

    @cache
    def started() -> tuple[Batch, Any]:
        batch = Batch(GAMES, observation=None, copy=False)
        return batch, batch.reset(seed=0)

    def measure() -> Throughput:
        batch, turn = started()
        decisions, seconds = 0, 0.0
        for _ in range(100):
            actions = turn.mask.argmax(axis=1)
            began = time.perf_counter()
            turn = batch.step(actions)
            seconds += time.perf_counter() - began
            decisions += int((turn.player >= 0).sum())
        return Throughput(decisions, seconds)

    return measure


def game_play() -> Throughput:
    """Play whole games through `Game` at random, in decisions."""
    rng = random.Random(0)
    decisions, began = 0, time.perf_counter()
    for seed in range(50):
        game = tokaido_env.Game(seed=seed)
        while not game.is_over:
            actions = game.legal_actions()
            game.play(actions[int(rng.random() * len(actions))])
            decisions += 1
    return Throughput(decisions, time.perf_counter() - began)


def aec_play(make: Callable[[], Any], games: int) -> Callable[[], Throughput]:
    """Return a measure of a PettingZoo loop, in steps: `last()`, a legal action, `step()`."""

    def measure() -> Throughput:
        env = make()
        rng = random.Random(0)
        steps, began = 0, time.perf_counter()
        for seed in range(games):
            env.reset(seed=seed)
            while env.agents:
                observation, _, terminated, truncated, _ = env.last()
                if terminated or truncated:
                    env.step(None)
                    continue
                actions = observation["action_mask"].nonzero()[0]
                env.step(int(actions[int(rng.random() * len(actions))]))
                steps += 1
        return Throughput(steps, time.perf_counter() - began)

    return measure


def deep_copies() -> float:
    """Return the microseconds to copy a running `env()`."""
    env = tokaido_env.env()
    env.reset(seed=0)
    for _ in range(50):
        env.step(env.game.legal_actions()[0])
    return 1e6 / _repeated(lambda: copy.deepcopy(env)).rate


def gym_play() -> Throughput:
    """Play whole episodes of `tokaido_env:TokaidoDuo-v0` against `random`, in steps."""
    import gymnasium

    env = gymnasium.make("tokaido_env:TokaidoDuo-v0", opponent="random")
    rng = random.Random(0)
    steps, began = 0, time.perf_counter()
    for seed in range(20):
        _, info = env.reset(seed=seed)
        done = False
        while not done:
            actions = info["action_mask"].nonzero()[0]
            action = int(actions[int(rng.random() * len(actions))])
            _, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            steps += 1
    return Throughput(steps, time.perf_counter() - began)


def gpu_name() -> str:
    """Return the name of the GPU that can play games, "" if this machine has none."""
    if importlib.util.find_spec("numba_cuda") is None:
        return ""
    from numba import cuda

    return str(cuda.get_current_device().name) if cuda.is_available() else ""


def cuda_play(bot: str, games: int, observation: str | None = None) -> Callable[[], Throughput]:
    """Return a measure of a bot's play of a batch on a GPU, in decisions."""

    @cache
    def started() -> Any:
        from tokaido_env.cuda import CudaBatch

        batch = CudaBatch(games, observation=observation, check=False)  # type: ignore[arg-type]
        batch.reset(seed=0)
        for _ in range(400):  # games at all stages
            batch.play("random")
        return batch

    def measure() -> Throughput:
        from numba import cuda

        batch = started()

        def plies() -> None:  # one reading of the clock for several launches
            for _ in range(_LAUNCHED):
                batch.play(bot)
            cuda.synchronize()

        cuda.synchronize()
        done = _repeated(plies)
        return Throughput(games * _LAUNCHED * done.count, done.seconds)

    return measure


def cuda_memory(games: int) -> Callable[[], float]:
    """Return a measure of the memory traffic that random play needs at least, in GB/s."""

    def measure() -> float:
        from tokaido_env.cuda import BYTES_PER_STEP

        return cuda_play("random", games)().rate * BYTES_PER_STEP / 1e9

    return measure


def _repeated(action: Callable[[], Any]) -> Throughput:
    """Repeat an action for `_SECONDS`."""
    count, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < _SECONDS:
        action()
        count += 1
    return Throughput(count, elapsed)


def import_seconds() -> float:
    """Return the seconds to import the package in a new process."""
    return float(run_python(_TIMED.format("import tokaido_env")))


def first_decision(*, cold: bool) -> Callable[[], float]:
    """Return a measure of a new process up to its first decision, in seconds."""
    script = _TIMED.format(
        "from tokaido_env import Game; game = Game(seed=0); game.play(game.legal_actions()[0])"
    )

    def measure() -> float:
        if not cold:
            return float(run_python(script))
        with tempfile.TemporaryDirectory() as folder:
            return float(run_python(script, NUMBA_CACHE_DIR=folder))

    return measure


def run_python(script: str, **environment: str) -> Any:
    """Run a script in a new Python process; return the JSON that it printed."""
    settings = {"OMP_WAIT_POLICY": "PASSIVE"} | environment  # as `tokaido train` sets it
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a measured process failed:\n{done.stderr}")
    return json.loads(done.stdout)
