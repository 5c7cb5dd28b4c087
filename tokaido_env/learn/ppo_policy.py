"""Stable-Baselines3 adapters: the learner's games as environment, the network as policy.

A network has values only. As a policy it takes each legal action with the odds that its afterstate
value gives (`inference.AFTERSTATE_LOGIT`), and the mean of these values, by the odds, is the value
for the critic: one network learns both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from tokaido_env.agents.inference import AFTERSTATE_LOGIT
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import STATE
from tokaido_env.learn.network import ValueNetwork, action_values, masked_logits
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.opponents import Opponents
from tokaido_env.sb3 import TokaidoVecEnv

Observation = dict[str, torch.Tensor]


class LearnerEnv(TokaidoVecEnv):
    """The learner's games. Their observations are positions, of which the policy makes inputs.

    The inputs of all afterstates of a rollout would take gigabytes. An observation has the arrays
    `state`, the bytes of a row of `STATE`, `legal`, the bytes of the legal actions as bits, and
    `board`, the index of the board in the pool.

    Args:
        settings: of the run.
        opponents: game `i` is against `opponents[i % len(opponents)]`.
    """

    def __init__(self, settings: PpoSettings, opponents: Opponents = "random") -> None:
        pool = settings.pool
        super().__init__(settings.games, opponents, settings.seed, pool)
        self.observation_space = spaces.Dict(
            {
                "state": spaces.Box(0, 255, (STATE.itemsize,), np.uint8),
                "legal": spaces.Box(0, 255, (8,), np.uint8),
                "board": spaces.Box(0, len(pool) - 1, (1,), np.int64),
            }
        )

    def observe(self) -> Any:
        """Return the current observations, arrays (n, …) by name."""
        batch = self.games.batch
        n = len(batch)
        return {
            "state": batch.states.view(np.uint8).reshape(n, -1).copy(),
            "legal": batch.legal.view(np.uint8).reshape(n, -1).copy(),
            "board": batch.episode_info["board"].astype(np.int64)[:, None],
        }


class AfterstatePolicy(MaskableActorCriticPolicy):
    """A `ValueNetwork` as Stable-Baselines3's policy.

    Args:
        network: the network.
        pool: the boards of the games.
    """

    # Stable-Baselines3 declares other types of layers, but only calls them.
    mlp_extractor: Any
    action_net: Any
    value_net: Any

    def __init__(self, *args: Any, network: ValueNetwork, pool: BoardPool, **options: Any) -> None:
        self._parts = network, pool  # in a tuple: a submodule needs super().__init__ first
        fixed = {"ortho_init": False, "features_extractor_class": _Unchanged}
        super().__init__(*args, **options | fixed)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _Extractor(*self._parts)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net, self.value_net = nn.Identity(), nn.Identity()
        options: dict[str, Any] = {"lr": lr_schedule(1)} | self.optimizer_kwargs
        self.optimizer = self.optimizer_class(self.parameters(), **options)


class _Extractor(nn.Module):
    """The network in place of SB3's shared and separate layers of policy and value."""

    latent_dim_pi, latent_dim_vf = N_ACTIONS, 1

    def __init__(self, network: ValueNetwork, pool: BoardPool) -> None:
        super().__init__()
        self.network = network
        self._boards = pool.records

    def forward(self, observation: Observation) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (n, N_ACTIONS), 0 where illegal, and values (n, 1)."""
        states = _rows(observation["state"], STATE)
        legal = _rows(observation["legal"], np.dtype(np.uint64))
        which = observation["board"][:, 0].numpy().astype(np.int64)
        values = action_values(self.network, self._boards, which, states, legal)
        if not torch.isfinite(values).all():
            raise FloatingPointError("a value of the network is not finite")
        odds = torch.softmax(masked_logits(values, legal), dim=1)
        return float(AFTERSTATE_LOGIT) * values, (odds * values).sum(dim=1, keepdim=True)

    def forward_actor(self, observation: Observation) -> torch.Tensor:
        return self(observation)[0]  # type: ignore[no-any-return]

    def forward_critic(self, observation: Observation) -> torch.Tensor:
        return self(observation)[1]  # type: ignore[no-any-return]


def _rows(array: torch.Tensor, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return rows of bytes, which SB3 has made floats, as numbers or states: (n,)."""
    return np.ascontiguousarray(array.numpy().astype(np.uint8)).view(dtype)[:, 0]


class _Unchanged(BaseFeaturesExtractor):
    """Passes the arrays of an observation on to the network."""

    def __init__(self, space: spaces.Dict) -> None:
        super().__init__(space, features_dim=1)

    def forward(self, observation: Observation) -> Observation:
        return observation
