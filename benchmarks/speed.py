"""Print how fast random play is on this machine: `python benchmarks/speed.py`.

Three figures, each the median of several runs after one that is thrown away, with the spread:
the kernels alone on one thread, `Game` from Python, PettingZoo's `env()` with `last()` and
`step()`.
"""

from __future__ import annotations

import platform
import random
import statistics
import time
from typing import Any

import numba
import numpy as np

import tokaido_env
from tokaido_env.batch import Batch
from tokaido_env.bots import random_action
from tokaido_env.jit import entry
from tokaido_env.luck import hash_bits, settle
from tokaido_env.rules import apply, legal
from tokaido_env.state import OVER

RUNS = 7
GAMES = 4096
PLIES = 300


def main() -> None:
    """Measure and print."""
    print(
        f"random play, decisions per second, one thread; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}"
    )
    for name, measure in (("kernels", kernels), ("Game", game), ("env()", environment)):
        measure(0)
        speeds = [measure(run) for run in range(1, RUNS + 1)]
        low, high = min(speeds), max(speeds)
        print(f"{name:<8} {statistics.median(speeds):>12,.0f}   ({low:,.0f} – {high:,.0f})")


def kernels(run: int) -> float:
    """Step 4,096 games side by side, each played anew when it ends."""
    batch = Batch(np.arange(GAMES) + run * GAMES)
    fresh = batch.snapshot()["states"]
    began = time.perf_counter()
    play(batch.boards, batch.states, batch.luck, fresh, PLIES)
    return GAMES * PLIES / (time.perf_counter() - began)


@entry
def play(boards: Any, states: Any, lucks: Any, fresh: Any, plies: int) -> None:
    """Play random decisions of all games in turn."""
    for ply in range(plies):
        for i in range(len(states)):
            bits = hash_bits(lucks[i]["key"], 63, ply, i)
            apply(boards[0], states[i], random_action(legal(boards[0], states[i]), bits))
            settle(boards[0], states[i], lucks[i])
            if int(states[i]["phase"]) == OVER:
                states[i] = fresh[i]


def game(run: int) -> float:
    """Play whole games through `Game`."""
    rng = random.Random(run)
    decisions = 0
    began = time.perf_counter()
    for seed in range(100):
        game = tokaido_env.Game(seed=seed)
        while not game.is_over:
            actions = game.legal_actions()
            game.play(actions[int(rng.random() * len(actions))])
            decisions += 1
    return decisions / (time.perf_counter() - began)


def environment(run: int) -> float:
    """Play whole games through PettingZoo, with a random legal action of each mask."""
    env = tokaido_env.env()
    rng = random.Random(run)
    steps = 0
    began = time.perf_counter()
    for seed in range(50):
        env.reset(seed=seed)
        while env.agents:
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            actions = observation["action_mask"].nonzero()[0]
            env.step(int(actions[int(rng.random() * len(actions))]))
            steps += 1
    return steps / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
