"""A Stable-Baselines3 model as an agent: it learns against `greedy` and `random`, then plays.

python agents/sb3_agent.py model.zip --steps 50000
tokaido evaluate python:agents.sb3_agent:SB3Agent,file=model.zip random --games 100
"""

import argparse
from typing import Literal

import numpy as np
from sb3_contrib import MaskablePPO

from tokaido_env import Game
from tokaido_env.sb3 import TokaidoVecEnv


class SB3Agent:
    """Plays the likeliest action of a model.

    Args:
        file: a saved `MaskablePPO` that was trained in `TokaidoVecEnv` or in
            `tokaido_env:TokaidoDuo-v0`, with float32 observations.
    """

    def __init__(self, file: str) -> None:
        self.model = MaskablePPO.load(file, device="cpu")
        if self.model.observation_space.dtype != np.float32:
            raise ValueError(f"{file}: expected a model of float32 observations")

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        """Return the id of a legal action."""
        action, _ = self.model.predict(
            game.observation(), action_masks=game.mask(), deterministic=True
        )
        return int(action)


def train(file: str, steps: int, reward: Literal["margin", "win"], seed: int) -> None:
    """Train a model in 64 games at once, and save it."""
    env = TokaidoVecEnv(64, ["greedy", "random"], seed=0, reward=reward)
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=64, batch_size=512, gamma=1.0, seed=seed, device="cpu"
    )
    model.learn(steps)
    model.save(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MaskablePPO against greedy and random.")
    parser.add_argument("file", help="file for the model")
    parser.add_argument(
        "--steps", type=int, default=50_000, help="decisions of the learner (default: 50000)"
    )
    rewards = "the score margin, or the result (default: margin)"
    parser.add_argument("--reward", choices=("margin", "win"), default="margin", help=rewards)
    parser.add_argument("--seed", type=int, default=0, help="seed of the model (default: 0)")
    train(**vars(parser.parse_args()))
