"""Run tasks in worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait as wait_for
from multiprocessing.process import BaseProcess

import numba

from tokaido_env.arena.executors.base import AgentCache, Message, RemoteExecutor, Task, run_task
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.sandbox import interrupts_blocked


def cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessExecutor(RemoteExecutor):
    """Runs tasks in processes; each begins when there is a task for it, and stays until the end.

    `concurrent.futures.ProcessPoolExecutor` cannot say which task has lost its worker, and hands
    over nothing of a task before its end.

    Args:
        workers: how many; None: one for each processor.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = cpus() if workers is None else workers
        self._processes: dict[Connection, BaseProcess] = {}  # by their pipes
        self._idle: list[Connection] = []

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        return self._workers

    def shutdown(self) -> None:
        """End all processes."""
        self._cancel(list(self._processes))

    def _submit(self, task: Task) -> Connection:
        pipe = self._idle.pop() if self._idle else self._start()
        with suppress(OSError):  # it has ended: reading from it will tell
            pipe.send(task)
        return pipe

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with interrupts_blocked():
            process.start()
        self._processes[mine] = process
        theirs.close()
        return mine

    def _ready(self, handles: Sequence[Connection], *, wait: bool) -> Iterator[Connection]:
        if wait:
            yield from wait_for(handles)  # type: ignore[misc]
            return
        for pipe in handles:
            while pipe in self._processes and pipe not in self._idle and pipe.poll():
                yield pipe

    def _receive(self, handle: Connection, task: Task) -> Message:
        try:
            message: Message = handle.recv()
        except (EOFError, OSError):
            status = self._end(handle, kill=False)
            lost = f"the process that played {task} ended with status {status}: {_cause(status)}"
            return Message([], error=AgentFailed(lost))
        if message.is_last:
            self._idle.append(handle)
        return message

    def _cancel(self, handles: Sequence[Connection]) -> None:
        for pipe in handles:
            self._end(pipe)

    def _end(self, pipe: Connection, *, kill: bool = True) -> int | None:
        """End a process, or see it end; return its exit status."""
        process = self._processes.pop(pipe)
        self._idle = [other for other in self._idle if other is not pipe]
        if kill:
            process.terminate()
        process.join()
        pipe.close()
        return process.exitcode


def _cause(status: int | None) -> str:
    """Return what may have ended a process, by its exit status: below 0 it was a signal."""
    if status is not None and status < 0:
        return "killed by a signal, as for want of memory"
    return "the agent ended it, or a script does not guard its code with if __name__ == '__main__'"


def _work(pipe: Connection) -> None:
    """Run tasks until the pipe closes: what runs in a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the tasks
    multiprocessing.current_process().daemon = False  # or no agent could have a process here
    numba.set_num_threads(1)
    agents = AgentCache()
    with suppress(EOFError, OSError):  # whoever gives the tasks has ended, however that was
        while True:
            task = pipe.recv()
            error = run_task(task, agents, lambda one: pipe.send(Message([one], is_last=False)))
            pipe.send(Message([], error=error))
