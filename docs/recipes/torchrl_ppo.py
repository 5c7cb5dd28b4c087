"""Masked PPO by self-play with TorchRL's own parts.

    python docs/recipes/torchrl_ppo.py --updates 92 --seed 1 --file weights.pt
    tokaido evaluate python:docs/recipes/torchrl_ppo.py:NetworkAgent,file=weights.pt random

One network plays both seats. Everything comes from TorchRL except the advantages: its estimators
assume one player, but here a value changes its sign where the other player decides next
(`tokaido_env.torchrl.value_sign`). The script ends with a match against `greedy`.
"""

from __future__ import annotations

import argparse
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
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.observers import masks, observe
from tokaido_env.torchrl import TokaidoDuoEnv, value_sign

GAMES, STEPS, EPOCHS, MINIBATCH = 256, 64, 4, 1024
LEARNING_RATE, LAMBDA = 1e-3, 0.95
FIRST = "module.0.module.0.module.0.weight"  # the first layer of an actor


class NetworkAgent(Agent):
    """Plays the actor's most probable action.

    Args:
        file: the weights of an actor, from `--file`.
        actor: the actor itself, instead of a file.
    """

    spec = "torchrl_ppo"

    def __init__(self, file: str = "", actor: ProbabilisticActor | None = None) -> None:
        if actor is None:
            weights = torch.load(file, weights_only=True)
            width, inputs = weights[FIRST].shape
            actor, _ = networks(inputs, width)
            actor.load_state_dict(weights)
        self.actor = actor
        self.see_board = actor.state_dict()[FIRST].shape[1] > N_FEATURES

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observed = observe(boards, states, see_board=self.see_board)
        observation = {"observation": observed, "action_mask": masks(legal)}
        data = TensorDict(
            {key: torch.as_tensor(value) for key, value in observation.items()}, len(legal)
        )
        best: npt.NDArray[np.int64] = self.actor.get_dist(data).mode.numpy()
        return best


def networks(inputs: int, width: int) -> tuple[ProbabilisticActor, TensorDictSequential]:
    """Return the actor and the critic, which share a body."""
    layers = (nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    body = TensorDictModule(nn.Sequential(*layers), ["observation"], ["hidden"])
    head = nn.Linear(width, N_ACTIONS)
    nn.init.orthogonal_(head.weight, 0.01)
    actor = ProbabilisticActor(
        TensorDictSequential(body, TensorDictModule(head, ["hidden"], ["logits"])),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    value = nn.Sequential(nn.Linear(width, 1), nn.Tanh())
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


def train(updates: int, seed: int, board: str, width: int) -> ProbabilisticActor:
    """Train on a board, or with its features on a pool of boards, and print progress."""
    torch.manual_seed(seed)
    env = TokaidoDuoEnv(GAMES, board=board, see_board=len(BoardPool.load(board)) > 1)
    env.set_seed(seed)
    actor, critic = networks(env.observation_spec["observation"].shape[1], width)
    loss = ClipPPOLoss(
        actor, critic, entropy_coeff=0.01, critic_coeff=0.5, normalize_advantage=True
    )
    optimizer = torch.optim.Adam(loss.parameters(), LEARNING_RATE, eps=1e-5)
    frames = GAMES * STEPS
    collector = Collector(
        *(env, actor),
        frames_per_batch=frames,
        total_frames=updates * frames,
        auto_register_policy_transforms=False,
    )
    for update, data in enumerate(collector):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - update / updates)
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
        if (update + 1) % 10 == 0 or update + 1 == updates:
            print(f"{(update + 1) * frames:>10,} decisions", flush=True)
    return actor


def main() -> None:
    """Train and play a match."""
    parser = argparse.ArgumentParser(description="Masked PPO by self-play with TorchRL.")
    add = parser.add_argument
    add("--updates", type=int, default=92, help=f"of {GAMES * STEPS:,} decisions (default: 92)")
    add("--seed", type=int, default=1, help="random seed (default: 1)")
    board = "board, or pool such as family:train/1000 (default: shikoku)"
    add("--board", default="shikoku", help=board)
    add("--width", type=int, default=256, help="units of a layer (default: 256)")
    add("--file", help="file for the weights (default: none)")
    add("--threads", type=int, default=1, help="threads (default: 1)")
    add("--games", type=int, default=4000, help="games of the match, even (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    numba.set_num_threads(min(options.threads, numba.config.NUMBA_NUM_THREADS))
    actor = train(options.updates, options.seed, options.board, options.width)
    if options.file:
        torch.save(actor.state_dict(), options.file)
    agent = NetworkAgent(actor=actor)
    match = play_match(agent, make("greedy"), options.games, options.seed)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")


if __name__ == "__main__":
    main()
