"""TD(λ) in self-play in one file, to read and to change, with only `Batch` and PyTorch.

    python agents/one_file_td.py --decisions 3000000 --seed 1 --file weights.pt
    tokaido evaluate python:agents.one_file_td:ValueAgent,file=weights.pt random --games 1000

A network estimates the value of afterstates: the positions after an action, before chance or the
next decision (Sutton and Barto 2018, 6.8). Both players take the action with the best afterstate.
Each target is a mean of the game's result and the values in between (TD(λ); Tesauro 1995). The
program ends with a match against `greedy`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.batch import Batch
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.features.afterstates import END, Afterstates
from tokaido_env.features.network_inputs import N_INPUTS
from tokaido_env.learn.budget import Budget
from tokaido_env.observers import afterstates

GAMES, MINIBATCH_SIZE = 256, 1024
LEARNING_RATE, VALUE_LAMBDA, TEMPERATURE = 1e-3, 0.9, 0.08  # the last of actions by their values
TRACKS: dict[str, tuple[Any, int]] = {  # formats and numbers of inputs
    "afterstates": ("afterstates", N_INPUTS),
    "raw": ("float32", N_FEATURES),
}


class Network(nn.Module):
    """Computes the value of afterstates for their viewers, as log-odds / 2; 0 at the start.

    Args:
        track: "raw" to read the observation, or "afterstates" for the inputs of our networks.
        width: units of the first layer.
    """

    def __init__(self, track: str = "afterstates", width: int = 128) -> None:
        super().__init__()
        self.inputs, size = TRACKS[track]
        layers = [nn.Linear(size, width), nn.ReLU(), nn.Linear(width, 64), nn.ReLU()]
        last = nn.Linear(64, 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.layers = nn.Sequential(*layers, last)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the values as log-odds / 2, float32 (n,).

        Args:
            inputs: float32 (n, width of the track), as `Afterstates.inputs`.
        """
        return self.layers(inputs).squeeze(1)  # type: ignore[no-any-return]

    @torch.no_grad()
    def values(self, after: Afterstates, movers: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """Return the values of afterstates for the players who move, float32 (k,) in [-1, 1].

        Args:
            after: the afterstates of n games, k in all; an action that ends a game has its result.
            movers: int8 (n,), the seat that decides in each game.
        """
        values = torch.tanh(self(torch.from_numpy(after.inputs))).numpy()
        values *= np.where(after.viewer == movers[after.game], 1, -1)
        return np.where(after.kind == END, after.result, values)


class ValueAgent(Agent):
    """Takes the action with the best afterstate.

    Args:
        file: the weights of a network, from `--file`.
        network: the network itself, instead of a file.
    """

    spec = "one_file_td"

    def __init__(self, file: str = "", network: Network | None = None) -> None:
        if network is None:
            weights = torch.load(file, weights_only=True)
            size = weights["layers.0.weight"].shape[1]
            network = Network(next(track for track, (_, n) in TRACKS.items() if n == size))
            network.load_state_dict(weights)
        self.network = network

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        after = afterstates(boards, states, legal, self.network.inputs)
        values = self.network.values(after, states["player"])
        return after.action[best_rows(after.game, values)]  # type: ignore[no-any-return]


def best_rows(game: npt.NDArray[np.int64], scores: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the row of each game's highest score, int64 (games,).

    Args:
        game: int64 (k,), the game of each row.
        scores: (k,), the score of each row.
    """
    order = np.lexsort((scores, game))
    return order[np.flatnonzero(np.diff(game[order], append=-1))]


def play_games(network: Network, seed: int, temperature: float) -> tuple[Tensor, Tensor]:
    """Play games of the network against itself to their end.

    Args:
        network: plays both seats.
        seed: of the games and of the noise.
        temperature: of the noise that is added to the values, to explore; 0: none.

    Returns:
        The inputs of the afterstates, float32 (n, width of the track), and the targets, float32
        (n,): their viewers' win probabilities.
    """
    batch, rng = Batch(GAMES, observation=None, autoreset=False), np.random.default_rng(seed)
    batch.reset(seed=seed)
    steps, found = [], []
    while len(running := np.flatnonzero(~batch.over)):
        movers = batch.states["player"][running]
        after = batch.afterstates(running, network.inputs)
        values = network.values(after, movers)
        rows = best_rows(after.game, values + temperature * rng.gumbel(size=len(values)))
        own = values[rows] * (1 - 2 * movers)  # for player_0, as all values below
        steps.append((running, own, after.inputs[rows], after.viewer[rows], after.kind[rows]))
        batch.advance(running, after.action[rows])
    value = batch.rewards(batch.all_games)[:, 0]  # of each game's next afterstate
    target = value.copy()
    for games, values, inputs, viewer, kind in reversed(steps):
        target[games] = value[games] + VALUE_LAMBDA * (target[games] - value[games])
        value[games] = values
        wins = (1 + target[games] * (1 - 2 * viewer)) / 2
        found.append((inputs[kind != END], wins[kind != END]))
    inputs, wins = map(np.concatenate, zip(*found, strict=True))
    return torch.from_numpy(inputs), torch.from_numpy(wins.astype(np.float32))


def train(budget: Budget, seed: int, track: str = "afterstates") -> Network:
    """Train a network, and print the number of decisions after each update."""
    torch.manual_seed(seed)
    network = Network(track)
    optimizer = torch.optim.Adam(network.parameters())
    while budget.left > 0:
        share = max(budget.left, 0.03)
        inputs, wins = play_games(network, seed * 10**9 + budget.decisions, TEMPERATURE * share)
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * share
        for rows in torch.split(torch.randperm(len(wins)), MINIBATCH_SIZE):
            logits = 2 * network(inputs[rows])
            loss: Any = nn.functional.binary_cross_entropy_with_logits(logits, wins[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        budget.spend(len(wins), network)
        print(f"{budget.decisions:>10,} decisions, {budget.left:.0%} left", flush=True)
    return network


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a network and play a match."""
    parser = argparse.ArgumentParser(description="TD(lambda) in self-play in one file.")
    Budget.add_options(parser, decisions=3_000_000)
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    games = "games of the match against greedy, an even number (default: 4000)"
    parser.add_argument("--games", type=int, default=4000, help=games)
    track = "inputs of the network; raw: the observation alone (default: afterstates)"
    parser.add_argument("--track", choices=TRACKS, default="afterstates", help=track)
    parser.add_argument("--file", help="file for the weights (default: none)")
    options = parser.parse_args(arguments)
    network = train(Budget.of(options), options.seed, options.track)
    if options.file:
        torch.save(network.state_dict(), options.file)
    match = play_match(ValueAgent(network=network), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
