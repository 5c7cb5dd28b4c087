"""TD(λ) in self-play in one file, to read and to change, with only `Batch` and PyTorch.

    python agents/one_file_td.py --decisions 3000000 --seed 1 --file weights.pt
    python agents/one_file_td.py --track raw --width 256 --log logs/raw  # for TensorBoard
    tokaido evaluate python:agents.one_file_td:ValueAgent,file=weights.pt random --games 1000

A network estimates the value of afterstates: the positions after an action, before chance or the
next decision (Sutton and Barto 2018, 6.8). Both players take the action with the best afterstate.
Each target is a mean of the game's result and the values in between (TD(λ); Tesauro 1995).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.batch import Batch
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.state import END_CAP
from tokaido_env.features.afterstates import END, AfterstateInputs, Afterstates
from tokaido_env.features.geometry_features import N_GEOMETRY
from tokaido_env.features.network_inputs import N_INPUTS
from tokaido_env.learn.budget import Budget
from tokaido_env.observers import afterstates

MINIBATCH_SIZE, MAX_GRAD_NORM, SCORE_EVERY = 1024, 1.0, 10
# Learning rate and temperature fall with the budget that is left, but not to zero: the last
# updates would change nothing, and their games would have no exploration.
LOWEST_SHARE = 0.03
TRACKS: dict[str, tuple[AfterstateInputs, int]] = {  # formats and numbers of inputs
    "raw": ("float32", N_FEATURES),
    "geometry": ("geometry", N_GEOMETRY),
    "afterstates": ("afterstates", N_INPUTS),
}


class Settings(NamedTuple):
    """What to change first: each is an option of the command line."""

    width: int = 128  # units of the first layer
    games_per_update: int = 256
    learning_rate: float = 1e-3  # Adam's, at the start
    value_lambda: float = 0.9  # 1: targets are results of games, 0: the next values
    temperature: float = 0.03  # of noise on values from -1 to 1, to explore, at the start


DEFAULTS = Settings()
Samples = tuple[Tensor, Tensor]


class Network(nn.Module):
    """Computes the value of afterstates for their viewers, as log-odds / 2; 0 at the start.

    Args:
        track: one of `TRACKS`: what the network reads.
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
        """Return the values as log-odds / 2, float32 (n,), of `Afterstates.inputs`."""
        return self.layers(inputs).squeeze(1)  # type: ignore[no-any-return]

    @torch.no_grad()
    def values(self, after: Afterstates, movers: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """Return the values of k afterstates for the players who move, float32 (k,) in [-1, 1].

        An action that ends a game has its result. `movers`, int8 (n,), decide in the n games.
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
            width, size = weights["layers.0.weight"].shape
            track = next(track for track, (_, inputs) in TRACKS.items() if inputs == size)
            network = Network(track, width)
            network.load_state_dict(weights)
        self.network = network

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        after = afterstates(boards, states, legal, self.network.inputs)
        values = self.network.values(after, states["player"])
        return after.action[best_rows(after.game, values)]  # type: ignore[no-any-return]


def best_rows(game: npt.NDArray[np.int64], scores: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the row of each game's highest score, int64 (games,); `game` is that of each row."""
    order = np.lexsort((scores, game))
    return order[np.flatnonzero(np.diff(game[order], append=-1))]


def play_games(network: Network, batch: Batch, seed: int, noise: float, lam: float) -> Samples:
    """Play games of the network against itself to their end, with noise and targets by λ.

    Returns:
        The inputs of n afterstates, float32 (n, inputs), and targets, float32 (n,): their viewers'
        probabilities to win.
    """
    rng = np.random.default_rng(seed)
    batch.reset(seed=seed)
    steps, found = [], []
    while len(running := np.flatnonzero(~batch.over)):
        movers = batch.states["player"][running]
        after = batch.afterstates(running, network.inputs)
        values = network.values(after, movers)
        rows = best_rows(after.game, values + noise * rng.gumbel(size=len(values)))
        own = values[rows] * (1 - 2 * movers)  # for player_0, as all values below
        steps.append((running, own, after.inputs[rows], after.viewer[rows], after.kind[rows]))
        batch.advance(running, after.action[rows])
    value = batch.rewards(batch.all_games)[:, 0]  # of each game's next afterstate
    target = value.copy()
    for games, values, inputs, viewer, kind in reversed(steps):
        target[games] = value[games] + lam * (target[games] - value[games])
        value[games] = values
        wins = (1 + target[games] * (1 - 2 * viewer)) / 2
        found.append((inputs[kind != END], wins[kind != END]))
    inputs, wins = map(np.concatenate, zip(*found, strict=True))
    return torch.from_numpy(inputs), torch.from_numpy(wins.astype(np.float32))


def learn(network: Network, optimizer: torch.optim.Optimizer, samples: Samples) -> float:
    """Take a gradient step on each minibatch; return the mean loss, a cross-entropy."""
    inputs, wins = samples
    losses = []
    for rows in torch.split(torch.randperm(len(wins)), MINIBATCH_SIZE):
        loss: Any = binary_cross_entropy_with_logits(2 * network(inputs[rows]), wins[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses))


def train(
    budget: Budget, seed: int, track: str = "afterstates", settings: Settings = DEFAULTS
) -> Network:
    """Train a network, and print the figures of each update."""
    torch.manual_seed(seed)
    network, updates = Network(track, settings.width), 0
    agent, greedy = ValueAgent(network=network), make("greedy")
    batch = Batch(settings.games_per_update, observation=None, autoreset=False)
    optimizer = torch.optim.Adam(network.parameters())
    while budget.left > 0:
        share = max(budget.left, LOWEST_SHARE)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * share
        games = seed * 10**9 + budget.decisions, settings.temperature * share
        samples = play_games(network, batch, *games, settings.value_lambda)
        figures = {"loss": learn(network, optimizer, samples)}
        figures["game_length"] = len(samples[1]) / len(batch)
        figures["capped"] = (batch.states["end"] == END_CAP).mean()
        if updates % SCORE_EVERY == 0:
            figures["score_against_greedy"] = play_match(agent, greedy, 200, seed).score
        budget.spend(len(samples[1]), network, **figures)
        updates += 1
    return network


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a network and play a match against `greedy`."""
    parser = argparse.ArgumentParser(description="TD(lambda) in self-play in one file.")
    Budget.add_options(parser, decisions=3_000_000)
    track = "raw: the observation; geometry: what dice reach too; afterstates: all inputs"
    parser.add_argument("--track", choices=TRACKS, default="afterstates", help=track)
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    for name, value in DEFAULTS._asdict().items():
        option = f"--{name.replace('_', '-')}"
        about = f"see `Settings` (default: {value})"
        parser.add_argument(option, type=type(value), default=value, help=about)
    parser.add_argument("--games", type=int, default=4000, help="games of the match, even")
    parser.add_argument("--file", help="file for the weights")
    given = parser.parse_args(arguments)
    settings = Settings(*(getattr(given, name) for name in Settings._fields))
    network = train(Budget.of(given), given.seed, given.track, settings)
    if given.file:
        torch.save(network.state_dict(), given.file)
    match = play_match(ValueAgent(network=network), make("greedy"), given.games, given.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {given.games:,} games)")


if __name__ == "__main__":
    main()
