"""Stable-Baselines3 adapters: the learner's games as environment, the network as policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.features.eval_tables import eval_tables_of
from tokaido_env.features.network_inputs import MAX_LEGAL, N_AFTERSTATE, N_INPUTS, encode_positions
from tokaido_env.learn.network import Moves, PolicyNetwork
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.single_agent import EndedGames, Opponents

# Columns of an observation of `LearnerEnv`.
RESULTS = slice(N_INPUTS, N_INPUTS + MAX_LEGAL * N_AFTERSTATE)
LEGAL = slice(RESULTS.stop, RESULTS.stop + N_ACTIONS)
BOARD = LEGAL.stop  # a pool has so few boards that float32 holds their indices exactly
SELF_PLAY = BOARD + 1
OBSERVATION_SIZE = SELF_PLAY + 1


class LearnerEnv(TokaidoVecEnv):
    """The learner's games, with the network's inputs as observation.

    An observation has the inputs (`N_INPUTS`), the afterstate features of up to `MAX_LEGAL` legal
    actions, the mask of legal actions, the index of the board in the pool, and the self-play flag.
    The terminal observation has the game's observation only, as no decision follows.

    Args:
        settings: of the run.
        opponents: game `i` is against `opponents[i % len(opponents)]`.

    Attributes:
        self_play: bool (n,), whether each game is against the learner itself. Only the critic gets
            it, as the opponent changes the value (Pinto et al. 2018, "Asymmetric actor critic").
    """

    def __init__(self, settings: PpoSettings, opponents: Opponents = "random") -> None:
        pool = settings.pool
        super().__init__(settings.games, opponents, settings.seed, pool)
        self._boards, self._tables = pool.records, eval_tables_of(pool.records)
        self.observation_space = spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32)
        self.self_play = np.zeros(self.num_envs, np.bool_)

    def observe(self) -> npt.NDArray[np.float32]:
        """Return the current observations, float32 (n, OBSERVATION_SIZE)."""
        batch = self.games.batch
        board, masks = batch.episode_info["board"].astype(np.int64), self.action_masks()
        inputs, results = encode_positions(
            self._boards, self._tables, board, batch.states, batch.legal
        )
        observations = np.zeros((self.num_envs, OBSERVATION_SIZE), np.float32)
        observations[:, :N_INPUTS] = inputs
        moves = observations[:, RESULTS].reshape(-1, MAX_LEGAL, N_AFTERSTATE)
        moves[np.arange(MAX_LEGAL) < masks.sum(axis=1, keepdims=True)] = results
        observations[:, LEGAL] = masks
        observations[:, BOARD] = board
        observations[:, SELF_PLAY] = self.self_play
        return observations

    def _final(self, ended: EndedGames, j: int, game: int) -> dict[str, Any]:
        info = super()._final(ended, j, game)
        last = np.zeros(OBSERVATION_SIZE, np.float32)
        last[:N_FEATURES] = info["terminal_observation"]
        # The round cap is a rule that ends the game without a winner (R10.1). For a truncated game
        # SB3 would add the value of the last observation, where the true value is 0.
        return info | {"terminal_observation": last, "TimeLimit.truncated": False}


class MovePolicy(MaskableActorCriticPolicy):
    """A `PolicyNetwork` as Stable-Baselines3's policy: its outputs are the logits and the value."""

    # Stable-Baselines3 declares other types of layers, but only calls them.
    mlp_extractor: Any
    action_net: Any
    value_net: Any

    def __init__(self, *args: Any, network: PolicyNetwork, **options: Any) -> None:
        self._network = [network]  # in a list: a submodule needs super().__init__ first
        super().__init__(*args, **options | {"ortho_init": False})

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

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (n, N_ACTIONS), 0 where illegal, and values (n, 1)."""
        legal = observation[:, LEGAL] > 0
        position, action = legal.nonzero(as_tuple=True)
        rows = torch.arange(MAX_LEGAL) < legal.sum(dim=1, keepdim=True)
        results = observation[:, RESULTS].reshape(-1, MAX_LEGAL, N_AFTERSTATE)[rows]
        board, self_play = observation[:, BOARD].long(), observation[:, SELF_PLAY] > 0
        scores, values, _ = self.network(
            observation[:, :N_INPUTS], Moves(results, position, action), board, self_play
        )
        if not torch.isfinite(torch.cat([scores, values])).all():
            raise FloatingPointError("a logit or a value of the network is not finite")
        logits = torch.zeros_like(observation[:, LEGAL])
        return logits.index_put((position, action), scores), torch.tanh(values)[:, None]

    def forward_actor(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[0]  # type: ignore[no-any-return]

    def forward_critic(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[1]  # type: ignore[no-any-return]
