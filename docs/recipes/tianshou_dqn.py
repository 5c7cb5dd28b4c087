"""DQN with action masks with Tianshou, against `random`.

    pip install tianshou==2.0.1
    python docs/recipes/tianshou_dqn.py --steps 100000 --seed 1

Tianshou's Q-learning masks actions by `obs.mask`; its actor-critic methods do not. The script
learns one seat of `tokaido_env:TokaidoDuo-v0`, because in `PettingZooEnv` the player may change
between two positions, and targets would take the opponent's values for the player's. The opponent
is `random`: a beginner always loses to `greedy`, and would learn nothing.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.observers import masks, observe

GAMES, COLLECTED, BATCH, GRADIENT_STEPS = 16, 1600, 256, 0.05
EXPLORATION, LEARNING_RATE, TARGET_EVERY, HORIZON = (1.0, 0.05), 5e-4, 300, 20


class WithMask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Returns observations as Tianshou's dict of `obs` and `mask`."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        mask = spaces.MultiBinary(N_ACTIONS)
        self.observation_space = spaces.Dict({"obs": env.observation_space, "mask": mask})

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see `gymnasium.Env.reset`."""
        observation, info = self.env.reset(**options)
        return {"obs": observation, "mask": info["action_mask"].astype(bool)}, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play an action; see `gymnasium.Env.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        mask = info["action_mask"].astype(bool)
        return {"obs": observation, "mask": mask}, reward, terminated, truncated, info


class TianshouAgent(Agent):
    """Plays the legal action with the highest value."""

    spec = "tianshou_dqn"

    def __init__(self, policy: DiscreteQLearningPolicy[Any]) -> None:
        self.policy = policy

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observation = Batch(obs=observe(boards, states), mask=masks(legal))
        best: npt.NDArray[np.int64] = self.policy(Batch(obs=observation, info=Batch())).act
        return best


def train(steps: int, seed: int) -> DiscreteQLearningPolicy[Any]:
    """Train for a number of decisions."""
    np.random.seed(seed)  # noqa: NPY002, Tianshou draws from it
    torch.manual_seed(seed)

    def make_env() -> gymnasium.Env[Any, Any]:
        return WithMask(gymnasium.make("tokaido_env:TokaidoDuo-v0", opponent="random"))

    envs = DummyVectorEnv([make_env] * GAMES)
    envs.seed(seed)
    space = spaces.Discrete(N_ACTIONS)
    model = Net(state_shape=(N_FEATURES,), action_shape=N_ACTIONS, hidden_sizes=[256, 256])
    policy = DiscreteQLearningPolicy(model=model, action_space=space)
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=LEARNING_RATE),
        gamma=1.0,
        n_step_return_horizon=HORIZON,
        target_update_freq=TARGET_EVERY,
        huber_loss_delta=1.0,
    )
    memory = VectorReplayBuffer(100_000, GAMES)
    collector = Collector[Any](algorithm, envs, memory, exploration_noise=True)
    collector.reset()

    def decay_epsilon(epoch: int, played: int) -> None:
        start, end = EXPLORATION
        policy.set_eps_training(max(end, start - (start - end) * 2 * played / steps))

    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=steps,
            collection_step_num_env_steps=min(COLLECTED, steps),
            batch_size=BATCH,
            update_step_num_gradient_steps_per_sample=GRADIENT_STEPS,
            training_fn=decay_epsilon,
            show_progress=False,
            verbose=False,
        )
    )
    return policy


def main() -> None:
    """Train and play matches."""
    parser = argparse.ArgumentParser(description="DQN with action masks with Tianshou.")
    parser.add_argument(
        "--steps", type=int, default=100_000, help="number of decisions (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument(
        "--games", type=int, default=2000, help="games per match, even (default: %(default)s)"
    )
    options = parser.parse_args()
    policy = train(options.steps, options.seed)
    for opponent in ("random", "greedy"):
        match = play_match(TianshouAgent(policy), make(opponent), options.games, options.seed)
        low, high = match.interval
        print(f"against {opponent}: {match.score:.1%} ({low:.1%} - {high:.1%})")


if __name__ == "__main__":
    main()
