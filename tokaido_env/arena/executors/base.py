"""Tasks and executors: the interface, the serial executor, and the base of remote executors.

    with SerialExecutor() as executor:
        for number, result in executor.map(tasks): ...

A task is a pure function of its fields: it gives the same results wherever and however often it
runs. An executor runs a task again if its worker was lost, so some results may come twice. The
order of tasks has no meaning.
"""

from __future__ import annotations

import socket
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.exec_agent import ProgramAgent
from tokaido_env.agents.registry import make
from tokaido_env.arena.game_runner import AgentFailed, Numbers, interrupts_deferred
from tokaido_env.core.arguments import IllegalMove, repr_short

TaskAgent = Agent | tuple[str, str, float | None]
"""An agent; or its spec, the SHA-256 of its files and the seconds of a decision, to make it
elsewhere."""

TaskResult = tuple[int, Any]
"""The number of a task, in the order in which tasks were taken, and one of its results."""

_TASKS_PER_WORKER = 8  # enough to share work evenly between workers
_CACHED_AGENTS = 8  # for each worker


class Task(Protocol):
    """Work that can run in any process. It can be pickled, and `str` describes it for messages."""

    def run(self) -> Iterator[Any]:
        """Run; yield each result, which can be pickled.

        Raises:
            IllegalMove: if an agent chose an illegal action.
            AgentFailed: if an agent failed in another way.
        """


class CallTask(NamedTuple):
    """A task that calls a generator function with agents: its results are the yielded values.

    Attributes:
        function: at the top of a module, so that other processes can import it; called with the
            agents, then with the arguments.
        agents: from `task_agent`.
        arguments: after the agents.
        text: describes the task in messages.
    """

    function: Callable[..., Iterator[Any]]
    agents: tuple[TaskAgent, ...]
    arguments: tuple[Any, ...]
    text: str

    def run(self) -> Iterator[Any]:
        """Call the function: see `Task.run`."""
        agents = (one if isinstance(one, Agent) else make_verified(*one) for one in self.agents)
        yield from self.function(*agents, *self.arguments)

    def __str__(self) -> str:
        return self.text


class Executor(AbstractContextManager["Executor"]):
    """Runs tasks, as `concurrent.futures.Executor` does; leaving its `with` block shuts it down."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """The number of tasks that run at once, now."""

    @abstractmethod
    def map(self, tasks: Iterable[Task]) -> Iterator[TaskResult]:
        """Run tasks; yield their results as they come. Ctrl-C waits until a result is processed.

        A task is taken when a worker is free. After a task has failed no more are taken; running
        tasks end, and their results are yielded.

        Args:
            tasks: to be run.

        Raises:
            IllegalMove: if that stopped the failed task with the lowest number.
            AgentFailed: likewise.
            KeyboardInterrupt: after all results that had arrived were yielded.
        """

    def shutdown(self) -> None:
        """End the workers."""

    def __exit__(self, *error: object) -> None:
        self.shutdown()


class SerialExecutor(Executor):
    """Runs one task after the other in this process."""

    workers = 1

    def map(self, tasks: Iterable[Task]) -> Iterator[TaskResult]:
        """Run tasks: see `Executor.map`."""
        for number, task in enumerate(tasks):
            for result in task.run():
                with interrupts_deferred():
                    yield number, result


class Message(NamedTuple):
    """A message of a worker about a task.

    Attributes:
        results: of the task, since the last message.
        is_last: whether the task has ended.
        error: that stopped it; None otherwise.
    """

    results: list[Any]
    is_last: bool = True
    error: Exception | None = None


class RemoteExecutor(Executor):
    """Base of executors that run tasks in other processes: each running task has a handle."""

    tasks_per_worker = 1  # submitted at once

    def map(self, tasks: Iterable[Task]) -> Iterator[TaskResult]:
        """Run tasks, with agents made from their specs by each worker: see `Executor.map`."""
        waiting = enumerate(tasks)
        running: dict[Any, tuple[int, Task]] = {}
        errors: dict[int, Exception] = {}
        try:
            while True:
                while not errors and len(running) < self.tasks_per_worker * self.workers:
                    task = next(waiting, None)
                    if task is None:
                        break
                    with interrupts_deferred():
                        running[self._submit(task[1])] = task
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
        """Yield the results that have arrived; with `wait`, wait for the next ones."""
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
        """Start a task on a worker; return its handle."""

    @abstractmethod
    def _ready(self, handles: Sequence[Any], *, wait: bool) -> Iterable[Any]:
        """Return the handles of tasks with a message; with `wait`, wait a while for the first.

        Without waiting, a handle may come once for each of its messages.
        """

    @abstractmethod
    def _receive(self, handle: Any, task: Task) -> Message:
        """Return the next message of a task: an error if its worker was lost."""

    @abstractmethod
    def _cancel(self, handles: Sequence[Any]) -> None:
        """Stop running tasks."""


def run_task(task: Task, emit: Callable[[Any], None]) -> Exception | None:
    """Run a task in a worker and emit its results; return the error that stopped it, picklable."""
    try:
        for result in task.run():
            emit(result)
    except (IllegalMove, AgentFailed) as error:
        return type(error)(str(error))
    except Exception as error:  # a new one: not every error can be pickled
        return AgentFailed(f"{type(error).__name__}: {error}")
    return None


@lru_cache(_CACHED_AGENTS)
def make_verified(spec: str, sha256: str = "", seconds: float | None = None) -> Agent:
    """Make an agent for tasks, the same object each time; arguments as in `TaskAgent`.

    Raises:
        AgentFailed: if its files have another hash.
    """
    agent = make(spec)
    if isinstance(agent, ProgramAgent):
        agent.wrapped.seconds = seconds
    first = len(sha256.partition("+")[0])  # a custom agent may write to the other files
    if agent.sha256[:first] != sha256[:first]:
        raise AgentFailed(
            f"agent {repr_short(spec)}: expected SHA-256 {sha256[:16]}… of its files on "
            f"{socket.gethostname()}, got another: keep the file unchanged, the same on all nodes"
        )
    return agent


def task_agent(agent: Agent, executor: Executor) -> TaskAgent:
    """Return an agent as the tasks of an executor hold it: itself if it plays in this process.

    Raises:
        AgentError: if other processes cannot make it, because `make` did not.
    """
    if isinstance(executor, SerialExecutor):
        return agent
    if not agent.source:
        raise AgentError(
            f"executor: expected agents that other processes can make, got {agent.spec!r}, an "
            "object: use make('python:FILE:CLASS'), or play it in this process without executor"
        )
    seconds = agent.wrapped.seconds if isinstance(agent, ProgramAgent) else None
    return agent.source, agent.sha256, seconds


def split_work(numbers: Numbers, workers: int) -> list[Numbers]:
    """Split numbers into parts, one a task: several for each worker, or one for a single worker.

    Args:
        numbers: int64 (n,).
        workers: number of workers.
    """
    size = len(numbers) if workers == 1 else -(-len(numbers) // (_TASKS_PER_WORKER * workers))
    return chunked(numbers, max(size, 1))


def chunked(numbers: Numbers, size: int) -> list[Numbers]:
    """Return numbers, int64 (n,), in chunks of at most `size`."""
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]
