"""Custom agents in separate processes: an agent that fails forfeits its game.

    with SandboxedAgent("python:my_bots:Careful", Limits(seconds=1.0)) as agent: ...

An error, the end of the process, a decision that takes too long and too much memory are a
`ProcessFailure` of the agent. Its next decision starts the process again if it has ended.

The process of a `python:` agent is a new Python; that of an `exec:` agent is its program. Both
answer lines of JSON, so that no answer executes code in this process. All processes that an agent
has started end with its own, which ends with this one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
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
from tokaido_env.agents.exec_agent import ProgramPlayer
from tokaido_env.agents.line_process import PROTOCOL, LineProcess, ProcessFailure
from tokaido_env.agents.registry import make, runs_user_code
from tokaido_env.arena.sandbox_process import ARRAYS, encode_array
from tokaido_env.boards.board import Board

CAN_FORK = os.name == "posix"

DEFAULT_MEMORY = 2048  # MiB
_MAX_SECONDS = 86_400
_MAX_MEMORY = 1 << 24  # MiB
_START_SECONDS = 120.0  # to make the agent
_MAX_ANSWER = 1 << 22  # bytes
# The import path comes from this process: the current folder may have a json.py.
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from {} import main; main()"
_COMMAND = "-P", "-u", "-c", _MAIN.format("tokaido_env.arena.sandbox_process")


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
    return agent


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
        self._agent: Agent | None = None
        self._player: ProgramPlayer | _PythonProcess

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
        except ProcessFailure as failure:
            if failure.reason == "crash":
                raise AgentError(failure.detail) from None  # which names the agent
            raise AgentError(f"agent {self.spec!r}: cannot be made: {failure.detail}") from None

    def close(self) -> None:
        """End the process; the next decision starts another."""
        if self._agent is not None:
            self._player.close()

    def prepare(self, boards: Sequence[Board]) -> None:
        """Prepare for games on these boards."""
        self._boards = list(boards)
        if self._agent is not None:
            with contextlib.suppress(ProcessFailure):  # the next decision starts it again
                self._agent.prepare(self._boards)

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`.

        Raises:
            ProcessFailure: of the first game without a decision.
        """
        decided = self.decide(boards, states, legal, keys)
        for move in decided:
            if isinstance(move, ProcessFailure):
                raise move
        return np.array(decided, np.int64)

    def decide(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> list[int | ProcessFailure]:
        """Return an action or a failure for each game.

        Raises:
            AgentError: if the system allows no more processes.
        """
        try:
            agent = self._start()
        except ProcessFailure as failure:
            return [failure] * len(states)
        if self.batched:
            with contextlib.suppress(ProcessFailure):  # asked about each game, it may fail in one
                return [*agent.act(boards, states, legal, keys).tolist()]
        return [
            _decide_one(
                agent,
                (
                    boards[i % len(boards)][None],
                    states[i : i + 1],
                    legal[i : i + 1],
                    keys[i : i + 1],
                ),
            )
            for i in range(len(states))
        ]

    def _start(self) -> Agent:
        """Return the agent, whose process runs."""
        if self._agent is None:
            self._make()
        assert self._agent is not None
        self._player.start()
        for name in ("cost", "games_at_once", "batched"):
            setattr(self, name, getattr(self._agent, name))
        return self._agent

    def _make(self) -> None:
        if self.spec.startswith("exec:"):
            agent: Any = make(self.spec)
            agent.wrapped.seconds, agent.wrapped.memory = self.limits
            self._player = agent.wrapped
        else:
            agent = self._player = _PythonProcess(self.spec, self.limits)
        agent.prepare(self._boards)
        self._agent = agent


def _decide_one(agent: Agent, arguments: ActArguments) -> int | ProcessFailure:
    try:
        return int(agent.act(*arguments)[0])
    except ProcessFailure as failure:
        return failure


class _PythonProcess(Agent):
    """A `python:` agent in a new Python: see `sandbox_process`. Its methods raise `ProcessFailure`.

    Args:
        spec: of the agent.
        limits: of the process.
    """

    def __init__(self, spec: str, limits: Limits) -> None:
        self.spec, self.limits = spec, limits
        self._boards: list[dict[str, Any]] = []
        self._process: LineProcess | None = None

    def start(self) -> LineProcess:
        """Start the process and make the agent, if it does not run; return it."""
        if self._process is not None and self._process.runs:
            return self._process
        self._process = process = LineProcess(
            self.spec,
            [sys.executable, *_COMMAND, *sys.path],
            environment={"OMP_NUM_THREADS": str(numba.get_num_threads())} | dict(os.environ),
            max_answer=_MAX_ANSWER,
            quotes_errors=False,
        )
        hello = {"type": "hello", "protocols": [PROTOCOL]}
        process.ask([hello], _START_SECONDS, {"protocol": PROTOCOL})
        process.limit_memory(self.limits.memory)
        facts = self._ask(process, {"type": "make", "spec": self.spec}, _START_SECONDS)
        if not _is_integers(facts, 3):
            raise process.failure("illegal", f"expected its attributes, got {facts!r:.60}")
        self.cost, self.games_at_once, self.batched = facts[0], facts[1], bool(facts[2])
        self._prepare(process)
        return process

    def close(self) -> None:
        """End the process; the next decision starts another."""
        if self._process is not None:
            self._process.end()

    def prepare(self, boards: Sequence[Board]) -> None:
        """Prepare for games on these boards."""
        self._boards = [board.to_dict() for board in boards]
        if self._process is not None and self._process.runs:
            self._prepare(self._process)

    def _prepare(self, process: LineProcess) -> None:
        if self._boards:
            self._ask(process, {"type": "prepare", "boards": self._boards}, _START_SECONDS)

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`."""
        process, arrays = self.start(), (boards, states, legal, keys)
        question = dict(zip(ARRAYS, map(encode_array, arrays), strict=True))
        seconds = self.limits.seconds
        limit = None if seconds is None else seconds * len(states)
        moves = self._ask(process, {"type": "act"} | question, limit)
        if not _is_integers(moves, len(states)):
            text = f"expected a list of actions, one per game, got {moves!r:.60}"
            raise process.failure("illegal", text)
        return np.array(moves, np.int64)

    def _ask(self, process: LineProcess, question: dict[str, Any], seconds: float | None) -> Any:
        """Return the answer to a question, or raise the agent's failure."""
        answer = process.ask([question], seconds, {"answer": []})
        reason, detail = str(answer.get("reason")), str(answer.get("detail"))
        if reason == "memory":  # nothing frees it
            raise process.failure(reason, f"it needs more than {self.limits.memory} MiB")
        if "reason" not in answer:
            return answer["answer"]
        if question["type"] == "act":
            raise ProcessFailure(self.spec, reason, detail)
        raise process.failure(reason, detail)


def _is_integers(answer: Any, length: int) -> bool:
    """Return whether an answer is a list of small integers of this length."""
    is_list = isinstance(answer, list) and len(answer) == length
    return is_list and all(type(one) is int and abs(one) < 1 << 62 for one in answer)
