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

import argparse
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
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.afterstate_observation import N_AFTERSTATE, N_OBSERVED
from tokaido_env.learn.budget import Budget
from tokaido_env.observers import masks, observe
from tokaido_env.sb3 import TokaidoVecEnv
from tokaido_env.spaces import action_space, observation_space

GAMES, STEPS, MINIBATCH, EPOCHS = 512, 32, 2048, 3
LEARNING_RATE, ENTROPY_COEF, WIDTH = 1e-3, 0.005, 256
SLOTS, SNAPSHOT_EVERY = 8, 10  # opponents at a time, half of them past; updates
TRACKS: dict[str, Any] = {"raw": "float32", "afterstates": "afterstates"}


class ActionScores(nn.Module):
    """Scores each action by its afterstate in the context of the state, and by its id."""

    def __init__(self, width: int, units: int = 32) -> None:
        super().__init__()
        self.afterstate, self.context = nn.Linear(N_AFTERSTATE, units), nn.Linear(width, units)
        self.score, self.by_id = nn.Linear(units, 1), nn.Linear(width, N_ACTIONS)
        nn.init.orthogonal_(self.by_id.weight, 0.01)

    def forward(self, hidden: Tensor, actions: Tensor) -> Tensor:
        """Return scores (n, N_ACTIONS), from actions (n, N_ACTIONS, N_AFTERSTATE)."""
        units = torch.relu(self.afterstate(actions) + self.context(hidden)[:, None])
        scores: Tensor = self.score(units).squeeze(2) + self.by_id(hidden)
        return scores


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
    parser = argparse.ArgumentParser(description="MaskablePPO against a pool of past selves.")
    add = parser.add_argument
    Budget.add_options(parser, decisions=2_000_000)
    track = "inputs of the network: the observation or also afterstates (default: raw)"
    add("--track", choices=TRACKS, default="raw", help=track)
    add("--seed", type=int, default=1, help="random seed (default: 1)")
    add("--file", help="file for the weights (default: none)")
    add("--games", type=int, default=4000, help="games of the match, even (default: %(default)s)")
    options = parser.parse_args()
    policy = train(Budget.of(options), options.seed, options.track)
    if options.file:
        torch.save(policy.state_dict(), options.file)
    agent = ModelAgent(policy=policy, track=options.track)
    match = play_match(agent, make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
