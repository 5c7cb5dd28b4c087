"""DQN with action masks with AgileRL, against `random`, many games in one process.

    pip install agilerl==2.58.0 peft
    python docs/recipes/agilerl_dqn.py --steps 200000 --seed 1

AgileRL's DQN masks actions when it acts, but not in its targets: these take the highest value of
all actions, and values of illegal actions are never learnt. So this script does not bootstrap: each
decision learns from the result of its game. The reward is the margin, which is more informative.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from agilerl.algorithms.dqn import DQN
from agilerl.components.replay_buffer import ReplayBuffer
from tensordict import TensorDict

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.observers import masks, observe

GAMES, BATCH, MEMORY = 64, 512, 100_000
EXPLORATION, LEARNING_RATE = (1.0, 0.05), 5e-4


class AgileAgent(Agent):
    """Plays the legal action with the highest value."""

    spec = "agilerl_dqn"

    def __init__(self, agent: DQN) -> None:
        self.agent = agent

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions; see `Agent.act`."""
        observations, allowed = observe(boards, states), masks(legal).astype(np.int8)
        return np.asarray(self.agent.get_action(observations, epsilon=0.0, action_mask=allowed))


class OpenGames:
    """The decisions of unfinished games, until their results are known."""

    def __init__(self) -> None:
        self.decisions: list[list[tuple[Any, Any]]] = [[] for _ in range(GAMES)]

    def add(self, observations: Any, actions: Any) -> None:
        """Store a decision of each game."""
        for game, decision in enumerate(zip(observations, actions, strict=True)):
            self.decisions[game].append(decision)

    def end(self, game: int, result: float) -> TensorDict:
        """Return the decisions of an ended game for AgileRL's replay buffer."""
        observations, actions = (np.stack(one) for one in zip(*self.decisions[game], strict=True))
        self.decisions[game] = []
        ones = np.ones((len(actions), 1), np.float32)
        transitions = {"obs": observations, "action": actions, "next_obs": observations}
        return TensorDict(transitions | {"reward": result * ones, "done": ones}, [len(actions)])


def train(steps: int, seed: int) -> DQN:
    """Train for a number of decisions."""
    np.random.seed(seed)  # noqa: NPY002, AgileRL draws from it
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # small batches: Numba has the other cores
    envs = gymnasium.make_vec(
        "tokaido_env:TokaidoDuo-v0", num_envs=GAMES, opponent="random", reward="margin"
    )
    agent = DQN(
        envs.single_observation_space,
        envs.single_action_space,
        batch_size=BATCH,
        lr=LEARNING_RATE,
        net_config={
            "encoder_config": {"hidden_size": [256]},
            "head_config": {"hidden_size": [256]},
        },
    )
    memory, games = ReplayBuffer(max_size=MEMORY), OpenGames()
    observations, infos = envs.reset(seed=seed)
    rounds = steps // GAMES
    for step in range(rounds):
        start, end = EXPLORATION
        epsilon = max(end, start - (start - end) * 2 * step / rounds)
        mask = infos["action_mask"]
        actions = np.asarray(agent.get_action(observations, epsilon=epsilon, action_mask=mask))
        games.add(observations, actions)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for game in np.flatnonzero(terminated | truncated):
            memory.add(games.end(game, rewards[game]))
        if len(memory) >= BATCH:
            agent.learn(memory.sample(BATCH))
    return agent


def main() -> None:
    """Train and play matches."""
    parser = argparse.ArgumentParser(description="DQN with action masks with AgileRL.")
    parser.add_argument(
        "--steps", type=int, default=200_000, help="number of decisions (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument(
        "--games", type=int, default=2000, help="games per match, even (default: %(default)s)"
    )
    options = parser.parse_args()
    agent = train(options.steps, options.seed)
    for opponent in ("random", "greedy"):
        match = play_match(AgileAgent(agent), make(opponent), options.games, options.seed)
        low, high = match.interval
        print(f"against {opponent}: {match.score:.1%} ({low:.1%} - {high:.1%})")


if __name__ == "__main__":
    main()
