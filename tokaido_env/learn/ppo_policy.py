"""Stable-Baselines3 adapters: the learner's games as environment, the network as policy."""

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

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.learn.network import Moves, PolicyNetwork
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.single_agent import EndedGames, Opponents

Observation = dict[str, torch.Tensor]


class LearnerEnv(TokaidoVecEnv):
    """The learner's games, with the afterstate observation and two more arrays.

    `board` is the index of the board in the pool, (n, 1), and `self_play` a flag, (n, 1).

    Args:
        settings: of the run.
        opponents: game `i` is against `opponents[i % len(opponents)]`.

    Attributes:
        self_play: bool (n,), whether each game is against the learner itself. Only the critic gets
            it, as the opponent changes the value (Pinto et al. 2018, "Asymmetric actor critic").
    """

    def __init__(self, settings: PpoSettings, opponents: Opponents = "random") -> None:
        pool = settings.pool
        super().__init__(settings.games, opponents, settings.seed, pool, observation="afterstates")
        space: Any = self.observation_space
        more: dict[str, spaces.Space[Any]] = {
            "board": spaces.Box(0, len(pool) - 1, (1,), np.int64),
            "self_play": spaces.Box(0, 1, (1,), np.int8),
        }
        self.observation_space = spaces.Dict({**space.spaces, **more})
        self.self_play = np.zeros(self.num_envs, np.bool_)

    def observe(self) -> Any:
        """Return the current observations, arrays (n, …) by name."""
        boards = self.games.batch.episode_info["board"].astype(np.int64)
        return super().observe() | _more(boards, self.self_play)

    def _final(self, ended: EndedGames, j: int, game: int) -> dict[str, Any]:
        info = super()._final(ended, j, game)
        more = _more(ended.board[j], self.self_play[game])
        # The round cap is a rule that ends the game without a winner (R10.1). For a truncated game
        # SB3 would add the value of the last observation, where the true value is 0.
        last = info["terminal_observation"] | more
        return info | {"terminal_observation": last, "TimeLimit.truncated": False}


def _more(boards: npt.NDArray[np.int64], self_play: npt.NDArray[np.bool_]) -> dict[str, Any]:
    return {"board": boards[..., None], "self_play": self_play[..., None].astype(np.int8)}


class MovePolicy(MaskableActorCriticPolicy):
    """A `PolicyNetwork` as Stable-Baselines3's policy: its outputs are the logits and the value."""

    # Stable-Baselines3 declares other types of layers, but only calls them.
    mlp_extractor: Any
    action_net: Any
    value_net: Any

    def __init__(self, *args: Any, network: PolicyNetwork, **options: Any) -> None:
        self._network = [network]  # in a list: a submodule needs super().__init__ first
        fixed = {"ortho_init": False, "features_extractor_class": _Unchanged}
        super().__init__(*args, **options | fixed)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _Extractor(self._network[0])

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net, self.value_net = nn.Identity(), nn.Identity()
        options: dict[str, Any] = {"lr": lr_schedule(1)} | self.optimizer_kwargs
        self.optimizer = self.optimizer_class(self.parameters(), **options)


class _Extractor(nn.Module):
    """The network in place of SB3's shared and separate layers of policy and value."""

    latent_dim_pi, latent_dim_vf = N_ACTIONS, 1

    def __init__(self, network: PolicyNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: Observation) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (n, N_ACTIONS), 0 where illegal, and values (n, 1)."""
        mask = observation["action_mask"]
        position, action = mask.nonzero(as_tuple=True)
        moves = Moves(observation["actions"][position, action], position, action)
        board, self_play = observation["board"][:, 0].long(), observation["self_play"][:, 0] > 0
        scores, values = self.network(observation["observation"], moves, board, self_play)
        if not torch.isfinite(torch.cat([scores, values])).all():
            raise FloatingPointError("a logit or a value of the network is not finite")
        logits = torch.zeros_like(mask).index_put((position, action), scores)
        return logits, torch.tanh(values)[:, None]

    def forward_actor(self, observation: Observation) -> torch.Tensor:
        return self(observation)[0]  # type: ignore[no-any-return]

    def forward_critic(self, observation: Observation) -> torch.Tensor:
        return self(observation)[1]  # type: ignore[no-any-return]


class _Unchanged(BaseFeaturesExtractor):
    """Passes the arrays of an observation on to the network."""

    def __init__(self, space: spaces.Dict) -> None:
        super().__init__(space, features_dim=1)

    def forward(self, observation: Observation) -> Observation:
        return observation
