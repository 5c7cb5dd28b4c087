"""What runs in the process of a custom agent: it is made here, and asked."""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import socket
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tokaido_env.agent import AgentError
from tokaido_env.agents.python_agent import InvalidChoice
from tokaido_env.agents.registry import make
from tokaido_env.batch_validation import checked_moves
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import format_error, str_short
from tokaido_env.record import MOST_DETAIL

_MIB = 1 << 20


def serve(connection: socket.socket, lifeline: Connection) -> None:
    """Answer questions, pickles, by lines of JSON, until nobody asks any more.

    Args:
        connection: to whoever asks.
        lifeline: the end of a pipe, of which the asking process alone holds the other.
    """
    os.setsid()  # Ctrl-C is for the process that asks; what is begun here ends with this one
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    _end_with(lifeline.fileno())
    os.dup2(2, 1)  # what agents print is not what the command prints
    questions: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, questions.put), daemon=True).start()
    agent = _Served()
    while True:
        what, given = questions.get()
        connection.sendall(json.dumps(_answer(agent, what, given)).encode() + b"\n")


def _read(connection: socket.socket, put: Any) -> None:
    """Read questions; end this process and all that it has begun when nobody can ask any more."""
    try:
        with connection.makefile("rb") as file:
            while True:
                put(pickle.load(file))
    finally:
        os.killpg(os.getpid(), signal.SIGKILL)


def _answer(agent: _Served, what: str, given: Any) -> dict[str, Any]:
    """Let the agent answer; whatever it raises is an answer too."""
    try:
        return {"answer": getattr(agent, what)(*given)}
    except MemoryError:
        reason, detail = "memory", f"it needs more than {agent.memory} MiB"
    except InvalidChoice as error:
        reason, detail = "illegal", str(error)
    except SystemExit as error:
        reason, detail = "exit", f"it wants to end the command: {format_error(error)}"
    except BaseException as error:
        reason, detail = (
            "crash",
            str(error) if isinstance(error, AgentError) else format_error(error),
        )
    return {"reason": reason, "detail": str_short(" ".join(detail.split()), MOST_DETAIL)}


class _Served:
    """The agent of this process: its methods are what can be asked."""

    memory = 0

    def begin(self, spec: str, memory: int, environment: dict[str, str]) -> tuple[int, int, bool]:
        """Make the agent; return its cost, how many games it plays at once and by which way."""
        os.environ.clear()
        os.environ.update(environment)
        self.memory = memory
        _limit(memory)
        self.agent = make(spec)
        return int(self.agent.cost), int(self.agent.games_at_once), bool(self.agent.batched)

    def prepare(self, *boards: Board) -> None:
        """Tell the agent the boards."""
        self.agent.prepare(boards)

    def act(self, *asked: Any) -> list[int]:
        """Let it decide."""
        moves = self.agent.act(*asked)
        try:
            return [int(move) for move in checked_moves(moves, len(asked[1]))]
        except ValueError as error:
            raise InvalidChoice(str(error)) from None


def _end_with(lifeline: int) -> None:
    """Let the system kill all processes of this group when the other end of a pipe closes.

    Linux can, even while an agent holds the lock of Python, under which no thread of it runs.
    """
    import fcntl  # not on every system

    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _limit(memory: int) -> None:
    """Let this process have so many MiB more, where the system can see to that."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return
    import resource  # not on every system

    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    has = int(lines["VmData"].split()[0]) << 10
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (has + memory * _MIB, most))
