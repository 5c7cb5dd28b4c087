"""The PPO update: targets, minibatches and losses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_rollouts import network_of

from tokaido_env.agents.policy import LayerSizes, PolicyAgent
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.learn.rollouts import play_games
from tokaido_env.learn.settings import SelfPlaySettings
from tokaido_env.learn.update import minibatches, targets_of, update

TINY = SelfPlaySettings(seed=3, updates=1, games=16, minibatch_size=256, width=8, snapshot_every=3)


def test_targets__are_for_the_viewer_of_each_node() -> None:
    pool = BoardPool.load("shikoku")
    rollout = play_games(network_of(pool), pool, 8, seed=1)
    targets = targets_of(rollout, replace(TINY, value_lambda=1.0))
    d, c = rollout.decisions, rollout.chances
    seat = np.concatenate([d.mover, c.viewer]).astype(int)
    game = np.concatenate([d.game, d.game[c.decision]])
    np.testing.assert_allclose(targets.values, rollout.results[game] * (1 - 2 * seat), atol=1e-6)
    ends = rollout.ends[game].astype(float)
    margin = (ends[:, :3].sum(axis=1) - ends[:, 3:6].sum(axis=1)) * (1 - 2 * seat)
    np.testing.assert_allclose(targets.auxiliary[:, 0].numpy() * 20, margin, atol=1e-4)
    own = np.where(seat[:, None] == 0, ends[:, :3], ends[:, 3:6])
    np.testing.assert_allclose(targets.auxiliary[:, 1:4].numpy() * 20, own, atol=1e-4)
    assert (targets.auxiliary[:, -1].numpy() == ends[:, 7]).all()
    assert (targets.auxiliary[:, 7] >= 0).all()
    assert targets.weights.numpy() == pytest.approx(1.0)


def test_targets__weigh_late_rounds_more_with_mean_1() -> None:
    pool = BoardPool.load("shikoku")
    rollout = play_games(network_of(pool), pool, 8, seed=1)
    weights = targets_of(
        rollout, replace(TINY, late_round_weight=3.0, late_round_from=10)
    ).weights.numpy()
    round_of_node = np.concatenate(
        [rollout.decisions.round, rollout.decisions.round[rollout.chances.decision]]
    )
    assert weights.mean() == pytest.approx(1.0)
    assert weights[round_of_node >= 10] == pytest.approx(3 * weights[round_of_node < 10].max())


def test_minibatches__have_each_row_once() -> None:
    generator = torch.Generator()
    generator.manual_seed(0)
    batches = list(minibatches(1000, 300, 128, generator))
    assert [len(batch.decisions) for batch in batches] == [128] * 7
    assert [len(batch.chances) for batch in batches] == [42] * 7
    for name in ("decisions", "chances"):
        rows = torch.cat([getattr(batch, name) for batch in batches])
        assert len(rows.unique()) == len(rows)


def test_update__lowers_the_value_loss() -> None:
    """A constant prediction has a loss of log 2."""
    pool = BoardPool.load("shikoku")
    network = network_of(pool)
    rollout = play_games(network, pool, 16, seed=1)
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    losses = [
        update(network, optimizer, rollout, TINY, torch.Generator()).value_loss for _ in range(3)
    ]
    assert losses[2] < 0.98 * losses[0] < 0.98 * np.log(2)


@pytest.mark.slow
def test_update__improves_the_policy() -> None:
    """After sixty optimizer steps the network beats the untrained one."""
    pool = BoardPool.load("shikoku")
    settings = replace(TINY, games=256, minibatch_size=1024, learning_rate=3e-3)
    network = network_of(pool, LayerSizes(32, 16, 8, 32, 16))
    with torch.no_grad():
        network.outlook["weight"].fill_(0.0)  # plays without the heuristic
    before = PolicyAgent.from_policy(network.to_policy(), "before", temperature=1.0)
    optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate)
    generator = torch.Generator()
    generator.manual_seed(0)
    for number in range(2):
        rollout = play_games(network, pool, settings.games, seed=1000 * number)
        losses = update(network, optimizer, rollout, settings, generator)
    assert losses.value_loss < 0.69  # log 2: a constant prediction
    after = PolicyAgent.from_policy(network.to_policy(), "after", temperature=1.0)
    assert play_match(after, before, 400, 1, "shikoku").score > 0.65
