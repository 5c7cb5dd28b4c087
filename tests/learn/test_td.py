"""TD(λ): rollouts against the games played again, targets against a recursion, learning."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import random_policy

from tokaido_env import Batch
from tokaido_env.agents.policy import LayerSizes, Policy, PolicyAgent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.features.afterstates import END
from tokaido_env.learn import run as runs, td
from tokaido_env.learn.run import checkpoints
from tokaido_env.learn.run_folder import extended
from tokaido_env.learn.settings import RunError, TdSettings

TINY = TdSettings(seed=3, updates=1, games=16, minibatch_size=256, width=8, snapshot_every=3)


def train(folder: Path, settings: TdSettings) -> Policy:
    """Train a run to its end; return its last policy."""
    runs.begin(folder, settings)
    assert runs.train(folder)
    return Policy.load(folder / "last")


def test_play_games__records_the_afterstates_of_what_was_played() -> None:
    pool = BoardPool.load("family:train/4")
    policy = random_policy()
    rollout = td.play_games(policy.network(), pool, 6, seed=5, temperature=0.1)
    agent = PolicyAgent.from_policy(policy, "itself", temperature=1.6, endings="network")
    batch = Batch(6, pool, observation=None, autoreset=False)
    batch.reset(seed=5)
    row = 0
    while not batch.over.all():
        running = np.flatnonzero(~batch.over)
        states, legal = batch.states[running], batch.legal[running]
        actions = agent.act(batch.boards_of(running), states, legal, batch.keys(running))
        after = batch.afterstates(running, None)
        taken = np.flatnonzero(after.action == actions[after.game])
        rows = slice(row, row + len(running))
        assert (rollout.game[rows] == running).all()
        assert (rollout.states[rows] == after.states[taken]).all()
        ended = after.kind[taken] == END
        assert (rollout.viewer[rows] == after.viewer[taken])[~ended].all()
        results = after.result[taken] * (1 - 2 * states["player"])
        assert (rollout.value[rows] == results)[ended].all()
        batch.advance(running, actions)
        row += len(running)
    assert row == len(rollout.game)
    assert (rollout.which == batch.episode_info["board"]).all()
    assert (rollout.results == batch.rewards(batch.all_games)[:, 0]).all()


@pytest.mark.parametrize("value_lambda", [0.0, 0.7, 1.0])
def test_targets__follow_the_recursion(value_lambda: float) -> None:
    rng = np.random.default_rng(1)
    game = np.array([0, 1, 0, 2, 1, 0, 2])
    value = rng.uniform(-1, 1, len(game)).astype(np.float32)
    viewer = rng.integers(2, size=len(game)).astype(np.int8)
    results = np.array([1, -1, 0], np.float32)
    nothing: Any = np.zeros(len(game))
    rollout = td.Rollout(game, nothing, viewer, value, np.zeros(3, np.int64), results)
    found = td.targets_of(rollout, value_lambda)
    for i, one in enumerate(game):
        later = [float(value[j]) for j in range(i + 1, len(game)) if game[j] == one]
        returns = [*later, float(results[one])]  # n-step returns
        expected = sum(
            (1 - value_lambda) * value_lambda**n * each for n, each in enumerate(returns[:-1])
        )
        expected += value_lambda ** (len(returns) - 1) * returns[-1]
        assert found[i] == pytest.approx(expected * (1 - 2 * viewer[i]), abs=1e-6)


def test_td__learns_to_beat_random(tmp_path: Path) -> None:
    settings = replace(TINY, updates=6, games=128, width=32, learning_rate=3e-3)
    policy = train(tmp_path / "run", settings)
    assert policy.sizes == settings.sizes == LayerSizes(32, 64)
    agent = PolicyAgent.from_policy(policy, "td", endings="network")
    assert play_match(agent, make("random"), 100, 1).score > 0.8


def test_td__stops_at_a_number_that_is_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path / "run", TINY)
    longer = extended(tmp_path / "run", {"updates": 2})
    newest = checkpoints(tmp_path / "run")[-1]
    targets_of = td.targets_of
    with monkeypatch.context() as patch:
        patch.setattr(td, "targets_of", lambda *args: targets_of(*args) * np.float32("nan"))
        message = "after 1 updates, minibatch 1: the loss is nan: "
        with pytest.raises(RunError, match=message):
            runs.train(tmp_path / "run", settings=longer)
    assert checkpoints(tmp_path / "run")[-1] == newest
    assert runs.train(tmp_path / "run")


def test_td__adds_extra_boards_to_the_training_summary(tmp_path: Path) -> None:
    settings = replace(TINY, board="family:train/3", extra_boards="family:valid")
    policy = train(tmp_path / "run", settings)
    assert policy.training["board"]["splits"] == ["train", "valid"]
    other = train(tmp_path / "other", replace(TINY, extra_boards="shikoku_ring,family:2000001"))
    assert other.training["board"]["splits"] == ["test"]


def test_extra_boards__are_played_in_turn() -> None:
    pool = replace(TINY, extra_boards="shikoku_ring,shikoku_art,shikoku").extra_pool
    assert pool is not None
    rollout = td.play_games(random_policy().network(), pool, 7, seed=1, temperature=0.1)
    assert rollout.which.tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_advance__plays_other_games_in_each_update_and_lowers_the_learning_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts, rates = [], []
    play_games, take_step = td.play_games, td.take_step

    def keep(*arguments: Any) -> td.Rollout:
        rollouts.append(play_games(*arguments))
        return rollouts[-1]

    def record(optimizer: Any, *arguments: Any) -> None:
        rates.append(optimizer.param_groups[0]["lr"])
        take_step(optimizer, *arguments)

    monkeypatch.setattr(td, "play_games", keep)
    monkeypatch.setattr(td, "take_step", record)
    settings = replace(TINY, updates=3, final_learning_rate=0.5)
    train(tmp_path / "run", settings)
    assert len({rollout.states[0].tobytes() for rollout in rollouts}) == 3
    shares = dict.fromkeys(rate / settings.learning_rate for rate in rates)
    assert [*shares] == pytest.approx([1, 2 / 3, 0.5])
