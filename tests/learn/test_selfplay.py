"""`selfplay`: precision, averaged weights, extra boards and numerical errors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.learn import run as runs, selfplay
from tokaido_env.learn.checkpoint import checkpoints
from tokaido_env.learn.network import PolicyNetwork, seed32
from tokaido_env.learn.rollouts import Rollout, play_games
from tokaido_env.learn.run_folder import extend
from tokaido_env.learn.settings import SelfPlaySettings
from tokaido_env.learn.settings_schema import RunError

TINY = SelfPlaySettings(seed=3, updates=1, games=16, minibatch_size=256, width=8, snapshot_every=3)


def train(folder: Path, settings: SelfPlaySettings) -> Policy:
    """Train a run to its end; return its last policy."""
    runs.begin(folder, settings)
    assert runs.train(folder)
    return Policy.load(folder / "last")


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_selfplay__trains_all_layers_in_any_precision(tmp_path: Path, precision: str) -> None:
    settings = replace(TINY, games=8, second_width=24, move_width=12, precision=precision)
    policy = train(tmp_path / "run", settings)
    assert policy.sizes == settings.sizes == LayerSizes(8, 24, 12, 8, 24)
    before = PolicyNetwork(settings.sizes).to_policy().tensors
    assert all((policy.tensors[name] != tensor).any() for name, tensor in before.items())


def test_selfplay__saves_averaged_weights(tmp_path: Path) -> None:
    tensors = {}
    for name, decay in (("plain", 0.0), ("averaged", 0.75)):
        for updates in (1, 2):
            settings = replace(TINY, updates=updates, ema_decay=decay)
            policy = train(tmp_path / f"{name} {updates}", settings)
            tensors[name, updates] = policy.tensors["trunk.0.weight"]
    torch.manual_seed(seed32(TINY.seed))
    mean = PolicyNetwork(TINY.sizes).to_policy().tensors["trunk.0.weight"]
    for updates in (1, 2):
        mean = 0.75 * mean + 0.25 * tensors["plain", updates]
        np.testing.assert_allclose(tensors["averaged", updates], mean, atol=1e-6)


def test_selfplay__adds_extra_boards_to_the_training_summary(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="extra_boards: expected see_board = no"):
        replace(TINY, board="family:train/3", extra_boards="shikoku")
    settings = replace(TINY, board="family:train/3", see_board="no", extra_boards="family:valid")
    policy = train(tmp_path / "run", settings)
    assert policy.training["board"]["splits"] == ["train", "valid"]


def test_extra_boards__are_played_in_turn() -> None:
    pool = replace(TINY, extra_boards="shikoku_ring,shikoku_art,shikoku").extra_pool
    rollout = play_games(PolicyNetwork(TINY.sizes), pool, 7, seed=1)
    games = np.unique(np.stack([rollout.decisions.game, rollout.decisions.board]), axis=1)
    assert games.tolist() == [[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 0, 1, 2, 0]]


def test_selfplay__stops_at_a_number_that_is_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path / "run", TINY)
    extend(tmp_path / "run", {"updates": 2})
    play = selfplay.play_games

    def with_nan(*args: Any) -> Rollout:
        rollout = play(*args)
        rollout.decisions.inputs[7, 3] = float("nan")
        return rollout

    newest = checkpoints(tmp_path / "run")[-1]
    with monkeypatch.context() as patch:
        patch.setattr(selfplay, "play_games", with_nan)
        message = (
            rf"after 1 updates, minibatch \d+: the loss is nan: .*checkpoint is .*{newest.name}"
        )
        with pytest.raises(RunError, match=message):
            runs.train(tmp_path / "run")
    assert checkpoints(tmp_path / "run") == [newest]
    assert runs.train(tmp_path / "run")
