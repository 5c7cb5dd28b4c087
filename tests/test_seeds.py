"""Seeds of many games: each seed has games of its own, and each reset continues, in every API."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from short_run import SHORT
from test_recipes import ROOT, SMALL, TRACKED

from tokaido_env import Batch, game_seed
from tokaido_env.core.rng import episode_seed

N, SEEDS = 256, range(5)

Reset = Callable[[], Any]
Started = list[tuple[int, bytes]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Seed and first position of each game that a call starts, in any API."""
    games: Started = []
    real = Batch.advance_to_decision

    def advance_to_decision(batch: Batch, some: Any) -> None:
        real(batch, some)
        seeds, states = batch.episode_info["seed"][some].tolist(), batch.states[some]
        games.extend(zip(seeds, map(bytes, states), strict=True))

    monkeypatch.setattr(Batch, "advance_to_decision", advance_to_decision)
    return games


def batch(seed: int) -> Reset:
    games = Batch(N, observation=None)
    games.reset(seed)
    return games.reset


def batch_in_parts(seed: int) -> Reset:
    games = Batch(N, observation=None)
    for part in np.array_split(np.arange(N), 3):
        games.begin(part, seed)
    return games.reset


def gymnasium_vector(seed: int) -> Reset:
    envs = gymnasium.make_vec("tokaido_env:TokaidoDuo-v0", num_envs=N, opponent="random")
    envs.reset(seed=seed)
    return envs.reset


def sb3(seed: int) -> Reset:
    env = pytest.importorskip("tokaido_env.sb3").TokaidoVecEnv(N, "random", seed)
    env.reset()
    return env.reset  # type: ignore[no-any-return]


def torchrl(seed: int) -> Reset:
    module = pytest.importorskip("tokaido_env.torchrl", exc_type=ImportError)
    env = module.TokaidoDuoEnv(N)
    env.set_seed(seed)
    env.reset()
    return env.reset  # type: ignore[no-any-return]


APIS = (batch, batch_in_parts, gymnasium_vector, sb3, torchrl)


@pytest.mark.parametrize("api", APIS)
def test_seeds__have_games_of_their_own_and_resets_continue(
    api: Callable[[int], Reset], started: Started
) -> None:
    resets = [api(seed) for seed in SEEDS]
    expected = [game_seed(seed, game) for seed in SEEDS for game in range(N)]
    assert [seed for seed, _ in started] == expected
    for reset in resets:
        reset()
    assert [seed for seed, _ in started[len(expected) :]] == [
        episode_seed(seed, 1) for seed in expected
    ]
    games = 2 * len(expected)
    assert len({seed for seed, _ in started}) == games == len(started)
    assert len({position for _, position in started}) > 0.99 * games  # few begin alike


# Training


def run(method: str, seed: int, folder: Path) -> None:
    """Train a run without matches."""
    runs = pytest.importorskip("tokaido_env.learn.run")
    changes: dict[str, Any] = {"updates": 2}
    if method == "alphazero":
        changes = {"rounds": 2, "promotion_games": 0}
    runs.begin(folder, replace(SHORT[method], seed=seed, rate_every=0, **changes))
    assert runs.train(folder)


def train_by(script: str, seed: int, folder: Path) -> None:
    """Train by a script that one copies, with small constants."""
    pytest.importorskip(TRACKED[script][0])
    sys.path.insert(0, str((ROOT / script).parent))
    module: Any = importlib.import_module(Path(script).stem)
    budget = pytest.importorskip("tokaido_env.learn.training_script").Budget(1000)
    with pytest.MonkeyPatch.context() as patch:
        for name in SMALL.keys() & vars(module).keys():
            patch.setattr(module, name, SMALL[name])
        module.train(budget, seed, track="raw")


TRAININGS = [
    *(pytest.param(partial(run, method), id=method) for method in SHORT),
    *(
        pytest.param(partial(train_by, script), id=Path(script).stem, marks=pytest.mark.slow)
        for script in TRACKED
    ),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TorchRL's own classes
@pytest.mark.parametrize("training", TRAININGS)
def test_trainings__of_neighbouring_seeds_have_no_game_in_common(
    training: Callable[[int, Path], None],
    started: Started,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All seeds of both runs differ, also those of their updates."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    seeds: list[set[int]] = []
    for seed in (0, 1):
        started.clear()
        training(seed, tmp_path / str(seed))
        seeds.append({seed for seed, _ in started})
        assert len(seeds[-1]) == len(started) > 7
    assert not seeds[0] & seeds[1]
