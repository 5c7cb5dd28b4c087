"""Executor of worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait as wait_for
from multiprocessing.process import BaseProcess

import numba

from tokaido_env.arena.executors.base import Message, RemoteExecutor, Task, run_task
from tokaido_env.arena.game_runner import AgentFailed


def cpus() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessExecutor(RemoteExecutor):
    """Runs tasks in worker processes, each started for its first task and kept until shutdown.

    `concurrent.futures.ProcessPoolExecutor` reports neither which task has lost its worker nor
    results before a task ends.

    Args:
        workers: number of processes; None: one for each processor.

    Raises:
        ValueError: in a daemonic process of `multiprocessing`.
    """

    def __init__(self, workers: int | None = None) -> None:
        if multiprocessing.current_process().daemon:
            raise ValueError(
                "executor: a daemonic process may not start processes: expected serial"
            )
        self._workers = cpus() if workers is None else workers
        self._processes: dict[Connection, BaseProcess] = {}  # by their pipes
        self._idle: list[Connection] = []

    @property
    def workers(self) -> int:
        """The number of tasks that run at once."""
        return self._workers

    def shutdown(self) -> None:
        """End all processes."""
        self._cancel(list(self._processes))

    def _submit(self, task: Task) -> Connection:
        pipe = self._idle.pop() if self._idle else self._start()
        with suppress(OSError):  # the process has ended: `_receive` finds its exit status
            pipe.send(task)
        return pipe

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        pipe, child_pipe = context.Pipe()
        process = context.Process(target=_work, args=(child_pipe,), daemon=True)
        with _process_start():
            process.start()
        self._processes[pipe] = process
        child_pipe.close()
        return pipe

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
        """End a process, or wait until it ends; return its exit status."""
        process = self._processes.pop(pipe)
        self._idle = [other for other in self._idle if other is not pipe]
        if kill:
            process.terminate()
        process.join()
        pipe.close()
        return process.exitcode


_SAFE_PATH = "PYTHONSAFEPATH", "at start"


def _end_safe_path() -> None:
    """Let further processes of this one import as usual, unless the user set otherwise."""
    name, value = _SAFE_PATH
    if os.environ.get(name) == value:
        del os.environ[name]


@contextmanager
def _process_start() -> Iterator[None]:
    """Start a process with SIGINT blocked and a safe import path; restore both afterwards.

    The process inherits both. It imports nothing from the current folder, which may have a json.py.
    It gets the import path of this process later, and ends this setting by `_end_safe_path`.
    """
    os.environ.setdefault(*_SAFE_PATH)
    can_block = hasattr(signal, "pthread_sigmask")  # not on Windows
    if can_block:
        resource_tracker.ensure_running()  # which else unblocks SIGINT when it starts in the block
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        _end_safe_path()
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _cause(status: int | None) -> str:
    """Return the probable cause of an exit status: a negative one is a signal."""
    if status is not None and status < 0:
        return "a signal killed it, perhaps for lack of memory"
    return "the agent ended it, or a script lacks the guard if __name__ == '__main__'"


def _work(pipe: Connection) -> None:
    """Run tasks until the pipe closes: the main function of a worker process."""
    _end_safe_path()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    multiprocessing.current_process().daemon = False  # an agent may start processes
    numba.set_num_threads(1)
    with suppress(EOFError, OSError):  # the parent process has ended
        while True:
            task = pipe.recv()
            error = run_task(task, lambda one: pipe.send(Message([one], is_last=False)))
            pipe.send(Message([], error=error))
