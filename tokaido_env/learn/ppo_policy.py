"""What Stable-Baselines3 trains: the learner's games, and the network in the place of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from tokaido_env.agents.inference import Floats
from tokaido_env.agents.inputs import N_INPUTS, read_positions
from tokaido_env.agents.policy import Policy, Sizes
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.learn.network import AGAINST, MoveNetwork, frozen, seed32
from tokaido_env.learn.settings import SELF_PLAY, Settings
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.versus import Ended, Opponents

LEGAL = slice(N_INPUTS, N_INPUTS + N_ACTIONS)
BOARD_AT = LEGAL.stop
SELF_PLAY_AT = BOARD_AT + 1
N_SEEN = SELF_PLAY_AT + 1
"""Numbers of an observation; boards of a pool are so few that float32 holds their numbers."""


class LearnerEnv(TokaidoVecEnv):
    """Games whose observation is what the network reads: inputs, legal actions, board, self-play.

    The board is told by its place in the pool. At the end of a game nothing is to be decided: of
    the inputs only the observation is given.

    Attributes:
        self_play: bool (n,), whether each game is against the learner itself. The policy never
            sees it, only the critic: whom it meets makes a value another (Pinto et al. 2018,
            "Asymmetric actor critic").
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.observation_space = spaces.Box(-np.inf, np.inf, (N_SEEN,), np.float32)
        self.self_play = np.zeros(self.num_envs, np.bool_)

    def observe(self) -> npt.NDArray[np.float32]:
        """Return what the learner sees now: float32 (n, N_SEEN)."""
        batch = self.games.batch
        boards = batch.boards_of(batch.all_games)
        seen = read_positions(boards, batch.states, batch.legal, N_SEEN - N_INPUTS)
        seen[:, LEGAL] = self.action_masks()
        seen[:, BOARD_AT] = batch.slots["board"]
        seen[:, SELF_PLAY_AT] = self.self_play
        return seen

    def _final(self, ended: Ended, j: int, game: int) -> dict[str, Any]:
        info = super()._final(ended, j, game)
        last = np.zeros(N_SEEN, np.float32)
        last[:N_FEATURES] = info["terminal_observation"]
        # The cap on rounds is a rule and the game over there, nobody's (R10.1): the trainer would
        # add the value of the last observation, where the truth is 0.
        return info | {"terminal_observation": last, "TimeLimit.truncated": False}


class MovePolicy(MaskableActorCriticPolicy):
    """`MoveNetwork` as Stable-Baselines3 wants it: its outputs are the logits and the value."""

    # Stable-Baselines3 declares its own kinds of layers, but asks only that they can be called.
    mlp_extractor: Any
    action_net: Any
    value_net: Any

    def __init__(
        self,
        *args: Any,
        sizes: Sizes,
        boards: npt.NDArray[np.void] | None = None,
        against_others: bool = False,
        **options: Any,
    ) -> None:
        self.sizes = sizes
        self.boards = boards
        self.against_others = against_others
        super().__init__(*args, **options | {"ortho_init": False})

    def _build_mlp_extractor(self) -> None:
        network = MoveNetwork(self.sizes, self.boards, against_others=self.against_others)
        self.mlp_extractor = _Extractor(network)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net, self.value_net = nn.Identity(), nn.Identity()
        options: dict[str, Any] = {"lr": lr_schedule(1)} | self.optimizer_kwargs
        self.optimizer = self.optimizer_class(self.parameters(), **options)


class _Extractor(nn.Module):
    """`MoveNetwork` in the place of the layers that policy and value share or have apart."""

    latent_dim_pi, latent_dim_vf = N_ACTIONS, 1

    def __init__(self, network: MoveNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, legal = observation[:, :N_INPUTS], observation[:, LEGAL] > 0
        board, self_play = observation[:, BOARD_AT].long(), observation[:, SELF_PLAY_AT] > 0
        logits, value = self.network(inputs, legal, board, self_play)
        return logits, value

    def forward_actor(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[0]  # type: ignore[no-any-return]

    def forward_critic(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[1]  # type: ignore[no-any-return]


def learner_env(settings: Settings, opponents: Opponents) -> LearnerEnv:
    """Return the learner's games, not begun: game `i` meets `opponents[i % len(opponents)]`."""
    return LearnerEnv(settings.games, opponents, settings.seed, settings.board)


def new_learner(env: TokaidoVecEnv, settings: Settings) -> MaskablePPO:
    """Return an untrained learner of such games.

    gamma is 1: a game's only reward is its result. A step runs from one decision of the learner to
    its next, so every value is that of the learner's own seat.
    """
    model = MaskablePPO(
        MovePolicy,
        env,
        learning_rate=learning_rate(settings),
        n_steps=settings.rollout,
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        policy_kwargs={
            "sizes": settings.sizes,
            "boards": settings.boards_seen,
            "against_others": settings.value_from == SELF_PLAY,
        },
        seed=seed32(settings.seed),
        device="cpu",
    )
    env.seed(settings.seed)  # SB3 has handed on its own
    return model


def learning_rate(settings: Settings) -> Callable[[float], float]:
    """Return the learning rate as a function of the share of `steps` that remains: linear."""
    first, end = settings.learning_rate, settings.learning_rate * settings.final_learning_rate

    def rate(remaining: float) -> float:
        return end + (first - end) * max(remaining, 0.0)  # the last update may go past the end

    return rate


def policy_of(model: MaskablePPO, training: dict[str, Any] | None = None) -> Policy:
    """Return a frozen copy of the learner's network, with what is to be said of its training."""
    return frozen(network_of(model), training)


def tensors_of(model: MaskablePPO) -> dict[str, dict[str, Floats]]:
    """Return the tensors of the learner's policy, and of one that has its second value instead.

    Keys are where they stand, for messages.
    """
    network = network_of(model)
    tensors = frozen(network).tensors
    told = {"learner.safetensors": tensors}
    if network.against is not None:
        state = network.state_dict()
        second = {value: state[name].numpy() for name, value in AGAINST.items()}
        told["learner.safetensors: against others"] = tensors | second
    return told


def network_of(model: MaskablePPO) -> MoveNetwork:
    """Return the network that a learner trains."""
    policy: Any = model.policy
    network: MoveNetwork = policy.mlp_extractor.network
    return network
