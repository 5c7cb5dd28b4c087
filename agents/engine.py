"""An engine in another language as an agent, over a pipe.

    cc -O2 -o engine agents/engine.c
    tokaido evaluate python:agents.engine:Engine,command=./engine random --games 100

For each decision the engine reads two lines and writes one, which it must flush:

    position {...}         the position as JSON, as `Game.to_dict` returns it
    legal LABEL LABEL ...  the legal actions
    LABEL                  the engine's answer

The input ends when the match does. `engine.c` is such an engine.
"""

import json
import shlex
import subprocess

import numpy as np

from tokaido_env import Game


class Engine:
    """Plays the answers of a program.

    Args:
        command: the command that starts the program.
    """

    def __init__(self, command: str) -> None:
        pipe = subprocess.PIPE
        self.program = subprocess.Popen(shlex.split(command), stdin=pipe, stdout=pipe, text=True)

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        """Return the label of an action."""
        print("position", json.dumps(game.to_dict()), file=self.program.stdin)
        print("legal", *game.legal_labels(), file=self.program.stdin, flush=True)
        assert self.program.stdout is not None
        return self.program.stdout.readline().strip()
