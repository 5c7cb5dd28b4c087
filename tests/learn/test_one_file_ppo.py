"""`agents/one_file_ppo.py`: advantages, rollouts and learning."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from tokaido_env import Batch
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.learn.network import deterministic, torch_threads
from tokaido_env.learn.training_script import Budget

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "agents"))

import one_file_ppo as ppo


def test_advantages__equal_the_signed_sums() -> None:
    rollout, rng = ppo.Rollout(), np.random.default_rng(0)
    for one in (rollout.value, rollout.reward):
        one.copy_(torch.as_tensor(rng.uniform(-1, 1, one.shape)))
    rollout.sign.copy_(torch.as_tensor(rng.choice([-1.0, 0.0, 1.0], rollout.sign.shape)))
    last = torch.as_tensor(rng.uniform(-1, 1, ppo.GAMES), dtype=torch.float32)
    found = rollout.advantages(last, 0.95)
    values = torch.cat([rollout.value, last[None]]).double().numpy()
    reward, sign = rollout.reward.double().numpy(), rollout.sign.double().numpy()
    for game in range(3):
        for t in range(ppo.STEPS):
            total, weight = 0.0, 1.0
            for k in range(t, ppo.STEPS):
                delta = reward[k, game] + sign[k, game] * values[k + 1, game] - values[k, game]
                total += weight * delta
                weight *= 0.95 * sign[k, game]
            assert found[t, game] == pytest.approx(total, abs=1e-4)


def test_collect__records_what_was_played() -> None:
    network, batch, rollout = ppo.Network(), Batch(ppo.GAMES), ppo.Rollout()
    other = Batch(ppo.GAMES)
    ppo.collect(network, batch, batch.reset(seed=3), rollout)
    turn = other.reset(seed=3)
    for t in range(ppo.STEPS):
        assert np.array_equal(rollout.seen[0][t].numpy(), turn.observation)
        assert np.array_equal(rollout.seen[1][t].numpy(), turn.mask.astype(bool))
        mover = turn.mover.copy()
        turn = other.step(rollout.action[t].numpy())
        ends = turn.terminated
        own = turn.reward[np.arange(ppo.GAMES), mover]
        assert np.array_equal(rollout.reward[t].numpy(), own)
        assert np.array_equal(rollout.sign[t].numpy() == 0, ends)
        same = turn.mover == mover
        assert np.array_equal(rollout.sign[t].numpy()[~ends] > 0, same[~ends])


@pytest.mark.slow
def test_train__learns_and_is_repeatable() -> None:
    with torch_threads(1), deterministic():  # other tests change the number of threads
        first, second, third = (
            ppo.train(Budget(updates * ppo.STEPS * ppo.GAMES), seed=2) for updates in (1, 1, 4)
        )
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
    agent = ppo.NetworkAgent(network=third)
    assert play_match(agent, make("random"), 200, 0).score > 0.6
