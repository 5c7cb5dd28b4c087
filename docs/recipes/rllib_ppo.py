"""Self-play PPO with RLlib, of a network that scores actions by their afterstates.

    make certify-rllib  # creates .venv-rllib, because RLlib pins one version of Gymnasium
    .venv-rllib/bin/python docs/recipes/rllib_ppo.py --minutes 3 --file weights.pt
    .venv-rllib/bin/tokaido evaluate \
      python:docs/recipes/rllib_ppo.py:NetworkAgent,file=weights.pt random greedy heuristic

On a cluster, use `self_play().env_runners(num_env_runners=32)`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor, nn

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.afterstate_observation import N_AFTERSTATE, N_OBSERVED
from tokaido_env.observers import masks, observe
from tokaido_env.rllib import POLICY, TokaidoMultiAgentEnv, masked, self_play_config


class Network(nn.Module):
    """Computes scores of actions, and the value for the player to decide, -1 to 1.

    An action is scored by its afterstate in the context of the state, and by its id.
    """

    def __init__(self, width: int = 256, units: int = 32) -> None:
        super().__init__()
        first, second = nn.Linear(N_OBSERVED, width), nn.Linear(width, width)
        self.body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.afterstate, self.context = nn.Linear(N_AFTERSTATE, units), nn.Linear(width, units)
        self.score, self.by_id = nn.Linear(units, 1), nn.Linear(width, N_ACTIONS)
        self.value = nn.Linear(width, 1)
        nn.init.orthogonal_(self.by_id.weight, 0.01)

    def forward(self, seen: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return scores (n, N_ACTIONS) and values (n,) of n observations with afterstates."""
        hidden = self.body(seen["observation"])
        units = torch.relu(self.afterstate(seen["actions"]) + self.context(hidden)[:, None])
        scores = self.score(units).squeeze(2) + self.by_id(hidden)
        return scores, torch.tanh(self.value(hidden)).squeeze(1)


class NetworkAgent(Agent):
    """Plays the most probable action.

    Args:
        file: the weights of a network, from `--file`.
        network: the network itself, instead of a file.
    """

    spec = "rllib_ppo"

    def __init__(self, file: str = "", network: Network | None = None) -> None:
        if network is None:
            weights = torch.load(file, weights_only=True)
            network = Network(weights["value.weight"].shape[1])
            network.load_state_dict(weights)
        self.network = network

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        seen: Any = observe(boards, states, None, "afterstates")
        scores, _ = self.network({name: torch.as_tensor(array) for name, array in seen.items()})
        return np.where(masks(legal), scores.numpy(), -np.inf).argmax(axis=1)


class LearnerEnv(TokaidoMultiAgentEnv):
    """A game with `observation="afterstates"`."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        config = {} if config is None else config  # in a runner an `EnvContext`: keep it
        config.setdefault("observation", "afterstates")
        super().__init__(config)


class ActionModule(TorchRLModule, ValueFunctionAPI):
    """A `Network` as an RLlib module; `model_config` is `{"width": …}`."""

    def setup(self) -> None:
        """Create the untrained network."""
        self.network = Network(self.model_config["width"])

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        scores, _ = self.network(batch[Columns.OBS])
        return masked({Columns.ACTION_DIST_INPUTS: scores}, batch)

    def _forward_train(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        scores, values = self.network(batch[Columns.OBS])  # the values are for `compute_values`
        return masked({Columns.ACTION_DIST_INPUTS: scores, Columns.EMBEDDINGS: values}, batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """Return value estimates (n,).

        Args:
            batch: observations.
            embeddings: the same values, if already computed.
        """
        values: Tensor = self.network(batch[Columns.OBS])[1] if embeddings is None else embeddings
        return values


def self_play(width: int = 256, **options: Any) -> PPOConfig:
    """Return PPO settings in which a network plays against its newest version.

    Args:
        width: width of the network.
        options: options of the environment, as for `tokaido_env.env`.
    """
    config = self_play_config(LearnerEnv, ActionModule, {"width": width}, **options)
    return config.env_runners(num_envs_per_env_runner=64).training(
        train_batch_size_per_learner=8192,
        minibatch_size=1024,
        num_epochs=4,
        lr=1e-3,
        lambda_=0.95,
        clip_param=0.2,
        entropy_coeff=0.01,
        vf_loss_coeff=0.5,
        grad_clip=0.5,
        use_kl_loss=False,
    )


def main() -> None:
    """Train, save the weights, and play matches."""
    parser = argparse.ArgumentParser(description="Self-play PPO with RLlib.")
    parser.add_argument("--minutes", type=float, default=3, help="minutes of training (default: 3)")
    parser.add_argument("--file", help="file for the weights (default: none)")
    parser.add_argument(
        "--games", type=int, default=2000, help="games per match, even (default: %(default)s)"
    )
    options = parser.parse_args()
    algorithm = self_play().build_algo()
    until = time.monotonic() + 60 * options.minutes
    while time.monotonic() < until:
        algorithm.train()
    module: Any = algorithm.get_module(POLICY)
    algorithm.stop()
    if options.file:
        torch.save(module.network.state_dict(), options.file)
    agent = NetworkAgent(network=module.network)
    for opponent in ("random", "greedy"):
        match = play_match(agent, make(opponent), options.games, 0)
        low, high = match.interval
        print(f"against {opponent}: {match.score:.1%} ({low:.1%} - {high:.1%})")


if __name__ == "__main__":
    main()
