"""The learner's environment and policy for Stable-Baselines3."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
import torch
from networks import ROUNDING, random_policy
from short_run import VALUES
from stable_baselines3.common.utils import obs_as_tensor

from tokaido_env.agents.inference import AFTERSTATE_LOGIT
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.learn.network import ValueNetwork, load_policy
from tokaido_env.learn.ppo import make_model
from tokaido_env.learn.ppo_policy import LearnerEnv
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.sb3 import TokaidoVecEnv

SETTINGS = PpoSettings(
    games=8, n_steps=8, minibatch_size=64, width=32, opponent_slots=2, agents="greedy"
)


ON_POOL = PpoSettings(**VALUES | {"board": "family:train/6"})
BOARDS = pytest.mark.parametrize("settings", [SETTINGS, ON_POOL], ids=["one board", "a pool"])


def learner_of(env: LearnerEnv, settings: PpoSettings) -> Any:
    """Return Stable-Baselines3's model of a network with random weights."""
    network = ValueNetwork(settings.sizes)
    load_policy(network, random_policy(settings.sizes))
    return make_model(env, settings, network)


def network_of(model: Any) -> ValueNetwork:
    return cast(ValueNetwork, model.policy.mlp_extractor.network)


def walk(env: TokaidoVecEnv, steps: int) -> Iterator[Any]:
    """Yield the result of each step of random play."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        weights = rng.random((env.num_envs, N_ACTIONS)) * env.action_masks()
        yield env.step(weights.argmax(axis=1))


@BOARDS
def test_learner_env__observes_positions(settings: PpoSettings) -> None:
    env, pool = LearnerEnv(settings, ["random", "greedy"]), settings.pool
    env.reset()
    game_env = TokaidoVecEnv(env.num_envs, ["random", "greedy"], settings.seed, pool)
    game_env.reset()
    ended, boards = 0, set[int]()
    for step, game_step in zip(walk(env, 200), walk(game_env, 200), strict=True):
        observation, rewards, dones, infos = step
        _, other_rewards, other_dones, _ = game_step
        batch, board = env.games.batch, observation["board"][:, 0]
        expected = [pool.board_of_seed(int(seed)).name for seed in batch.episode_info["seed"]]
        assert [pool[place].name for place in board] == expected
        boards |= set(board.tolist())
        assert observation["state"].tobytes() == batch.states.tobytes()
        assert observation["legal"].tobytes() == batch.legal.tobytes()
        assert (rewards == other_rewards).all()
        assert (dones == other_dones).all()
        assert all(not infos[game]["TimeLimit.truncated"] for game in np.flatnonzero(dones))
        ended += int(dones.sum())
    assert ended > 5
    assert boards == set(range(len(pool)))


@BOARDS
def test_afterstate_policy__plays_as_the_exported_policy(settings: PpoSettings) -> None:
    """Its value is the mean of the afterstate values, by the odds of the actions."""
    env, ends = LearnerEnv(settings, "random"), 0
    learner = learner_of(env, settings)
    exported, policy = network_of(learner).to_policy(), cast(Any, learner.policy)
    env.reset()
    for observation, *_ in walk(env, 200):
        seen, masks = obs_as_tensor(observation, torch.device("cpu")), env.action_masks()
        with torch.no_grad():
            learnt = policy.get_distribution(seen, action_masks=masks).distribution.logits.numpy()
            learnt_values = policy.predict_values(seen)[:, 0].numpy()
        batch, boards = env.games.batch, settings.pool.records[observation["board"][:, 0]]
        logits, _ = exported.evaluate(boards, batch.states, batch.legal)
        own, other = (one - one.max(axis=1, keepdims=True) for one in (learnt, logits))
        closest = {"atol": 2 * ROUNDING * AFTERSTATE_LOGIT}  # of the difference of two values
        np.testing.assert_allclose(own[masks], other[masks], **closest)
        assert (learnt[~masks] < -30).all()
        odds = np.exp(logits)
        shares = odds / odds.sum(axis=1, keepdims=True)
        values = (shares * np.where(masks, logits, 0)).sum(axis=1) / AFTERSTATE_LOGIT
        np.testing.assert_allclose(learnt_values, values, atol=ROUNDING)
        ends += int((np.abs(logits) == AFTERSTATE_LOGIT).sum())
    assert ends > 5
