"""The learner's network: what is trained is what is exported, and what its games show it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from networks import SMALL, decisions, random_policy

from tokaido_env.agents.learn.network import (
    LearnerEnv,
    MoveNetwork,
    frozen,
    learner_env,
    load_weights,
    network_of,
    new_learner,
    policy_of,
    repeatable,
)
from tokaido_env.agents.learn.settings import RunError, Settings
from tokaido_env.agents.players.inputs import N_INPUTS, N_TRUNK, OUTLOOK, read_positions
from tokaido_env.agents.players.policy import Sizes, shapes_of
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


def test_an_exported_network_comes_back_with_the_same_outputs() -> None:
    torch.manual_seed(0)
    network, other = MoveNetwork(SMALL), MoveNetwork(SMALL)
    policy = frozen(network, {"steps": 3})
    assert policy.training == {"steps": 3}
    assert {name: t.shape for name, t in policy.tensors.items()} == shapes_of(SMALL)
    boards, states, legal = decisions(games=8)
    inputs = torch.from_numpy(read_positions(boards, states, legal))
    allowed = torch.from_numpy(np.isfinite(policy.evaluate(boards, states, legal)[0]))
    with torch.no_grad():
        before = [part.clone() for part in network(inputs, allowed)]
        assert not torch.equal(other(inputs, allowed)[0], before[0])
        load_weights(other, policy)
        assert all(torch.equal(a, b) for a, b in zip(other(inputs, allowed), before, strict=True))


def test_an_exported_policy_does_not_change_with_the_network() -> None:
    network = MoveNetwork(SMALL)
    policy = frozen(network)
    kept = policy.tensors["value.bias"].copy()
    with torch.no_grad():
        network.value.bias += 1.0
    assert (policy.tensors["value.bias"] == kept).all()


def test_a_policy_of_other_sizes_is_refused_and_nothing_is_changed() -> None:
    network = MoveNetwork(SMALL)
    before = frozen(network)
    message = r"start_from: expected Sizes\(first=24.*the policy has Sizes\(first=16, second=8, mo"
    with pytest.raises(RunError, match=message):
        load_weights(network, random_policy(Sizes(16, 8, 4)))
    after = frozen(network)
    assert all((before.tensors[name] == after.tensors[name]).all() for name in before.tensors)


def test_an_untrained_network_leans_on_the_heuristic() -> None:
    torch.manual_seed(0)
    boards, states, legal = decisions(games=16)
    logits, _ = frozen(MoveNetwork(Sizes())).evaluate(boards, states, legal)
    outlook = read_positions(boards, states, legal)[:, OUTLOOK:N_TRUNK]
    chosen = outlook[np.arange(len(states)), logits.argmax(axis=1)]
    assert chosen.mean() > 0.5 * outlook[np.isfinite(logits)].mean()


# The learner's games


def test_the_spaces_of_the_learners_games(env: LearnerEnv) -> None:
    observation, action = env.observation_space, env.action_space
    assert isinstance(observation, spaces.Box)
    assert (observation.shape, observation.dtype) == ((N_INPUTS + N_ACTIONS,), np.float32)
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
        assert (observation[:, N_INPUTS:] == env.action_masks()).all()
        assert (observation[:, :N_FEATURES] == seen).all()
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


def test_many_positions_give_the_same_gradients_each_time() -> None:
    """More than PyTorch leaves to one thread; without `repeatable` some of ten would differ."""
    boards, states, legal = decisions(games=64, moves=60, most=2000)
    inputs = torch.from_numpy(read_positions(boards, states, legal))
    bits = legal[:, None] >> np.arange(N_ACTIONS, dtype=np.uint64) & np.uint64(1)
    allowed = torch.from_numpy(bits.astype(bool))
    assert len(inputs) > 2000
    torch.manual_seed(0)
    network = MoveNetwork(Sizes())

    def gradients() -> list[bytes]:
        network.zero_grad()
        logits, values = network(inputs, allowed)
        (logits.square().sum() + values.sum()).backward()
        return [weight.grad.numpy().tobytes() for weight in network.parameters()]

    with repeatable():
        assert torch.are_deterministic_algorithms_enabled()
        first = gradients()
        assert all(gradients() == first for _ in range(9))
    assert not torch.are_deterministic_algorithms_enabled()
