"""A PyTorch network as an agent: it learns to imitate `greedy`, then plays.

python agents/pytorch_agent.py weights.pt --steps 300
tokaido evaluate python:agents.pytorch_agent:TorchAgent,file=weights.pt random --games 100
"""

import argparse

import numpy as np
import torch
from torch import nn

from tokaido_env import Batch, Game
from tokaido_env.agents import make
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES


def new_network() -> nn.Sequential:
    """Return a network from observations, float32 (n, N_FEATURES), to scores (n, N_ACTIONS)."""
    return nn.Sequential(nn.Linear(N_FEATURES, 256), nn.ReLU(), nn.Linear(256, N_ACTIONS))


class TorchAgent:
    """Plays the legal action with the highest score.

    Args:
        file: the weights of a `new_network`, from `imitate` or from your own training.
    """

    def __init__(self, file: str) -> None:
        self.network = new_network()
        self.network.load_state_dict(torch.load(file, weights_only=True))

    @torch.no_grad()
    def choose(self, game: Game, rng: np.random.Generator) -> int:
        """Return the id of a legal action."""
        scores = self.network(torch.from_numpy(game.observation()))
        scores[torch.from_numpy(game.mask()) == 0] = -torch.inf
        return int(scores.argmax())


def imitate(file: str, steps: int) -> None:
    """Train a network to choose as `greedy` does in 256 games at once, and save its weights."""
    torch.manual_seed(0)
    network, teacher, batch = new_network(), make("greedy"), Batch(256)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    timestep = batch.reset(seed=0)
    for _ in range(steps):
        keys = batch.keys(batch.all_games)
        actions = teacher.act(batch.boards, batch.states, batch.legal, keys)
        scores = network(torch.from_numpy(timestep.observation))
        scores = scores.masked_fill(torch.from_numpy(timestep.mask) == 0, -1e9)
        loss = nn.functional.cross_entropy(scores, torch.from_numpy(actions))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        timestep = batch.step(actions)
    torch.save(network.state_dict(), file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A network that imitates greedy.")
    parser.add_argument("file", help="file for the weights")
    parser.add_argument(
        "--steps", type=int, default=300, help="decisions in each of 256 games (default: 300)"
    )
    imitate(**vars(parser.parse_args()))
