"""PPO in self-play in one file, to read and to change, with only `Batch` and PyTorch.

    python agents/one_file_ppo.py --decisions 3276800 --seed 1 --file weights.pt
    python agents/one_file_ppo.py --track afterstates --minutes 30 --file weights.pt
    tokaido evaluate python:agents.one_file_ppo:NetworkAgent,file=weights.pt random --games 1000

One network plays both seats of many games. A value is the expected result of the player to decide,
and a player may decide several times in a row. So the advantages flip the sign of the next value
only where another player decides next (`TimeStep.next_player`). The rest is PPO (Schulman et al.
2017) with masked actions (Huang and Ontañón 2020). 3.3 million decisions take 141 seconds on two
cores. The program ends with a match against `greedy`.

On the track `raw` the network reads the observation. On `afterstates` it reads the inputs of our
networks, and scores each action from the features of its afterstate; a rollout takes 0.9 GB.
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
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.features.afterstate_observation import N_AFTERSTATE, N_OBSERVED
from tokaido_env.learn.budget import Budget
from tokaido_env.observers import ObservationFormat, masks, observation_size, observe

GAMES, STEPS = 1024, 64  # of a rollout
EPOCHS, MINIBATCH_SIZE = 4, 4096
LEARNING_RATE, ENTROPY_COEF, VALUE_COEF, CLIP_RANGE = 1e-3, 0.01, 0.5, 0.2
GAE_LAMBDA, MAX_GRAD_NORM = 0.95, 0.5
TRACKS: dict[str, ObservationFormat] = {"raw": "float32", "afterstates": "afterstates"}


class ActionScores(nn.Module):
    """Scores each action by its afterstate in the context of the state, and by its id."""

    def __init__(self, width: int, units: int = 32) -> None:
        super().__init__()
        self.afterstate, self.context = nn.Linear(N_AFTERSTATE, units), nn.Linear(width, units)
        self.score, self.by_id = nn.Linear(units, 1), nn.Linear(width, N_ACTIONS)
        nn.init.orthogonal_(self.by_id.weight, 0.01)

    def forward(self, hidden: Tensor, actions: Tensor) -> Tensor:
        """Return the scores of all actions, (n, N_ACTIONS).

        Args:
            hidden: float32 (n, width), the units of the trunk.
            actions: float32 (n, N_ACTIONS, N_AFTERSTATE), features of each action's afterstate.
        """
        units = torch.relu(self.afterstate(actions) + self.context(hidden)[:, None])
        scores: Tensor = self.score(units).squeeze(2) + self.by_id(hidden)
        return scores


class Network(nn.Module):
    """Computes log-probabilities of actions and the value for the player to decide, -1 to 1.

    Args:
        inputs: length of the observation; with N_OBSERVED actions are scored by their afterstates.
        width: units of each layer.
    """

    def __init__(self, inputs: int = N_FEATURES, width: int = 256) -> None:
        super().__init__()
        self.inputs = inputs
        layers = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.value = nn.Linear(width, 1)
        self.policy: nn.Module
        if inputs == N_OBSERVED:
            self.policy = ActionScores(width)
        else:
            self.policy = nn.Linear(width, N_ACTIONS)
            nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, observation: Tensor, mask: Tensor, *actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (n, N_ACTIONS), about -1e9 if illegal, and values (n,), float32.

        Args:
            observation: float32 (n, inputs).
            mask: bool (n, N_ACTIONS), True = legal.
            actions: with N_OBSERVED inputs also float32 (n, N_ACTIONS, N_AFTERSTATE).
        """
        hidden = self.trunk(observation)
        logits = self.policy(hidden, *actions).masked_fill(~mask, -1e9)
        return logits.log_softmax(dim=1), torch.tanh(self.value(hidden)).squeeze(1)


def tensors(observed: Any, mask: npt.NDArray[Any]) -> list[Tensor]:
    """Return the arguments of the network: observation, mask and, if there are any, actions.

    Args:
        observed: float32 (n, inputs), or the dict of the observation "afterstates".
        mask: int8 or bool (n, N_ACTIONS), 1 = legal.
    """
    if not isinstance(observed, dict):
        return [torch.as_tensor(observed), torch.as_tensor(mask) > 0]
    inputs, actions = (torch.as_tensor(observed[name]) for name in ("observation", "actions"))
    return [inputs, torch.as_tensor(mask) > 0, actions]


class NetworkAgent(Agent):
    """Plays the likeliest action of a network.

    Args:
        file: the weights of a network, from `--file`.
        network: the network itself, instead of a file.
    """

    spec = "one_file_ppo"

    def __init__(self, file: str = "", network: Network | None = None) -> None:
        if network is None:
            weights = torch.load(file, weights_only=True)
            width, inputs = weights["trunk.0.weight"].shape
            network = Network(inputs, width)
            network.load_state_dict(weights)
        self.network = network
        self.track = "afterstates" if network.inputs == N_OBSERVED else "raw"
        self.see_board = self.track == "raw" and network.inputs > N_FEATURES

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        observed = observe(boards, states, None, TRACKS[self.track], self.see_board)
        with torch.no_grad():
            log_probs, _ = self.network(*tensors(observed, masks(legal)))
        actions: npt.NDArray[np.int64] = log_probs.argmax(dim=1).numpy()
        return actions


class Rollout:
    """Stores `STEPS` decisions of `GAMES` games, in tensors (STEPS, GAMES, …).

    `sign` is 1 where the same player decides next, -1 for the other, and 0 at the end of a game.

    Args:
        inputs: as for `Network`.
    """

    def __init__(self, inputs: int = N_FEATURES) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(STEPS, GAMES, *shape, dtype=dtype)

        self.observation, self.mask = zeros(inputs), zeros(N_ACTIONS, dtype=torch.bool)
        self.seen = [self.observation, self.mask]  # the arguments of the network
        if inputs == N_OBSERVED:
            self.seen.append(zeros(N_ACTIONS, N_AFTERSTATE))
        self.action, self.log_prob = zeros(dtype=torch.int64), zeros()
        self.value, self.reward, self.sign = zeros(), zeros(), zeros()

    def advantages(self, last: Tensor) -> Tensor:
        """Return the generalised advantages, float32 (STEPS, GAMES).

        Args:
            last: float32 (GAMES,), the values after the last step.
        """
        next_value, advantage = last, torch.zeros(GAMES)
        out = torch.zeros(STEPS, GAMES)
        for t in reversed(range(STEPS)):
            delta = self.reward[t] + self.sign[t] * next_value - self.value[t]
            out[t] = advantage = delta + GAE_LAMBDA * self.sign[t] * advantage
            next_value = self.value[t]
        return out


def train(
    budget: Budget, seed: int, board: str = "shikoku", width: int = 256, track: str = "raw"
) -> Network:
    """Train a network, and print the number of decisions every ten updates.

    On a pool of boards the network of the track `raw` also gets the board features.
    """
    torch.manual_seed(seed)
    see_board = track == "raw" and len(BoardPool.load(board)) > 1
    batch = Batch(GAMES, board, observation=TRACKS[track], see_board=see_board)
    inputs = N_OBSERVED if track == "afterstates" else observation_size("float32", see_board)
    network, rollout = Network(inputs, width), Rollout(inputs)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)
    timestep, update = batch.reset(seed=seed), 0
    while (left := budget.left) > 0:
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * left
        timestep = collect(network, batch, timestep, rollout)
        last = network(*tensors(timestep.observation, timestep.mask))[1]
        learn(network, optimizer, rollout, rollout.advantages(last.detach()))
        budget.spend(STEPS * GAMES, network)
        update += 1
        if update % 10 == 0 or not budget.left:
            print(f"{budget.decisions:>10,} decisions", flush=True)
    return network


@torch.no_grad()
def collect(network: Network, batch: Batch, timestep: Any, rollout: Rollout) -> Any:
    """Play `STEPS` decisions of each game; return the time step after them."""
    for t in range(STEPS):
        seen = tensors(timestep.observation, timestep.mask)
        log_probs, value = network(*seen)
        action = torch.multinomial(log_probs.exp(), 1).squeeze(1)
        timestep = batch.step(action.numpy())
        reward = timestep.reward[batch.all_games, timestep.player]
        ended, same = timestep.next_player < 0, timestep.next_player == timestep.player
        for stored, tensor in zip(rollout.seen, seen, strict=True):
            stored[t] = tensor
        rollout.action[t], rollout.value[t] = action, value
        rollout.log_prob[t] = log_probs.gather(1, action[:, None]).squeeze(1)
        rollout.reward[t] = torch.as_tensor(reward)
        rollout.sign[t] = torch.as_tensor(np.where(ended, 0.0, np.where(same, 1.0, -1.0)))
    return timestep


def learn(
    network: Network, optimizer: torch.optim.Optimizer, rollout: Rollout, advantages: Tensor
) -> None:
    """Take PPO's gradient steps on a rollout.

    Args:
        network: the network, changed in place.
        optimizer: of its parameters.
        rollout: the decisions.
        advantages: float32 (STEPS, GAMES), of the decisions.
    """
    flat = [
        tensor.reshape(STEPS * GAMES, *tensor.shape[2:])
        for tensor in (rollout.action, rollout.log_prob, advantages, *rollout.seen)
    ]
    target = (advantages + rollout.value).reshape(-1).clamp(-1, 1)
    has_choice = rollout.mask.sum(dim=2).reshape(-1) > 1  # a single legal action teaches nothing
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(STEPS * GAMES), MINIBATCH_SIZE):
            action, old_log_prob, advantage, *seen = (tensor[rows] for tensor in flat)
            log_probs, value = network(*seen)
            log_prob = log_probs.gather(1, action[:, None]).squeeze(1)
            ratio, free = (log_prob - old_log_prob).exp(), has_choice[rows]
            scaled = (advantage - advantage[free].mean()) / (advantage[free].std() + 1e-8)
            clipped = torch.min(
                ratio * scaled, ratio.clamp(1 - CLIP_RANGE, 1 + CLIP_RANGE) * scaled
            )
            entropy = -(log_probs.exp() * log_probs.clamp(min=-50)).sum(dim=1)
            loss = -(clipped + ENTROPY_COEF * entropy)[free].mean()
            loss = loss + VALUE_COEF * (value - target[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
            optimizer.step()


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a network and play a match; return the exit status."""
    parser = argparse.ArgumentParser(description="PPO in self-play in one file.")
    Budget.add_options(parser, decisions=50 * STEPS * GAMES)
    track = "inputs of the network: the observation or also afterstates (default: raw)"
    parser.add_argument("--track", choices=TRACKS, default="raw", help=track)
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    games = "games of the match against greedy, an even number (default: 4000)"
    parser.add_argument("--games", type=int, default=4000, help=games)
    board = "board, or pool such as family:train/1000 (default: shikoku)"
    parser.add_argument("--board", default="shikoku", help=board)
    parser.add_argument("--width", type=int, default=256, help="units of a layer (default: 256)")
    parser.add_argument("--file", help="file for the weights (default: none)")
    options = parser.parse_args(arguments)
    about = options.seed, options.board, options.width, options.track
    network = train(Budget.of(options), *about)
    if options.file:
        torch.save(network.state_dict(), options.file)
    match = play_match(NetworkAgent(network=network), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
