"""A crew of processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, cast

import numba

from tokaido_env.agent import Agent
from tokaido_env.arena.crew import Agents, Part, Unit, done
from tokaido_env.arena.playing import AgentFailed, interrupts_held


def cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes:
    """A crew of processes; each begins when there is a unit for it, and stays until `close`.

    Args:
        workers: how many; None: one for each processor.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = cpus() if workers is None else workers
        self._processes: dict[Connection, BaseProcess] = {}  # by their pipes

    def run(self, units: Iterable[Unit], agents: Sequence[Agent] = ()) -> Iterator[Part]:
        """Do units, each in one of the processes, agents made anew there: see `Crew.run`."""
        doing = _Doing(units)
        parts: list[Part] = []  # those that have not been taken
        whole = False
        try:
            for pipe in self._free():
                if not doing.give(pipe):
                    break
            while doing.running:
                for pipe in cast(list[Connection], wait(list(doing.running))):
                    parts += self._heard(pipe, doing)
                    yield from _taken(parts)
            whole = True
        except (Exception, KeyboardInterrupt):
            parts += self._stop(doing)
            yield from _taken(parts)
            raise
        finally:
            if not whole:  # one may still be at work, or its message half read
                self.close()
        if doing.errors:
            raise doing.errors[min(doing.errors)]

    def close(self) -> None:
        """End all processes."""
        for pipe in list(self._processes):
            self._end(pipe)

    def _free(self) -> Iterator[Connection]:
        """Yield the pipes of processes that do nothing, those that are there before new ones."""
        yield from list(self._processes)
        while len(self._processes) < self.workers:
            yield self._begin()

    def _begin(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _deaf_to_interrupts():
            process.start()
            self._processes[mine] = process
        theirs.close()
        return mine

    def _heard(self, pipe: Connection, doing: _Doing) -> list[Part]:
        """Read what a process says; if it is done with its unit, give it another."""
        number, unit = doing.running.pop(pipe)  # of half a message the rest is not to be read
        message = self._received(pipe, unit)
        if not message.is_last:
            doing.running[pipe] = number, unit
            return [(number, message.part)]
        if message.error is not None:
            doing.fail(number, message.error)
        doing.give(pipe)
        return []

    def _received(self, pipe: Connection, unit: Unit) -> _Message:
        try:
            message: _Message = pipe.recv()
            return message
        except (EOFError, OSError):
            process = self._end(pipe, kill=False)
            raise AgentFailed(
                f"the process that played {unit} ended with status {process.exitcode}: "
                f"{_cause(process.exitcode)}"
            ) from None

    def _stop(self, doing: _Doing) -> Iterator[Part]:
        """Yield what has been done meanwhile, and end the processes that are not done."""
        for pipe, (number, _) in doing.running.items():
            with suppress(EOFError, OSError):
                while pipe.poll():
                    message: _Message = pipe.recv()
                    if not message.is_last:
                        yield number, message.part
            self._end(pipe)

    def _end(self, pipe: Connection, *, kill: bool = True) -> BaseProcess:
        process = self._processes.pop(pipe)
        if kill:
            process.terminate()
        process.join()
        pipe.close()
        return process


class _Message(NamedTuple):
    """What a process says of its unit: a part of it, or that it is over, and how."""

    part: Any
    is_last: bool = False
    error: Exception | None = None


class _Doing:
    """Units that are being done: who does which, and which have failed."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.running: dict[Connection, tuple[int, Unit]] = {}
        self.errors: dict[int, Exception] = {}
        self._waiting: Iterator[tuple[int, Unit]] = enumerate(units)

    def give(self, pipe: Connection) -> bool:
        """Give a process the next unit; return whether there is one."""
        found = next(self._waiting, None)
        if found is None:
            return False
        self.running[pipe] = found
        with suppress(OSError):  # it has ended: reading from it will tell
            pipe.send(found[1])
        return True

    def fail(self, number: int, error: Exception) -> None:
        """Note that a unit has failed: no more are begun."""
        self.errors[number] = error
        self._waiting = iter(())


def _taken(parts: list[Part]) -> Iterator[Part]:
    """Yield parts; of those that are left over, none was taken."""
    while parts:
        with interrupts_held():
            yield parts[0]
            del parts[0]


def _cause(status: int | None) -> str:
    """Return what may have ended a process, by its exit status: below 0 it was a signal."""
    if status is not None and status < 0:
        return "killed by a signal, as for want of memory"
    return "the agent ended it, or a script does not guard its code with if __name__ == '__main__'"


def _work(pipe: Connection) -> None:
    """Do units until the pipe closes: what runs in a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the units
    numba.set_num_threads(1)
    agents = Agents()
    with suppress(EOFError, OSError):  # whoever gives the units has ended, however that was
        while True:
            unit = pipe.recv()
            error = done(unit, agents, lambda part: pipe.send(_Message(part)))
            pipe.send(_Message(None, is_last=True, error=error))


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
