"""Self-play PPO with RLlib, of the network that policy files contain.

    make certify-rllib  # creates .venv-rllib, because RLlib pins one version of Gymnasium
    .venv-rllib/bin/python docs/recipes/rllib_ppo.py --minutes 3 --policy runs/rllib.safetensors
    tokaido evaluate policy:runs/rllib.safetensors random greedy heuristic

On a cluster, use `self_play().env_runners(num_env_runners=32)`. RLlib's checkpoints are pickles; a
policy file contains numbers only, and plays without PyTorch and Ray.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from ray.rllib.algorithms import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME

from tokaido_env.agents.policy import LayerSizes, Policy, PolicyAgent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.learn.boards import board_summary
from tokaido_env.learn.network import Moves, PolicyNetwork
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.rllib import POLICY, TokaidoMultiAgentEnv, masked, self_play_config


class LearnerEnv(TokaidoMultiAgentEnv):
    """A game with `observation="afterstates"`; the cap on rounds terminates it.

    The cap is a rule and its result is 0 (R10.1), but for a truncated game RLlib would add the
    value of the last observation.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__({"observation": "afterstates"} | (config or {}))

    def step(self, action_dict: dict[str, Any]) -> Any:
        """Play an action; see `TokaidoMultiAgentEnv.step`."""
        observations, rewards, terminated, truncated, infos = super().step(action_dict)
        terminated = {agent: terminated[agent] or truncated[agent] for agent in terminated}
        return observations, rewards, terminated, dict.fromkeys(truncated, False), infos


class MoveModule(TorchRLModule, ValueFunctionAPI):
    """A `PolicyNetwork` as an RLlib module; `model_config` is `{"width": …}`, as in settings."""

    def setup(self) -> None:
        """Create the untrained network."""
        self.network = PolicyNetwork(LayerSizes.of_width(self.model_config["width"]))

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        logits, _ = self._logits_and_values(batch)
        return masked({Columns.ACTION_DIST_INPUTS: logits}, batch)

    def _forward_train(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        logits, values = self._logits_and_values(batch)  # for `compute_values`
        return masked({Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}, batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """Return value estimates (n,).

        Args:
            batch: observations.
            embeddings: the same values (n, 1), if already computed.
        """
        values: torch.Tensor = (
            self._logits_and_values(batch)[1] if embeddings is None else embeddings
        )
        return values.squeeze(-1)

    def _logits_and_values(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (n, N_ACTIONS), 0 where illegal, and values (n, 1)."""
        seen = batch[Columns.OBS]
        legal = seen["action_mask"] > 0
        position, action = legal.nonzero(as_tuple=True)
        moves = Moves(seen["actions"][position, action], position, action)
        scores, values = self.network(seen["observation"], moves)
        logits = torch.zeros(legal.shape, device=legal.device)
        return logits.index_put((position, action), scores), torch.tanh(values)[:, None]


def self_play(width: int = PpoSettings.width, **options: Any) -> PPOConfig:
    """Return PPO settings that train a policy of this project, with the numbers of `tokaido train`.

    The policy plays against its newest version only, without a pool of opponents.

    Args:
        width: width of the network, as in settings.
        options: `board` and `reward`, as for `tokaido_env.env`.

    Raises:
        RunError: for an invalid width.
    """
    settings = PpoSettings(width=width)
    config = self_play_config(LearnerEnv, MoveModule, {"width": width}, **options)
    return config.env_runners(num_envs_per_env_runner=64).training(
        train_batch_size_per_learner=8_192,
        minibatch_size=settings.minibatch_size,
        num_epochs=settings.epochs,
        lr=settings.learning_rate,
        lambda_=settings.gae_lambda,
        clip_param=settings.clip_range,
        entropy_coeff=settings.entropy_coef,
        vf_loss_coeff=0.5,  # this and the next two as in Stable-Baselines3
        grad_clip=0.5,
        use_kl_loss=False,
    )


def policy_of(algorithm: Algorithm) -> Policy:
    """Return a frozen copy of the trained network, for settings of `self_play`."""
    module: Any = algorithm.get_module(POLICY)
    config: Any = algorithm.config
    sampled = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
    steps = int(algorithm.metrics.peek(sampled, default=0))
    boards = BoardPool.load(config.env_config.get("board", PpoSettings.board))
    training = {"trainer": "RLlib", "steps": steps, "board": board_summary(boards)}
    return module.network.to_policy(training)


def main() -> None:
    """Train, play matches, and save the policy."""
    parser = argparse.ArgumentParser(description="Self-play PPO with RLlib.")
    parser.add_argument("--minutes", type=float, default=3, help="minutes of training (default: 3)")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="save the policy to this file")
    parser.add_argument(
        "--games", type=int, default=2000, help="games per match, even (default: %(default)s)"
    )
    options = parser.parse_args()
    algorithm = self_play().build_algo()
    until = time.monotonic() + 60 * options.minutes
    while time.monotonic() < until:
        algorithm.train()
    policy = policy_of(algorithm)
    algorithm.stop()
    if options.policy is not None:
        policy.save(options.policy)
    for opponent in ("random", "greedy"):
        match = play_match(
            PolicyAgent.from_policy(policy, "rllib_ppo"), make(opponent), options.games, 0
        )
        low, high = match.interval
        print(f"against {opponent}: {match.score:.1%} ({low:.1%} - {high:.1%})")


if __name__ == "__main__":
    main()
