"""Custom agents as a user writes them: `python:custom_agents:CLASS`."""

import contextlib
import ctypes
import os
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import Game
from tokaido_env.text import TextAgent, TextFormat, TextPlayer


class Highest:
    """Plays the highest legal action."""

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        return game.legal_actions()[-1]


class HighestAtOnce:
    """Plays the highest legal action in many games at once."""

    games_at_once = 6

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        return np.array([int(mask).bit_length() - 1 for mask in legal])


class ByText(TextAgent):
    """Answers with the first legal action of the prompt, if it lists them."""

    def __init__(self, legal: str = "listed") -> None:
        super().__init__(TextPlayer(self.respond, TextFormat(legal=legal), "by-text"))

    def respond(self, prompt: str) -> str:
        labels = prompt.rpartition("Legal actions: ")[2]
        return f'First comes {{"action": "{labels.partition(", ")[0]}"}}'


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
    """Allocates memory without end in seat 1 from round 2 on."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        blocks = []
        while game.player == 1 and game.rounds >= 2:
            blocks.append(bytearray(1 << 24))
        return super().choose(game, rng)


class Talks(Dice):
    """Writes an answer of its own to the pipes of its process."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    os.write(fd, b'{"answer": ["pass"]}\n')
        time.sleep(60)
        return super().choose(game, rng)


class Holds(Dice):
    """Forks, writes both process ids to a file, and holds the GIL for an hour."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        numbers = os.getpid(), os.fork() or os.getpid()
        if os.getpid() == numbers[0]:
            self.path.write_text("{} {}".format(*numbers))
        return str(ctypes.PyDLL(None).sleep(3600))


class FailsAtOnce(HighestAtOnce):
    """Raises an error for games from round 4 on."""

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        if (states["round"] >= 4).any():
            raise RuntimeError("too late")
        return super().act(boards, states, legal, keys)


class Unmade(Dice):
    """Allocates more memory in its constructor than there is."""

    def __init__(self) -> None:
        self.blocks = [bytearray(1 << 24) for _ in range(1 << 20)]


class Neither:
    """Has neither `choose` nor `act`."""
