"""The learner's environment and policy for Stable-Baselines3."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
import torch
from networks import ROUNDING, inputs_of
from short_run import VALUES
from stable_baselines3.common.utils import obs_as_tensor

from tokaido_env.agents.policy import Policy
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.learn.network import VALUE_AGAINST, PolicyNetwork
from tokaido_env.learn.ppo import make_model
from tokaido_env.learn.ppo_policy import LearnerEnv
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.sb3 import TokaidoVecEnv

SETTINGS = PpoSettings(
    games=8, n_steps=8, minibatch_size=64, width=32, opponent_slots=2, agents="greedy"
)


ON_POOL = PpoSettings(**VALUES | {"board": "family:train/6"})


@pytest.fixture(scope="module")
def env() -> LearnerEnv:
    return LearnerEnv(SETTINGS, ["random", "greedy"])


def learner_of(env: LearnerEnv, settings: PpoSettings) -> Any:
    """Return Stable-Baselines3's model of a new network."""
    torch.manual_seed(0)
    network = PolicyNetwork(settings.sizes, settings.network_boards, against_others=True)
    return make_model(env, settings, network)


def network_of(model: Any) -> PolicyNetwork:
    return cast(PolicyNetwork, model.policy.mlp_extractor.network)


def walk(env: TokaidoVecEnv, steps: int) -> Iterator[Any]:
    """Yield the result of each step of random play."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        weights = rng.random((env.num_envs, N_ACTIONS)) * env.action_masks()
        yield env.step(weights.argmax(axis=1))


@pytest.mark.parametrize("settings", [SETTINGS, ON_POOL], ids=["one board", "a pool"])
def test_learner_env__observes_the_networks_inputs(settings: PpoSettings) -> None:
    env, pool = LearnerEnv(settings, ["random", "greedy"]), settings.pool
    env.reset()
    game_env = TokaidoVecEnv(env.num_envs, ["random", "greedy"], settings.seed, pool)
    game_env.reset()
    ended, boards = 0, set[int]()
    for step, game_step in zip(walk(env, 200), walk(game_env, 200), strict=True):
        (observation, rewards, dones, infos), (seen, other_rewards, other_dones, _) = (
            step,
            game_step,
        )
        batch, masks = env.games.batch, env.action_masks()
        board = observation["board"][:, 0]
        expected = [pool.board_of_seed(int(seed)).name for seed in batch.episode_info["seed"]]
        assert [pool[place].name for place in board] == expected
        boards |= set(board.tolist())
        inputs, results = inputs_of(pool.records[board], batch.states, batch.legal)
        assert (observation["observation"] == inputs).all()
        assert (observation["actions"][masks] == results).all()
        assert not observation["actions"][~masks].any()
        assert (observation["action_mask"] == masks).all()
        assert (observation["observation"][:, :N_FEATURES] == seen).all()
        assert not observation["self_play"].any()
        assert (rewards == other_rewards).all()
        assert (dones == other_dones).all()
        for game in np.flatnonzero(dones):
            last = infos[game]["terminal_observation"]
            assert env.observation_space.contains(last)
            last = last["observation"]
            assert last[:N_FEATURES].any()
            assert not last[N_FEATURES:].any()
            ended += 1
    assert ended > 5
    assert boards == set(range(len(pool)))


@pytest.fixture
def learner(env: LearnerEnv) -> Iterator[Any]:
    """A model with noise in all weights, at the start of its games."""
    model = learner_of(env, SETTINGS)
    with torch.no_grad():
        for weights in network_of(model).parameters():
            weights += 0.1 * torch.randn_like(weights)
    env.reset()
    yield model
    env.self_play[:] = False


@pytest.mark.parametrize("settings", [SETTINGS, ON_POOL], ids=["one board", "a pool"])
def test_move_policy__equals_the_exported_policy(settings: PpoSettings) -> None:
    env = LearnerEnv(settings, "random")
    learner = learner_of(env, settings)
    with torch.no_grad():
        for weights in network_of(learner).parameters():
            weights += 0.05 * torch.randn_like(weights)
    env.self_play[:] = True
    seen, masks, batch = (
        obs_as_tensor(env.observe(), torch.device("cpu")),
        env.action_masks(),
        env.games.batch,
    )
    with torch.no_grad():
        policy: Any = learner.policy
        learnt = policy.get_distribution(seen, action_masks=masks).distribution.probs.numpy()
        learnt_values = policy.predict_values(seen)[:, 0].numpy()
    boards = settings.pool.records[batch.episode_info["board"].astype(int)]
    logits, values = network_of(learner).to_policy().evaluate(boards, batch.states, batch.legal)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(learnt, shares, atol=ROUNDING)
    assert (learnt[~masks] < 1e-12).all()
    np.testing.assert_allclose(learnt_values, values, atol=ROUNDING)
    assert not np.allclose(values, 0)


def test_move_policy__opponent_changes_the_value_only(env: LearnerEnv, learner: Any) -> None:
    """Other opponents get the second value; the policy does not see the opponent."""
    tensors = {name: tensor.numpy() for name, tensor in network_of(learner).state_dict().items()}
    outputs = []
    for some in (np.zeros(8, bool), np.arange(8) % 3 == 0, np.ones(8, bool)):
        env.self_play[:] = some
        seen = obs_as_tensor(env.observe(), torch.device("cpu"))
        with torch.no_grad():
            values = learner.policy.predict_values(seen)[:, 0].numpy()
            odds = learner.policy.get_distribution(seen, action_masks=env.action_masks())
        outputs.append((values, odds.distribution.logits.numpy().tobytes()))
    (others, first), (mixed, second), (own, third) = outputs
    assert first == second == third
    assert (mixed == np.where(np.arange(8) % 3 == 0, own, others)).all()
    assert (own != others).all()
    swapped = network_of(learner).to_policy().tensors
    swapped |= {value: tensors[name] for name, value in VALUE_AGAINST.items()}
    batch = env.games.batch
    _, expected = Policy(swapped).evaluate(batch.boards, batch.states, batch.legal)
    np.testing.assert_allclose(others, expected, atol=ROUNDING)


def test_move_policy__trains_the_value_of_the_games_kind(env: LearnerEnv, learner: Any) -> None:
    network = network_of(learner)
    for itself, trained, left in (
        (True, network.value[1], network.against),
        (False, network.against, network.value[1]),
    ):
        env.self_play[:] = itself
        learner.policy.zero_grad()
        learner.policy.predict_values(
            obs_as_tensor(env.observe(), torch.device("cpu"))
        ).sum().backward()
        assert trained.weight.grad.any()  # type: ignore[union-attr]
        assert not left.weight.grad.any()  # type: ignore[union-attr]
