"""PPO by self-play with PufferLib, from afterstates, with action masks.

    pip install pufferlib-core==3.0.23
    python docs/recipes/pufferlib_ppo.py --decisions 9000000 --seed 1 --file weights.pt
    tokaido evaluate python:docs/recipes/pufferlib_ppo.py:NetworkAgent,file=weights.pt heuristic

PufferLib assumes one player: it multiplies the next value by `1 - terminal`. Here one network plays
both seats, and a value changes its sign where the other player decides next. So the environment
reports `terminal = 1 - sign`: 0 if the same player decides next, 1 at the end of a game, and 2 if
the other player does. PufferLib's own estimate of advantages is then right for two players.

PufferLib needs PyTorch with CUDA's libraries, as `pip` installs it, but no GPU.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
import pufferlib
import torch
from gymnasium.spaces import Box, Discrete
from pufferlib.pufferl import PuffeRL
from torch import Tensor, nn

from tokaido_env import Batch
from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.afterstate_observation import AFTERSTATE_SHAPES, N_AFTERSTATE, N_OBSERVED
from tokaido_env.observers import observe

GAMES, STEPS, EPOCHS, MINIBATCH = 512, 64, 3, 4096
SIZES = [int(np.prod(shape)) for shape in AFTERSTATE_SHAPES.values()]  # observation, actions, mask
CONFIG: dict[str, Any] = {
    **{"env": "tokaido", "data_dir": "", "checkpoint_interval": 1 << 30, "device": "cpu"},
    **{"torch_deterministic": True, "cpu_offload": False, "use_rnn": False, "compile": False},
    **{"batch_size": GAMES * STEPS, "bptt_horizon": STEPS, "update_epochs": EPOCHS},
    **{"minibatch_size": MINIBATCH, "max_minibatch_size": MINIBATCH, "precision": "float32"},
    **{"optimizer": "adam", "learning_rate": 1e-3, "anneal_lr": True, "max_grad_norm": 0.5},
    **{"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_eps": 1e-5, "ent_coef": 0.01},
    **{"gamma": 1.0, "gae_lambda": 0.95, "clip_coef": 0.2, "vf_coef": 0.5, "vf_clip_coef": 10.0},
    **{"prio_alpha": 0.0, "prio_beta0": 1.0, "vtrace_rho_clip": 1.0, "vtrace_c_clip": 1.0},
}


class SelfPlay(pufferlib.PufferEnv):  # type: ignore[misc]
    """Many games as an environment of PufferLib, each from the view of the player to decide."""

    def __init__(self, games: int = GAMES) -> None:
        self.single_observation_space = Box(-np.inf, np.inf, (sum(SIZES),), np.float32)
        self.single_action_space = Discrete(N_ACTIONS)
        self.num_agents = games
        super().__init__()
        self.terminals = np.zeros(games, np.float32)  # PufferLib's own are bool
        self.batch = Batch(games, observation="afterstates", copy=False)

    def reset(self, seed: int | None = None) -> tuple[Any, list[Any]]:
        """Start games; return observations (games, size) and no infos."""
        self.observations[:] = rows_of(self.batch.reset(seed=seed).observation)
        return self.observations, []

    def step(self, actions: npt.NDArray[Any]) -> tuple[Any, ...]:
        """Play an action of each game; a finished game starts its next episode."""
        step = self.batch.step(actions.astype(np.int64))
        self.observations[:] = rows_of(step.observation)
        self.rewards[:] = step.reward[self.batch.all_games, step.player]
        sign = np.where(step.next_player == step.player, 1, -1)
        sign[step.next_player < 0] = 0
        self.terminals[:] = 1 - sign
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self) -> None:
        """Do nothing."""


def rows_of(observed: Any) -> npt.NDArray[np.float32]:
    """Return the arrays of the observation "afterstates" as one row a game, float32 (n, size)."""
    arrays = [observed[name].reshape(len(observed[name]), -1) for name in AFTERSTATE_SHAPES]
    return np.concatenate(arrays, axis=1, dtype=np.float32)


class Network(nn.Module):
    """Scores each action by the features of its afterstate, and estimates the value."""

    def __init__(self, width: int = 256, units: int = 32) -> None:
        super().__init__()
        layers = [nn.Linear(N_OBSERVED, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.afterstate, self.context = nn.Linear(N_AFTERSTATE, units), nn.Linear(width, units)
        self.score, self.by_id = nn.Linear(units, 1), nn.Linear(width, N_ACTIONS)
        self.value = nn.Linear(width, 1)
        nn.init.orthogonal_(self.by_id.weight, 0.01)

    def forward(self, rows: Tensor, state: Any = None) -> tuple[Tensor, Tensor]:
        """Return logits (n, N_ACTIONS), -1e9 if illegal, and values (n, 1) for who decides."""
        observation, actions, mask = rows.split(SIZES, dim=1)
        hidden = self.trunk(observation)
        actions = actions.reshape(len(rows), N_ACTIONS, N_AFTERSTATE)
        units = torch.relu(self.afterstate(actions) + self.context(hidden)[:, None])
        logits = self.score(units).squeeze(2) + self.by_id(hidden)
        return logits.masked_fill(mask == 0, -1e9), torch.tanh(self.value(hidden))

    forward_eval = forward  # PufferLib's name during play


class NetworkAgent(Agent):
    """Plays the likeliest action of a network.

    Args:
        file: the weights of a network, from `--file`.
        network: the network itself, instead of a file.
    """

    spec = "pufferlib_ppo"

    def __init__(self, file: str = "", network: Network | None = None) -> None:
        if network is None:
            network = Network()
            network.load_state_dict(torch.load(file, weights_only=True))
        self.network = network

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        rows = rows_of(observe(boards, states, None, "afterstates"))
        actions: npt.NDArray[np.int64] = self.network(torch.from_numpy(rows))[0].argmax(1).numpy()
        return actions


class Trainer(PuffeRL):  # type: ignore[misc]
    """PufferLib's PPO without its dashboard and its files."""

    def print_dashboard(self, clear: bool = False) -> None:
        """Print the number of decisions every ten updates."""
        if self.epoch % 10 == 0:
            print(f"{self.global_step:>10,} decisions", flush=True)

    def save_checkpoint(self) -> None:
        """Do nothing."""


def train(decisions: int, seed: int) -> Network:
    """Train a network."""
    torch.manual_seed(seed)
    network, size = Network(), GAMES * STEPS
    total = -(-decisions // size) * size
    trainer = Trainer(CONFIG | {"seed": seed, "total_timesteps": total}, SelfPlay(), network)
    while trainer.global_step < total:
        trainer.evaluate()
        trainer.train()
    trainer.utilization.stop()
    return network


def main() -> None:
    """Train and play a match."""
    parser = argparse.ArgumentParser(description="PPO by self-play with PufferLib.")
    add = parser.add_argument
    add("--decisions", type=int, default=9_000_000, help="decisions (default: %(default)s)")
    add("--seed", type=int, default=1, help="random seed (default: 1)")
    add("--file", help="file for the weights (default: none)")
    add("--threads", type=int, default=1, help="threads of PyTorch (default: 1)")
    add("--games", type=int, default=4000, help="games of the match, even (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    network = train(options.decisions, options.seed)
    if options.file:
        torch.save(network.state_dict(), options.file)
    match = play_match(NetworkAgent(network=network), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
