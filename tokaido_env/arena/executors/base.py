"""Tasks, and what runs them: the interface, this process, and what other processes have in common.

    with SerialExecutor() as executor:
        for number, result in executor.map(tasks): ...

A task is a pure function of its fields: it gives the same results wherever and however often it
runs. An executor runs it again if its worker was lost, so some results may come twice; the order of
tasks means nothing.
"""

from __future__ import annotations

import hashlib
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.registry import make, policy_path_of
from tokaido_env.arena.game_runner import AgentFailed, Numbers, interrupts_deferred
from tokaido_env.arena.sandbox import Limits, SandboxedAgent
from tokaido_env.core.arguments import IllegalMove, repr_short

TaskResult = tuple[int, Any]
"""The number of a task, in the order in which they were taken, and one of its results."""

_TASKS = 8  # into how many work is split for each worker, to share it evenly
_KEPT = 8  # agents, by each worker


class AgentFactory(Protocol):
    """Makes agents."""

    def __call__(self, spec: str, sha256: str = "", limits: Limits | None = None) -> Agent:
        """Return the agent of a spec, the same one each time.

        Args:
            spec: of the agent.
            sha256: of its policy file, see `policy_sha256`.
            limits: of its process; None: it plays in this one.

        Raises:
            AgentError: if there is no such agent.
            AgentFailed: if its policy file here, or now, is another one.
        """


class Task(Protocol):
    """Work that can run anywhere. It can be pickled, and `str` describes it for messages."""

    def run(self, make: AgentFactory) -> Iterator[Any]:
        """Run; yield each result, which can be pickled.

        Args:
            make: makes agents, and keeps them from task to task.

        Raises:
            IllegalMove, AgentFailed: if an agent failed.
        """


class CallTask(NamedTuple):
    """A call with agents, as a task: its results are what the function yields.

    Attributes:
        function: of a module, so that other processes find it; called with the agents, then with
            the arguments.
        agents: from `agent_spec_of`.
        arguments: more of them.
        text: what is done, for messages.
    """

    function: Callable[..., Iterator[Any]]
    agents: tuple[tuple[str, str, Limits | None], ...]
    arguments: tuple[Any, ...]
    text: str

    def run(self, make: AgentFactory) -> Iterator[Any]:
        """Call the function: see `Task.run`."""
        yield from self.function(*(make(*agent) for agent in self.agents), *self.arguments)

    def __str__(self) -> str:
        return self.text


class Executor(ABC):
    """Runs tasks, as `concurrent.futures.Executor` does; leaving its `with` block shuts it down."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many tasks run at once, now."""

    @abstractmethod
    def map(self, tasks: Iterable[Task], agents: Sequence[Agent] = ()) -> Iterator[TaskResult]:
        """Run tasks; yield their results as they come. Ctrl-C waits until one is done with.

        A task is taken when a worker is free. After one has failed no more are taken; those that
        run go on to their end, and their results are yielded.

        Args:
            tasks: to be run.
            agents: that need not be made from their specs in this process.

        Raises:
            IllegalMove, AgentFailed: of the first task, by number, that has failed.
            KeyboardInterrupt: after all results that were there were yielded.
        """

    def shutdown(self) -> None:  # noqa: B027  there may be none
        """End the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()


class SerialExecutor(Executor):
    """Runs one task after the other in this process."""

    workers = 1

    def map(self, tasks: Iterable[Task], agents: Sequence[Agent] = ()) -> Iterator[TaskResult]:
        """Run tasks: see `Executor.map`."""
        factory = AgentCache(agents)
        for number, task in enumerate(tasks):
            for result in task.run(factory):
                with interrupts_deferred():
                    yield number, result


class Message(NamedTuple):
    """What a worker sends of a task: results, and whether it is over, and with which error."""

    results: list[Any]
    is_last: bool = True
    error: Exception | None = None


class RemoteExecutor(Executor):
    """Runs tasks in other processes: each has a handle while it runs."""

    ahead = 1  # tasks that are given out for each worker

    def map(self, tasks: Iterable[Task], agents: Sequence[Agent] = ()) -> Iterator[TaskResult]:
        """Run tasks, with agents made from their specs by each worker: see `Executor.map`."""
        waiting = enumerate(tasks)
        running: dict[Any, tuple[int, Task]] = {}
        errors: dict[int, Exception] = {}
        try:
            while True:
                while not errors and len(running) < self.ahead * self.workers:
                    found = next(waiting, None)
                    if found is None:
                        break
                    with interrupts_deferred():
                        running[self._submit(found[1])] = found
                if not running:
                    break
                yield from self._results(running, errors, wait=True)
        except (Exception, KeyboardInterrupt):
            yield from self._results(running, errors, wait=False)
            raise
        finally:
            self._cancel(list(running))
        if errors:
            raise errors[min(errors)]

    def _results(
        self, running: dict[Any, tuple[int, Task]], errors: dict[int, Exception], *, wait: bool
    ) -> Iterator[TaskResult]:
        """Yield the results that are there, or the next ones if it is to wait for them."""
        for handle in self._ready(list(running), wait=wait):
            number, task = running[handle]
            with interrupts_deferred():
                message = self._receive(handle, task)
                for result in message.results:
                    yield number, result
                if message.is_last:
                    del running[handle]
            if message.error is not None:
                errors[number] = message.error

    @abstractmethod
    def _submit(self, task: Task) -> Any:
        """Let a worker run a task; return its handle."""

    @abstractmethod
    def _ready(self, handles: Sequence[Any], *, wait: bool) -> Iterable[Any]:
        """Return the handles of tasks of which there is a message; wait a while for the first.

        Without waiting a handle may come as often as there are messages.
        """

    @abstractmethod
    def _receive(self, handle: Any, task: Task) -> Message:
        """Return a message of a task, an error if its worker was lost."""

    @abstractmethod
    def _cancel(self, handles: Sequence[Any]) -> None:
        """Stop tasks that run."""


def run_task(task: Task, factory: AgentFactory, emit: Callable[[Any], None]) -> Exception | None:
    """Run a task in a worker, emit its results; return what stopped it, as an error to be sent."""
    try:
        for result in task.run(factory):
            emit(result)
    except (IllegalMove, AgentFailed) as failed:
        return type(failed)(str(failed))
    except Exception as failed:  # a new one: not every error can be sent
        return AgentFailed(f"{type(failed).__name__}: {failed}")
    return None


class AgentCache:
    """An `AgentFactory` that keeps the agents that it has made last.

    Args:
        agents: that are there already.
    """

    def __init__(self, agents: Sequence[Agent] = ()) -> None:
        self._there = {agent.spec: agent for agent in agents}
        self._made = lru_cache(_KEPT)(_make_verified)

    def __call__(self, spec: str, sha256: str = "", limits: Limits | None = None) -> Agent:
        """Return the agent of a spec: see `AgentFactory`."""
        return self._there[spec] if spec in self._there else self._made(spec, sha256, limits)


def _make_verified(spec: str, sha256: str, limits: Limits | None) -> Agent:
    agent = make(spec) if limits is None else SandboxedAgent(spec, limits)
    if sha256 and policy_sha256(spec) != sha256:
        raise AgentFailed(
            f"agent {repr_short(spec)}: expected SHA-256 {sha256[:16]}… of its policy file on "
            f"{socket.gethostname()}, got another: install the same file on all nodes"
        )
    return agent


def policy_sha256(spec: str) -> str:
    """Return the SHA-256 of the policy file that an agent plays from, "" if there is none."""
    try:
        path = policy_path_of(spec)
        return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
    except (AgentError, OSError):  # of an agent that no spec makes, or whose file is gone since
        return ""


def agent_spec_of(agent: Agent) -> tuple[str, str, Limits | None]:
    """Return the arguments with which an `AgentFactory` makes such an agent elsewhere."""
    limits = agent.limits if isinstance(agent, SandboxedAgent) else None
    return agent.spec, policy_sha256(agent.spec), limits


def split_work(numbers: Numbers, workers: int) -> list[Numbers]:
    """Split numbered work into what each task does: all at once for one worker."""
    each = len(numbers) if workers == 1 else -(-len(numbers) // (_TASKS * workers))
    return chunked(numbers, max(each, 1))


def chunked(numbers: Numbers, size: int) -> list[Numbers]:
    """Return numbers in chunks of so many."""
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def gather(
    out: npt.NDArray[Any],
    executor: Executor,
    tasks: Iterable[Task],
    agents: Sequence[Agent],
    progress: Callable[[int], None] = lambda rows: None,
) -> None:
    """Run tasks whose results are rows of an array, int64 (k,), and what stands there.

    Args:
        out: (n, …), filled in.
        executor: runs them.
        tasks: to be run.
        agents: as for `Executor.map`.
        progress: called with the number of rows filled in now and then.
    """
    there = np.zeros(len(out), np.bool_)
    for _, (rows, found) in executor.map(tasks, agents):
        new = int((~there[rows]).sum())
        out[rows], there[rows] = found, True
        progress(new)
