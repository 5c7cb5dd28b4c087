"""Main loop of a sandbox process: makes one custom agent and answers questions for it."""

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
from tokaido_env.agents.exec_agent import ProgramFailure, ProgramPlayer
from tokaido_env.agents.python_agent import InvalidChoice
from tokaido_env.agents.registry import make
from tokaido_env.batch_validation import checked_moves
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import format_error, str_short
from tokaido_env.record import MAX_DETAIL_CHARS


def serve(connection: socket.socket, lifeline: Connection) -> None:
    """Answer questions, which are pickles, by lines of JSON, until the asking process ends.

    Args:
        connection: to the asking process.
        lifeline: one end of a pipe; only the asking process holds the other.
    """
    os.setsid()  # Ctrl-C is for the asking process; child processes end with this group
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    _kill_group_on_close(lifeline.fileno())
    os.dup2(2, 1)  # an agent's prints must not mix with the command's output
    questions: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, questions.put), daemon=True).start()
    agent = _AgentMethods()
    while True:
        method, arguments = questions.get()
        answer = _answer(agent, method, arguments)
        connection.sendall(json.dumps(answer).encode() + b"\n")


def _read(connection: socket.socket, put: Any) -> None:
    """Read questions; kill this process and its children when the connection closes."""
    try:
        with connection.makefile("rb") as file:
            while True:
                put(pickle.load(file))
    finally:
        os.killpg(os.getpid(), signal.SIGKILL)


def _answer(agent: _AgentMethods, method: str, arguments: Any) -> dict[str, Any]:
    """Return the answer of a method, or the reason and detail of its failure."""
    try:
        return {"answer": getattr(agent, method)(*arguments)}
    except MemoryError:
        reason, detail = "memory", f"it needs more than {agent.memory} MiB"
    except InvalidChoice as error:
        reason, detail = "illegal", str(error)
    except SystemExit as error:
        reason, detail = "exit", f"it tried to end the command: {format_error(error)}"
    except ProgramFailure as error:
        reason, detail = error.reason, error.detail
    except AgentError as error:
        reason, detail = "crash", str(error)
    except BaseException as error:
        reason, detail = "crash", format_error(error)
    return {"reason": reason, "detail": str_short(" ".join(detail.split()), MAX_DETAIL_CHARS)}


class _AgentMethods:
    """The methods that the asking process may call."""

    memory = 0

    def start(
        self, spec: str, seconds: float | None, memory: int, environment: dict[str, str]
    ) -> tuple[int, int, bool, bool]:
        """Make the agent; return its cost, games at once, and if it is batched and a program."""
        os.environ.clear()
        os.environ.update(environment)
        self.memory = memory
        _limit_memory(memory)
        self.agent = make(spec)
        player = getattr(self.agent, "wrapped", None)
        if isinstance(player, ProgramPlayer):
            player.seconds, player.has_own_group = seconds, False
            player.start()
        facts = int(self.agent.cost), int(self.agent.games_at_once), bool(self.agent.batched)
        return *facts, isinstance(player, ProgramPlayer)

    def prepare(self, *boards: Board) -> None:
        """Prepare the agent for games on these boards."""
        self.agent.prepare(boards)

    def act(self, *arguments: Any) -> list[int]:
        """Return the agent's actions."""
        moves = self.agent.act(*arguments)
        try:
            return [int(move) for move in checked_moves(moves, len(arguments[1]))]
        except ValueError as error:
            raise InvalidChoice(str(error)) from None


def _kill_group_on_close(lifeline: int) -> None:
    """Let the system kill all processes of this group when the other end of a pipe closes.

    Linux can, even while an agent holds Python's global interpreter lock and no thread runs.
    """
    import fcntl  # not on every system

    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _limit_memory(memory: int) -> None:
    """Limit the further memory of this process, in MiB, on systems with `/proc`."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return
    import resource  # not on every system

    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    used = int(lines["VmData"].split()[0]) << 10
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (used + (memory << 20), hard_limit))
