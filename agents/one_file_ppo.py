"""PPO in self-play in one file, to read and to change, with only `Batch` and PyTorch.

    python agents/one_file_ppo.py --decisions 3276800 --seed 1 --file weights.pt
    python agents/one_file_ppo.py --track afterstates --minutes 30 --log logs/ppo  # for TensorBoard
    tokaido evaluate python:agents.one_file_ppo:NetworkAgent,file=weights.pt random --games 1000

One network plays both seats of many games. A value is the expected result of the player to decide,
and a player may decide several times in a row. So the advantages flip the sign of the next value
only where another player decides next (`TimeStep.next_player`). The rest is PPO (Schulman et al.
2017) with masked actions (Huang and Ontañón 2020). On the track `afterstates` the network scores
each action by its afterstate; a rollout takes 0.9 GB.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tokaido_env.agent import Agent
from tokaido_env.arena.tournament import play_match
from tokaido_env.batch import Batch
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import N_BOARD_FEATURES
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.features.afterstate_observation import N_AFTERSTATE, N_OBSERVED
from tokaido_env.features.geometry_features import N_GEOMETRY
from tokaido_env.learn.action_scores import ActionScores
from tokaido_env.learn.training_script import Budget, save_and_play, training_options
from tokaido_env.observers import ObservationFormat, masks, observe

GAMES, STEPS = 1024, 64  # of a rollout
EPOCHS, MINIBATCH_SIZE, SCORE_EVERY = 4, 4096, 10
VALUE_COEF, CLIP_RANGE, MAX_GRAD_NORM = 0.5, 0.2, 0.5
FORMATS: dict[int, tuple[ObservationFormat, bool]] = {  # and `see_board`, by numbers of inputs
    N_FEATURES: ("float32", False),
    N_FEATURES + N_BOARD_FEATURES: ("float32", True),
    N_GEOMETRY: ("geometry", False),
    N_OBSERVED: ("afterstates", False),
}
TRACKS = {"raw": N_FEATURES, "geometry": N_GEOMETRY, "afterstates": N_OBSERVED}


class Settings(NamedTuple):
    """What to change first: each is an option of the command line."""

    board: str = "shikoku"  # or a pool: then the track `raw` also reads the board features
    width: int = 256  # units of each layer
    learning_rate: float = 1e-3  # Adam's, at the start; falls to 0 with the budget
    gae_lambda: float = 0.95
    entropy_coef: float = 0.01


DEFAULTS = Settings()


class Network(nn.Module):
    """Computes log-probabilities of actions and the value for the player to decide, -1 to 1.

    With N_OBSERVED of the numbers of `inputs` in `FORMATS` it scores actions by their afterstates.
    """

    def __init__(self, inputs: int = N_FEATURES, width: int = 256) -> None:
        super().__init__()
        self.inputs = inputs
        layers = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        self.trunk, self.value = nn.Sequential(*layers), nn.Linear(width, 1)
        self.policy: Any = ActionScores(width)
        if inputs != N_OBSERVED:
            self.policy = nn.Linear(width, N_ACTIONS)
            nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, observation: Tensor, mask: Tensor, *actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (n, N_ACTIONS), about -1e9 if illegal, and values (n,), float32.

        `observation` is float32 (n, inputs), `mask` bool (n, N_ACTIONS), True = legal, and
        `actions`, of N_OBSERVED inputs, float32 (n, N_ACTIONS, N_AFTERSTATE).
        """
        hidden = self.trunk(observation)
        logits = self.policy(hidden, *actions).masked_fill(~mask, -1e9)
        return logits.log_softmax(dim=1), torch.tanh(self.value(hidden)).squeeze(1)


def tensors(observed: Any, mask: npt.NDArray[Any]) -> list[Tensor]:
    """Return the arguments of the network: observation, mask and, if there are any, actions."""
    parts = observed if isinstance(observed, dict) else {"observation": observed}
    first, *actions = (torch.as_tensor(parts[n]) for n in ("observation", "actions") if n in parts)
    return [first, torch.as_tensor(mask) > 0, *actions]


class NetworkAgent(Agent):
    """Plays the likeliest action of a network, given or from the weights of `--file`."""

    spec = "one_file_ppo"

    def __init__(self, file: str = "", network: Network | None = None) -> None:
        if network is None:
            weights = torch.load(file, weights_only=True)
            width, inputs = weights["trunk.0.weight"].shape
            network = Network(inputs, width)
            network.load_state_dict(weights)
        self.network = network

    @torch.no_grad()
    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        observed = observe(boards, states, None, *FORMATS[self.network.inputs])
        log_probs, _ = self.network(*tensors(observed, masks(legal)))
        return log_probs.argmax(dim=1).numpy()  # type: ignore[no-any-return]


class Rollout:
    """Stores `STEPS` decisions of `GAMES` games, in tensors (STEPS, GAMES, …).

    `sign` is 1 where the same player decides next, -1 for the other, and 0 at the end of a game.
    """

    def __init__(self, inputs: int = N_FEATURES) -> None:
        mask = torch.zeros(STEPS, GAMES, N_ACTIONS, dtype=torch.bool)
        self.seen = [torch.zeros(STEPS, GAMES, inputs), mask]  # the arguments of the network
        if inputs == N_OBSERVED:
            self.seen.append(torch.zeros(STEPS, GAMES, N_ACTIONS, N_AFTERSTATE))
        self.action = torch.zeros(STEPS, GAMES, dtype=torch.int64)
        self.log_prob, self.value, self.reward, self.sign = torch.zeros(4, STEPS, GAMES)

    def advantages(self, last: Tensor, gae_lambda: float) -> Tensor:
        """Return the generalised advantages, float32 (STEPS, GAMES), with the `last` values."""
        next_value, advantage, out = last, torch.zeros(GAMES), torch.zeros(STEPS, GAMES)
        for t in reversed(range(STEPS)):
            delta = self.reward[t] + self.sign[t] * next_value - self.value[t]
            out[t] = advantage = delta + gae_lambda * self.sign[t] * advantage
            next_value = self.value[t]
        return out


@torch.no_grad()
def collect(network: Network, batch: Batch, timestep: Any, rollout: Rollout) -> Any:
    """Play `STEPS` decisions of each game; return the time step after them."""
    for t in range(STEPS):
        seen = tensors(timestep.observation, timestep.mask)
        log_probs, value = network(*seen)
        action = torch.multinomial(log_probs.exp(), 1).squeeze(1)
        timestep = batch.step(action.numpy())
        ended, same = timestep.next_player < 0, timestep.next_player == timestep.player
        for stored, tensor in zip(rollout.seen, seen, strict=True):
            stored[t] = tensor
        rollout.action[t], rollout.value[t] = action, value
        rollout.log_prob[t] = log_probs.gather(1, action[:, None]).squeeze(1)
        rollout.reward[t] = torch.as_tensor(timestep.reward[batch.all_games, timestep.player])
        rollout.sign[t] = torch.as_tensor(np.where(ended, 0.0, np.where(same, 1.0, -1.0)))
    return timestep


def learn(network: Network, optimizer: Any, rollout: Rollout, last: Tensor, s: Settings) -> float:
    """Take PPO's gradient steps on a rollout with the `last` values; return the mean loss."""
    advantages = rollout.advantages(last, s.gae_lambda)
    columns = rollout.action, rollout.log_prob, advantages, advantages + rollout.value
    flat = [tensor.flatten(0, 1) for tensor in (*columns, *rollout.seen)]
    has_choice = rollout.seen[1].sum(dim=2).flatten() > 1  # a single legal action teaches nothing
    losses = []
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(STEPS * GAMES), MINIBATCH_SIZE):
            action, old_log_prob, advantage, target, *seen = (tensor[rows] for tensor in flat)
            log_probs, value = network(*seen)
            log_prob = log_probs.gather(1, action[:, None]).squeeze(1)
            ratio, free = (log_prob - old_log_prob).exp(), has_choice[rows]
            scaled = (advantage - advantage[free].mean()) / (advantage[free].std() + 1e-8)
            near = ratio.clamp(1 - CLIP_RANGE, 1 + CLIP_RANGE)
            clipped = torch.min(ratio * scaled, near * scaled)
            entropy = -(log_probs.exp() * log_probs.clamp(min=-50)).sum(dim=1)
            loss = -(clipped + s.entropy_coef * entropy)[free].mean()
            loss = loss + VALUE_COEF * (value - target.clamp(-1, 1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
            optimizer.step()
            losses.append(loss.item())
    return float(np.mean(losses))


def train(budget: Budget, seed: int, track: str = "raw", settings: Settings = DEFAULTS) -> Network:
    """Train a network, and print the figures of each update."""
    torch.manual_seed(seed)
    see_board = track == "raw" and len(BoardPool.load(settings.board)) > 1
    inputs = TRACKS[track] + N_BOARD_FEATURES * see_board
    batch = Batch(GAMES, settings.board, observation=FORMATS[inputs][0], see_board=see_board)
    network, rollout = Network(inputs, settings.width), Rollout(inputs)
    agent = NetworkAgent(network=network)
    optimizer = torch.optim.Adam(network.parameters(), eps=1e-5)
    timestep, updates = batch.reset(seed=seed), 0
    while (left := budget.left) > 0:
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * left
        timestep = collect(network, batch, timestep, rollout)
        last = network(*tensors(timestep.observation, timestep.mask))[1].detach()
        figures = {"loss": learn(network, optimizer, rollout, last, settings)}
        figures["game_length"] = STEPS * GAMES / max(1, int((rollout.sign == 0).sum()))
        updates += 1
        if updates % SCORE_EVERY == 0:
            match = play_match(agent, "greedy", 200, seed, settings.board)
            figures["score_against_greedy"] = match.score
        budget.spend(STEPS * GAMES, network, **figures)
    return network


def main(arguments: list[str] | None = None) -> None:
    """Train a network and play a match against `greedy`."""
    parser = training_options("PPO in self-play.", 50 * STEPS * GAMES, TRACKS, "raw", DEFAULTS)
    given = parser.parse_args(arguments)
    settings = Settings(*(getattr(given, name) for name in Settings._fields))
    network = train(Budget.of(given), given.seed, given.track, settings)
    save_and_play(given, network, NetworkAgent(network=network))


if __name__ == "__main__":
    main()
