"""Run the conformance tests of the installed libraries on the environments.

Each check is a test that the library itself provides, or plays games through its own wrappers. It
takes about two minutes.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np

import tokaido_env
from tokaido_env.cli.command import CommandParser, write_json
from tokaido_env.core.optional_deps import install_command

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


@dataclass(frozen=True)
class Check:
    """A conformance test.

    Attributes:
        package: distribution that provides it.
        name: its name there, and the form of the environment.
        run: runs it, and returns a finding or None; raises if it fails.
        extra: extra of this project that installs its modules, "" for none.
        needs: modules that it needs besides the package.
    """

    package: str
    name: str
    run: Callable[[], str | None]
    extra: str = ""
    needs: tuple[str, ...] = ()

    @property
    def install(self) -> str:
        """The command that installs its modules, in the tested versions."""
        if self.extra:
            return install_command(self.extra)
        names = self.package, *self.needs
        pinned = (f"{name}=={TESTED[name]}" if name in TESTED else name for name in names)
        return f"pip install {' '.join(pinned)}".replace("_", "-")


@dataclass(frozen=True)
class Verdict:
    """A row of the table; its outcome is "passed", "FAILED" or "not installed"."""

    package: str
    version: str
    check: str
    outcome: str
    detail: str

    def __str__(self) -> str:
        package = f"{self.package} {self.version}".strip()
        return f"{self.outcome:<14} {package:<26} {self.check:<44} {self.detail}".rstrip()


def _verdict(check: Check) -> Verdict:
    try:
        version = importlib.metadata.version(check.package)
    except importlib.metadata.PackageNotFoundError:
        return Verdict(check.package, "", check.name, "not installed", check.install)
    if missing := [name for name in check.needs if find_spec(name) is None]:
        detail = f"needs {', '.join(missing)}: {check.install}"
        return Verdict(check.package, version, check.name, "not installed", detail)
    try:
        # Output and warnings of libraries are no verdict; checks enable warnings themselves.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            outcome, detail = "passed", check.run() or ""
    except Exception as error:  # any exception of a check is its verdict
        first = next(iter(str(error).splitlines()), "")
        outcome, detail = "FAILED", f"{type(error).__name__}: {first}"
    tested = TESTED.get(check.package, version)
    other = "" if version == tested else f" (tested with {tested})"
    return Verdict(check.package, version, check.name, outcome, (detail + other).strip())


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

    def fast_env(**options: Any) -> Any:
        env = tokaido_env.env(**options)
        env.metadata = env.metadata | {"render_fps": 1000}
        return env

    with HEADLESS:
        render_test(fast_env)


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
    Check("pettingzoo", "api_test, entities", lambda: _api_test(observation="entities")),
    Check("pettingzoo", "api_test, afterstates", lambda: _api_test(observation="afterstates")),
    Check("pettingzoo", "seed_test", _seed_test),
    Check("pettingzoo", "render_test", _render_test, "render", DRAWING),
    Check("pettingzoo", "performance_benchmark", _performance_benchmark),
    Check("gymnasium", "check_env, warnings as errors", _gymnasium_check_env),
    Check(
        "gymnasium",
        "check_env, entities, warnings as errors",
        lambda: _gymnasium_check_env(observation="entities"),
    ),
    Check(
        "gymnasium",
        "check_env, afterstates, warnings as errors",
        lambda: _gymnasium_check_env(observation="afterstates"),
    ),
    Check(
        "gymnasium",
        "check_env, uint8, rendered in all modes",
        lambda: _gymnasium_check_env(observation="uint8", render_mode="rgb_array"),
        "render",
        DRAWING,
    ),
    Check("gymnasium", "AsyncVectorEnv, started by spawn", _async_vector_env),
    Check("stable_baselines3", "check_env, warnings as errors", _sb3_check_env, "train"),
    Check("stable_baselines3", "DummyVecEnv and SubprocVecEnv", _sb3_vec_envs, "train"),
    Check("open_spiel", "random_sim_test, serialising", _random_sim_test, "openspiel"),
    Check("torchrl", "check_env_specs", _check_env_specs, "torchrl"),
    Check("torchrl", "StepCounter, SerialEnv and Collector", _torchrl_wrappers, "torchrl"),
    Check("torchrl", "its PettingZooWrapper", _torchrl_pettingzoo_wrapper, "torchrl"),
    Check("torchrl", "its GymEnv", _torchrl_gym_env, "torchrl"),
    Check("supersuit", "four wrappers of the box form", _supersuit_wrappers),
    Check("ray", "RLlib's PettingZooEnv", _rllib_pettingzoo_env, "rllib", RLLIB),
    Check("ray", "RLlib's check of environments", _check_multiagent_environments, "rllib", RLLIB),
    Check(
        "ray",
        "RLlib's check of environments, entities",
        lambda: _check_multiagent_environments(observation="entities"),
        "rllib",
        RLLIB,
    ),
    Check(
        "ray",
        "RLlib's check of environments, afterstates",
        lambda: _check_multiagent_environments(observation="afterstates"),
        "rllib",
        RLLIB,
    ),
)

TESTED = {
    "agilerl": "2.58.0",
    "gymnasium": "1.4.0",
    "minari": "0.5.4",
    "open_spiel": "2.0.2",
    "pettingzoo": "1.27.0",
    "ray": "2.60.0",
    "sb3_contrib": "2.9.2",
    "shimmy": "2.0.1",
    "skrl": "2.1.1",
    "stable_baselines3": "2.9.2",
    "supersuit": "3.11.0",
    "textarena": "0.7.4",
    "tianshou": "2.0.1",
    "torchrl": "0.14.1",
}
"""The versions that `make certify-all` tests with."""


def main(arguments: Sequence[str] | None = None, checks: Sequence[Check] = CHECKS) -> int:
    """Print the table; return 1 if a check failed, else 0."""
    parser = CommandParser("certify", __doc__)
    table = "also write the table to this file as JSON (default: none)"
    parser.add_argument("--json", type="output", metavar="FILE", help=table)
    options = parser.parse_args(arguments)
    print(f"tokaido_env {tokaido_env.__version__}, Python {sys.version.split()[0]}")
    verdicts = []
    for check in checks:
        verdicts.append(_verdict(check))
        print(verdicts[-1], flush=True)
    write_json(options.json, list(map(asdict, verdicts)))
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    passed, failed, missing = (outcomes[name] for name in ("passed", "FAILED", "not installed"))
    print(f"{passed} passed, {failed} failed, {missing} not installed")
    return 1 if failed else 0
