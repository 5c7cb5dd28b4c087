"""What RLlib trains: the learner's games, and the network of `policy` in the place of RLlib's.

    algorithm = self_play().build_algo()
    algorithm.train()
    policy_of(algorithm).save("mine.safetensors")  # evaluate.py policy:mine.safetensors greedy

A checkpoint of RLlib is pickles; a policy file is numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from ray.rllib.algorithms import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME

from tokaido_env.agents.inputs import N_INPUTS, read_positions
from tokaido_env.agents.policy import Policy, Sizes
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.learn.boards import summary
from tokaido_env.learn.network import MoveNetwork, frozen
from tokaido_env.learn.settings import DEFAULTS, check_width
from tokaido_env.rllib import POLICY, TokaidoMultiAgentEnv, masked, self_play_config


class LearnerEnv(TokaidoMultiAgentEnv):
    """A game whose observation is what the network reads: `inputs`, and the mask.

    At the end nothing is to be decided: of the inputs only the observation is given then.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        inputs = spaces.Box(-np.inf, np.inf, (N_INPUTS,), np.float32)
        mask = spaces.Box(0, 1, (N_ACTIONS,), np.int8)
        seen = spaces.Dict({"observation": inputs, "action_mask": mask})
        self.observation_spaces = dict.fromkeys(self.possible_agents, seen)

    def step(self, action_dict: dict[str, Any]) -> Any:
        """Play a decision, as `TokaidoMultiAgentEnv.step`; the cap on rounds terminates.

        It is a rule and the game over there, nobody's (R10.1): RLlib would add the value of the
        last observation, where the truth is 0.
        """
        seen, rewards, ended, cut, infos = super().step(action_dict)
        ended = {agent: ended[agent] or cut[agent] for agent in ended}
        return seen, rewards, ended, dict.fromkeys(cut, False), infos

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what an agent sees: float32 (N_INPUTS,), and the mask."""
        seen, game = super().observe(agent), self.aec.game
        if game.is_over:
            inputs = np.zeros(N_INPUTS, np.float32)
            inputs[:N_FEATURES] = seen["observation"]
        else:
            legal = np.array([game.legal_mask], np.uint64)
            (inputs,) = read_positions(game.boards, game.states, legal)
        return {**seen, "observation": inputs}


class MoveModule(TorchRLModule, ValueFunctionAPI):
    """`MoveNetwork` as RLlib wants it; `model_config` is `{"width": …}`, as in `Settings`."""

    def setup(self) -> None:
        """Make the network, untrained."""
        self.network = MoveNetwork(Sizes.of_width(self.model_config["width"]))

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        logits, _ = self._evaluated(batch)
        return masked({Columns.ACTION_DIST_INPUTS: logits}, batch)

    def _forward_train(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        logits, values = self._evaluated(batch)  # read by `compute_values`, not computed again
        return masked({Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}, batch)

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """Return the values (n,) that the agents can expect.

        Args:
            batch: what is seen.
            embeddings: the same values (n, 1), if they are known.
        """
        values: torch.Tensor = self._evaluated(batch)[1] if embeddings is None else embeddings
        return values.squeeze(-1)

    def _evaluated(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        seen = batch[Columns.OBS]
        found: tuple[torch.Tensor, torch.Tensor] = self.network(
            seen["observation"], seen["action_mask"] > 0
        )
        return found


def self_play(width: int = DEFAULTS["width"], **options: Any) -> PPOConfig:
    """Return settings of PPO that train a policy of this project, with the numbers of `train.py`.

    Against the newest self alone: there is no pool of its past here, nor of other agents.

    Args:
        width: of the network, as in `Settings`.
        options: `board` and `reward`, as for `tokaido_env.env`.

    Raises:
        RunError: if the width is none.
    """
    check_width(width)
    config = self_play_config(LearnerEnv, MoveModule, {"width": width}, **options)
    return config.env_runners(num_envs_per_env_runner=64).training(
        train_batch_size_per_learner=8_192,
        minibatch_size=DEFAULTS["minibatch"],
        num_epochs=DEFAULTS["epochs"],
        lr=DEFAULTS["learning_rate"],
        lambda_=DEFAULTS["gae_lambda"],
        clip_param=DEFAULTS["clip"],
        entropy_coeff=DEFAULTS["entropy"],
        vf_loss_coeff=0.5,  # this and the next two as in Stable-Baselines3
        grad_clip=0.5,
        use_kl_loss=False,
    )


def policy_of(algorithm: Algorithm) -> Policy:
    """Return a frozen copy of the network that RLlib trains, by settings of `self_play`."""
    module: Any = algorithm.get_module(POLICY)
    config: Any = algorithm.config
    sampled = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
    steps = int(algorithm.metrics.peek(sampled, default=0))
    boards = BoardPool.load(config.env_config.get("board", DEFAULTS["board"]))
    training = {"trainer": "RLlib", "steps": steps, "board": summary(boards)}
    return frozen(module.network, training)
