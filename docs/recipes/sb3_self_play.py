"""MaskablePPO of Stable-Baselines3 in self-play against a pool of past selves.

    python docs/recipes/sb3_self_play.py --decisions 2000000 --seed 1 --file weights.pt
    python docs/recipes/sb3_self_play.py --track afterstates --minutes 30 --file weights.pt
    tokaido evaluate python:docs/recipes/sb3_self_play.py:ModelAgent,file=weights.pt random

Half of the games are against the newest weights, the others against snapshots. An opponent is an
agent, here `ModelAgent`; `TokaidoVecEnv.set_opponents` sets the opponents of the next games. The
script ends with a match against `greedy`.

On the track `raw` the network reads the observation. On `afterstates` it reads the inputs of our
networks, and scores each action from the features of its afterstate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from tokaido_env.agent import Agent
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.afterstate_observation import N_OBSERVED
from tokaido_env.learn.action_scores import ActionScores
from tokaido_env.learn.training_script import Budget, save_and_play, training_options
from tokaido_env.observers import masks, observe
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.spaces import action_space, observation_space

GAMES, STEPS, MINIBATCH, EPOCHS = 512, 32, 2048, 3
LEARNING_RATE, ENTROPY_COEF, WIDTH = 1e-3, 0.005, 256
SLOTS, SNAPSHOT_EVERY = 8, 10  # opponents at a time, half of them past; updates
TRACKS: dict[str, Any] = {"raw": "float32", "afterstates": "afterstates"}


class Unchanged(BaseFeaturesExtractor):
    """Passes the arrays of an observation on to `Layers`."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, features_dim=1)

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the observation."""
        return observation


class Layers(nn.Module):
    """The layers of policy and value on the track `afterstates`, in place of SB3's."""

    latent_dim_pi, latent_dim_vf = N_ACTIONS, WIDTH

    def __init__(self) -> None:
        super().__init__()

        def hidden() -> nn.Module:
            first, second = nn.Linear(N_OBSERVED, WIDTH), nn.Linear(WIDTH, WIDTH)
            return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())

        self.policy, self.scores, self.value = hidden(), ActionScores(WIDTH), hidden()

    def forward(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return logits (n, N_ACTIONS) and the units below the value, (n, WIDTH)."""
        return self.forward_actor(observation), self.forward_critic(observation)

    def forward_actor(self, observation: dict[str, Tensor]) -> Tensor:
        """Return logits (n, N_ACTIONS)."""
        scores: Tensor = self.scores(
            self.policy(observation["observation"]), observation["actions"]
        )
        return scores

    def forward_critic(self, observation: dict[str, Tensor]) -> Tensor:
        """Return the units below the value, (n, WIDTH)."""
        units: Tensor = self.value(observation["observation"])
        return units


class AfterstatePolicy(MaskableActorCriticPolicy):
    """A policy with `Layers`."""

    mlp_extractor: Any
    action_net: Any

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = Layers()

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net = nn.Identity()  # the logits are complete
        self.optimizer = self.optimizer_class(self.parameters(), lr_schedule(1))


POLICIES: dict[str, tuple[type[MaskableActorCriticPolicy], dict[str, Any]]] = {
    "raw": (MaskableActorCriticPolicy, {"net_arch": [WIDTH] * 2, "activation_fn": nn.ReLU}),
    "afterstates": (AfterstatePolicy, {"features_extractor_class": Unchanged, "ortho_init": False}),
}


def policy_with(weights: dict[str, Tensor], track: str) -> Any:
    """Return a new policy with a copy of these weights."""
    kind, options = POLICIES[track]
    space: Any = observation_space(TRACKS[track])
    policy = kind(space, action_space(), lambda _: LEARNING_RATE, **options)
    policy.load_state_dict(weights)
    return policy


class ModelAgent(Agent):
    """Plays the likeliest action of a policy, or draws actions from it.

    Args:
        file: the weights of a policy, from `--file`.
        policy: the policy itself, instead of a file.
        track: of that policy.
        draws: whether to draw actions.
    """

    spec = "sb3_self_play"

    def __init__(
        self, file: str = "", policy: Any = None, track: str = "raw", draws: bool = False
    ) -> None:
        if policy is None:
            weights = torch.load(file, weights_only=True)
            track = "raw" if "mlp_extractor.scores.score.bias" not in weights else "afterstates"
            policy = policy_with(weights, track)
        self.policy, self.track, self.draws = policy, track, draws

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observed = observe(boards, states, observation=TRACKS[self.track])
        tensors, _ = self.policy.obs_to_tensor(observed)
        found = self.policy.get_distribution(tensors, action_masks=masks(legal))
        logits = found.distribution.logits.numpy()
        if self.draws:
            logits = logits + np.random.default_rng(keys).gumbel(size=logits.shape)
        best: npt.NDArray[np.int64] = logits.argmax(axis=1)
        return best


def train(budget: Budget, seed: int, track: str) -> Any:
    """Train a policy, and print the number of decisions every ten updates."""
    env = TokaidoVecEnv(GAMES, "random", seed, observation=TRACKS[track])
    policy, options = POLICIES[track]
    model = MaskablePPO(
        *(policy, env),
        policy_kwargs=options,
        learning_rate=lambda _: LEARNING_RATE * budget.left,
        **{"n_steps": STEPS, "batch_size": MINIBATCH, "n_epochs": EPOCHS},
        **{"gamma": 1.0, "ent_coef": ENTROPY_COEF, "seed": seed, "device": "cpu"},
    )
    model.set_logger(Logger(None, []))
    latest = ModelAgent(policy=model.policy, track=track, draws=True)
    pool: list[ModelAgent] = []
    update, rng = 0, np.random.default_rng(seed)
    while budget.left > 0:
        if update % SNAPSHOT_EVERY == 0:
            past_self = policy_with(model.policy.state_dict(), track)
            pool.append(ModelAgent(policy=past_self, track=track, draws=True))
            past = [pool[i] for i in rng.integers(len(pool), size=SLOTS // 2)]
            env.set_opponents([latest] * len(past) + past)
        model.learn(STEPS * GAMES, reset_num_timesteps=False)  # one update
        budget.spend(STEPS * GAMES, model.policy)
        update += 1
        if update % 10 == 0 or not budget.left:
            print(f"{budget.decisions:>10,} decisions", flush=True)
    return model.policy


def main() -> None:
    """Train and play a match."""
    about = "MaskablePPO against a pool of past selves."
    options = training_options(about, 2_000_000, TRACKS).parse_args()
    policy = train(Budget.of(options), options.seed, options.track)
    save_and_play(options, policy, ModelAgent(policy=policy, track=options.track))


if __name__ == "__main__":
    main()
