"""Agents of one's own, each in a process of its own: what one does there, only it can lose by.

    with Apart("python:my_bots:Careful", Limits(seconds=1.0)) as agent: ...

An error, the end of its process, a decision that takes too long or too much memory is a `Failure`
of this agent; the next time that it is asked, it is made anew if need be.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from tokaido_env.agent import Actions, Agent, AgentError, BoardRows, Keys, Legal, States
from tokaido_env.agents.registry import is_foreign, make
from tokaido_env.arena.nursery import CAN_FORK, Child
from tokaido_env.boards.board import Board

MEMORY = 2048  # by default
_MOST_SECONDS = 86_400
_MOST_MEMORY = 1 << 24
_TO_BEGIN = 120.0  # seconds in which an agent has to be made
_NONSENSE = "its process does not answer as it should"
_TO_END = 2.0  # seconds in which a process that says no more has to have ended


class Limits(NamedTuple):
    """What an agent of one's own may use.

    Attributes:
        seconds: for a decision; None: any time.
        memory: MiB, beyond what its process begins with. Linux alone keeps to it.
    """

    seconds: float | None = None
    memory: int = MEMORY


def check_limits(seconds: float | None, memory: int | None) -> None:
    """Raise `ValueError` for limits under which nobody can play."""
    if seconds is not None and not 0 < seconds <= _MOST_SECONDS:
        raise ValueError(
            f"move seconds: expected more than 0, at most {_MOST_SECONDS:,}, got {seconds:g}"
        )
    if memory is not None and not 1 <= memory <= _MOST_MEMORY:
        raise ValueError(f"memory: expected 1 to {_MOST_MEMORY:,} MiB, got {memory}")


def make_guarded(spec: str, limits: Limits) -> Agent:
    """Make an agent; one that is not of this package plays in a process of its own.

    Raises:
        AgentError: if it cannot be made.
    """
    if not is_foreign(spec):
        return make(spec)
    if not CAN_FORK:
        raise AgentError(f"agent {spec!r}: this system cannot fork: let it play in this process")
    agent = Apart(spec, limits)
    agent.get_to_know()
    agent.close()  # until it plays, which may be elsewhere
    return agent


class Failure(RuntimeError):  # noqa: N818  of an agent, which loses by it
    """An agent did not decide.

    Args:
        reason: one of `record.REASONS`.
        detail: what happened, in one line.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


Question = tuple[BoardRows, States, Legal, Keys]  # the arguments of `Agent.act`


class Apart(Agent):
    """An agent that plays in a process of its own, which begins when it is first needed.

    Args:
        spec: of the agent.
        limits: of the process.
    """

    def __init__(self, spec: str, limits: Limits) -> None:
        self.spec = spec
        self.limits = limits
        self._boards: list[Board] = []
        self._child: Child | None = None

    def __enter__(self) -> Apart:
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
        except Failure as failure:
            if failure.reason == "crash":
                raise AgentError(failure.detail) from None  # which names the agent
            raise AgentError(f"agent {self.spec!r}: cannot be made: {failure.detail}") from None

    def close(self) -> None:
        """End the process; asked again, the agent begins another."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def prepare(self, boards: Sequence[Board]) -> None:
        """Hear on which boards the coming games are played."""
        self._boards = list(boards)
        if self._child is not None:
            try:
                self._answer("prepare", self._boards, seconds=_TO_BEGIN)
            except Failure:  # it may have ended since: it begins anew when it is asked to decide
                self.close()

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`.

        Raises:
            Failure: of the first game in which it did not decide.
        """
        decided = self.decide(boards, states, legal, keys)
        for move in decided:
            if isinstance(move, Failure):
                raise move
        return np.array(decided, np.int64)

    def decide(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> list[int | Failure]:
        """Return an action for each game, or how the agent has failed to decide."""
        each: list[Question] = [
            (boards[i % len(boards)][None], states[i : i + 1], legal[i : i + 1], keys[i : i + 1])
            for i in range(len(states))
        ]
        try:
            if self._child is None:
                self._begin()
        except Failure as failure:
            return [failure] * len(states)
        if self.batched:
            with contextlib.suppress(Failure):  # asked about each alone, it may fail in one only
                return [*self._moves((boards, states, legal, keys))]
        return [self._move(one) for one in each]

    def _move(self, asked: Question) -> int | Failure:
        try:
            return self._moves(asked)[0]
        except Failure as failure:
            return failure

    def _moves(self, asked: Question) -> list[int]:
        """Ask about some games at once."""
        if self._child is None:
            self._begin()
        games, seconds = len(asked[1]), self.limits.seconds
        moves = self._answer("act", asked, None if seconds is None else seconds * games)
        right = isinstance(moves, list) and len(moves) == games
        if not right or not all(type(move) is int for move in moves):
            raise self._failed("exit", _NONSENSE)
        return list(moves)

    def _begin(self) -> None:
        """Begin the process, and get to know the agent."""
        self._child = Child()
        threads = {"OMP_NUM_THREADS": str(numba.get_num_threads())}
        asked = threads | dict(os.environ), sys.path, str(Path.cwd())
        given = self.spec, self.limits.memory, *asked
        try:
            self.cost, self.games_at_once, self.batched = self._answer("begin", given, _TO_BEGIN)
            if self._boards:
                self._answer("prepare", self._boards, _TO_BEGIN)
        except Failure:  # there is a process, but no agent in it
            self.close()
            raise

    def _answer(self, what: str, given: Any, seconds: float | None) -> Any:
        """Ask the process for something; return its answer, or raise a `Failure`."""
        assert self._child is not None
        try:
            answer = self._child.ask((what, given), seconds)
        except TimeoutError:
            raise self._failed("time", f"it took more than {seconds:g} s") from None
        except (EOFError, OSError):
            status = self._child.end(_TO_END)
            raise self._failed("exit", f"its process ended with status {status}") from None
        except ValueError:
            raise self._failed("exit", _NONSENSE) from None
        except BaseException:  # its answer would be taken for that of the next question
            self.close()
            raise
        if "answer" in answer:
            return answer["answer"]
        failure = Failure(str(answer.get("reason")), str(answer.get("detail")))
        if failure.reason == "memory":  # it keeps what it has got
            self.close()
        raise failure

    def _failed(self, reason: str, detail: str) -> Failure:
        self.close()
        return Failure(reason, detail)
