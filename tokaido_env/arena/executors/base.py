"""Tasks, and executors that run them in this process or in worker processes.

    with SerialExecutor() as executor:
        for number, result in executor.map(tasks): ...

A task is a pure function of its fields: it gives the same results wherever it runs. Each result
comes once. The order of tasks has no meaning.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import threading
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.exec_agent import ProgramAgent
from tokaido_env.agents.registry import make
from tokaido_env.arena.game_runner import AgentFailed, Numbers, interrupts_deferred
from tokaido_env.core.arguments import IllegalMove, format_error, repr_short

TaskAgent = Agent | tuple[str, str, float | None]
"""An agent; or its spec, the SHA-256 of its files and the seconds of a decision, to make it
elsewhere."""

TaskResult = tuple[int, Any]
"""The number of a task, in the order in which tasks were taken, and one of its results."""

_TASKS_PER_WORKER = 8  # enough to share work evenly between workers
_CACHED_AGENTS = 8  # for each worker
_SECONDS = 10.0  # of waiting for a result, before the number of workers is read again


class CallTask(NamedTuple):
    """A task: a generator function of agents. Its results are the yielded values.

    It can be pickled, and `str` describes it for messages.

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
        """Call the function; yield its results, which can be pickled.

        Raises:
            IllegalMove: if an agent chose an illegal action.
            AgentFailed: if an agent failed in another way.
        """
        agents = (one if isinstance(one, Agent) else make_verified(*one) for one in self.agents)
        return self.function(*agents, *self.arguments)

    def __str__(self) -> str:
        return self.text


class Executor(AbstractContextManager["Executor"]):
    """Runs tasks of agents, `CallTask`s; leaving its `with` block shuts it down."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """The number of tasks that run at once, now."""

    @abstractmethod
    def map(self, tasks: Iterable[CallTask]) -> Iterator[TaskResult]:
        """Run tasks; yield their results as they come. Ctrl-C waits until a result is processed.

        A task is taken when a worker is free. After a task has failed no more are taken; running
        tasks end, and their results are yielded.

        Args:
            tasks: to be run.

        Raises:
            IllegalMove: if that stopped a task.
            AgentFailed: if another failure stopped a task, or a worker was lost.
            KeyboardInterrupt: after all results that had arrived were yielded.
        """

    def shutdown(self) -> None:
        """End the workers."""

    def __exit__(self, *error: object) -> None:
        self.shutdown()


class SerialExecutor(Executor):
    """Runs one task after the other in this process."""

    workers = 1

    def map(self, tasks: Iterable[CallTask]) -> Iterator[TaskResult]:
        """Run tasks: see `Executor.map`."""
        for number, task in enumerate(tasks):
            for result in task.run():
                with interrupts_deferred():
                    yield number, result


_Running = dict[Future[bytes], tuple[int, CallTask]]
"""Running tasks with their numbers."""


class PoolExecutor(Executor):
    """Base of executors of other processes, which get tasks and return results as pickle bytes.

    Agents are made from their specs by each worker. Results come when their task has ended.
    """

    tasks_per_worker = 1  # submitted at once

    @abstractmethod
    def _submit(self, task: bytes) -> Future[bytes]:
        """Let a worker call `run_task`."""

    @abstractmethod
    def _cancel(self, futures: Iterable[Future[bytes]]) -> None:
        """Stop running tasks."""

    def map(self, tasks: Iterable[CallTask]) -> Iterator[TaskResult]:
        """Run tasks: see `Executor.map`."""
        waiting, running = enumerate(tasks), _Running()
        failed: Exception | None = None
        try:
            while True:
                while failed is None and len(running) < self.tasks_per_worker * self.workers:
                    if (task := next(waiting, None)) is None:
                        break
                    with interrupts_deferred():
                        running[self._submit(pickle.dumps(task[1]))] = task
                if not running:
                    break
                failed = (yield from _arrived(running, _SECONDS)) or failed
        except (Exception, KeyboardInterrupt):
            yield from _arrived(running, 0.0)
            raise
        finally:
            if running or failed:  # a lost process breaks its pool
                self._cancel(running)
        if failed:
            raise failed


def _arrived(running: _Running, seconds: float) -> Generator[TaskResult, None, Exception | None]:
    """Yield the results of tasks that end first within a time; return the first error, if any."""
    failed: Exception | None = None
    done = wait(running, seconds, FIRST_COMPLETED).done
    for future in sorted(done, key=lambda one: running[one][0], reverse=True):
        with interrupts_deferred():
            number, task = running.pop(future)
            try:
                results, error = pickle.loads(future.result())
            except Exception as lost:  # of the pool: its class depends on the executor
                text = f"the worker that played {task} was lost ({type(lost).__name__}): the agent "
                text += "ended it, memory ran out, or a script lacks if __name__ == '__main__'"
                results, error = [], AgentFailed(text)
            failed = error or failed
            for result in results:
                yield number, result
    return failed


def run_task(task: bytes) -> bytes:
    """Run a pickled `CallTask`; return the pickled (list of results, error or None)."""
    results, error = list[Any](), None
    try:
        for result in pickle.loads(task).run():
            results.append(result)
    except (IllegalMove, AgentFailed) as stopped:
        error = type(stopped)(str(stopped))
    except Exception as stopped:  # a new one: not every error can be pickled
        error = AgentFailed(format_error(stopped))
    return pickle.dumps((results, error))


class ProcessExecutor(PoolExecutor):
    """Runs tasks in worker processes on this machine, kept until shutdown or the first failure.

    Args:
        workers: number of processes; None: one for each processor.
    """

    workers = 1

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cpus()
        self._pool: ProcessPoolExecutor | None = None

    def shutdown(self) -> None:
        """End all processes at once, without waiting for their tasks."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in [*(pool._processes or {}).values()]:
                process.terminate()  # `shutdown` alone waits until they have run their tasks
            pool.shutdown(cancel_futures=True)

    def _submit(self, task: bytes) -> Future[bytes]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, context, _start_worker)
        return self._pool.submit(run_task, task)

    def _cancel(self, futures: Iterable[Future[bytes]]) -> None:
        self.shutdown()


def cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    numba.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent was killed: it would wait for tasks forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@lru_cache(_CACHED_AGENTS)
def make_verified(spec: str, sha256: str = "", seconds: float | None = None) -> Agent:
    """Make the agent of a spec in a worker, the same object each time.

    `sha256` is that of its files, "" for any; `seconds` limits a decision of a `ProgramAgent`.

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
    """Return the agent if it plays in this process, else its spec, SHA-256 and limit in seconds.

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
    """Split numbers, int64 (n,), into several parts for each worker, or one for one worker."""
    parts = 1 if workers == 1 else min(_TASKS_PER_WORKER * workers, len(numbers))
    return np.array_split(numbers, parts) if len(numbers) else []


def chunked(numbers: Numbers, size: int) -> list[Numbers]:
    """Return numbers, int64 (n,), as views of at most `size` of them, in order."""
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]
