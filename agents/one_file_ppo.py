"""PPO in self-play in one file, to read and to change, with only `Batch` and PyTorch.

    python agents/one_file_ppo.py --updates 50 --seed 1 --file weights.pt
    tokaido evaluate python:agents.one_file_ppo:NetworkAgent,file=weights.pt random --games 1000

One network plays both seats of many games. A value is the expected result of the player to decide,
and a player may decide several times in a row. So the advantages flip the sign of the next value
only where another player decides next (`TimeStep.next_player`). The rest is PPO (Schulman et al.
2017) with masked actions (Huang and Ontañón 2020). 50 updates take 141 seconds on two cores. The
program ends with a match against `greedy`.
"""

from __future__ import annotations

import argparse
import time
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
from tokaido_env.observers import masks, observation_size, observe

GAMES, STEPS = 1024, 64  # of a rollout
EPOCHS, MINIBATCH_SIZE = 4, 4096
LEARNING_RATE, ENTROPY_COEF, VALUE_COEF, CLIP_RANGE = 1e-3, 0.01, 0.5, 0.2
GAE_LAMBDA, MAX_GRAD_NORM = 0.95, 0.5


class Network(nn.Module):
    """Computes log-probabilities of actions and the value for the player to decide, -1 to 1."""

    def __init__(self, inputs: int = N_FEATURES, width: int = 256) -> None:
        super().__init__()
        self.inputs = inputs
        layers = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.policy, self.value = nn.Linear(width, N_ACTIONS), nn.Linear(width, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (n, N_ACTIONS), about -1e9 if illegal, and values (n,)."""
        hidden = self.trunk(observation)
        logits = self.policy(hidden).masked_fill(~mask, -1e9)
        return logits.log_softmax(dim=1), torch.tanh(self.value(hidden)).squeeze(1)


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
        self.see_board = network.inputs > N_FEATURES

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        observed = observe(boards, states, see_board=self.see_board)
        observation, mask = torch.as_tensor(observed), torch.as_tensor(masks(legal))
        with torch.no_grad():
            log_probs, _ = self.network(observation, mask)
        actions: npt.NDArray[np.int64] = log_probs.argmax(dim=1).numpy()
        return actions


class Rollout:
    """Stores `STEPS` decisions of `GAMES` games, in tensors (STEPS, GAMES, …).

    `sign` is 1 where the same player decides next, -1 for the other, and 0 at the end of a game.
    """

    def __init__(self, inputs: int = N_FEATURES) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(STEPS, GAMES, *shape, dtype=dtype)

        self.observation, self.mask = zeros(inputs), zeros(N_ACTIONS, dtype=torch.bool)
        self.action, self.log_prob = zeros(dtype=torch.int64), zeros()
        self.value, self.reward, self.sign = zeros(), zeros(), zeros()

    def advantages(self, last: Tensor) -> Tensor:
        """Return generalised advantages; `last` is the values after the last step, (GAMES,)."""
        next_value, advantage = last, torch.zeros(GAMES)
        out = torch.zeros(STEPS, GAMES)
        for t in reversed(range(STEPS)):
            delta = self.reward[t] + self.sign[t] * next_value - self.value[t]
            out[t] = advantage = delta + GAE_LAMBDA * self.sign[t] * advantage
            next_value = self.value[t]
        return out


def train(updates: int, seed: int, board: str = "shikoku", width: int = 256) -> Network:
    """Train a network, and print the number of decisions every ten updates.

    On a pool of boards the network also gets the board features.
    """
    torch.manual_seed(seed)
    see_board = len(BoardPool.load(board)) > 1
    batch = Batch(GAMES, board, see_board=see_board)
    inputs = observation_size("float32", see_board)
    network, rollout = Network(inputs, width), Rollout(inputs)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)
    timestep, start = batch.reset(seed=seed), time.monotonic()
    for update in range(1, updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - (update - 1) / updates)
        timestep = collect(network, batch, timestep, rollout)
        last = network(torch.as_tensor(timestep.observation), torch.as_tensor(timestep.mask) > 0)[1]
        learn(network, optimizer, rollout, rollout.advantages(last.detach()))
        if update % 10 == 0 or update == updates:
            decisions, seconds = update * STEPS * GAMES, time.monotonic() - start
            print(f"{decisions:>10,} decisions {decisions / seconds:>7,.0f}/s", flush=True)
    return network


@torch.no_grad()
def collect(network: Network, batch: Batch, timestep: Any, rollout: Rollout) -> Any:
    """Play `STEPS` decisions of each game; return the time step after them."""
    for t in range(STEPS):
        observation, mask = (
            torch.as_tensor(timestep.observation),
            torch.as_tensor(timestep.mask) > 0,
        )
        log_probs, value = network(observation, mask)
        action = torch.multinomial(log_probs.exp(), 1).squeeze(1)
        timestep = batch.step(action.numpy())
        reward = timestep.reward[batch.all_games, timestep.player]
        ended, same = timestep.next_player < 0, timestep.next_player == timestep.player
        rollout.observation[t], rollout.mask[t], rollout.action[t] = observation, mask, action
        rollout.value[t] = value
        rollout.log_prob[t] = log_probs.gather(1, action[:, None]).squeeze(1)
        rollout.reward[t] = torch.as_tensor(reward)
        rollout.sign[t] = torch.as_tensor(np.where(ended, 0.0, np.where(same, 1.0, -1.0)))
    return timestep


def learn(
    network: Network, optimizer: torch.optim.Optimizer, rollout: Rollout, advantages: Tensor
) -> None:
    """Take PPO's gradient steps on a rollout."""
    flat = [
        tensor.reshape(STEPS * GAMES, *tensor.shape[2:])
        for tensor in (
            rollout.observation,
            rollout.mask,
            rollout.action,
            rollout.log_prob,
            advantages,
        )
    ]
    target = (advantages + rollout.value).reshape(-1).clamp(-1, 1)
    has_choice = rollout.mask.sum(dim=2).reshape(-1) > 1  # a single legal action teaches nothing
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(STEPS * GAMES), MINIBATCH_SIZE):
            observation, mask, action, old_log_prob, advantage = (tensor[rows] for tensor in flat)
            log_probs, value = network(observation, mask)
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
    updates = f"updates of {STEPS * GAMES:,} decisions each (default: 50)"
    parser.add_argument("--updates", type=int, default=50, help=updates)
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    games = "games of the match against greedy, an even number (default: 4000)"
    parser.add_argument("--games", type=int, default=4000, help=games)
    board = "board, or pool such as family:train/1000 (default: shikoku)"
    parser.add_argument("--board", default="shikoku", help=board)
    parser.add_argument("--width", type=int, default=256, help="units of a layer (default: 256)")
    parser.add_argument("--file", help="file for the weights (default: none)")
    options = parser.parse_args(arguments)
    network = train(options.updates, options.seed, options.board, options.width)
    if options.file:
        torch.save(network.state_dict(), options.file)
    match = play_match(NetworkAgent(network=network), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
