"""PPO by self-play in one file, to read and to change: only `Batch` and PyTorch.

    python agents/one_file_ppo.py --updates 50 --seed 1

One network plays both seats of games side by side. What differs from PPO for one player: a value is
that of whoever decides, the same player may decide several times in a row, and so advantages take
the next value with the other sign where the mover changes, and only there (`TimeStep.next_player`).
Schulman et al. 2017; masks as Huang and Ontanon 2020. It ends with a match against `greedy`.
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
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.observers import masks, observe

GAMES, STEPS = 1024, 64  # a rollout
EPOCHS, MINIBATCH = 4, 4096
LEARNING_RATE, ENTROPY, CLIP, LAMBDA, MAX_NORM = 1e-3, 0.01, 0.2, 0.95, 0.5


class Network(nn.Module):
    """Logits of the actions, and the result that who decides can expect, -1 to 1."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        layers = [nn.Linear(N_FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.policy, self.value = nn.Linear(width, N_ACTIONS), nn.Linear(width, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, seen: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities, of illegal actions about -1e9, and values."""
        inner = self.body(seen)
        logits = self.policy(inner).masked_fill(~mask, -1e9)
        return logits.log_softmax(dim=1), torch.tanh(self.value(inner)).squeeze(1)


class NetworkAgent(Agent):
    """Plays the action that the network likes best."""

    spec = "one_file_ppo"

    def __init__(self, network: Network) -> None:
        self.network = network

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        seen, allowed = torch.as_tensor(observe(boards, states)), torch.as_tensor(masks(legal))
        with torch.no_grad():
            best: npt.NDArray[np.int64] = self.network(seen, allowed)[0].argmax(dim=1).numpy()
        return best


class Rollout:
    """What `STEPS` decisions of `GAMES` games were: tensors (STEPS, GAMES, …)."""

    def __init__(self) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(STEPS, GAMES, *shape, dtype=dtype)

        self.seen, self.mask = zeros(N_FEATURES), zeros(N_ACTIONS, dtype=torch.bool)
        self.action, self.log_prob = zeros(dtype=torch.int64), zeros()
        self.value, self.reward, self.sign = zeros(), zeros(), zeros()

    def advantages(self, last: Tensor) -> Tensor:
        """Return generalised advantages of who decided; `last`: values behind the last step."""
        after, advantage = last, torch.zeros(GAMES)
        out = torch.zeros(STEPS, GAMES)
        for t in reversed(range(STEPS)):
            delta = self.reward[t] + self.sign[t] * after - self.value[t]
            out[t] = advantage = delta + LAMBDA * self.sign[t] * advantage
            after = self.value[t]
        return out


def train(updates: int, seed: int, every: int = 10) -> Network:
    """Train a network, telling now and then how far it is."""
    torch.manual_seed(seed)
    network, batch, rollout = Network(), Batch(GAMES), Rollout()
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)
    turn, since = batch.reset(seed=seed), time.monotonic()
    for update in range(1, updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - (update - 1) / updates)
        turn = collect(network, batch, turn, rollout)
        last = network(torch.as_tensor(turn.observation), torch.as_tensor(turn.mask) > 0)[1]
        learn(network, optimizer, rollout, rollout.advantages(last.detach()))
        if update % every == 0 or update == updates:
            decisions, spent = update * STEPS * GAMES, time.monotonic() - since
            print(f"{decisions:>10,} decisions {decisions / spent:>7,.0f}/s", flush=True)
    return network


@torch.no_grad()
def collect(network: Network, batch: Batch, turn: Any, rollout: Rollout) -> Any:
    """Play on by the network; return the turn behind the last step."""
    for t in range(STEPS):
        seen, mask = torch.as_tensor(turn.observation), torch.as_tensor(turn.mask) > 0
        log_probs, value = network(seen, mask)
        action = torch.multinomial(log_probs.exp(), 1).squeeze(1)
        turn = batch.step(action.numpy())
        own = turn.reward[batch.all_games, turn.player]
        goes_on, same = turn.next_player >= 0, turn.next_player == turn.player
        rollout.seen[t], rollout.mask[t], rollout.action[t] = seen, mask, action
        rollout.value[t] = value
        rollout.log_prob[t] = log_probs.gather(1, action[:, None]).squeeze(1)
        rollout.reward[t] = torch.as_tensor(own)
        rollout.sign[t] = torch.as_tensor(np.where(goes_on, np.where(same, 1.0, -1.0), 0.0))
    return turn


def learn(
    network: Network, optimizer: torch.optim.Optimizer, rollout: Rollout, advantages: Tensor
) -> None:
    """Take the steps of PPO on what was played."""
    flat = [
        one.reshape(STEPS * GAMES, *one.shape[2:])
        for one in (rollout.seen, rollout.mask, rollout.action, rollout.log_prob, advantages)
    ]
    target = (advantages + rollout.value).reshape(-1).clamp(-1, 1)
    choices = rollout.mask.sum(dim=2).reshape(-1) > 1  # else there is nothing to learn
    for _ in range(EPOCHS):
        for some in torch.split(torch.randperm(STEPS * GAMES), MINIBATCH):
            seen, mask, action, old, advantage = (one[some] for one in flat)
            log_probs, value = network(seen, mask)
            log_prob = log_probs.gather(1, action[:, None]).squeeze(1)
            ratio, free = (log_prob - old).exp(), choices[some]
            scaled = (advantage - advantage[free].mean()) / (advantage[free].std() + 1e-8)
            clipped = torch.min(ratio * scaled, ratio.clamp(1 - CLIP, 1 + CLIP) * scaled)
            entropy = -(log_probs.exp() * log_probs.clamp(min=-50)).sum(dim=1)
            loss = -(clipped + ENTROPY * entropy)[free].mean()
            loss = loss + 0.5 * (value - target[some]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), MAX_NORM)
            optimizer.step()


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, and play a match; return the exit status."""
    parser = argparse.ArgumentParser(description="PPO by self-play in one file.")
    parser.add_argument("--updates", type=int, default=50, help=f"of {STEPS * GAMES:,} decisions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", type=int, default=4000, help="of the match at the end, even")
    options = parser.parse_args(arguments)
    network = train(options.updates, options.seed)
    match = play_match(NetworkAgent(network), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
