"""The learner as the trainer has it: what its games show it, and what it exports."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tokaido_env.agents.inputs import N_INPUTS, read_positions
from tokaido_env.agents.policy import Policy
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.learn.network import AGAINST
from tokaido_env.learn.ppo_policy import (
    BOARD_AT,
    LEGAL,
    N_SEEN,
    SELF_PLAY_AT,
    LearnerEnv,
    learner_env,
    network_of,
    new_learner,
    policy_of,
)
from tokaido_env.learn.settings import Settings
from tokaido_env.sb3 import TokaidoVecEnv

SETTINGS = Settings(games=8, rollout=8, minibatch=64, width=32, slots=2, agents="greedy")


@pytest.fixture(scope="module")
def env() -> LearnerEnv:
    return learner_env(SETTINGS, ["random", "greedy"])


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
        assert (observation[:, LEGAL] == env.action_masks()).all()
        assert (observation[:, :N_FEATURES] == seen).all()
        assert (observation[:, BOARD_AT] == 0).all()
        assert (observation[:, SELF_PLAY_AT] == 0).all()
        assert (rewards == other_rewards).all()
        assert (dones == other_dones).all()
        for game in np.flatnonzero(dones):
            last = infos[game]["terminal_observation"]
            assert env.observation_space.contains(last)
            assert last[:N_FEATURES].any()
            assert not last[N_FEATURES:].any()
            ended += 1
    assert ended > 5


@pytest.fixture
def learner(env: LearnerEnv) -> Iterator[Any]:
    """A learner with weights of all kinds, at the beginning of its games."""
    model = new_learner(env, SETTINGS)
    with torch.no_grad():
        for weights in network_of(model).parameters():
            weights += 0.1 * torch.randn_like(weights)
    env.reset()
    yield model
    env.self_play[:] = False


def test_the_learners_distribution_is_the_exported_policys_softmax(
    env: LearnerEnv, learner: Any
) -> None:
    env.self_play[:] = True
    seen = torch.from_numpy(env.observe())
    masks, batch = env.action_masks(), env.games.batch
    with torch.no_grad():
        policy: Any = learner.policy
        learnt = policy.get_distribution(seen, action_masks=masks).distribution.probs.numpy()
        learnt_values = policy.predict_values(seen)[:, 0].numpy()
    logits, values = policy_of(learner).evaluate(batch.boards, batch.states, batch.legal)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(learnt, shares, atol=1e-5)
    assert (learnt[~masks] < 1e-12).all()
    np.testing.assert_allclose(learnt_values, values, atol=1e-5)
    assert not np.allclose(values, 0)


def test_whom_a_game_is_against_changes_the_value_and_not_the_policy(
    env: LearnerEnv, learner: Any
) -> None:
    """The second value, by hand, where the opponent is another; the policy never sees who it is."""
    tensors = {name: tensor.numpy() for name, tensor in network_of(learner).state_dict().items()}
    told = []
    for some in (np.zeros(8, bool), np.arange(8) % 3 == 0, np.ones(8, bool)):
        env.self_play[:] = some
        seen = torch.from_numpy(env.observe())
        with torch.no_grad():
            values = learner.policy.predict_values(seen)[:, 0].numpy()
            odds = learner.policy.get_distribution(seen, action_masks=env.action_masks())
        told.append((values, odds.distribution.logits.numpy().tobytes()))
    (others, first), (mixed, second), (own, third) = told
    assert first == second == third
    assert (mixed == np.where(np.arange(8) % 3 == 0, own, others)).all()
    assert (own != others).all()
    swapped = policy_of(learner).tensors | {
        name.replace("against", "value"): tensors[name] for name in AGAINST
    }
    batch = env.games.batch
    _, expected = Policy(swapped).evaluate(batch.boards, batch.states, batch.legal)
    np.testing.assert_allclose(others, expected, atol=1e-5)


def test_the_loss_in_a_game_against_another_leaves_the_policys_value_alone(
    env: LearnerEnv, learner: Any
) -> None:
    network = network_of(learner)
    for itself, trained, left in (
        (True, network.value, network.against),
        (False, network.against, network.value),
    ):
        env.self_play[:] = itself
        learner.policy.zero_grad()
        learner.policy.predict_values(torch.from_numpy(env.observe())).sum().backward()
        assert trained.weight.grad.any()
        assert not left.weight.grad.any()
