"""What `tokaido bench` measures in processes of their own: learning, and how a process begins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from tokaido_env.core.actions import N_ACTIONS

_OPENING = 30  # decisions, so that as many actions are legal as in games

_TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"


def learning(name: str) -> Callable[[], float]:
    """Return a measure of MaskablePPO, in steps of the learner/s.

    It runs in a process of its own, where PyTorch's threads can be set.

    Args:
        name: of the opponents, as for `learn`.
    """
    return lambda: float(
        child(f"from tokaido_env.cli.bench_processes import learn; learn({name!r})")
    )


def learn(name: str) -> None:
    """Train and print the steps/s.

    Args:
        name: "free" for an environment whose steps cost nothing, "kernel" for an opponent in the
            kernel, "pool" for four networks.
    """
    import torch

    from tokaido_env.learn.settings import PpoSettings

    torch.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    settings = PpoSettings()
    model, steps = _learner(name, settings), settings.games * settings.rollout
    model.learn(steps)
    before, began = model.num_timesteps, time.perf_counter()
    model.learn(3 * steps, reset_num_timesteps=False)
    print((model.num_timesteps - before) / (time.perf_counter() - began))


def _learner(name: str, settings: Any) -> Any:
    """Make a learner as training does, with opponents of a kind."""
    from tokaido_env.learn.network import PolicyNetwork
    from tokaido_env.learn.ppo import new_learner
    from tokaido_env.learn.ppo_policy import LearnerEnv

    env: Any = LearnerEnv(settings, "greedy")
    if name == "free":
        env = _free(env)
    network = PolicyNetwork(settings.sizes, against_others=True)
    model = new_learner(env, settings, network)
    if name == "pool":
        env.assign(_pool(network))
    return model


def _free(env: Any) -> Any:
    """Return an environment whose steps cost nothing: it shows the same positions all the time."""
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(_OPENING):
        env.step(np.where(env.action_masks(), rng.random((env.num_envs, N_ACTIONS)), -1).argmax(1))
    seen, masks = env.observe(), env.action_masks()
    infos: list[dict[str, Any]] = [{} for _ in seen]
    outcomes = np.zeros(len(seen), np.float32), np.zeros(len(seen), np.bool_), infos
    env.reset = lambda: seen
    env.observe = lambda: seen
    env.step_wait = lambda: (seen, *outcomes)
    env.action_masks = lambda: masks
    return env


def _pool(network: Any, size: int = 4) -> list[Any]:
    """Return opponents with networks of the learner's size."""
    from tokaido_env.agents.policy import Policy, PolicyAgent
    from tokaido_env.learn.network import frozen

    policy: Policy = frozen(network)
    return [PolicyAgent.of(policy, f"network {i}", 1.0) for i in range(size)]


def import_seconds() -> float:
    """Import the package in a new process; return seconds."""
    return float(child(_TIMED.format("import tokaido_env")))


def first_decision(*, cold: bool) -> Callable[[], float]:
    """Return a measure of the first decision of a new process, imports included, in seconds."""
    script = _TIMED.format(
        "from tokaido_env import Game; game = Game(seed=0); game.play(game.legal_actions()[0])"
    )

    def measure() -> float:
        if not cold:
            return float(child(script))
        with tempfile.TemporaryDirectory() as folder:
            return float(child(script, NUMBA_CACHE_DIR=folder))

    return measure


def child(script: str, **environment: str) -> Any:
    """Run Python in a new process; return what it printed, JSON."""
    settings = {"OMP_WAIT_POLICY": "PASSIVE"} | environment  # as `tools.train`
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
