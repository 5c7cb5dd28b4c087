"""Imitation of an agent from its recorded games: a classifier of its actions.

    tokaido evaluate champion heuristic --games 600 --seed 5 --records games.jsonl
    tokaido export games.jsonl after.parquet --observation afterstates --distinct
    python docs/recipes/imitation.py after.parquet --player champion --file weights.pt
    tokaido regret python:docs/recipes/imitation.py:ImitationAgent,file=weights.pt

Every tenth seed is held out. Rows of one game are almost equal, and the two games of a pair share
set-up and rolls, so a split by rows or by games would report an accuracy that new seeds do not
confirm. The program ends with a match against `greedy`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.afterstate_observation import N_AFTERSTATE, N_OBSERVED
from tokaido_env.observers import masks, observe

MINIBATCH, LEARNING_RATE, WIDTH, UNITS = 256, 1e-3, 256, 32


class Network(nn.Module):
    """Scores actions from the observation, or each from the features of its afterstate.

    Args:
        inputs: length of the observation; with N_OBSERVED there are features of afterstates.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU())
        self.by_id = nn.Linear(WIDTH, N_ACTIONS)
        if inputs == N_OBSERVED:
            self.afterstate, self.context = nn.Linear(N_AFTERSTATE, UNITS), nn.Linear(WIDTH, UNITS)
            self.score = nn.Linear(UNITS, 1)

    def forward(self, observation: Tensor, mask: Tensor, *actions: Tensor) -> Tensor:
        """Return logits (n, N_ACTIONS), -1e9 if illegal.

        Args:
            observation: float32 (n, inputs).
            mask: bool (n, N_ACTIONS).
            actions: none, or float32 (n, N_ACTIONS, N_AFTERSTATE).
        """
        hidden = self.trunk(observation)
        logits: Tensor = self.by_id(hidden)
        for features in actions:
            units = torch.relu(self.afterstate(features) + self.context(hidden)[:, None])
            logits = logits + self.score(units).squeeze(2)
        return logits.masked_fill(~mask, -1e9)


class ImitationAgent(Agent):
    """Plays the likeliest action of a network.

    Args:
        file: the weights of a network, from `--file`.
        network: the network itself, instead of a file.
    """

    spec = "imitation"

    def __init__(self, file: str = "", network: Network | None = None) -> None:
        if network is None:
            weights = torch.load(file, weights_only=True)
            network = Network(weights["trunk.0.weight"].shape[1])
            network.load_state_dict(weights)
        self.network = network

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        seen, mask = observe(boards, states), torch.from_numpy(masks(legal))
        if self.network.trunk[0].in_features == N_OBSERVED:
            seen = observe(boards, states, None, "afterstates")
        arrays = (
            [seen[name] for name in ("observation", "actions")]
            if isinstance(seen, dict)
            else [seen]
        )
        first, *actions = map(torch.from_numpy, arrays)
        best: npt.NDArray[np.int64] = self.network(first, mask, *actions).argmax(1).numpy()
        return best


def read(path: str, player: str) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return a player's choices: arguments of the network, actions (n,), and which are held out."""
    parts: list[list[npt.NDArray[Any]]] = []
    with pq.ParquetFile(path) as file:
        names = [
            name for name in ("observation", "mask", "actions") if name in file.schema_arrow.names
        ]
        for batch in file.iter_batches(2048):
            columns = {name: batch[name].flatten().to_numpy() for name in names}
            arrays = [column.reshape(len(batch), -1) for column in columns.values()]
            is_choice = (arrays[1].sum(axis=1) > 1) & (batch["player"].to_numpy(False) == player)
            arrays += [batch[name].to_numpy() for name in ("action", "seed", "game")]
            parts.append([array[is_choice] for array in arrays])
    observation, mask, *actions, action, seed, game = map(np.concatenate, zip(*parts, strict=True))
    groups = np.where(seed < 0, game, seed)  # a game without a seed has none to share
    is_held_out = np.unique(groups, return_inverse=True)[1] % 10 == 0
    seen = [torch.from_numpy(observation), torch.from_numpy(mask) > 0]
    seen += [torch.from_numpy(each).reshape(-1, N_ACTIONS, N_AFTERSTATE) for each in actions]
    return seen, torch.from_numpy(action), torch.from_numpy(is_held_out)


def train(path: str, player: str, epochs: int, seed: int) -> Network:
    """Train a network to choose as a player did, and print its accuracy in held-out games."""
    torch.manual_seed(seed)
    seen, action, is_held_out = read(path, player)
    network = Network(seen[0].shape[1])
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    own, other = (~is_held_out).nonzero()[:, 0], is_held_out.nonzero()[:, 0]
    for epoch in range(1, epochs + 1):
        for rows in own[torch.randperm(len(own))].split(MINIBATCH):
            logits = network(*(each[rows] for each in seen))
            loss = nn.functional.cross_entropy(logits, action[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            right = network(*(each[other] for each in seen)).argmax(1) == action[other]
        print(f"epoch {epoch}: {right.float().mean():.1%} of {len(other):,} choices", flush=True)
    return network


def main() -> None:
    """Train and play a match."""
    parser = argparse.ArgumentParser(description="Imitation of an agent from its recorded games.")
    add = parser.add_argument
    add("data", help="table of decisions, from tokaido export")
    add("--player", required=True, help="the agent to imitate, by its name in the records")
    add("--epochs", type=int, default=5, help="passes over the data (default: 5)")
    add("--seed", type=int, default=1, help="random seed (default: 1)")
    add("--file", help="file for the weights (default: none)")
    add("--games", type=int, default=4000, help="games of the match, even (default: 4000)")
    options = parser.parse_args()
    network = train(options.data, options.player, options.epochs, options.seed)
    if options.file:
        torch.save(network.state_dict(), options.file)
    agent = ImitationAgent(network=network)
    match = play_match(agent, make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
