"""Games in processes of their own, for agents that play one game at a time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple, cast

import numba
import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.agents.arena.playing import AgentFailed, Finish, Job, Numbers, play_games
from tokaido_env.agents.registry import make
from tokaido_env.core.checks import IllegalMove

Games = tuple[Numbers, npt.NDArray[np.int8]]  # numbers and actions of finished games


def cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def play_in_processes(
    a: str,
    b: str,
    jobs: Sequence[Job],
    processes: int,
    finish: Finish,
    progress: Callable[[int], None] = lambda games: None,
) -> None:
    """Play games as `playing.play_games` does, each job in one of some processes.

    Args:
        a: spec of one agent, made anew in each process.
        b: spec of the other.
        jobs: the games.
        processes: how many.
        finish: see `Finish`; called with the games of each job as they come.
        progress: as for `play_games`.

    Raises:
        IllegalMove, AgentFailed: as `play_games`; jobs that ran beside were played to their end.
    """
    crew = _Crew(a, b, min(processes, len(jobs)))
    finished: list[Games] = []  # those that have not been handed over
    errors: dict[int, Exception] = {}
    try:
        for number, message in crew.play(jobs):
            if message.error is not None:
                errors[number] = message.error
            if message.games is not None:
                finished.append(message.games)
                progress(len(message.games[0]))
                _hand_over(finished, finish)
    finally:
        finished += crew.stop()
        _hand_over(finished, finish)
    if errors:
        raise errors[min(errors)]


def _hand_over(finished: list[Games], finish: Finish) -> None:
    while finished:
        finish(*finished[0])
        del finished[0]


class _Message(NamedTuple):
    """What a process says of its job: some games of it that have finished, or that it is over."""

    games: Games | None
    error: Exception | None = None


class _Crew:
    """Processes that play jobs, each at the other end of a pipe."""

    def __init__(self, a: str, b: str, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.workers: dict[Connection, BaseProcess] = {}
        self.running: dict[Connection, int] = {}  # number of the job
        with _deaf_to_interrupts():
            for _ in range(processes):
                mine, theirs = context.Pipe()
                worker = context.Process(target=_work, args=(theirs, a, b), daemon=True)
                worker.start()
                theirs.close()
                self.workers[mine] = worker

    def play(self, jobs: Sequence[Job]) -> Iterator[tuple[int, _Message]]:
        """Yield what is said of each job, by its number; after an error begin no more."""
        waiting = iter(range(len(jobs)))
        for pipe in self.workers:
            self._give(pipe, waiting, jobs)
        while self.running:
            for pipe in cast(list[Connection], wait(list(self.running))):
                number = self.running.pop(pipe)  # of half a message the rest is not to be read
                message = self._received(pipe, jobs[number])
                if message.games is not None:
                    self.running[pipe] = number
                else:
                    if message.error is not None:
                        waiting = iter(())
                    self._give(pipe, waiting, jobs)
                yield number, message

    def stop(self) -> Iterator[Games]:
        """Yield what has been finished meanwhile, then end all processes."""
        for pipe in self.running:
            with suppress(EOFError, OSError):
                while pipe.poll():
                    message: _Message = pipe.recv()
                    if message.games is not None:
                        yield message.games
        for pipe, worker in self.workers.items():
            worker.terminate()
            worker.join()
            pipe.close()

    def _give(self, pipe: Connection, waiting: Iterator[int], jobs: Sequence[Job]) -> None:
        number = next(waiting, None)
        if number is not None:
            self.running[pipe] = number
            with suppress(OSError):  # it has ended: reading from it will tell
                pipe.send(jobs[number])

    def _received(self, pipe: Connection, job: Job) -> _Message:
        try:
            message: _Message = pipe.recv()
            return message
        except (EOFError, OSError):
            worker = self.workers[pipe]
            worker.join()
            raise AgentFailed(
                f"the process that played game {job.numbers[0] + 1} of {job.total} and "
                f"{len(job.numbers) - 1} more ended with status {worker.exitcode}: "
                f"{_cause(worker.exitcode)}"
            ) from None


def _cause(status: int | None) -> str:
    """Return what may have ended a process, by its exit status: below 0 it was a signal."""
    if status is not None and status < 0:
        return "killed by a signal, as for want of memory"
    return "the agent ended it, or a script does not guard its code with if __name__ == '__main__'"


def _work(pipe: Connection, a: str, b: str) -> None:
    """Play jobs until the pipe closes: what runs in a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the jobs
    numba.set_num_threads(1)
    agents: list[Agent] = []
    with suppress(EOFError, OSError):  # whoever gives the jobs has ended, however that was
        while True:
            job = pipe.recv()
            error = _played(agents, (a, b), job, lambda *games: pipe.send(_Message(games)))
            pipe.send(_Message(None, error))


def _played(
    agents: list[Agent], specs: tuple[str, str], job: Job, finish: Finish
) -> Exception | None:
    """Play a job; make the agents first if there are none yet. Return what has stopped it."""
    try:
        if not agents:
            agents += [make(spec) for spec in specs]
        a, b = agents
        play_games(a, b, job, finish)
    except (IllegalMove, AgentFailed) as failed:
        return type(failed)(str(failed))
    except Exception as failed:  # made anew: not every error can be sent
        return AgentFailed(f"{type(failed).__name__}: {failed}")
    return None


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started here never hear of Ctrl-C, not even while they begin."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
