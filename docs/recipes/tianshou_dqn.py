"""DQN with action masks with Tianshou, against `random`.

    pip install tianshou==2.0.1
    python docs/recipes/tianshou_dqn.py --decisions 100000 --seed 1 --file weights.pt
    python docs/recipes/tianshou_dqn.py --track afterstates --minutes 30 --file weights.pt
    tokaido evaluate python:docs/recipes/tianshou_dqn.py:TianshouAgent,file=weights.pt random

Tianshou's Q-learning masks actions by `obs.mask`; its actor-critic methods do not. The script
learns one seat of `tokaido_env:TokaidoDuo-v0`, because in `PettingZooEnv` the player may change
between two positions, and targets would take the opponent's values for the player's. The opponent
is `random`: a beginner always loses to `greedy`, and would learn nothing.

On the track `raw` the network reads the observation. On `afterstates` it reads the inputs of our
networks, and scores each action from the features of its afterstate; the buffer takes 1.3 GB.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from torch import Tensor, nn

from tokaido_env.agent import Agent
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.rng import game_seed
from tokaido_env.features.afterstate_observation import N_OBSERVED
from tokaido_env.learn.action_scores import ActionScores
from tokaido_env.learn.training_script import Budget, save_and_play, training_options
from tokaido_env.observers import masks, observe

GAMES, COLLECTED, BATCH, GRADIENT_STEPS = 16, 1600, 256, 0.05
EXPLORATION, LEARNING_RATE, TARGET_EVERY, HORIZON = (1.0, 0.05), 5e-4, 300, 20
TRACKS: dict[str, Any] = {"raw": "float32", "afterstates": "afterstates"}
SIZES = {"raw": N_FEATURES, "afterstates": N_OBSERVED}


class QNetwork(nn.Module):
    """Computes the values of actions as Tianshou's policies call it."""

    def __init__(self, track: str, width: int = 256) -> None:
        super().__init__()
        first, second = nn.Linear(SIZES[track], width), nn.Linear(width, width)
        self.body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.track = track
        self.head = nn.Linear(width, N_ACTIONS) if track == "raw" else ActionScores(width)

    def forward(self, observation: Any, state: Any = None, info: Any = None) -> tuple[Tensor, Any]:
        """Return values (n, N_ACTIONS) and the state."""
        if self.track == "raw":
            return self.head(self.body(torch.as_tensor(observation))), state
        hidden = self.body(torch.as_tensor(observation["observation"]))
        return self.head(hidden, torch.as_tensor(observation["actions"])), state


class WithMask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Returns observations as Tianshou's dict of `obs` and `mask`."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        mask = spaces.MultiBinary(N_ACTIONS)
        self.observation_space = spaces.Dict({"obs": env.observation_space, "mask": mask})

    def observation(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        """Return an observation with its mask."""
        if isinstance(observation, dict):
            observation = {name: observation[name] for name in ("observation", "actions")}
        return {"obs": observation, "mask": info["action_mask"].astype(bool)}

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see `gymnasium.Env.reset`."""
        observation, info = self.env.reset(**options)
        return self.observation(observation, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play an action; see `gymnasium.Env.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self.observation(observation, info), reward, terminated, truncated, info


class TianshouAgent(Agent):
    """Plays the legal action with the highest value.

    Args:
        file: the weights of a network, from `--file`.
        network: the network itself, instead of a file.
    """

    spec = "tianshou_dqn"

    def __init__(self, file: str = "", network: QNetwork | None = None) -> None:
        if network is None:
            weights = torch.load(file, weights_only=True)
            size = weights["body.0.weight"].shape[1]
            network = QNetwork(next(track for track, n in SIZES.items() if n == size))
            network.load_state_dict(weights)
        self.network = network

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observed = observe(boards, states, observation=TRACKS[self.network.track])
        values, _ = self.network(observed)
        illegal = torch.as_tensor(~masks(legal))
        best: npt.NDArray[np.int64] = values.masked_fill(illegal, -torch.inf).argmax(dim=1).numpy()
        return best


class BudgetSpent(Exception):  # noqa: N818  no error
    """The end of the training: Tianshou's trainer has no limit of time."""


def train(budget: Budget, seed: int, track: str = "raw") -> QNetwork:
    """Train a network."""
    np.random.seed(seed)  # noqa: NPY002, Tianshou draws from it
    torch.manual_seed(seed)

    def make_env() -> gymnasium.Env[Any, Any]:
        shown = {"opponent": "random", "observation": TRACKS[track]}
        return WithMask(gymnasium.make("tokaido_env:TokaidoDuo-v0", **shown))

    envs = DummyVectorEnv([make_env] * GAMES)
    envs.seed([game_seed(seed, game) for game in range(GAMES)])
    space = spaces.Discrete(N_ACTIONS)
    network = QNetwork(track)
    policy = DiscreteQLearningPolicy(model=network, action_space=space)
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=LEARNING_RATE),
        gamma=1.0,
        n_step_return_horizon=HORIZON,
        target_update_freq=TARGET_EVERY,
        huber_loss_delta=1.0,
    )
    memory = VectorReplayBuffer(100_000, GAMES, ignore_obs_next=True)
    collector = Collector[Any](algorithm, envs, memory, exploration_noise=True)
    collector.reset()

    def before_collecting(epoch: int, played: int) -> None:
        if played > budget.decisions:
            budget.spend(played - budget.decisions, network)
        if not budget.left:
            raise BudgetSpent
        start, end = EXPLORATION
        policy.set_eps_training(max(end, start - (start - end) * 2 * (1 - budget.left)))

    with suppress(BudgetSpent):
        algorithm.run_training(
            OffPolicyTrainerParams(
                training_collector=collector,
                max_epochs=1,
                epoch_num_steps=2**40,
                collection_step_num_env_steps=COLLECTED,
                batch_size=BATCH,
                update_step_num_gradient_steps_per_sample=GRADIENT_STEPS,
                training_fn=before_collecting,
                show_progress=False,
                verbose=False,
            )
        )
    return network


def main() -> None:
    """Train and play a match."""
    about = "DQN with action masks with Tianshou."
    options = training_options(about, 100_000, TRACKS).parse_args()
    network = train(Budget.of(options), options.seed, options.track)
    save_and_play(options, network, TianshouAgent(network=network))


if __name__ == "__main__":
    main()
