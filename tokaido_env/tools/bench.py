"""`python -m tokaido_env bench`: how fast everything is on this machine, beside what it should be.

Rows that are compared run in turn within one run, so that what slows the machine slows all of them.
The first run is thrown away; told are the median of the others and their spread.
"""

from __future__ import annotations

import copy
import gc
import importlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

import tokaido_env
from tokaido_env.batch import Batch
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import STATE
from tokaido_env.files import write_text

GAMES = 4096
_SEARCHED = 64  # games
PACKAGES = (
    *("numpy", "numba", "gymnasium", "pettingzoo", "stable_baselines3", "sb3_contrib", "torch"),
    *("open_spiel", "pgx"),
)


@dataclass(frozen=True)
class Row:
    """Something to measure.

    Attributes:
        key: short name, as `--only` takes it.
        what: what is measured.
        unit: of the figure.
        measure: measures once.
        budget: what the figure should reach, None for a row that is told for comparison.
        at_most: the budget is an upper bound; else more is better.
        threads: how many kernels may use.
        needs: modules without which the row is left out.
    """

    key: str
    what: str
    unit: str
    measure: Callable[[], float]
    budget: float | None = None
    at_most: bool = False
    threads: int = 1
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ratio:
    """The figures of one row divided by those of another, run by run."""

    key: str
    what: str
    over: str
    under: str
    budget: float | None = None
    unit: str = "×"
    at_most: bool = False
    threads: int = 1


@dataclass(frozen=True)
class Result:
    """The figures of a row or ratio, one for each run."""

    row: Row | Ratio
    figures: list[float]

    @property
    def median(self) -> float:
        """The median figure."""
        return statistics.median(self.figures)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the budget; None without one."""
        budget = self.row.budget
        if budget is None:
            return None
        return self.median <= budget if self.row.at_most else self.median >= budget

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types."""
        names = ("key", "what", "unit", "threads", "budget", "at_most")
        row = {name: getattr(self.row, name) for name in names}
        return row | {"median": self.median, "figures": self.figures, "met": self.met}


# What is measured


def random_play(observation: str | None, *, copied: bool = False) -> Callable[[], float]:
    """Return a measure of random play of a batch, one kernel call a ply, in decisions/s."""

    @cache
    def begun() -> Batch:
        batch = Batch(GAMES, observation=observation, copy=copied)  # type: ignore[arg-type]
        batch.reset(seed=0)
        for _ in range(400):  # games at all stages
            batch.play("random")
        return batch

    def measure() -> float:
        batch = begun()
        return GAMES * _rate(lambda: batch.play("random"))

    return measure


def searching(spec: str) -> Callable[[], float]:
    """Return a measure of an agent in positions of games by `greedy`.

    In simulations/s, or in decisions/s if it does not search.
    """

    @cache
    def begun() -> tuple[Any, Batch, npt.NDArray[np.int64]]:
        from tokaido_env.agents import make

        agent = make(spec)
        games = _SEARCHED if agent.cost else GAMES
        batch = Batch(games, observation=None, autoreset=False)
        batch.reset(seed=0)
        for _ in range(60):
            batch.play("greedy")
        several = batch.legal & (batch.legal - np.uint64(1)) != 0  # one action is not searched
        return agent, batch, np.flatnonzero(several)

    def measure() -> float:
        agent, batch, games = begun()
        states, legal, keys = batch.states[games], batch.legal[games], batch.keys(games)
        began = time.perf_counter()
        agent.act(batch.boards, states, legal, keys)
        return len(games) * int(getattr(agent, "sims", 1)) / (time.perf_counter() - began)

    return measure


def stepping() -> Callable[[], float]:
    """Return a measure of `step` with actions chosen outside, checked, in decisions/s."""

    @cache
    def begun() -> tuple[Batch, Any]:
        batch = Batch(GAMES, observation=None, copy=False)
        return batch, batch.reset(seed=0)

    def measure() -> float:
        batch, turn = begun()
        seconds = 0.0
        plies = 100
        for _ in range(plies):
            actions = turn.mask.argmax(axis=1)
            began = time.perf_counter()
            batch.step(actions)
            seconds += time.perf_counter() - began
        return GAMES * plies / seconds

    return measure


def game_play() -> float:
    """Play whole games through `Game` at random; return decisions/s."""
    rng = random.Random(0)
    decisions, began = 0, time.perf_counter()
    for seed in range(50):
        game = tokaido_env.Game(seed=seed)
        while not game.is_over:
            actions = game.legal_actions()
            game.play(actions[int(rng.random() * len(actions))])
            decisions += 1
    return decisions / (time.perf_counter() - began)


def aec_play(make: Callable[[], Any], games: int) -> Callable[[], float]:
    """Return a measure of a PettingZoo loop: `last()`, a legal action of the mask, `step()`."""

    def measure() -> float:
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
        return steps / (time.perf_counter() - began)

    return measure


def connect_four() -> Any:
    """Make PettingZoo's connect four."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    from pettingzoo.classic import connect_four_v3

    return connect_four_v3.env()


def deep_copies() -> float:
    """Copy a running `env()`; return microseconds a copy."""
    env = tokaido_env.env()
    env.reset(seed=0)
    for _ in range(50):
        env.step(env.game.legal_actions()[0])
    return 1e6 / _rate(lambda: copy.deepcopy(env))


def gym_play() -> float:
    """Play whole episodes of `TokaidoDuo-v0` against the random bot; return steps/s."""
    import gymnasium

    env = gymnasium.make("TokaidoDuo-v0", opponent="random")
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
    return steps / (time.perf_counter() - began)


def open_spiel_play(name: str, *, tensor: bool) -> Callable[[], float]:
    """Return a measure of random play of an OpenSpiel game from Python, in decisions/s."""

    def measure() -> float:
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
        return decisions / (time.perf_counter() - began)

    return measure


def pgx_play(name: str) -> Callable[[], float]:
    """Return a measure of random play of a Pgx game, `GAMES` at once, in decisions/s."""

    @cache
    def begun() -> tuple[Any, Any]:
        import jax
        import pgx
        from pgx.experimental import auto_reset

        env = pgx.make(name)
        begin, step = jax.vmap(env.init), jax.vmap(auto_reset(env.step, env.init))

        def ply(state: Any, key: Any) -> Any:
            choose, go_on = jax.random.split(key)
            odds = jax.numpy.where(state.legal_action_mask, 0.0, -jax.numpy.inf)
            actions = jax.random.categorical(choose, odds, axis=-1)
            return step(state, actions, jax.random.split(go_on, GAMES))

        return jax.jit(ply), jax.jit(begin)(jax.random.split(jax.random.PRNGKey(0), GAMES))

    def measure() -> float:
        import jax

        ply, state = begun()
        keys = jax.random.split(jax.random.PRNGKey(1), 30)
        began = time.perf_counter()
        for key in keys:
            state = ply(state, key)
        state.current_player.block_until_ready()
        return GAMES * len(keys) / (time.perf_counter() - began)

    return measure


class Learning:
    """Speeds of MaskablePPO in a process of its own, where PyTorch's threads can be set.

    Each process measures all of `LEARNERS` in turn; their figures are handed out one by one.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[float]] = {name: [] for name in LEARNERS}

    def of(self, name: str) -> Callable[[], float]:
        """Return a measure of one of `LEARNERS`, in steps of the learner/s."""

        def measure() -> float:
            if not self._waiting[name]:
                for each, figure in _child(
                    "from tokaido_env.tools.bench import learn; learn()"
                ).items():
                    self._waiting[each].append(figure)
            return self._waiting[name].pop(0)

        return measure


LEARNERS = ("free", "kernel", "pool")
_OPENING = 30  # decisions, so that as many actions are legal as in games


def learn() -> None:
    """Train on each kind of environment in turn and print the steps/s as JSON."""
    import torch

    from tokaido_env.agents.learn.settings import Settings

    torch.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    settings = Settings()
    models = {name: _learner(name, settings) for name in LEARNERS}
    steps = settings.games * settings.rollout
    seconds = dict.fromkeys(LEARNERS, 0.0)
    for turn, name in itertools.product(range(4), LEARNERS):
        began = time.perf_counter()
        models[name].learn(steps, reset_num_timesteps=False)
        if turn > 0:
            seconds[name] += time.perf_counter() - began
    print(json.dumps({name: 3 * steps / seconds[name] for name in LEARNERS}))


def _learner(name: str, settings: Any) -> Any:
    """Make a learner as `train.py` does, with opponents of a kind."""
    from tokaido_env.agents.learn.ppo_policy import learner_env, new_learner

    env = learner_env(settings, "greedy")
    if name == "free":
        env = _free(env)
    model = new_learner(env, settings)
    if name == "pool":
        env.assign(_pool(model))
    return model


def _free(env: Any) -> Any:
    """Return an environment whose steps cost nothing: it tells the same positions all the time."""
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(_OPENING):
        env.step(np.where(env.action_masks(), rng.random((env.num_envs, N_ACTIONS)), -1).argmax(1))
    seen, masks = env.observe(), env.action_masks()
    infos: list[dict[str, Any]] = [{} for _ in seen]
    told = np.zeros(len(seen), np.float32), np.zeros(len(seen), np.bool_), infos
    env.reset = lambda: seen
    env.observe = lambda: seen
    env.step_wait = lambda: (seen, *told)
    env.action_masks = lambda: masks
    return env


def _pool(model: Any, size: int = 4) -> list[Any]:
    """Return opponents with networks of the learner's size."""
    from tokaido_env.agents.learn.ppo_policy import policy_of
    from tokaido_env.agents.players.policy import Policy, PolicyAgent

    policy: Policy = policy_of(model)
    return [PolicyAgent.of(policy, f"network {i}", 1.0) for i in range(size)]


def import_seconds() -> float:
    """Import the package in a new process; return seconds."""
    return float(_child(_TIMED.format("import tokaido_env")))


def first_decision(*, cold: bool) -> Callable[[], float]:
    """Return a measure of the first decision of a new process, imports included, in seconds."""
    script = _TIMED.format(
        "from tokaido_env import Game; game = Game(seed=0); game.play(game.legal_actions()[0])"
    )

    def measure() -> float:
        if not cold:
            return float(_child(script))
        with tempfile.TemporaryDirectory() as folder:
            return float(_child(script, NUMBA_CACHE_DIR=folder))

    return measure


_TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"


def _child(script: str, **environment: str) -> Any:
    """Run Python in a new process; return what it printed, JSON."""
    settings = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_NUM_THREADS": "1"} | environment
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


def _rate(action: Callable[[], Any], seconds: float = 0.4) -> float:
    """Return how often an action can be done in a second."""
    count, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        action()
        count += 1
    return count / elapsed


_learning = Learning()
_POLICIES = ("safetensors",)
_LEARNING = ("stable_baselines3", "sb3_contrib", "torch", "safetensors")
_SPEED = "decisions/s"

ROWS = (
    Row("random.1", "random play, int8 masks", _SPEED, random_play(None), 18e6),
    Row("random.2", "random play, int8 masks", _SPEED, random_play(None), 33e6, threads=2),
    Row("float32.1", "… and float32 observations", _SPEED, random_play("float32"), 7e6),
    Row("float32.2", "… and float32 observations", _SPEED, random_play("float32"), 13e6, threads=2),
    Row("uint8.1", "… and uint8 observations", _SPEED, random_play("uint8")),
    Row("uint8.2", "… and uint8 observations", _SPEED, random_play("uint8"), threads=2),
    Row(
        "copied.1",
        "… float32, in arrays of one's own (the default)",
        _SPEED,
        random_play("float32", copied=True),
    ),
    Row("step.1", "`Batch.step` alone, checked", _SPEED, stepping()),
    Row("game", "`Game` from Python, random play", _SPEED, game_play, 150e3),
    Row("env", "`env()`: last, mask, step", _SPEED, aec_play(tokaido_env.env, 50), 100e3),
    Row(
        "connect_four",
        "PettingZoo connect_four_v3, the same loop",
        _SPEED,
        aec_play(connect_four, 40),
        needs=("pygame",),
    ),
    Row("gym", "Gymnasium `TokaidoDuo-v0` against random", "steps/s", gym_play),
    Row("deepcopy", "deepcopy of a running `env()`", "µs", deep_copies, 50.0, at_most=True),
    Row(
        "pyspiel.tokaido",
        "OpenSpiel `tokaido_duo`, random play",
        _SPEED,
        open_spiel_play("tokaido_duo", tensor=False),
        needs=("pyspiel",),
    ),
    Row(
        "pyspiel.backgammon",
        "OpenSpiel backgammon (C++), random play",
        _SPEED,
        open_spiel_play("backgammon", tensor=False),
        needs=("pyspiel",),
    ),
    Row(
        "pyspiel.tensor",
        "OpenSpiel backgammon (C++), with tensor",
        _SPEED,
        open_spiel_play("backgammon", tensor=True),
        needs=("pyspiel",),
    ),
    Row(
        "pgx.connect_four",
        "Pgx connect_four, random play, all cores",
        _SPEED,
        pgx_play("connect_four"),
        threads=2,
        needs=("pgx",),
    ),
    Row(
        "pgx.backgammon",
        "Pgx backgammon, random play, all cores",
        _SPEED,
        pgx_play("backgammon"),
        threads=2,
        needs=("pgx",),
    ),
    Row(
        "ppo.free",
        "MaskablePPO, environment that costs nothing",
        "steps/s",
        _learning.of("free"),
        threads=2,
        needs=_LEARNING,
    ),
    Row(
        "ppo.kernel",
        "MaskablePPO, opponents in the kernel (greedy)",
        "steps/s",
        _learning.of("kernel"),
        threads=2,
        needs=_LEARNING,
    ),
    Row(
        "ppo.pool",
        "MaskablePPO, a pool of four networks",
        "steps/s",
        _learning.of("pool"),
        threads=2,
        needs=_LEARNING,
    ),
    Row(
        "mcts.4000.1",
        "`mcts:sims=4000`, evaluated leaves",
        "simulations/s",
        searching("mcts:sims=4000"),
        1.5e6,
    ),
    Row(
        "mcts.4000.2",
        "`mcts:sims=4000`, evaluated leaves",
        "simulations/s",
        searching("mcts:sims=4000"),
        threads=2,
    ),
    Row(
        "mcts.full.1",
        "`mcts:sims=400,rollout=full`",
        "simulations/s",
        searching("mcts:sims=400,rollout=full"),
        80e3,
    ),
    Row(
        "champion.1",
        "`champion`, one forward pass",
        "decisions/s",
        searching("champion"),
        threads=1,
        needs=_POLICIES,
    ),
    Row(
        "champion.2",
        "`champion`, one forward pass",
        "decisions/s",
        searching("champion"),
        threads=2,
        needs=_POLICIES,
    ),
    Row(
        "champion.400.1",
        "`champion:sims=400`",
        "simulations/s",
        searching("champion:sims=400"),
        threads=1,
        needs=_POLICIES,
    ),
    Row(
        "champion.400.2",
        "`champion:sims=400`",
        "simulations/s",
        searching("champion:sims=400"),
        threads=2,
        needs=_POLICIES,
    ),
    Row("import", "`import tokaido_env`", "s", import_seconds, 0.4, at_most=True),
    Row("first.warm", "first decision of a process", "s", first_decision(cold=False), 0.8, True),
    Row(
        "first.cold",
        "… with an empty kernel cache",
        "s",
        first_decision(cold=True),
        12.0,
        at_most=True,
    ),
    Row("state", "one state", "bytes", lambda: float(STATE.itemsize), 128.0, at_most=True),
)
RATIOS = (
    Ratio(
        "env / connect_four", "`env()` to PettingZoo connect_four_v3", "env", "connect_four", 8.0
    ),
    Ratio("ppo.kernel / free", "learner with kernel opponents", "ppo.kernel", "ppo.free", 0.95),
    Ratio("ppo.pool / free", "learner with a pool of networks", "ppo.pool", "ppo.free"),
)


def run(
    runs: int, only: Sequence[str] | None, report: Callable[[str], None] = lambda told: None
) -> list[Result]:
    """Measure rows in turn, once to throw away and then `runs` times.

    Args:
        runs: how often.
        only: keys, or beginnings of keys; None for all.
        report: called with what is going on.
    """
    rows = [row for row in ROWS if _wanted(row, only)]
    figures: dict[str, list[float]] = {row.key: [] for row in rows}
    most = numba.config.NUMBA_NUM_THREADS
    for turn in range(runs + 1):
        for row in rows:
            report(f"run {turn} of {runs}: {row.key}")
            numba.set_num_threads(min(row.threads, most))
            # What other rows have loaded is not for this one's garbage collections to look through.
            gc.collect()
            gc.freeze()
            figure = row.measure()
            if turn > 0:
                figures[row.key].append(figure)
    gc.unfreeze()
    numba.set_num_threads(most)
    results = [Result(row, figures[row.key]) for row in rows]
    for ratio in RATIOS:
        if {ratio.over, ratio.under} <= figures.keys():
            pairs = zip(figures[ratio.over], figures[ratio.under], strict=True)
            results.append(Result(ratio, [over / under for over, under in pairs]))
    return results


def _wanted(row: Row, only: Sequence[str] | None) -> bool:
    """Return whether a row was asked for and can be measured here."""
    asked = only is None or any(row.key.startswith(key) for key in only)
    there = all(importlib.util.find_spec(module) for module in row.needs)
    return asked and there and row.threads <= numba.config.NUMBA_NUM_THREADS


def machine() -> dict[str, Any]:
    """Return what the figures depend on: processor, cores, versions."""
    versions = {"python": platform.python_version(), "tokaido_env": tokaido_env.__version__}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "games": GAMES,
        "versions": versions,
    }


def _processor() -> str:
    """Return the processor's name, which Python itself does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def table(results: Sequence[Result]) -> str:
    """Return results as a Markdown table."""
    lines = [
        "| what | threads | median | spread | unit | budget | |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        row = result.row
        low, high = _figure(min(result.figures)), _figure(max(result.figures))
        bound = "≤ " if row.at_most else "≥ "
        budget = "" if row.budget is None else bound + _figure(row.budget)
        met = {None: "", True: "met", False: "missed"}[result.met]
        cells = (row.what, row.threads, _figure(result.median), f"{low} – {high}", row.unit)
        lines.append("| " + " | ".join(map(str, (*cells, budget, met))) + " |")
    return "\n".join(lines)


def _figure(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main(runs: int = 5, only: Sequence[str] | None = None, json_file: str | None = None) -> int:
    """Measure, print the table, write the figures; return the exit status."""
    if runs < 1:
        print(f"bench: --runs: expected 1 or more, got {runs}", file=sys.stderr)
        return 1
    if only and not any(_wanted(row, only) for row in ROWS):
        known = ", ".join(row.key for row in ROWS)
        print(f"bench: --only: expected one of {known}, got {' '.join(only)}", file=sys.stderr)
        return 1
    here = machine()
    date = datetime.now(UTC).date().isoformat()
    results = run(runs, only, lambda told: print(f"\r{told:<60}", end="", file=sys.stderr))
    print(file=sys.stderr)
    print(f"{date}, {here['processor']}, {here['cores']} cores, {here['system']}")
    print(", ".join(f"{name} {version}" for name, version in here["versions"].items()))
    print(f"batches of {GAMES} games; median of {runs} runs after one thrown away\n")
    print(table(results))
    if json_file is not None:
        told: dict[str, Any] = {"version": 1, "date": date, "runs": runs, "machine": here}
        told["rows"] = [result.to_dict() for result in results]
        write_text(Path(json_file), json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return 0
