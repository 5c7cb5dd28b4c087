"""`bench.py` with more rows: other libraries, and training with MaskablePPO.

    python benchmarks/bench_peers.py --only pgx pyspiel

It has the options of `bench.py`, and leaves out rows without their libraries.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import bench
import numba
import numpy as np
from bench_games import GAMES, Throughput, aec_play, run_python
from bench_rows import RATIOS, ROWS, Ratio, Row

from tokaido_env.core.actions import N_ACTIONS

_OPENING = 30  # decisions, until as many actions are legal as in the middle of games
_SPEED, _SPIEL = "decisions/s", ("pyspiel",)
_LEARNING = ("stable_baselines3", "sb3_contrib", "torch", "safetensors")


def connect_four() -> Any:
    """Make PettingZoo's connect four."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    from pettingzoo.classic import connect_four_v3

    return connect_four_v3.env()


def open_spiel_play(name: str, tensor: bool = False) -> Callable[[], Throughput]:
    """Return a measure of random play of an OpenSpiel game from Python, in decisions."""

    def measure() -> Throughput:
        import pyspiel

        importlib.import_module("tokaido_env.openspiel")  # registers tokaido_duo
        game = pyspiel.load_game(name)
        rng = random.Random(0)
        decisions, began = 0, time.perf_counter()
        while time.perf_counter() - began < 0.5:
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes, odds = zip(*state.chance_outcomes(), strict=True)
                    state.apply_action(rng.choices(outcomes, odds)[0])
                    continue
                if tensor:
                    state.observation_tensor()
                state.apply_action(rng.choice(state.legal_actions()))
                decisions += 1
        return Throughput(decisions, time.perf_counter() - began)

    return measure


def pgx_play(name: str) -> Callable[[], Throughput]:
    """Return a measure of random play of a Pgx game, `GAMES` at once, in decisions."""

    @cache
    def started() -> tuple[Any, Any]:
        import jax
        import pgx
        from pgx.experimental import auto_reset

        env = pgx.make(name)
        init, step = jax.vmap(env.init), jax.vmap(auto_reset(env.step, env.init))

        def ply(state: Any, key: Any) -> Any:
            key_action, key_step = jax.random.split(key)
            odds = jax.numpy.where(state.legal_action_mask, 0.0, -jax.numpy.inf)
            actions = jax.random.categorical(key_action, odds, axis=-1)
            return step(state, actions, jax.random.split(key_step, GAMES))

        return jax.jit(ply), jax.jit(init)(jax.random.split(jax.random.PRNGKey(0), GAMES))

    def measure() -> Throughput:
        import jax

        ply, state = started()
        keys = jax.random.split(jax.random.PRNGKey(1), 30)
        began = time.perf_counter()
        for key in keys:
            state = ply(state, key)
        state.current_player.block_until_ready()
        return Throughput(len(state.current_player) * len(keys), time.perf_counter() - began)

    return measure


def learning(name: str) -> Callable[[], float]:
    """Return a measure of MaskablePPO, in steps/s of the learner.

    It runs in a new process, which can set PyTorch's threads.

    Args:
        name: of the opponents, as for `learn`.
    """
    folder = str(Path(__file__).parent)
    script = (
        f"import sys; sys.path.insert(0, {folder!r}); import bench_peers as b; b.learn({name!r})"
    )
    return lambda: float(run_python(script))


def learn(name: str) -> None:
    """Train and print the steps/s.

    Args:
        name: "free" for an environment with free steps, "kernel" for an opponent in the
            kernel, "pool" for four networks.
    """
    import torch

    from tokaido_env.learn.settings import PpoSettings

    torch.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    settings = PpoSettings()
    model, steps = _learner(name, settings), settings.games * settings.n_steps
    model.learn(steps)
    before, began = model.num_timesteps, time.perf_counter()
    model.learn(3 * steps, reset_num_timesteps=False)
    print((model.num_timesteps - before) / (time.perf_counter() - began))


def _learner(name: str, settings: Any) -> Any:
    """Return a learner as `train` makes it, with the opponents of a name."""
    from tokaido_env.learn.network import PolicyNetwork
    from tokaido_env.learn.ppo import make_model
    from tokaido_env.learn.ppo_policy import LearnerEnv

    env: Any = LearnerEnv(settings, "greedy")
    if name == "free":
        env = _free(env)
    network = PolicyNetwork(settings.sizes, against_others=True)
    model = make_model(env, settings, network)
    if name == "pool":
        env.set_opponents(_pool(network), when="now")
    return model


def _free(env: Any) -> Any:
    """Return an environment with free steps: it returns the same positions every time."""
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

    policy: Policy = network.to_policy()
    return [PolicyAgent.from_policy(policy, f"network {i}", 1.0) for i in range(size)]


PEERS = (
    Row(
        "connect_four",
        "PettingZoo connect_four_v3, the same loop",
        _SPEED,
        aec_play(connect_four, 40),
        needs=("pygame",),
    ),
    *(
        Row(f"pyspiel.{key}", f"OpenSpiel {what}", _SPEED, measure, needs=_SPIEL)
        for key, what, measure in (
            ("tokaido", "`tokaido_duo`, random play", open_spiel_play("tokaido_duo")),
            ("backgammon", "backgammon (C++), random play", open_spiel_play("backgammon")),
            ("tensor", "backgammon (C++), with tensor", open_spiel_play("backgammon", True)),
        )
    ),
    *(
        Row(
            f"pgx.{name}",
            f"Pgx {name}, random play, all cores",
            _SPEED,
            pgx_play(name),
            threads=2,
            needs=("pgx",),
        )
        for name in ("connect_four", "backgammon")
    ),
    *(
        Row(
            f"ppo.{key}",
            f"MaskablePPO, {what}",
            "steps/s",
            learning(key),
            None,
            False,
            2,
            _LEARNING,
        )
        for key, what in (
            ("free", "environment with free steps"),
            ("kernel", "opponents in the kernel (greedy)"),
            ("pool", "a pool of four networks"),
        )
    ),
)
PEER_RATIOS = (
    Ratio(
        "env / connect_four", "`env()` to PettingZoo connect_four_v3", "env", "connect_four", 8.0
    ),
    Ratio("ppo.kernel / free", "learner with kernel opponents", "ppo.kernel", "ppo.free", 0.95),
    Ratio("ppo.pool / free", "learner with a pool of networks", "ppo.pool", "ppo.free"),
)


if __name__ == "__main__":
    sys.exit(bench.main(rows=(*ROWS, *PEERS), ratios=(*RATIOS, *PEER_RATIOS)))
