"""The learner as the trainer has it: what its games show it, and what it exports."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tokaido_env.agents.learn.ppo_policy import (
    N_SEEN,
    LearnerEnv,
    learner_env,
    network_of,
    new_learner,
    policy_of,
)
from tokaido_env.agents.learn.settings import Settings
from tokaido_env.agents.players.inputs import N_INPUTS, read_positions
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.sb3 import TokaidoVecEnv

SETTINGS = Settings(games=8, rollout=8, minibatch=64, width=32, slots=2, agents="greedy")


@pytest.fixture(scope="module")
def env() -> LearnerEnv:
    made = learner_env(SETTINGS, ["random", "greedy"])
    assert isinstance(made, LearnerEnv)
    return made


def walk(env: TokaidoVecEnv, steps: int) -> Iterator[Any]:
    """What each step of random play tells."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        weights = rng.random((env.num_envs, N_ACTIONS)) * env.action_masks()
        yield env.step(weights.argmax(axis=1))


def test_the_spaces_of_the_learners_games(env: LearnerEnv) -> None:
    observation, action = env.observation_space, env.action_space
    assert isinstance(observation, spaces.Box)
    assert (observation.shape, observation.dtype) == ((N_SEEN,), np.float32)
    assert isinstance(action, spaces.Discrete)
    assert action.n == N_ACTIONS
    seen = env.reset()
    assert all(observation.contains(row) for row in seen)


def test_the_learner_sees_inputs_and_legal_actions(env: LearnerEnv) -> None:
    env.reset()
    plain = TokaidoVecEnv(env.num_envs, ["random", "greedy"], SETTINGS.seed)
    assert isinstance(plain, TokaidoVecEnv)
    seen = plain.reset()
    ended = 0
    for told, other in zip(walk(env, 150), walk(plain, 150), strict=True):
        (observation, rewards, dones, infos), (seen, other_rewards, other_dones, _) = told, other
        batch = env.games.batch
        inputs = read_positions(batch.boards, batch.states, batch.legal)
        assert (observation[:, :N_INPUTS] == inputs).all()
        assert (observation[:, N_INPUTS:-1] == env.action_masks()).all()
        assert (observation[:, :N_FEATURES] == seen).all()
        assert (observation[:, -1] == 0).all()
        assert (rewards == other_rewards).all()
        assert (dones == other_dones).all()
        for game in np.flatnonzero(dones):
            last = infos[game]["terminal_observation"]
            assert env.observation_space.contains(last)
            assert last[:N_FEATURES].any()
            assert not last[N_FEATURES:].any()
            ended += 1
    assert ended > 5


def test_the_learners_distribution_is_the_exported_policys_softmax(env: LearnerEnv) -> None:
    model = new_learner(env, SETTINGS)
    with torch.no_grad():
        for weights in network_of(model).parameters():
            weights += 0.1 * torch.randn_like(weights)
    seen = torch.from_numpy(env.reset())
    masks, batch = env.action_masks(), env.games.batch
    with torch.no_grad():
        policy: Any = model.policy
        learnt = policy.get_distribution(seen, action_masks=masks).distribution.probs.numpy()
        learnt_values = policy.predict_values(seen)[:, 0].numpy()
    logits, values = policy_of(model).evaluate(batch.boards, batch.states, batch.legal)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(learnt, shares, atol=1e-5)
    assert (learnt[~masks] < 1e-12).all()
    np.testing.assert_allclose(learnt_values, values, atol=1e-5)
    assert not np.allclose(values, 0)
