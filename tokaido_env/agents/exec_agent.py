"""Agents in any language: `exec:PROGRAM [ARGS]` plays a program over standard input and output.

Messages are lines of JSON; both sides ignore unknown keys (docs/how-to/write-an-agent.md):

    to the program                                                 its answer
    {"type": "hello", "protocols": [1], …}                         {"protocol": 1}
    {"type": "board", "board_hash": "…", "board": {…}}             none
    {"type": "decide", "position": {…}, "legal": ["pass", …], …}   {"action": "pass"}

A program that fails is ended, loses the game of a match, and starts again at the next decision.
"""

from __future__ import annotations

import os
import shlex
import shutil
from typing import Any

import numpy as np

from tokaido_env.agent import AgentError
from tokaido_env.agents.adapters import PerGameAdapter
from tokaido_env.agents.line_process import LineProcess, ProcessFailure
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import MAX_SEED, repr_short
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.files import expand_home
from tokaido_env.game import Game

PROTOCOL = 1
START_SECONDS = 30.0  # for the answer to `hello`


class ProgramAgent(PerGameAdapter):
    """The agent of a program of the user, `exec:COMMAND`; its `wrapped` is a `ProgramPlayer`.

    In a match it forfeits the games in which its program fails.
    """

    wrapped: ProgramPlayer


def make_exec_agent(command: str) -> ProgramAgent:
    """Make the agent of `exec:COMMAND`; its program starts at the first decision.

    Raises:
        AgentError: if the command names no program that can be executed.
    """
    spec = f"exec:{command}"
    where = f"agent {repr_short(spec)}"
    if os.name != "posix":
        raise AgentError(f"{where}: expected Linux or macOS, where pipes can be polled: use WSL")
    try:
        words = [expand_home(word) for word in shlex.split(command)]
    except ValueError as error:
        raise AgentError(f"{where}: expected words as in a shell: {error}") from None
    if not words or "\0" in command or shutil.which(words[0]) is None:
        raise AgentError(
            f"{where}: expected an executable file or a command of PATH: give a path (exec:./bot), "
            "make it executable (chmod +x bot), or name its interpreter (exec:perl bot.pl)"
        )
    return ProgramAgent(ProgramPlayer(spec, words), spec)


class ProgramPlayer:
    """Chooses by asking a program, or raises `ProcessFailure`; a copy has a program of its own.

    Args:
        spec: the spec of the agent.
        words: the program and its arguments.
        seconds: the limit of a decision; None: no limit.

    Attributes:
        seconds: the limit.
        process: the `LineProcess` of the program.
    """

    def __init__(self, spec: str, words: list[str], seconds: float | None = None) -> None:
        self._spec, self._words, self.seconds = spec, words, seconds
        self.process = LineProcess(spec, words)

    def __reduce__(self) -> tuple[type[ProgramPlayer], tuple[str, list[str], float | None]]:
        return ProgramPlayer, (self._spec, self._words, self.seconds)

    def _start(self) -> None:
        """Start the program if it does not run."""
        if not self.process.start():
            return
        self._boards: set[str] = set()  # their hashes
        hello = {"type": "hello", "protocols": [PROTOCOL], "rules": RULES_VERSION}
        hello |= {"seconds": self.seconds}
        try:
            found = self.process.ask([hello], START_SECONDS, {"protocol": PROTOCOL})["protocol"]
        except ProcessFailure as failure:
            raise AgentError(f"{failure}; expected an answer to hello, then a flush") from None
        if found != PROTOCOL:
            text = f"expected protocol {PROTOCOL}, got {repr_short(found, 60)}"
            raise AgentError(str(self.process.failure("illegal", text)))

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        """Return the id of the program's action.

        Raises:
            ProcessFailure: if the program fails, is late, or answers no legal action.
            AgentError: if it cannot be started or speaks another protocol.
        """
        self._start()
        board, legal, messages = game.board, game.legal_labels(), []
        if board.hash not in self._boards:
            self._boards.add(board.hash)
            messages = [{"type": "board", "board_hash": board.hash, "board": board.to_dict()}]
        decide: dict[str, Any] = {"type": "decide", "board_hash": board.hash, "legal": legal}
        decide |= {"seed": int(rng.integers(MAX_SEED + 1)), "seconds": self.seconds}
        messages.append(decide | {"position": game.to_dict()})
        label = self.process.ask(messages, self.seconds, {"action": "pass"})["action"]
        if label not in legal:
            text = f"illegal action {repr_short(label, 40)}: legal are {', '.join(legal)}"
            raise self.process.failure("illegal", text)
        return IDS[label]
