"""Threads in which the agents of a live game think."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

Task = Literal["move", "advice", "review"]


class Job(NamedTuple):
    """A computation of an agent for a live game.

    Attributes:
        task: the kind of the result, "move", "advice" or "review".
        agent: its spec.
        results: returns the result, or yields it as it grows, without reading the game.
    """

    task: Task
    agent: str
    results: Callable[[], Iterable[Any]]


class Jobs:
    """Runs the jobs of a game in threads of their own; `start` returns at once.

    Args:
        run: called in a thread with each job; processes its results.

    Attributes:
        now: the newest job of each kind: only its result counts.
    """

    def __init__(self, run: Callable[[Job], None]) -> None:
        self._run = run
        self._locks: defaultdict[tuple[Task, int], threading.Lock] = defaultdict(threading.Lock)
        self.now: dict[Task, Job] = {}

    def start(
        self, task: Task, agent: str, results: Callable[[], Iterable[Any]], seat: int = 0
    ) -> None:
        """Run `Job(task, agent, results)` in a thread; it is now the newest of its kind.

        It waits for earlier jobs of the same task and seat, and ends unrun if a newer one comes.
        """
        job = self.now[task] = Job(task, agent, results)
        arguments = job, self._locks[task, seat]
        threading.Thread(target=self._run_alone, args=arguments, daemon=True).start()

    def counts(self, job: Job) -> bool:
        """Return whether a job is the newest of its kind: results of older ones do not count."""
        return self.now.get(job.task) is job

    def _run_alone(self, job: Job, lock: threading.Lock) -> None:
        with lock:
            if self.counts(job):
                self._run(job)
