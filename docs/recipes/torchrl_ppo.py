"""Masked PPO by self-play with TorchRL's own parts.

    python docs/recipes/torchrl_ppo.py --decisions 1507328 --seed 1 --file weights.pt
    python docs/recipes/torchrl_ppo.py --track afterstates --minutes 30 --file weights.pt
    tokaido evaluate python:docs/recipes/torchrl_ppo.py:NetworkAgent,file=weights.pt random

One network plays both seats. Everything comes from TorchRL except the advantages: its estimators
assume one player, but here a value changes its sign where the other player decides next
(`tokaido_env.torchrl.value_sign`). The script ends with a match against `greedy`.

On the track `raw` the network reads the observation. On `afterstates` it reads the inputs of our
networks, and scores each action from the features of its afterstate.
"""

from __future__ import annotations

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
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.features.afterstate_observation import N_OBSERVED
from tokaido_env.learn.action_scores import ActionScores
from tokaido_env.learn.training_script import Budget, save_and_play, training_options
from tokaido_env.observers import masks, observe
from tokaido_env.torchrl import TokaidoDuoEnv, value_sign

GAMES, STEPS, EPOCHS, MINIBATCH = 256, 64, 4, 1024
LEARNING_RATE, LAMBDA = 1e-3, 0.95
FIRST = "module.0.module.0.module.0.weight"  # the first layer of an actor
TRACKS: dict[str, Any] = {"raw": "float32", "afterstates": "afterstates"}


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
        inputs = actor.state_dict()[FIRST].shape[1]
        self.track = "afterstates" if inputs == N_OBSERVED else "raw"
        self.see_board = self.track == "raw" and inputs > N_FEATURES

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observed = observe(boards, states, None, TRACKS[self.track], self.see_board)
        arrays = observed if isinstance(observed, dict) else {"observation": observed}
        observation = arrays | {"action_mask": masks(legal)}
        data = TensorDict(
            {key: torch.as_tensor(value) for key, value in observation.items()}, len(legal)
        )
        best: npt.NDArray[np.int64] = self.actor.get_dist(data).mode.numpy()
        return best


def networks(inputs: int, width: int) -> tuple[ProbabilisticActor, TensorDictSequential]:
    """Return the actor and the critic, which share a body."""
    layers = (nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    body = TensorDictModule(nn.Sequential(*layers), ["observation"], ["hidden"])
    head, reads = nn.Linear(width, N_ACTIONS), ["hidden"]
    nn.init.orthogonal_(head.weight, 0.01)
    scores: nn.Module = head
    if inputs == N_OBSERVED:
        scores, reads = ActionScores(width), ["hidden", "actions"]
    actor = ProbabilisticActor(
        TensorDictSequential(body, TensorDictModule(scores, reads, ["logits"])),
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


def train(
    budget: Budget, seed: int, board: str = "shikoku", width: int = 256, track: str = "raw"
) -> ProbabilisticActor:
    """Train on a board, or with its features on a pool of boards, and print progress."""
    torch.manual_seed(seed)
    see_board = track == "raw" and len(BoardPool.load(board)) > 1
    env = TokaidoDuoEnv(GAMES, board=board, observation=TRACKS[track], see_board=see_board)
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
        total_frames=-1,  # without end
        auto_register_policy_transforms=False,
    )
    batches = iter(collector)
    while (left := budget.left) > 0:
        data = next(batches)
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * left
        add_advantages(data, critic)
        choices = data["action_mask"].sum(-1) > 1  # forced moves teach nothing
        learned = "action", "action_log_prob", "advantage", "value_target"
        flat = data[choices].select(*env.observation_spec.keys(), *learned)
        for _ in range(EPOCHS):
            for rows in torch.split(torch.randperm(len(flat)), MINIBATCH):
                losses = loss(flat[rows])
                optimizer.zero_grad()
                (
                    losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                ).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        budget.spend(frames, actor)
        if budget.decisions // frames % 10 == 0 or not budget.left:
            print(f"{budget.decisions:>10,} decisions", flush=True)
    collector.shutdown()
    return actor


def main() -> None:
    """Train and play a match."""
    about = "Masked PPO by self-play with TorchRL."
    parser = training_options(about, 92 * GAMES * STEPS, TRACKS)
    board = "board, or pool such as family:train/1000"
    parser.add_argument("--board", default="shikoku", help=board)
    parser.add_argument("--width", type=int, default=256, help="units of a layer")
    parser.add_argument("--threads", type=int, default=1, help="threads")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    numba.set_num_threads(min(options.threads, numba.config.NUMBA_NUM_THREADS))
    given = options.seed, options.board, options.width, options.track
    actor = train(Budget.of(options), *given)
    save_and_play(options, actor, NetworkAgent(actor=actor))


if __name__ == "__main__":
    main()
