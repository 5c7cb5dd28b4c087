"""What Stable-Baselines3 trains: the learner's games, and the network in the place of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.network_inputs import MAX_LEGAL, N_AFTERSTATE, N_INPUTS, encode_positions
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.learn.network import Moves, PolicyNetwork
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.single_agent import EndedGames, Opponents

RESULTS = slice(N_INPUTS, N_INPUTS + MAX_LEGAL * N_AFTERSTATE)
LEGAL = slice(RESULTS.stop, RESULTS.stop + N_ACTIONS)
BOARD_AT = LEGAL.stop
SELF_PLAY_AT = BOARD_AT + 1
N_SEEN = SELF_PLAY_AT + 1
"""Numbers of an observation; boards of a pool are so few that float32 holds their numbers."""


class LearnerEnv(TokaidoVecEnv):
    """Games whose observation is what the network reads: inputs, legal actions, board, self-play.

    The board is told by its place in the pool. At the end of a game nothing is to be decided: of
    the inputs only the observation is given.

    Args:
        settings: of the run.
        opponents: game `i` meets `opponents[i % len(opponents)]`.

    Attributes:
        self_play: bool (n,), whether each game is against the learner itself. The policy never
            sees it, only the critic: whom it meets makes a value another (Pinto et al. 2018,
            "Asymmetric actor critic").
    """

    def __init__(self, settings: PpoSettings, opponents: Opponents = "random") -> None:
        pool = settings.pool
        super().__init__(settings.games, opponents, settings.seed, pool)
        self._boards, self._guides = pool.records, eval_tables_of(pool.records)
        self.observation_space = spaces.Box(-np.inf, np.inf, (N_SEEN,), np.float32)
        self.self_play = np.zeros(self.num_envs, np.bool_)

    def observe(self) -> npt.NDArray[np.float32]:
        """Return what the learner sees now: float32 (n, N_SEEN)."""
        batch = self.games.batch
        board, masks = batch.episode_info["board"].astype(np.int64), self.action_masks()
        inputs, results = encode_positions(
            self._boards, self._guides, board, batch.states, batch.legal
        )
        seen = np.zeros((self.num_envs, N_SEEN), np.float32)
        seen[:, :N_INPUTS] = inputs
        moves = seen[:, RESULTS].reshape(-1, MAX_LEGAL, N_AFTERSTATE)
        moves[np.arange(MAX_LEGAL) < masks.sum(axis=1, keepdims=True)] = results
        seen[:, LEGAL] = masks
        seen[:, BOARD_AT] = board
        seen[:, SELF_PLAY_AT] = self.self_play
        return seen

    def _final(self, ended: EndedGames, j: int, game: int) -> dict[str, Any]:
        info = super()._final(ended, j, game)
        last = np.zeros(N_SEEN, np.float32)
        last[:N_FEATURES] = info["terminal_observation"]
        # The cap on rounds is a rule and the game over there, nobody's (R10.1): the trainer would
        # add the value of the last observation, where the truth is 0.
        return info | {"terminal_observation": last, "TimeLimit.truncated": False}


class MovePolicy(MaskableActorCriticPolicy):
    """A `PolicyNetwork` as Stable-Baselines3 wants it: its outputs are the logits and the value."""

    # Stable-Baselines3 declares its own kinds of layers, but asks only that they can be called.
    mlp_extractor: Any
    action_net: Any
    value_net: Any

    def __init__(self, *args: Any, network: PolicyNetwork, **options: Any) -> None:
        self._network = [network]  # not a part of this yet
        super().__init__(*args, **options | {"ortho_init": False})

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _Extractor(self._network[0])

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net, self.value_net = nn.Identity(), nn.Identity()
        options: dict[str, Any] = {"lr": lr_schedule(1)} | self.optimizer_kwargs
        self.optimizer = self.optimizer_class(self.parameters(), **options)


class _Extractor(nn.Module):
    """The network in the place of the layers that policy and value share or have apart."""

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
        board, self_play = observation[:, BOARD_AT].long(), observation[:, SELF_PLAY_AT] > 0
        scores, values, _ = self.network(
            observation[:, :N_INPUTS], Moves(results, position, action), board, self_play
        )
        logits = torch.zeros_like(observation[:, LEGAL])
        return logits.index_put((position, action), scores), torch.tanh(values)[:, None]

    def forward_actor(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[0]  # type: ignore[no-any-return]

    def forward_critic(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[1]  # type: ignore[no-any-return]
