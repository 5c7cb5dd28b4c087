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
    Actions,
    Agent,
    AgentError,
    BoardRows,
    Keys,
    Legal,
    States,
)
from tokaido_env.agents.exec_agent import ProgramPlayer
from tokaido_env.agents.line_process import LineProcess, ProcessFailure
from tokaido_env.agents.registry import make, runs_user_code, sha256_of
from tokaido_env.arena.sandbox_process import ARRAYS, HELLO, encode_array
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import repr_short

CAN_FORK = os.name == "posix"

DEFAULT_MEMORY = 2048  # MiB
_MAX_SECONDS = 86_400
_MAX_MEMORY = 1 << 24  # MiB
_START_SECONDS = 120.0  # to make the agent
_MAX_ANSWER = 1 << 22  # bytes
# The import path comes from this process: the current folder may have a json.py.
_MAIN = """
import os, sys
os.environ.setdefault("OMP_NUM_THREADS", sys.argv[1])
sys.path[:] = sys.argv[2:]
from tokaido_env.arena.sandbox_process import main
main()
"""
_COMMAND = "-P", "-u", "-c", _MAIN


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
        self.spec = self.source = spec
        self.sha256, self.limits = sha256_of(spec), limits
        self._player: ProgramPlayer | _PythonProcess
        if spec.startswith("exec:"):
            agent: Any = make(spec)
            self._player = agent.wrapped
        else:
            agent = self._player = _PythonProcess(spec)
        self._player.seconds, self._player.memory = limits
        self._agent: Agent = agent

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without the process: each copy starts its own."""
        return type(self), (self.spec, self.limits)

    def __enter__(self) -> SandboxedAgent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Make the agent in its process, and read its number of games at once.

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
        self._player.process.end()

    def prepare(self, boards: Sequence[Board]) -> None:
        """Prepare for games on these boards."""
        with contextlib.suppress(ProcessFailure):  # the next decision starts it again
            self._agent.prepare(boards)

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
        """Return an action or a failure for each of n games; arguments as for `Agent.act`.

        Raises:
            AgentError: if the system allows no more processes.
        """
        try:
            self._start()
        except ProcessFailure as failure:
            return [failure] * len(states)
        if self.batched:
            with contextlib.suppress(ProcessFailure):  # asked about each game, it may fail in one
                return [*self._agent.act(boards, states, legal, keys).tolist()]
        arrays = states, legal, keys
        return [
            self._decide_one(boards[i % len(boards)][None], *(one[i : i + 1] for one in arrays))
            for i in range(len(states))
        ]

    def _decide_one(self, *arguments: Any) -> int | ProcessFailure:
        try:
            return int(self._agent.act(*arguments)[0])
        except ProcessFailure as failure:
            return failure

    def _start(self) -> None:
        self._player.start()
        self.games_at_once, self.batched = self._agent.games_at_once, self._agent.batched


class _PythonProcess(Agent):
    """A `python:` agent in a new Python: see `sandbox_process`. Its methods raise `ProcessFailure`.

    Args:
        spec: of the agent.

    Attributes:
        seconds: as for `ProgramPlayer`.
        memory: as for `ProgramPlayer`.
        process: as for `ProgramPlayer`.
    """

    seconds: float | None = None
    memory: int | None = None

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._boards: list[dict[str, Any]] = []
        self.process = LineProcess(
            spec,
            [sys.executable, *_COMMAND, str(numba.get_num_threads()), *sys.path],
            max_answer=_MAX_ANSWER,
            quotes_errors=False,
        )

    def start(self) -> None:
        """Start the process and make the agent, if it does not run."""
        if not self.process.start():
            return
        self.process.ask([{"type": "hello"}], _START_SECONDS, HELLO)  # it has imported all
        self.process.limit_memory(self.memory)
        facts = self._integers({"type": "make", "spec": self.spec}, 2, _START_SECONDS)
        self.games_at_once, self.batched = facts[0], bool(facts[1])
        self._prepare()

    def prepare(self, boards: Sequence[Board]) -> None:
        """Store the boards; the process gets them now if it runs, else at its start."""
        self._boards = [board.to_dict() for board in boards]
        if self.process.runs:
            self._prepare()

    def _prepare(self) -> None:
        if self._boards:
            self._ask({"type": "prepare", "boards": self._boards}, _START_SECONDS)

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`."""
        self.start()
        arrays = map(encode_array, (boards, states, legal, keys))
        question = {"type": "act", **dict(zip(ARRAYS, arrays, strict=True))}
        seconds = None if self.seconds is None else self.seconds * len(states)
        return np.array(self._integers(question, len(states), seconds), np.int64)

    def _integers(self, question: dict[str, Any], length: int, seconds: float | None) -> list[int]:
        """Return an answer that is a list of integers."""
        answer = self._ask(question, seconds)
        is_list = isinstance(answer, list) and len(answer) == length
        if not is_list or not all(type(one) is int and abs(one) < 1 << 62 for one in answer):
            text = f"expected a list of {length} integers, got {repr_short(answer, 60)}"
            raise self.process.failure("illegal", text)
        return list(answer)

    def _ask(self, question: dict[str, Any], seconds: float | None) -> Any:
        """Return the answer to a question, or raise the agent's failure."""
        answer = self.process.ask([question], seconds, {"answer": []})
        reason, detail = str(answer.get("reason")), str(answer.get("detail"))
        if reason == "memory":  # nothing frees it
            raise self.process.failure(reason, f"it needs more than {self.memory} MiB")
        if "reason" not in answer:
            return answer["answer"]
        if question["type"] == "act":
            raise ProcessFailure(self.spec, reason, detail)
        raise self.process.failure(reason, detail)
