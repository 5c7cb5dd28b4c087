"""What runs in the process of an agent of one's own: it is made here, and asked."""

from __future__ import annotations

import json
import os
import pickle
import queue
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from tokaido_env.agent import AgentError
from tokaido_env.agents.outside import NoAction
from tokaido_env.agents.registry import make
from tokaido_env.arena.nursery import read_all, run, write
from tokaido_env.boards.board import Board
from tokaido_env.core.checks import brief, told
from tokaido_env.game import Game
from tokaido_env.record import MOST_DETAIL
from tokaido_env.validity import checked_moves

MIB = 1 << 20


def main(control: int) -> None:
    """Be the process that others are forked from: see `nursery.run`."""
    os.dup2(2, 1)  # what agents print is not what the command prints
    game = Game(seed=0)  # what a choice needs is loaded before its clock runs
    game.copy().play(game.legal_actions()[0])
    run(control, serve)


def serve(connection: socket.socket) -> None:
    """Play the agent that is asked for, until nobody asks any more."""
    questions: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(message: bytes) -> None:
        if not message:  # whoever asks is gone, whatever the agent does just now
            os._exit(0)
        questions.put(pickle.loads(message))

    threading.Thread(target=read_all, args=(connection.makefile("rb"), put), daemon=True).start()
    answers, guest = connection.makefile("wb"), _Guest()
    while True:
        what, given = questions.get()
        write(answers, json.dumps(_answer(guest, what, given)).encode())


def _answer(guest: _Guest, what: str, given: Any) -> dict[str, Any]:
    """Let the agent answer; whatever it raises is an answer too."""
    try:
        return {"answer": getattr(guest, what)(*given)}
    except MemoryError:
        reason, detail = "memory", f"it needs more than {guest.memory} MiB"
    except NoAction as error:
        reason, detail = "illegal", str(error)
    except SystemExit as error:
        reason, detail = "exit", f"it wants to end the command: {told(error)}"
    except BaseException as error:
        reason, detail = "crash", str(error) if isinstance(error, AgentError) else told(error)
    return {"reason": reason, "detail": brief(" ".join(detail.split()), MOST_DETAIL)}


class _Guest:
    """The agent of a process: what can be asked of it."""

    memory = 0

    def begin(
        self, spec: str, memory: int, environment: dict[str, str], path: list[str], folder: str
    ) -> tuple[int, int, bool]:
        """Make the agent, where and as whoever asks would; return what is to be known of it."""
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[:] = path
        self.memory = memory
        _keep_to(memory)
        self.agent = make(spec)
        return self.agent.cost, self.agent.games_at_once, self.agent.batched

    def prepare(self, *boards: Board) -> None:
        """Tell the agent the boards."""
        self.agent.prepare(boards)

    def act(self, *asked: Any) -> list[int]:
        """Let it decide."""
        moves = self.agent.act(*asked)
        try:
            return [int(move) for move in checked_moves(moves, len(asked[1]))]
        except ValueError as error:
            raise NoAction(str(error)) from None


def _keep_to(memory: int) -> None:
    """Let this process have so many MiB more, where the system can see to that."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return
    import resource  # not on every system

    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    has = int(lines["VmData"].split()[0]) << 10
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (has + memory * MIB, most))
