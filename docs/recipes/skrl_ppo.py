"""PPO with action masks with skrl, against `greedy`, many games in one process.

    pip install skrl==2.1.1
    python docs/recipes/skrl_ppo.py --steps 1000000 --seed 1

skrl has no action masks, so the mask is appended to the observation and applied by the policy. The
reward is the margin: a beginner always loses to `greedy`, and would learn nothing from the result.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from torch import nn

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.observers import masks, observe

GAMES, ROLLOUT, EPOCHS, MINIBATCHES = 256, 64, 4, 16
LEARNING_RATE, LAMBDA, WIDTH, ILLEGAL_LOGIT = 1e-3, 0.95, 256, -1e9


class MaskInObservation(gymnasium.vector.VectorWrapper):
    """Appends the action mask to observations: (games, 337 + 49)."""

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        space = env.single_observation_space
        assert isinstance(space, spaces.Box)
        low = with_mask([space.low], np.zeros((1, N_ACTIONS)))[0]
        high = with_mask([space.high], np.ones((1, N_ACTIONS)))[0]
        self.single_observation_space = spaces.Box(low, high)
        self.observation_space = gymnasium.vector.utils.batch_space(
            self.single_observation_space, self.num_envs
        )

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Start episodes; see `gymnasium.vector.VectorEnv.reset`."""
        observations, infos = self.env.reset(**options)
        return with_mask(observations, infos["action_mask"]), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play actions; see `gymnasium.vector.VectorEnv.step`."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return with_mask(observations, infos["action_mask"]), rewards, terminated, truncated, infos


def with_mask(observations: Any, allowed: Any) -> npt.NDArray[np.float32]:
    """Return observations with appended masks, float32 (n, 337 + 49)."""
    return np.concatenate([observations, allowed], axis=1, dtype=np.float32)


class Policy(CategoricalMixin, Model):
    """Logits of the legal actions."""

    def __init__(self, **spaces_and_device: Any) -> None:
        Model.__init__(self, **spaces_and_device)
        CategoricalMixin.__init__(self)
        self.network = network(N_ACTIONS)

    def compute(
        self, inputs: dict[str, Any], role: str = ""
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return logits (n, 49), `ILLEGAL_LOGIT` for illegal actions."""
        observations, allowed = inputs["observations"].split([N_FEATURES, N_ACTIONS], dim=1)
        return self.network(observations).masked_fill(allowed == 0, ILLEGAL_LOGIT), {}


class Value(DeterministicMixin, Model):
    """The value of a position, -1 to 1."""

    def __init__(self, **spaces_and_device: Any) -> None:
        Model.__init__(self, **spaces_and_device)
        DeterministicMixin.__init__(self)
        self.network = nn.Sequential(network(1), nn.Tanh())

    def compute(
        self, inputs: dict[str, Any], role: str = ""
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return values (n, 1)."""
        return self.network(inputs["observations"][:, :N_FEATURES]), {}


def network(outputs: int) -> nn.Module:
    """Return a network of two hidden layers."""
    hidden = (nn.Linear(N_FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
    last = nn.Linear(WIDTH, outputs)
    nn.init.orthogonal_(last.weight, 0.01)
    return nn.Sequential(*hidden, last)


class SkrlAgent(Agent):
    """Plays the policy's most probable action."""

    spec = "skrl_ppo"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observations = torch.as_tensor(with_mask(observe(boards, states), masks(legal)))
        logits, _ = self.policy.compute({"observations": observations})
        best: npt.NDArray[np.int64] = logits.argmax(dim=1).numpy()
        return best


def train(steps: int, seed: int) -> Policy:
    """Train for a number of decisions."""
    set_seed(seed)
    envs = gymnasium.make_vec(
        "tokaido_env:TokaidoDuo-v0", num_envs=GAMES, opponent="greedy", reward="margin"
    )
    envs.reset(seed=seed)  # skrl resets without a seed, which continues
    env = wrap_env(MaskInObservation(envs))
    model_args = {
        "observation_space": env.observation_space,
        "action_space": env.action_space,
        "device": "cpu",
    }
    policy = Policy(**model_args)
    configuration = PPO_CFG(
        rollouts=ROLLOUT,
        learning_epochs=EPOCHS,
        mini_batches=MINIBATCHES,
        discount_factor=1.0,
        gae_lambda=LAMBDA,
        learning_rate=LEARNING_RATE,
        learning_rate_scheduler=torch.optim.lr_scheduler.LinearLR,
        learning_rate_scheduler_kwargs={
            "start_factor": 1.0,
            "end_factor": 0.01,
            "total_iters": max(1, EPOCHS * steps // (GAMES * ROLLOUT)),
        },
        entropy_loss_scale=0.01,
        value_loss_scale=0.5,
        experiment={"write_interval": 0, "checkpoint_interval": 0},
    )
    agent = PPO(
        models={"policy": policy, "value": Value(**model_args)},
        memory=RandomMemory(memory_size=ROLLOUT, num_envs=GAMES, device="cpu"),
        cfg=configuration,
        **model_args,
    )
    timesteps = max(ROLLOUT, steps // GAMES)
    trainer_config = {"timesteps": timesteps, "headless": True, "disable_progressbar": True}
    SequentialTrainer(env=env, agents=agent, cfg=trainer_config).train()
    return policy


def main() -> None:
    """Train and play matches."""
    parser = argparse.ArgumentParser(description="PPO with action masks with skrl.")
    parser.add_argument(
        "--steps", type=int, default=1_000_000, help="number of decisions (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument(
        "--games", type=int, default=2000, help="games per match, even (default: %(default)s)"
    )
    options = parser.parse_args()
    policy = train(options.steps, options.seed)
    for opponent in ("random", "greedy"):
        match = play_match(SkrlAgent(policy), make(opponent), options.games, options.seed)
        low, high = match.interval
        print(f"against {opponent}: {match.score:.1%} ({low:.1%} - {high:.1%})")


if __name__ == "__main__":
    main()
