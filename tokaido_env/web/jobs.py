"""Threads in which the agents of a live game think."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple

Task = Literal["move", "advice", "review"]


class Job(NamedTuple):
    """What an agent is to compute.

    Attributes:
        task: the kind of the result.
        agent: its spec.
        results: returns the result, or yields it as it grows, without reading the game.
    """

    task: Task
    agent: str
    results: Callable[[], Iterable[Any]]


class Jobs:
    """The jobs of a game, in threads for which neither each other nor the program waits.

    Args:
        run: runs a job.

    Attributes:
        now: the job of each kind whose result counts.
    """

    def __init__(self, run: Callable[[Job], None]) -> None:
        self._run = run
        self._queues: dict[tuple[Task, int], SimpleQueue[Job | None]] = {}  # one for each thread
        self.now: dict[Task, Job] = {}

    def start(
        self, task: Task, agent: str, results: Callable[[], Iterable[Any]], seat: int = 0
    ) -> None:
        """Run a job, after those before it of the same kind and seat."""
        job = self.now[task] = Job(task, agent, results)
        if (task, seat) not in self._queues:
            queue = self._queues[task, seat] = SimpleQueue()
            threading.Thread(target=self._run_all, args=(queue,), daemon=True).start()
        self._queues[task, seat].put(job)

    def counts(self, job: Job) -> bool:
        """Return whether the result of a job counts."""
        return self.now.get(job.task) is job

    def stop(self) -> None:
        """Drop all jobs, and end the threads after what they compute now."""
        self.now.clear()
        for queue in self._queues.values():
            queue.put(None)

    def _run_all(self, queue: SimpleQueue[Job | None]) -> None:
        while (job := queue.get()) is not None:
            if self.counts(job):
                self._run(job)
