"""Threads in which the agents of a live game think."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple

Task = Literal["move", "advice", "review"]


class Job(NamedTuple):
    """What an agent is to compute.

    Attributes:
        task: the kind of the result.
        agent: its spec.
        compute: returns the result, without reading the game.
    """

    task: Task
    agent: str
    compute: Callable[[], Any]


class Worker:
    """A thread that runs jobs one after another, until it is stopped.

    The program does not wait for it at its end.

    Args:
        run: runs a job.
    """

    def __init__(self, run: Callable[[Job], None]) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._run = run
        threading.Thread(target=self._run_all, daemon=True).start()

    def start(self, job: Job) -> None:
        """Run a job after the ones before."""
        self._jobs.put(job)

    def stop(self) -> None:
        """End the thread after the jobs before."""
        self._jobs.put(None)

    def _run_all(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._run(job)
