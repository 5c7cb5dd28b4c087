"""Custom agents in separate processes: an agent that fails forfeits its game.

    with SandboxedAgent("python:my_bots:Careful", Limits(seconds=1.0)) as agent: ...

An error, the end of the process, a decision that takes too long and too much memory are a
`SandboxFailure` of the agent. Its next decision starts the process again if it has ended.

Processes are forked from the fork server of `multiprocessing`, which has loaded all that a decision
needs. Questions are pickles and answers lines of JSON, so that no answer executes code in this
process. All processes that an agent has started end with its own, which ends with this one.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Any, NamedTuple

import numba
import numpy as np

from tokaido_env.agent import (
    ActArguments,
    Actions,
    Agent,
    AgentError,
    BoardRows,
    Keys,
    Legal,
    States,
)
from tokaido_env.agents.registry import make, runs_user_code
from tokaido_env.arena.sandbox_process import serve
from tokaido_env.boards.board import Board

CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()

DEFAULT_MEMORY = 2048  # MiB
_MAX_SECONDS = 86_400
_MAX_MEMORY = 1 << 24  # MiB
_START_SECONDS = 120.0  # to make the agent
_GRACE_SECONDS = 5.0  # for a program: the process that asks it keeps the time
_EXIT_SECONDS = 2.0  # for a process that has closed its connection
_MAX_ANSWER = 1 << 22  # bytes
_PRELOAD = "tokaido_env.arena.sandbox_preload"
_FACTS = [int, int, bool, bool]  # types of what `start` returns
_BAD_ANSWER = "its process sent no valid answer"


class Limits(NamedTuple):
    """Time and memory of a custom agent.

    Attributes:
        seconds: for a decision; None: no limit.
        memory: MiB, in addition to the memory of a new process. Only Linux enforces it.
    """

    seconds: float | None = None
    memory: int = DEFAULT_MEMORY


def check_limits(seconds: float | None, memory: int | None) -> None:
    """Raise `ValueError` for limits out of range."""
    if seconds is not None and not 0 < seconds <= _MAX_SECONDS:
        raise ValueError(
            f"move seconds: expected more than 0, at most {_MAX_SECONDS:,}, got {seconds:g}"
        )
    if memory is not None and not 1 <= memory <= _MAX_MEMORY:
        raise ValueError(f"memory: expected 1 to {_MAX_MEMORY:,} MiB, got {memory}")


def make_sandboxed(spec: str, limits: Limits) -> Agent:
    """Make an agent; a custom agent plays in a process of its own.

    Raises:
        AgentError: if the agent cannot be made, or this system cannot fork.
    """
    if not runs_user_code(spec):
        return make(spec)
    if not CAN_FORK:
        raise AgentError(
            f"agent {spec!r}: this system cannot fork, which a sandbox needs: "
            "run the agent in this process"
        )
    agent = SandboxedAgent(spec, limits)
    agent.start()
    agent.close()  # until it plays, perhaps in another process
    return agent


class SandboxFailure(RuntimeError):  # noqa: N818  the failure of an agent, not of this package
    """An agent did not decide.

    Args:
        reason: one of `record.REASONS`.
        detail: a description in one line.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class SandboxedAgent(Agent):
    """An agent in a process of its own, which starts at the first decision.

    Args:
        spec: of the agent.
        limits: of the process.
    """

    def __init__(self, spec: str, limits: Limits) -> None:
        self.spec = spec
        self.limits = limits
        self._boards: list[Board] = []
        self._process: _Process | None = None
        self._is_program = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without the process: each copy starts its own."""
        return type(self), (self.spec, self.limits), {"_boards": self._boards}

    def __enter__(self) -> SandboxedAgent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Make the agent in its process, and read its cost and the number of games at once.

        Raises:
            AgentError: if it cannot be made.
        """
        try:
            self._start()
        except SandboxFailure as failure:
            if failure.reason == "crash":
                raise AgentError(failure.detail) from None  # which names the agent
            raise AgentError(f"agent {self.spec!r}: cannot be made: {failure.detail}") from None

    def close(self) -> None:
        """End the process; the next decision starts another."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def prepare(self, boards: Sequence[Board]) -> None:
        """Prepare for games on these boards."""
        self._boards = list(boards)
        if self._process is not None:
            try:
                self._ask("prepare", self._boards, _START_SECONDS)
            except SandboxFailure:  # the next decision starts the process again
                self.close()

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`.

        Raises:
            SandboxFailure: of the first game without a decision.
        """
        decided = self.decide(boards, states, legal, keys)
        for move in decided:
            if isinstance(move, SandboxFailure):
                raise move
        return np.array(decided, np.int64)

    def decide(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> list[int | SandboxFailure]:
        """Return an action or a failure for each game."""
        try:
            if self._process is None:
                self._start()
        except SandboxFailure as failure:
            return [failure] * len(states)
        if self.batched:
            with contextlib.suppress(SandboxFailure):  # asked about each game, it may fail in one
                return [*self._moves((boards, states, legal, keys))]
        return [
            self._move(
                (
                    boards[i % len(boards)][None],
                    states[i : i + 1],
                    legal[i : i + 1],
                    keys[i : i + 1],
                )
            )
            for i in range(len(states))
        ]

    def _move(self, arguments: ActArguments) -> int | SandboxFailure:
        try:
            return self._moves(arguments)[0]
        except SandboxFailure as failure:
            return failure

    def _moves(self, arguments: ActArguments) -> list[int]:
        """Return the actions in some games, asked about at once."""
        if self._process is None:
            self._start()
        games, seconds = len(arguments[1]), self.limits.seconds
        grace = _GRACE_SECONDS if self._is_program else 0.0
        moves = self._ask("act", arguments, None if seconds is None else seconds * games + grace)
        valid = isinstance(moves, list) and len(moves) == games
        if not valid or not all(type(move) is int for move in moves):
            raise self._failure("exit", _BAD_ANSWER)
        return list(moves)

    def _start(self) -> None:
        self._process = _Process()
        threads = {"OMP_NUM_THREADS": str(numba.get_num_threads())}
        arguments = self.spec, *self.limits, threads | dict(os.environ)
        try:
            facts = self._ask("start", arguments, _START_SECONDS)
            if not isinstance(facts, list) or [*map(type, facts)] != _FACTS:
                raise self._failure("exit", _BAD_ANSWER)
            self.cost, self.games_at_once, self.batched, self._is_program = facts
            if self._boards:
                self._ask("prepare", self._boards, _START_SECONDS)
        except SandboxFailure:  # the process has no agent
            self.close()
            raise

    def _ask(self, method: str, arguments: Any, seconds: float | None) -> Any:
        """Call a method of the agent in its process; return its answer, or raise a failure."""
        assert self._process is not None
        try:
            answer = self._process.ask((method, arguments), seconds)
        except TimeoutError:
            raise self._failure("time", f"it took more than {seconds:g} s") from None
        except OSError:
            status = self._process.end(_EXIT_SECONDS)
            raise self._failure("exit", f"its process ended with status {status}") from None
        except (ValueError, RecursionError):
            raise self._failure("exit", _BAD_ANSWER) from None
        except BaseException:  # else the next question would get this answer
            self.close()
            raise
        if "answer" in answer:
            return answer["answer"]
        failure = SandboxFailure(str(answer.get("reason")), str(answer.get("detail")))
        if failure.reason == "memory" or self._is_program:  # nothing frees the memory; it has ended
            self.close()
        raise failure

    def _failure(self, reason: str, detail: str) -> SandboxFailure:
        self.close()
        return SandboxFailure(reason, detail)


_SAFE_PATH = "PYTHONSAFEPATH", "at start"


def end_safe_path() -> None:
    """Let further processes of this one import as usual, unless the user set otherwise."""
    name, value = _SAFE_PATH
    if os.environ.get(name) == value:
        del os.environ[name]


@contextlib.contextmanager
def process_start() -> Iterator[None]:
    """Block Ctrl-C while processes start, which inherit the block; deliver it later.

    They import nothing from the current folder, which may have a json.py. They get the import path
    of this process later, and end this setting by `end_safe_path`.
    """
    os.environ.setdefault(*_SAFE_PATH)
    can_block = hasattr(signal, "pthread_sigmask")  # not on Windows
    if can_block:
        resource_tracker.ensure_running()  # which else unblocks SIGINT when it starts in the block
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        end_safe_path()
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process:
    """A process that answers questions: see `sandbox_process.serve`.

    Raises:
        OSError: if the system allows no more processes.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([_PRELOAD])
        self._socket, child_socket = socket.socketpair()
        child_lifeline, self._lifeline = context.Pipe(duplex=False)
        with child_socket, child_lifeline:
            arguments = child_socket, child_lifeline
            self._process: BaseProcess = context.Process(target=serve, args=arguments, daemon=True)
            with process_start():  # the fork server, too, starts with the first of them
                self._process.start()
        # At exit before `multiprocessing` waits for its processes; not in a fork of this process.
        self._finalizer = Finalize(self, _end, (self._process, self._socket, 0.0), exitpriority=1)

    def ask(self, question: Any, seconds: float | None) -> dict[str, Any]:
        """Send a question and wait for the answer.

        Raises:
            TimeoutError: if no answer came in time.
            OSError: if the process has ended.
            ValueError, RecursionError: if the answer is not a JSON object of limited size.
        """
        until = None if seconds is None else time.monotonic() + seconds
        self._socket.settimeout(seconds)
        self._socket.sendall(pickle.dumps(question))
        line = b""
        while not line.endswith(b"\n"):
            left = None if until is None else max(until - time.monotonic(), 0.0)
            ready = wait([self._socket, self._process.sentinel], left)
            if not ready:
                raise TimeoutError
            received = self._socket.recv(1 << 16) if self._socket in ready else b""
            if not received:
                raise ConnectionError
            line += received
            if len(line) > _MAX_ANSWER:
                raise ValueError("an answer without end")
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError("expected an object")
        return answer

    def end(self, patience: float = 0.0) -> int | None:
        """End the process and all processes that it has started.

        Args:
            patience: seconds to wait for it to exit.

        Returns:
            Its exit status, None if it has been ended before.
        """
        if not self._finalizer.still_active():
            return None
        self._finalizer.cancel()
        return _end(self._process, self._socket, patience)


def _end(process: BaseProcess, connection: socket.socket, patience: float) -> int | None:
    assert process.pid is not None
    process.join(patience)
    status = process.exitcode
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # it may not have made its process group yet
    process.join()
    connection.close()
    return status
