"""`tokaido certify`: the conformance tests of every library that is installed.

Each check is the library's own test, run on our environment as its users get it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import io
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tokaido_env
from tokaido_env import files
from tokaido_env.cli import certify_rollouts as rollouts
from tokaido_env.cli.program import program
from tokaido_env.core.extras import how_to_install

# What PettingZoo warns of any dictionary with a mask that is not on a list of its own.
OF_DICTIONARIES = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "Action mask numpy array is all zeros",
)


@dataclass(frozen=True)
class Needs:
    """Modules besides the library, and the extra that brings them; "": called as on the index."""

    modules: tuple[str, ...] = ()
    extra: str = ""

    def missing(self) -> list[str]:
        """Return those that are not installed."""
        return [name for name in self.modules if importlib.util.find_spec(name) is None]


DRAWING = Needs(("resvg_py", "PIL", "matplotlib", "pygame"), "render")
OF_RLLIB = Needs(("ray", "tree", "lz4", "tensorboardX"), "rllib")  # that Ray's core does not bring


@dataclass(frozen=True)
class Check:
    """A conformance test.

    Attributes:
        package: the distribution that it comes from.
        name: what it is called there, and the form of the environment it runs on.
        run: runs it; raises if it fails, returns what it found ("" for nothing).
        needs: what it takes besides.
    """

    package: str
    name: str
    run: Callable[[], str]
    needs: Needs = Needs()


@dataclass(frozen=True)
class Verdict:
    """What came of a check: "passed", "FAILED" or "not installed"."""

    check: Check
    version: str
    outcome: str
    detail: str = ""


def certify(report: Callable[[Verdict], None] = lambda verdict: None) -> list[Verdict]:
    """Run all checks.

    Args:
        report: called with each verdict as it comes.
    """
    verdicts = []
    for check in CHECKS:
        verdict = _verdict(check)
        report(verdict)
        verdicts.append(verdict)
    return verdicts


def table_line(verdict: Verdict) -> str:
    """Return a verdict as a line of the table."""
    check = verdict.check
    package = f"{check.package} {verdict.version}".strip()
    return f"{verdict.outcome:<14} {package:<26} {check.name:<44} {verdict.detail}".rstrip()


def _verdict(check: Check) -> Verdict:
    try:
        version = importlib.metadata.version(check.package)
    except importlib.metadata.PackageNotFoundError:
        return Verdict(check, "", "not installed", _installing(check.package))
    if missing := check.needs.missing():
        extra = check.needs.extra
        command = how_to_install(extra) if extra else _installing(*missing)
        return Verdict(check, version, "not installed", f"needs {', '.join(missing)}: {command}")
    try:
        # Libraries tell and warn of much that is no verdict; checks turn warnings on themselves.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detail = check.run()
    except Exception as error:  # whatever a test of theirs raises is its verdict
        first = next(iter(str(error).splitlines()), "")
        detail = f"{type(error).__name__}: {first}"
        return Verdict(check, version, "FAILED", _with_version(check, version, detail))
    return Verdict(check, version, "passed", _with_version(check, version, detail))


def _installing(*packages: str) -> str:
    """Return the command that installs packages of an index, in the versions that were tested."""
    tested = ((name, TESTED.get(name)) for name in packages)
    named = (name.replace("_", "-") + (f"=={of}" if of else "") for name, of in tested)
    return f"pip install {' '.join(named)}"


def _with_version(check: Check, version: str, detail: str) -> str:
    """Return what is told of a check, and with which version it was tested if this is another."""
    tested = TESTED.get(check.package, version)
    other = "" if version == tested else f"(tested with {tested})"
    return f"{detail} {other}".strip()


def as_json(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a JSON list of objects, in which a row of the table is one object."""
    rows = [
        {
            "package": verdict.check.package,
            "version": verdict.version,
            "check": verdict.check.name,
            "outcome": verdict.outcome,
            "detail": verdict.detail,
        }
        for verdict in verdicts
    ]
    return json.dumps(rows, indent=1) + "\n"


def _api_test(**options: Any) -> str:
    from pettingzoo.test import api_test

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if options.get("observation") != "box":
            for warning in OF_DICTIONARIES:
                warnings.filterwarnings("ignore", warning, UserWarning)
        api_test(tokaido_env.env(**options), num_cycles=500)
        api_test(tokaido_env.raw_env(**options), num_cycles=500)
    return ""


def _seed_test() -> str:
    from pettingzoo.test import seed_test

    seed_test(tokaido_env.env, num_cycles=500)
    return ""


def _render_test() -> str:
    from pettingzoo.test import render_test

    def hurried(**options: Any) -> Any:
        env = tokaido_env.env(**options)
        env.metadata = env.metadata | {"render_fps": 1000}
        return env

    with _unseen():
        render_test(hurried)
    return ""


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Let windows open where nobody sees them."""
    key = "SDL_VIDEODRIVER"
    before = os.environ.get(key)
    os.environ[key] = "dummy"
    try:
        yield
    finally:
        del os.environ[key]
        if before is not None:
            os.environ[key] = before


def _performance_benchmark() -> str:
    from pettingzoo.test import performance_benchmark

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        performance_benchmark(tokaido_env.env())
    turns = re.search(r"([\d.]+) turns per second", printed.getvalue())
    return f"{float(turns[1]):,.0f} turns/s" if turns else printed.getvalue()


def _rllib_plays() -> str:
    from tokaido_env.rllib import TokaidoMultiAgentEnv

    env = TokaidoMultiAgentEnv({})
    rng, steps, since = np.random.default_rng(1), 0, time.process_time()
    for seed in range(5):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            chosen = {agent: rollouts.drawn(one["action_mask"], rng) for agent, one in seen.items()}
            seen, rewards, terminated, truncated, _ = env.step(chosen)
            over = terminated["__all__"] or truncated["__all__"]
            steps += 1
        if sum(rewards.values()):
            raise AssertionError("expected rewards that sum to zero")
    return rollouts.speed(steps, since)


def _gymnasium_check_env(*, rendered: bool, **options: Any) -> str:
    import gymnasium
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings(), _unseen():
        warnings.simplefilter("error")
        env = gymnasium.make("TokaidoDuo-v0", **options).unwrapped
        check_env(env, skip_render_check=not rendered)
    return ""


def _sb3_check_env() -> str:
    import gymnasium
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("TokaidoDuo-v0").unwrapped)
    return ""


def _random_sim_test() -> str:
    import pyspiel

    import tokaido_env.openspiel

    pyspiel.random_sim_test(
        pyspiel.load_game(tokaido_env.openspiel.SHORT_NAME),
        num_sims=3,
        serialize=True,
        verbose=False,
    )
    return ""


def _check_env_specs(**options: Any) -> str:
    from torchrl.envs.utils import check_env_specs

    from tokaido_env.torchrl import TokaidoDuoEnv

    with warnings.catch_warnings(), _unseen():
        warnings.simplefilter("error")
        check_env_specs(TokaidoDuoEnv(16, **options))
    env = TokaidoDuoEnv(1024, **options)
    env.set_seed(1)
    env.rollout(2)
    since = time.process_time()
    env.rollout(_STEPS, break_when_any_done=False)
    return rollouts.speed(1024 * _STEPS, since)


def _check_multiagent_environments(**options: Any) -> str:
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments

    from tokaido_env.rllib import TokaidoMultiAgentEnv

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_multiagent_environments(TokaidoMultiAgentEnv(options))
    return ""


_STEPS = 60  # of a rollout that is timed

CHECKS = (
    Check("pettingzoo", "api_test, dictionaries", _api_test),
    Check(
        "pettingzoo",
        "api_test, boxes, warnings as errors",
        lambda: _api_test(observation="box"),
    ),
    Check("pettingzoo", "api_test, entities", lambda: _api_test(observation="entities")),
    Check("pettingzoo", "seed_test", _seed_test),
    Check("pettingzoo", "render_test", _render_test, DRAWING),
    Check("pettingzoo", "performance_benchmark", _performance_benchmark),
    Check(
        "gymnasium",
        "check_env, warnings as errors",
        lambda: _gymnasium_check_env(rendered=False),
    ),
    Check(
        "gymnasium",
        "check_env, entities, warnings as errors",
        lambda: _gymnasium_check_env(rendered=False, observation="entities"),
    ),
    Check(
        "gymnasium",
        "check_env, uint8, rendered in all modes",
        lambda: _gymnasium_check_env(rendered=True, observation="uint8", render_mode="rgb_array"),
        DRAWING,
    ),
    Check("gymnasium", "many games in one process", rollouts.gymnasium_rollout),
    Check("stable_baselines3", "check_env, warnings as errors", _sb3_check_env),
    Check("sb3_contrib", "MaskablePPO learns", rollouts.sb3_learns),
    Check("open_spiel", "random_sim_test, serialising", _random_sim_test),
    Check("open_spiel", "playouts", rollouts.openspiel_playouts),
    Check("torchrl", "check_env_specs; a rollout of 1,024 games", _check_env_specs),
    Check("ray", "RLlib's check of environments", _check_multiagent_environments, OF_RLLIB),
    Check(
        "ray",
        "RLlib's check of environments, entities",
        lambda: _check_multiagent_environments(observation="entities"),
        OF_RLLIB,
    ),
    Check("ray", "RLlib's form of the environment plays", _rllib_plays, OF_RLLIB),
    Check("tianshou", "its collector plays both seats", rollouts.tianshou_collects),
    Check(
        "agilerl",
        "its DQN plays and learns with masks",
        rollouts.agilerl_learns,
        Needs(("peft",)),
    ),
    Check("skrl", "its wrapper plays", rollouts.skrl_wraps),
    Check("supersuit", "api_test of stacked frames", rollouts.supersuit_wraps),
    Check(
        "shimmy",
        "plays the OpenSpiel game",
        rollouts.shimmy_plays,
        Needs(("pyspiel",), "openspiel"),
    ),
    Check("minari", "export and load", rollouts.minari_exports, Needs(("h5py",), "minari")),
    Check("textarena", "its loop by a stand-in", rollouts.textarena_plays),
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
"""The versions that all of this was run with, by `make certify-all`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a check failed, else 0."""
    parser = argparse.ArgumentParser(
        program("certify"), description="Run the conformance tests of all installed libraries."
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table to a file, too")
    options = parser.parse_args(arguments)
    print(f"tokaido_env {tokaido_env.__version__}, Python {sys.version.split()[0]}")
    verdicts = certify(lambda verdict: print(table_line(verdict), flush=True))
    if options.json:
        files.write_text(options.json, as_json(verdicts))
    failed = sum(verdict.outcome == "FAILED" for verdict in verdicts)
    missing = sum(verdict.outcome == "not installed" for verdict in verdicts)
    print(f"{len(verdicts) - failed - missing} passed, {failed} failed, {missing} not installed")
    return 1 if failed else 0
