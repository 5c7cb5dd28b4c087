"""Masked PPO by self-play with TorchRL's own parts.

    python docs/recipes/torchrl_ppo.py --minutes 3 --seed 1

One network plays both seats. Everything comes from TorchRL except the advantages: its estimators
assume one player, but here a value changes its sign where the other player decides next
(`tokaido_env.torchrl.value_sign`). The script ends with a match against `greedy`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.modules import MaskedCategorical, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.observers import masks, observe
from tokaido_env.torchrl import TokaidoDuoEnv, value_sign

GAMES, STEPS, EPOCHS, MINIBATCH = 256, 64, 4, 1024
LEARNING_RATE, LAMBDA, WIDTH = 1e-3, 0.95, 256


class NetworkAgent(Agent):
    """Plays the actor's most probable action."""

    spec = "torchrl_ppo"

    def __init__(self, actor: ProbabilisticActor) -> None:
        self.actor = actor

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observation = {"observation": observe(boards, states), "action_mask": masks(legal)}
        data = TensorDict(
            {key: torch.as_tensor(value) for key, value in observation.items()}, len(legal)
        )
        best: npt.NDArray[np.int64] = self.actor.get_dist(data).mode.numpy()
        return best


def networks() -> tuple[ProbabilisticActor, TensorDictSequential]:
    """Return the actor and the critic, which share a body."""
    layers = (nn.Linear(N_FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
    body = TensorDictModule(nn.Sequential(*layers), ["observation"], ["hidden"])
    head = nn.Linear(WIDTH, N_ACTIONS)
    nn.init.orthogonal_(head.weight, 0.01)
    actor = ProbabilisticActor(
        TensorDictSequential(body, TensorDictModule(head, ["hidden"], ["logits"])),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    value = nn.Sequential(nn.Linear(WIDTH, 1), nn.Tanh())
    critic = TensorDictSequential(body, TensorDictModule(value, ["hidden"], ["state_value"]))
    return actor, critic


@torch.no_grad()
def add_advantages(data: TensorDictBase, critic: nn.Module) -> None:
    """Write `advantage` and `value_target` from the deciding player's view, (GAMES, STEPS, 1)."""
    signs, reward = value_sign(data), data["next", "reward"]
    value, next_value = critic(data)["state_value"], critic(data["next"])["state_value"]
    delta = reward + signs * next_value - value
    advantage = torch.zeros_like(delta)
    carried = torch.zeros_like(delta[:, 0])
    for t in reversed(range(delta.shape[1])):
        advantage[:, t] = carried = delta[:, t] + LAMBDA * signs[:, t] * carried
    data["advantage"], data["value_target"] = advantage, (value + advantage).clamp(-1, 1)


def train(minutes: float, seed: int) -> ProbabilisticActor:
    """Train for some minutes and print progress."""
    torch.manual_seed(seed)
    env = TokaidoDuoEnv(GAMES)
    env.set_seed(seed)
    actor, critic = networks()
    loss = ClipPPOLoss(
        actor, critic, entropy_coeff=0.01, critic_coeff=0.5, normalize_advantage=True
    )
    optimizer = torch.optim.Adam(loss.parameters(), LEARNING_RATE, eps=1e-5)
    frames = GAMES * STEPS
    since, played = time.monotonic(), 0
    for data in Collector(
        env, actor, frames_per_batch=frames, total_frames=-1, auto_register_policy_transforms=False
    ):
        spent = (time.monotonic() - since) / (60 * minutes)
        if spent >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - spent)
        add_advantages(data, critic)
        choices = data["action_mask"].sum(-1) > 1  # forced moves teach nothing
        flat = data[choices].select(
            "observation", "action_mask", "action", "action_log_prob", "advantage", "value_target"
        )
        for _ in range(EPOCHS):
            for rows in torch.split(torch.randperm(len(flat)), MINIBATCH):
                losses = loss(flat[rows])
                optimizer.zero_grad()
                (
                    losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                ).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        played += frames
        if played // frames % 20 == 0:
            print(f"{played:>10,} decisions {spent:>5.0%} of the time", flush=True)
    print(f"{played:,} decisions")
    return actor


def main() -> None:
    """Train and play a match."""
    parser = argparse.ArgumentParser(description="Masked PPO by self-play with TorchRL.")
    parser.add_argument(
        "--minutes", type=float, default=3.0, help="minutes of training (default: 3)"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument("--threads", type=int, default=1, help="threads (default: 1)")
    parser.add_argument(
        "--games", type=int, default=4000, help="games of the match, even (default: %(default)s)"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    numba.set_num_threads(min(options.threads, numba.config.NUMBA_NUM_THREADS))
    actor = train(options.minutes, options.seed)
    match = play_match(NetworkAgent(actor), make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
