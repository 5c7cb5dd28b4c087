"""Run custom agents in processes of their own: a failure forfeits that agent's game.

    with SandboxedAgent("python:my_bots:Careful", Limits(seconds=1.0)) as agent: ...

An error, the end of its process, a decision that takes too long or too much memory is a `Failure`
of this agent; asked again, it is made again if need be.

Processes are forked from the fork server of `multiprocessing`, which has loaded all that a decision
needs. Questions are pickles and answers lines of JSON: nothing that an agent sends runs code here.
All that an agent has begun ends with its process, which ends with this one.
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

from tokaido_env.agent import Actions, Agent, AgentError, BoardRows, Keys, Legal, States
from tokaido_env.agents.registry import make, runs_user_code
from tokaido_env.arena.sandbox_process import serve
from tokaido_env.boards.board import Board

CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()

DEFAULT_MEMORY = 2048  # by default
_MOST_SECONDS = 86_400
_MOST_MEMORY = 1 << 24
_TO_BEGIN = 120.0  # seconds in which an agent has to be made
_NONSENSE = "its process does not answer as it should"
_TO_END = 2.0  # seconds in which a process that says no more has to have ended
_MOST_ANSWER = 1 << 22  # bytes
_PRELOAD = "tokaido_env.arena.sandbox_preload"


class Limits(NamedTuple):
    """What an agent of one's own may use.

    Attributes:
        seconds: for a decision; None: any time.
        memory: MiB, beyond what its process begins with. Linux alone keeps to it.
    """

    seconds: float | None = None
    memory: int = DEFAULT_MEMORY


def check_limits(seconds: float | None, memory: int | None) -> None:
    """Raise `ValueError` for limits under which nobody can play."""
    if seconds is not None and not 0 < seconds <= _MOST_SECONDS:
        raise ValueError(
            f"move seconds: expected more than 0, at most {_MOST_SECONDS:,}, got {seconds:g}"
        )
    if memory is not None and not 1 <= memory <= _MOST_MEMORY:
        raise ValueError(f"memory: expected 1 to {_MOST_MEMORY:,} MiB, got {memory}")


def make_sandboxed(spec: str, limits: Limits) -> Agent:
    """Make an agent; one that is not of this package plays in a process of its own.

    Raises:
        AgentError: if it cannot be made.
    """
    if not runs_user_code(spec):
        return make(spec)
    if not CAN_FORK:
        raise AgentError(f"agent {spec!r}: this system cannot fork: let it play in this process")
    agent = SandboxedAgent(spec, limits)
    agent.get_to_know()
    agent.close()  # until it plays, which may be elsewhere
    return agent


class SandboxFailure(RuntimeError):  # noqa: N818  of an agent, which loses by it
    """An agent did not decide.

    Args:
        reason: one of `record.REASONS`.
        detail: what happened, in one line.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


ActArguments = tuple[BoardRows, States, Legal, Keys]  # the arguments of `Agent.act`


class SandboxedAgent(Agent):
    """An agent that plays in a process of its own, which begins when it is first needed.

    Args:
        spec: of the agent.
        limits: of the process.
    """

    def __init__(self, spec: str, limits: Limits) -> None:
        self.spec = spec
        self.limits = limits
        self._boards: list[Board] = []
        self._process: _Process | None = None

    def __enter__(self) -> SandboxedAgent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def get_to_know(self) -> None:
        """Make the agent once, to know its cost and how many games it plays at once.

        Raises:
            AgentError: if it cannot be made.
        """
        try:
            self._begin()
        except SandboxFailure as failure:
            if failure.reason == "crash":
                raise AgentError(failure.detail) from None  # which names the agent
            raise AgentError(f"agent {self.spec!r}: cannot be made: {failure.detail}") from None

    def close(self) -> None:
        """End the process; asked again, the agent begins another."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def prepare(self, boards: Sequence[Board]) -> None:
        """Hear on which boards the coming games are played."""
        self._boards = list(boards)
        if self._process is not None:
            try:
                self._answer("prepare", self._boards, seconds=_TO_BEGIN)
            except (
                SandboxFailure
            ):  # it may have ended since: it begins anew when it is asked to decide
                self.close()

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`.

        Raises:
            Failure: of the first game in which it did not decide.
        """
        decided = self.decide(boards, states, legal, keys)
        for move in decided:
            if isinstance(move, SandboxFailure):
                raise move
        return np.array(decided, np.int64)

    def decide(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> list[int | SandboxFailure]:
        """Return an action for each game, or how the agent has failed to decide."""
        each: list[ActArguments] = [
            (boards[i % len(boards)][None], states[i : i + 1], legal[i : i + 1], keys[i : i + 1])
            for i in range(len(states))
        ]
        try:
            if self._process is None:
                self._begin()
        except SandboxFailure as failure:
            return [failure] * len(states)
        if self.batched:
            with contextlib.suppress(
                SandboxFailure
            ):  # asked about each alone, it may fail in one only
                return [*self._moves((boards, states, legal, keys))]
        return [self._move(one) for one in each]

    def _move(self, asked: ActArguments) -> int | SandboxFailure:
        try:
            return self._moves(asked)[0]
        except SandboxFailure as failure:
            return failure

    def _moves(self, asked: ActArguments) -> list[int]:
        """Ask about some games at once."""
        if self._process is None:
            self._begin()
        games, seconds = len(asked[1]), self.limits.seconds
        moves = self._answer("act", asked, None if seconds is None else seconds * games)
        right = isinstance(moves, list) and len(moves) == games
        if not right or not all(type(move) is int for move in moves):
            raise self._failed("exit", _NONSENSE)
        return list(moves)

    def _begin(self) -> None:
        """Begin the process, and get to know the agent."""
        self._process = _Process()
        threads = {"OMP_NUM_THREADS": str(numba.get_num_threads())}
        given = self.spec, self.limits.memory, threads | dict(os.environ)
        try:
            known = self._answer("begin", given, _TO_BEGIN)
            if not isinstance(known, list) or [type(one) for one in known] != [int, int, bool]:
                raise self._failed("exit", _NONSENSE)
            self.cost, self.games_at_once, self.batched = known
            if self._boards:
                self._answer("prepare", self._boards, _TO_BEGIN)
        except SandboxFailure:  # there is a process, but no agent in it
            self.close()
            raise

    def _answer(self, what: str, given: Any, seconds: float | None) -> Any:
        """Ask the process for something; return its answer, or raise a `Failure`."""
        assert self._process is not None
        try:
            answer = self._process.ask((what, given), seconds)
        except TimeoutError:
            raise self._failed("time", f"it took more than {seconds:g} s") from None
        except OSError:
            status = self._process.end(_TO_END)
            raise self._failed("exit", f"its process ended with status {status}") from None
        except (ValueError, RecursionError):
            raise self._failed("exit", _NONSENSE) from None
        except BaseException:  # its answer would be taken for that of the next question
            self.close()
            raise
        if "answer" in answer:
            return answer["answer"]
        failure = SandboxFailure(str(answer.get("reason")), str(answer.get("detail")))
        if failure.reason == "memory":  # it keeps what it has got
            self.close()
        raise failure

    def _failed(self, reason: str, detail: str) -> SandboxFailure:
        self.close()
        return SandboxFailure(reason, detail)


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Let processes that are started here not hear of Ctrl-C while they begin; it waits here."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which `multiprocessing` starts first, and then unblocks
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process:
    """A process that answers questions: see `sandbox_process.serve`.

    Raises:
        OSError: if there can be no more processes.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([_PRELOAD])
        self._socket, theirs = socket.socketpair()
        lifeline, self._lifeline = context.Pipe(duplex=False)
        with theirs, lifeline:
            given = theirs, lifeline
            self._process: BaseProcess = context.Process(target=serve, args=given, daemon=True)
            with interrupts_blocked():  # the fork server, too, begins with the first of them
                self._process.start()
        # Before `multiprocessing` waits for its processes in the end, and only where this began.
        self._finalizer = Finalize(self, _end, (self._process, self._socket, 0.0), exitpriority=1)

    def ask(self, question: Any, seconds: float | None) -> dict[str, Any]:
        """Send a question and wait for the answer.

        Raises:
            TimeoutError: if none came in time.
            OSError, ValueError, RecursionError: if the process has ended, or talks nonsense.
        """
        until = None if seconds is None else time.monotonic() + seconds
        self._socket.settimeout(seconds)
        self._socket.sendall(pickle.dumps(question))
        answer = b""
        while not answer.endswith(b"\n"):
            left = None if until is None else max(until - time.monotonic(), 0.0)
            ready = wait([self._socket, self._process.sentinel], left)
            if not ready:
                raise TimeoutError
            more = self._socket.recv(1 << 16) if self._socket in ready else b""
            if not more:
                raise ConnectionError
            answer += more
            if len(answer) > _MOST_ANSWER:
                raise ValueError("an answer without end")
        read = json.loads(answer)
        if not isinstance(read, dict):
            raise ValueError("expected an object")
        return read

    def end(self, patience: float = 0.0) -> int | None:
        """End the process and all that it has begun.

        Args:
            patience: seconds in which it may end by itself.

        Returns:
            Its exit status, None if it was ended here.
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
    process.kill()  # before it had a group of its own
    process.join()
    connection.close()
    return status
