"""Custom agents as a user writes them: `python:custom_agents:CLASS`."""

import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import Game


class Highest:
    """Plays the highest legal action."""

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        return game.legal_actions()[-1]


class HighestAtOnce:
    """Plays the highest legal action in many games at once."""

    games_at_once = 6

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        return np.array([int(mask).bit_length() - 1 for mask in legal])


class Dice:
    """Plays a random legal action by label, after SECONDS_A_DECISION."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        time.sleep(float(os.environ.get("SECONDS_A_DECISION", "0")))
        labels = game.legal_labels()
        return labels[int(rng.integers(len(labels)))]


class Settings:
    """Stores its settings."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        return game.legal_actions()[0]


class Fails(Dice):
    """Raises an error or plays an illegal move in seat 1 from round `from_round` on."""

    def __init__(self, how: str, from_round: int = 15) -> None:
        self.how = how
        self.from_round = from_round

    def choose(self, game: Game, rng: np.random.Generator) -> Any:
        if game.player == 1 and game.rounds >= self.from_round:
            if self.how == "raises":
                raise RuntimeError("cannot\ndecide")
            return {"illegal": 48, "label": "merchant:C9", "none": None}[self.how]
        return super().choose(game, rng)


class Interrupts(Dice):
    """Raises KeyboardInterrupt at its decision number `at`."""

    def __init__(self, at: int) -> None:
        self.left = at

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return super().choose(game, rng)


class Dies(Dice):
    """Raises SystemExit."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        raise SystemExit(3)


class DiesAtOnce(Dice):
    """Ends its process immediately."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        os._exit(3)


class Eats(Dice):
    """Allocates memory without end in seat 1."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        blocks = []
        while game.player == 1:
            blocks.append(bytearray(1 << 24))
        return super().choose(game, rng)


class Neither:
    """Has neither `choose` nor `act`."""
