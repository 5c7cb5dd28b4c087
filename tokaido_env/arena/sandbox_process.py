"""Main function of a sandbox process: makes one `python:` agent and answers lines of JSON for it.

    to this process                                          its answer
    {"type": "hello"}                                        {"protocol": "python"}
    {"type": "make", "spec": "python:…"}                     {"answer": [0, 2, 0]}
    {"type": "prepare", "boards": [{…}, …]}                  {"answer": null}
    {"type": "act", "boards": "…", "states": "…", …}         {"answer": [3, …]}

Arrays are bytes in base64. A failure is {"answer": null, "reason": "crash", "detail": "…"}.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import signal
import threading
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.python_agent import InvalidChoice
from tokaido_env.agents.registry import make
from tokaido_env.batch_validation import checked_moves
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import format_error, str_short
from tokaido_env.core.state import BOARD, STATE
from tokaido_env.record import MAX_DETAIL_CHARS

HELLO = {"protocol": "python"}
ARRAYS: dict[str, np.dtype[Any]] = {
    "boards": BOARD,
    "states": STATE,
    "legal": np.dtype(np.uint64),
    "keys": np.dtype(np.uint64),
}
"""The arguments of `Agent.act`, in order, with their dtypes."""


def encode_array(array: npt.NDArray[Any]) -> str:
    """Return the bytes of an array of any dtype in base64."""
    return base64.b64encode(array.tobytes()).decode()


def main() -> None:
    """Answer the lines on standard input until it closes; then end this process group."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # workers ignore and block it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # an agent's prints must not mix with the answers
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(questions, lines), daemon=True).start()
    sandbox = _Sandbox()
    while True:
        answer = sandbox.answer(json.loads(lines.get()))
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _read(questions: BinaryIO, lines: queue.SimpleQueue[bytes]) -> None:
    """Read questions; kill this process and its children when standard input closes."""
    try:
        for line in questions:
            lines.put(line)
    finally:
        os.killpg(0, signal.SIGKILL)


class _Sandbox:
    """An agent, and its answers."""

    agent: Agent

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question, or the reason and detail of the agent's failure."""
        if question["type"] == "hello":
            return HELLO
        try:
            return {"answer": getattr(self, question.pop("type"))(**question)}
        except MemoryError:
            reason, detail = "memory", ""
        except InvalidChoice as error:
            reason, detail = "illegal", str(error)
        except SystemExit as error:
            reason, detail = "exit", f"it tried to end the command: {format_error(error)}"
        except AgentError as error:
            reason, detail = "crash", str(error)
        except BaseException as error:
            reason, detail = "crash", format_error(error)
        detail = str_short(" ".join(detail.split()), MAX_DETAIL_CHARS)
        return {"answer": None, "reason": reason, "detail": detail}

    def make(self, spec: str) -> list[int]:
        """Make the agent; return its games at once, and whether it is batched."""
        agent = self.agent = make(spec)
        return [int(agent.games_at_once), int(agent.batched)]

    def prepare(self, boards: list[Any]) -> None:
        """Prepare the agent for games on these boards."""
        self.agent.prepare([Board.from_dict(board) for board in boards])

    def act(self, **arrays: str) -> list[int]:
        """Return the agent's actions."""
        arguments: list[Any] = [
            np.frombuffer(base64.b64decode(arrays[name]), dtype).copy()
            for name, dtype in ARRAYS.items()
        ]
        moves = self.agent.act(*arguments)
        try:
            return [int(move) for move in checked_moves(moves, len(arguments[1]))]
        except ValueError as error:
            raise InvalidChoice(str(error)) from None
