"""Conformance tests that libraries provide, and games through their own wrappers."""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

import numpy as np
from library_check import Check

import tokaido_env

# PettingZoo warns of every dictionary with a mask, but for some games that it lists by name.
DICTIONARY_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "Action mask numpy array is all zeros",
)

_ID = "tokaido_env:TokaidoDuo-v0"  # workers import the package

HEADLESS = mock.patch.dict(os.environ, {"SDL_VIDEODRIVER": "dummy"})

RLLIB = ("ray", "tree", "lz4", "tensorboardX")  # not dependencies of Ray's core
DRAWING = ("resvg_py", "PIL", "matplotlib", "pygame")


def _api_test(**options: Any) -> None:
    from pettingzoo.test import api_test

    with warnings.catch_warnings(action="error"):
        if options.get("observation") != "box":
            for warning in DICTIONARY_WARNINGS:
                warnings.filterwarnings("ignore", warning, UserWarning)
        api_test(tokaido_env.env(**options), num_cycles=500)
        api_test(tokaido_env.raw_env(**options), num_cycles=500)


def _seed_test() -> None:
    from pettingzoo.test import seed_test

    seed_test(tokaido_env.env, num_cycles=500)


def _render_test() -> None:
    from pettingzoo.test import render_test

    with HEADLESS, mock.patch("tokaido_env.render.modes.RENDER_FPS", 1000):
        render_test(tokaido_env.env)


def _performance_benchmark() -> str:
    from pettingzoo.test import performance_benchmark

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        performance_benchmark(tokaido_env.env())
    turns = re.search(r"([\d.]+) turns per second", printed.getvalue())
    return f"{float(turns[1]):,.0f} turns/s" if turns else printed.getvalue()


def _gymnasium_check_env(**options: Any) -> None:
    import gymnasium
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings(action="error"), HEADLESS:
        env = gymnasium.make(_ID, **options).unwrapped
        check_env(env, skip_render_check="render_mode" not in options)


def _sb3_check_env() -> None:
    import gymnasium
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings(action="error"):
        check_env(gymnasium.make(_ID).unwrapped)


def _random_sim_test() -> None:
    import pyspiel

    import tokaido_env.openspiel

    pyspiel.random_sim_test(
        pyspiel.load_game(tokaido_env.openspiel.SHORT_NAME),
        num_sims=3,
        serialize=True,
        verbose=False,
    )


def _check_env_specs(**options: Any) -> None:
    from torchrl.envs.utils import check_env_specs

    from tokaido_env.torchrl import TokaidoDuoEnv

    with warnings.catch_warnings(action="error"), HEADLESS:
        check_env_specs(TokaidoDuoEnv(16, **options))


def _check_multiagent_environments(**options: Any) -> None:
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments

    from tokaido_env.rllib import TokaidoMultiAgentEnv

    with warnings.catch_warnings(action="error"):
        check_multiagent_environments(TokaidoMultiAgentEnv(options))


def _play(env: Any, options: dict[str, Any], masks: Callable[[Any], Any]) -> list[Any]:
    """Play random legal actions in a vector environment; return observations, and close it."""
    rng, seen = np.random.default_rng(1), [env.reset(**options)]
    try:
        for _ in range(60):
            legal = np.stack(masks(seen[-1]))
            seen.append(env.step(np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=1)))
    finally:
        env.close()
    return [step[0] if isinstance(step, tuple) else step for step in seen]


def _same(expected: list[Any], played: list[Any]) -> None:
    np.testing.assert_array_equal(played, expected, "games in workers differ from those here")


def _zero_sum(rewards: Iterable[float]) -> None:
    if sorted(rewards) not in ([-1, 1], [0, 0]):
        raise AssertionError("expected +1 for the winner and -1 for the other, or 0 for both")


def _async_vector_env() -> None:
    import gymnasium

    def play(mode: str, **options: Any) -> list[Any]:
        envs = gymnasium.make_vec(_ID, 2, mode, vector_kwargs=options)
        return _play(envs, {"seed": 1}, lambda step: step[-1]["action_mask"])

    _same(play("sync"), play("async", context="spawn"))


def _sb3_vec_envs() -> None:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    def play(kind: Any) -> list[Any]:
        env = make_vec_env(_ID, 2, seed=1, vec_env_cls=kind)
        return _play(env, {}, lambda _: env.env_method("action_masks"))

    _same(play(DummyVecEnv), play(SubprocVecEnv))


def _torchrl_wrappers() -> None:
    from torchrl.collectors import Collector
    from torchrl.envs import SerialEnv, StepCounter, TransformedEnv

    from tokaido_env.torchrl import TokaidoDuoEnv, random_policy

    def make() -> Any:
        return TransformedEnv(TokaidoDuoEnv(8, device="cpu"), StepCounter())

    make().rollout(60, break_when_any_done=False)
    SerialEnv(2, make).rollout(60, random_policy, break_when_any_done=False)
    list(Collector(make(), None, frames_per_batch=160, total_frames=320))


def _torchrl_gym_env() -> None:
    from torchrl.envs import GymEnv
    from torchrl.envs.utils import check_env_specs

    check_env_specs(GymEnv(_ID))


def _torchrl_pettingzoo_wrapper() -> None:
    from torchrl.envs import PettingZooWrapper
    from torchrl.envs.utils import check_env_specs

    env = PettingZooWrapper(tokaido_env.env(), use_mask=True)
    check_env_specs(env)
    data = env.rollout(10_000)
    _zero_sum(float(data["next", agent, "reward"].sum()) for agent in env.possible_agents)


def _supersuit_wrappers() -> None:
    import supersuit
    from pettingzoo.test import api_test

    env = tokaido_env.env(observation="box")
    env = supersuit.clip_reward_v0(supersuit.dtype_v0(env, np.float16))
    env = supersuit.agent_indicator_v0(supersuit.flatten_v0(env))
    api_test(env, num_cycles=200)


def _rllib_pettingzoo_env() -> None:
    from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments

    env = PettingZooEnv(tokaido_env.env())
    check_multiagent_environments(env)
    rng, (seen, _), paid = np.random.default_rng(1), env.reset(seed=1), {}
    while len(seen) == 1:
        ((agent, observation),) = seen.items()
        action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
        seen, paid, *_ = env.step({agent: action})
    _zero_sum(paid.values())


CHECKS = (
    Check("pettingzoo", "api_test, dictionaries", _api_test),
    Check(
        "pettingzoo", "api_test, boxes, warnings as errors", lambda: _api_test(observation="box")
    ),
    Check("pettingzoo", "api_test, afterstates", lambda: _api_test(observation="afterstates")),
    Check("pettingzoo", "seed_test", _seed_test),
    Check("pettingzoo", "render_test", _render_test, DRAWING),
    Check("pettingzoo", "performance_benchmark", _performance_benchmark),
    Check("gymnasium", "check_env, warnings as errors", _gymnasium_check_env),
    Check(
        "gymnasium",
        "check_env, afterstates, warnings as errors",
        lambda: _gymnasium_check_env(observation="afterstates"),
    ),
    Check(
        "gymnasium",
        "check_env, uint8, rendered in all modes",
        lambda: _gymnasium_check_env(observation="uint8", render_mode="rgb_array"),
        DRAWING,
    ),
    Check("gymnasium", "AsyncVectorEnv, started by spawn", _async_vector_env),
    Check("stable_baselines3", "check_env, warnings as errors", _sb3_check_env),
    Check("stable_baselines3", "DummyVecEnv and SubprocVecEnv", _sb3_vec_envs),
    Check("open_spiel", "random_sim_test, serialising", _random_sim_test),
    Check("torchrl", "check_env_specs", _check_env_specs),
    Check("torchrl", "StepCounter, SerialEnv and Collector", _torchrl_wrappers),
    Check("torchrl", "its PettingZooWrapper", _torchrl_pettingzoo_wrapper),
    Check("torchrl", "its GymEnv", _torchrl_gym_env),
    Check("supersuit", "four wrappers of the box form", _supersuit_wrappers),
    Check("ray", "RLlib's PettingZooEnv", _rllib_pettingzoo_env, RLLIB),
    Check("ray", "RLlib's check of environments", _check_multiagent_environments, RLLIB),
    Check(
        "ray",
        "RLlib's check of environments, afterstates",
        lambda: _check_multiagent_environments(observation="afterstates"),
        RLLIB,
    ),
)
