"""Agents from outside, as a user writes them: `python:outsiders:CLASS`."""

import contextlib
import ctypes
import os
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import Game
from tokaido_env.text import TextAgent, TextFormat, TextPlayer


class Highest:
    """The highest legal action."""

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        return game.legal_actions()[-1]


class HighestAtOnce:
    """The same for many games at once."""

    games_at_once = 6

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        return np.array([int(mask).bit_length() - 1 for mask in legal])


class ByText(TextAgent):
    """Answers with the first action that it is told of, if it is told."""

    def __init__(self, legal: str = "listed") -> None:
        super().__init__(TextPlayer(self.respond, TextFormat(legal=legal), "by-text"))

    def respond(self, prompt: str) -> str:
        told = prompt.rpartition("Legal actions: ")[2]
        return f'First comes {{"action": "{told.partition(", ")[0]}"}}'


class Dice:
    """Any legal action, by label; slow where the environment says so."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        time.sleep(float(os.environ.get("SECONDS_A_DECISION", "0")))
        labels = game.legal_labels()
        return labels[int(rng.integers(len(labels)))]


class Settings:
    """Notes what it was made with."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        return game.legal_actions()[0]


class Fails(Dice):
    """Fails in one seat from some round on."""

    def __init__(self, how: str, late: int = 15) -> None:
        self.how = how
        self.late = late

    def choose(self, game: Game, rng: np.random.Generator) -> Any:
        if game.player == 1 and game.rounds >= self.late:
            if self.how == "raises":
                raise RuntimeError("cannot\ndecide")
            return {"illegal": 48, "label": "merchant:C9", "none": None}[self.how]
        return super().choose(game, rng)


class Interrupts(Dice):
    """Presses Ctrl-C at one of its decisions."""

    def __init__(self, at: int) -> None:
        self.left = at

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return super().choose(game, rng)


class Dies(Dice):
    """Ends its process."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        raise SystemExit(3)


class DiesAtOnce(Dice):
    """Ends its process without a word."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        os._exit(3)


class Sleeps(Dice):
    """Thinks for an hour, in one seat from some round on."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        time.sleep(3600 * (game.player == 1 and game.rounds >= 2))
        return super().choose(game, rng)


class Eats(Dice):
    """Needs ever more memory, in one seat from some round on."""

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        eaten = []
        while game.player == 1 and game.rounds >= 2:
            eaten.append(bytearray(1 << 24))
        return super().choose(game, rng)


class Talks(Dice):
    """Writes to whoever asks, past its answer."""

    def __init__(self, how: str) -> None:
        self.words = {"nested": b"[" * 100_000 + b"\n", "list": b"[1]\n"}.get(how, b"x" * 65_536)
        self.times = 1 if self.words.endswith(b"\n") else 1_000

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        for fd in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(fd.name))) as pipe:
                for _ in range(self.times):
                    pipe.sendall(self.words)
        time.sleep(60)
        return super().choose(game, rng)


class Holds(Dice):
    """Begins a process, leaves the numbers of both, and holds Python's lock for an hour."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        numbers = os.getpid(), os.fork() or os.getpid()
        if os.getpid() == numbers[0]:
            self.path.write_text("{} {}".format(*numbers))
        return str(ctypes.PyDLL(None).sleep(3600))


class FailsAtOnce(HighestAtOnce):
    """Cannot decide about games that have come to some round."""

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        if (states["round"] >= 4).any():
            raise RuntimeError("too late")
        return super().act(boards, states, legal, keys)


class Unmade(Dice):
    """Cannot be made: needs more memory than there is."""

    def __init__(self) -> None:
        self.eaten = [bytearray(1 << 24) for _ in range(1 << 20)]


class Neither:
    """Plays nothing."""


class Trace(Dice):
    """Leaves a file when it is made."""

    def __init__(self, path: str) -> None:
        Path(path).touch()


def factory() -> Dice:
    """Makes an agent, but is no class."""
    return Dice()
