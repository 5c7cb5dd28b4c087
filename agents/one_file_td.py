"""TD(λ) in self-play in one file, to read and to change, with only `Batch` and PyTorch.

    python agents/one_file_td.py --decisions 3000000 --log logs/td --file weights.pt
    tokaido evaluate python:agents.one_file_td:ValueAgent,file=weights.pt random --games 1000

A network estimates the value of afterstates: the positions after an action, before chance or the
next decision (Sutton and Barto 2018, 6.8). Both players take the action with the best afterstate.
Each target is a mean of the game's result and the values in between (TD(λ); Tesauro 1995).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.batch import Batch
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.state import END_CAP
from tokaido_env.features.afterstates import DECISION, END, AfterstateInputs, Afterstates
from tokaido_env.features.geometry_features import N_GEOMETRY
from tokaido_env.features.network_inputs import N_INPUTS
from tokaido_env.learn.training_script import Budget, save_and_play, training_options
from tokaido_env.observers import afterstates

MINIBATCH_SIZE, MAX_GRAD_NORM, SCORE_EVERY = 1024, 1.0, 10
# Learning rate and temperature fall with the budget that is left, but not to zero: the last
# updates would change nothing, and their games would have no exploration.
LOWEST_SHARE = 0.03
TRACKS: dict[str, tuple[AfterstateInputs, int]] = {  # formats and numbers of inputs
    "raw": ("float32", N_FEATURES),  # the observation
    "geometry": ("geometry", N_GEOMETRY),  # the score and what each die reaches, too
    "afterstates": ("afterstates", N_INPUTS),  # all inputs of our networks, made by hand
}


class Settings(NamedTuple):
    """What to change first: each is an option of the command line."""

    width: int = 128  # units of the first layer
    games_per_update: int = 256
    learning_rate: float = 1e-3  # Adam's, at the start
    value_lambda: float = 0.9  # 1: targets are results of games, 0: the next values
    temperature: float = 0.05  # of noise on values from -1 to 1, to explore, at the start


DEFAULTS = Settings()
Samples = tuple[Tensor, Tensor, int]
Values = tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]


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
        self.layers = nn.Sequential(*layers, nn.Linear(64, 1))
        for parameter in self.layers[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the values as log-odds / 2, float32 (n,), of `Afterstates.inputs`."""
        return self.layers(inputs).squeeze(1)  # type: ignore[no-any-return]

    @torch.no_grad()
    def read(self, after: Afterstates, movers: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """Return the network's own values of k afterstates, and the results of ends."""
        values = torch.tanh(self(torch.from_numpy(after.inputs))).numpy()
        values *= np.where(after.viewer == movers[after.game], 1, -1)
        return np.where(after.kind == END, after.result, values)

    def values(self, boards: Any, after: Afterstates, movers: npt.NDArray[np.int8]) -> Values:
        """Return the values of k afterstates for the players who move, float32 (k,) in [-1, 1].

        Where the same player decides next, as on the effect of a move, the best action counts; the
        inputs "afterstates" describe it already. Also returns, bool (k,), which are the network's
        own. `movers`, int8 (n,), decide.
        """
        values, own = self.read(after, movers), after.kind != END
        again = np.flatnonzero((after.kind == DECISION) & (after.viewer == movers[after.game]))
        if len(again) and self.inputs != "afterstates":
            own[again] = False
            states, some = after.states[again], after.game[again] if len(boards) > 1 else [0]
            following = afterstates(boards[some], states, after.legal[again], self.inputs)
            best = self.read(following, states["player"])
            values[again] = best[following.best_rows(best)]
        return values, own


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
        values, _ = self.network.values(boards, after, states["player"])
        return after.action[after.best_rows(values)]  # type: ignore[no-any-return]


def play_games(network: Network, batch: Batch, seed: int, noise: float, lam: float) -> Samples:
    """Play games of the network against itself to their end, with noise and targets by λ.

    Returns the inputs of n afterstates, float32 (n, inputs), the probabilities to win of their
    viewers as targets, float32 (n,), and the number of decisions.
    """
    rng = np.random.default_rng(seed)
    batch.reset(seed=seed)
    steps, found = [], []
    while len(running := np.flatnonzero(~batch.over)):
        movers = batch.states["player"][running]
        after = batch.afterstates(running, network.inputs)
        values, is_own = network.values(batch.boards_of(running), after, movers)
        rows = after.best_rows(values + noise * rng.gumbel(size=len(values)))
        own = values[rows] * (1 - 2 * movers)  # for player_0, as all values below
        steps.append((running, own, after.inputs[rows], after.viewer[rows], is_own[rows]))
        batch.advance(running, after.action[rows])
    value = batch.rewards(batch.all_games)[:, 0]  # of each game's next afterstate
    target = value.copy()
    for games, values, inputs, viewer, learnt in reversed(steps):
        target[games] = value[games] + lam * (target[games] - value[games])
        value[games] = values
        wins = (1 + target[games] * (1 - 2 * viewer)) / 2
        found.append((inputs[learnt], wins[learnt]))
    inputs, wins = map(np.concatenate, zip(*found, strict=True))
    decisions = sum(len(games) for games, *_ in steps)
    return torch.from_numpy(inputs), torch.from_numpy(wins.astype(np.float32)), decisions


def learn(network: Network, optimizer: Any, inputs: Tensor, wins: Tensor) -> float:
    """Take a gradient step on each minibatch; return the mean loss, a cross-entropy."""
    losses = []
    for rows in torch.split(torch.randperm(len(wins)), MINIBATCH_SIZE):
        logits = 2 * network(inputs[rows])
        loss: Any = nn.functional.binary_cross_entropy_with_logits(logits, wins[rows])
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
        *samples, decisions = play_games(network, batch, *games, settings.value_lambda)
        figures = {"loss": learn(network, optimizer, *samples)}
        figures["game_length"] = decisions / len(batch)
        figures["capped"] = (batch.states["end"] == END_CAP).mean()
        updates += 1
        if updates % SCORE_EVERY == 0:
            figures["score_against_greedy"] = play_match(agent, greedy, 200, seed).score
        budget.spend(decisions, network, **figures)
    return network


def main(arguments: list[str] | None = None) -> None:
    """Train a network and play a match against `greedy`."""
    parser = training_options("TD(λ) in self-play.", 3_000_000, TRACKS, "afterstates", DEFAULTS)
    given = parser.parse_args(arguments)
    settings = Settings(*(getattr(given, name) for name in Settings._fields))
    network = train(Budget.of(given), given.seed, given.track, settings)
    save_and_play(given, network, ValueAgent(network=network))


if __name__ == "__main__":
    main()
