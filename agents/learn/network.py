"""The learner: the games it plays, its network, and how that becomes a policy file.

Nothing else in training knows what the network is made of; `policy` tells what its parts are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from tokaido_env.agents.learn.settings import RunError, Settings
from tokaido_env.agents.players.heuristic import N_TERMS
from tokaido_env.agents.players.inputs import MOST_LEGAL, N_INPUTS, N_TRUNK, OUTLOOK, read_positions
from tokaido_env.agents.players.policy import Policy, Sizes, shapes_of
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.versus import Ended, Opponents

_OUTLOOK_WEIGHT = 50.0  # at first: the untrained policy draws by the heuristic, with some noise
_MOVE_BIAS = 0.1  # standard deviation, at first


class MoveNetwork(nn.Module):
    """The network of `policy` in PyTorch: what is trained, with the same names of tensors.

    Args:
        sizes: how wide its layers are.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.trunk = nn.ModuleList(
            [nn.Linear(N_TRUNK, sizes.first), nn.Linear(sizes.first, sizes.second)]
        )
        self.action = nn.Linear(sizes.second, N_ACTIONS)
        self.result = nn.Linear(N_TERMS, sizes.move, bias=False)
        self.context = nn.Linear(sizes.second, sizes.move, bias=False)
        self.move = _Moves(sizes.move)
        self.outlook = _Factor()
        self.value = nn.Linear(sizes.second, 1)

    def forward(
        self, inputs: torch.Tensor, legal: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (n, N_ACTIONS), 0 where illegal, and values (n, 1).

        Args:
            inputs: float32 (n, N_INPUTS), by `inputs.read_positions`.
            legal: bool (n, N_ACTIONS).
        """
        hidden = inputs[:, :N_TRUNK]
        for layer in self.trunk:
            hidden = torch.relu(layer(hidden))
        game, action = legal.nonzero(as_tuple=True)
        rows = torch.arange(MOST_LEGAL) < legal.sum(dim=1, keepdim=True)
        result = inputs[:, N_TRUNK:].reshape(-1, MOST_LEGAL, N_TERMS)[rows]
        context = self.context(hidden)[game]
        scores = self.move(self.result(result) + context, action)
        scores = scores + self.action(hidden)[game, action]
        scores = scores + self.outlook.weight * inputs[game, OUTLOOK + action]
        logits = torch.zeros_like(legal, dtype=scores.dtype)
        return logits.index_put((game, action), scores), torch.tanh(self.value(hidden))


class _Moves(nn.Module):
    """Scores moves: a bias for each action in the hidden layer, and what its units weigh."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(N_ACTIONS, size) * _MOVE_BIAS)
        self.weight = nn.Parameter((torch.rand(size) * 2 - 1) / size**0.5)

    def forward(self, hidden: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Return the scores (k,) of hidden layers (k, size) of actions (k,)."""
        return torch.relu(hidden + self.bias[action]) @ self.weight


class _Factor(nn.Module):
    """One number that is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((1,), _OUTLOOK_WEIGHT))


class LearnerEnv(TokaidoVecEnv):
    """Games whose observation is what the network reads: inputs, then the legal actions.

    At the end of a game nothing is to be decided: of the inputs only the observation is told.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        shape = (N_INPUTS + N_ACTIONS,)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)

    def observe(self) -> npt.NDArray[np.float32]:
        """Return what the learner sees now: float32 (n, N_INPUTS + N_ACTIONS)."""
        batch = self.games.batch
        boards = batch.boards_of(np.arange(self.num_envs))
        seen = read_positions(boards, batch.states, batch.legal, N_ACTIONS)
        seen[:, N_INPUTS:] = self.action_masks()
        return seen

    def _final(self, ended: Ended, j: int, game: int) -> dict[str, Any]:
        info = super()._final(ended, j, game)
        last = np.zeros(N_INPUTS + N_ACTIONS, np.float32)
        last[:N_FEATURES] = info["terminal_observation"]
        return info | {"terminal_observation": last}


class MovePolicy(MaskableActorCriticPolicy):
    """`MoveNetwork` as Stable-Baselines3 wants it: its outputs are the logits and the value."""

    # Stable-Baselines3 declares its own kinds of layers, but asks only that they can be called.
    mlp_extractor: Any
    action_net: Any
    value_net: Any

    def __init__(self, *args: Any, sizes: Sizes, **options: Any) -> None:
        self.sizes = sizes
        super().__init__(*args, **options | {"ortho_init": False})

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _Both(self.sizes)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net, self.value_net = nn.Identity(), nn.Identity()
        options: dict[str, Any] = {"lr": lr_schedule(1)} | self.optimizer_kwargs
        self.optimizer = self.optimizer_class(self.parameters(), **options)


class _Both(nn.Module):
    """`MoveNetwork` in the place of the layers that policy and value share or have apart."""

    latent_dim_pi, latent_dim_vf = N_ACTIONS, 1

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.network = MoveNetwork(sizes)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, value = self.network(observation[:, :N_INPUTS], observation[:, N_INPUTS:] > 0)
        return logits, value

    def forward_actor(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[0]  # type: ignore[no-any-return]

    def forward_critic(self, observation: torch.Tensor) -> torch.Tensor:
        return self(observation)[1]  # type: ignore[no-any-return]


def learner_env(settings: Settings, opponents: Opponents) -> TokaidoVecEnv:
    """Return the learner's games, not begun: game `i` meets `opponents[i % len(opponents)]`."""
    return LearnerEnv(settings.games, opponents, settings.seed, settings.board)


@contextmanager
def repeatable() -> Iterator[None]:
    """Let PyTorch compute the same bytes each time; otherwise its threads add in any order."""
    options: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), options.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    options.fill_uninitialized_memory = False  # none is read
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        options.fill_uninitialized_memory = before[1]


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
        policy_kwargs={"sizes": settings.sizes},
        seed=seed32(settings.seed),
        device="cpu",
    )
    env.seed(settings.seed)  # SB3 has handed on its own
    return model


def seed32(seed: int) -> int:
    """Return a seed of 32 bits, which is what PyTorch's users take, from any seed."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def learning_rate(settings: Settings) -> Callable[[float], float]:
    """Return the learning rate as a function of the share of `steps` that remains: linear."""
    first, end = settings.learning_rate, settings.learning_rate * settings.final_learning_rate

    def rate(remaining: float) -> float:
        return end + (first - end) * max(remaining, 0.0)  # the last update may go past the end

    return rate


def policy_of(model: MaskablePPO, training: dict[str, Any] | None = None) -> Policy:
    """Return a frozen copy of the learner's network, with what is to be said of its training."""
    return frozen(network_of(model), training)


def network_of(model: MaskablePPO) -> MoveNetwork:
    """Return the network that a learner trains."""
    policy: Any = model.policy
    network: MoveNetwork = policy.mlp_extractor.network
    return network


def frozen(network: MoveNetwork, training: dict[str, Any] | None = None) -> Policy:
    """Return a copy of a network as a policy."""
    tensors = {
        name: tensor.detach().numpy().copy() for name, tensor in network.state_dict().items()
    }
    return Policy(tensors, training or {})


def load_weights(network: MoveNetwork, policy: Policy) -> None:
    """Give a network the weights of a policy.

    Raises:
        RunError: if its layers have other sizes; the network is as before then.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = shapes_of(policy.sizes)
    if found != expected:
        own = (expected["trunk.0.bias"][0], expected["trunk.1.bias"][0], expected["move.weight"][0])
        raise RunError(f"start_from: expected {Sizes(*own)}, the policy has {policy.sizes}")
    network.load_state_dict({name: torch.from_numpy(t) for name, t in policy.tensors.items()})
