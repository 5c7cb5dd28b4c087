"""Processes for agents, forked from one that has loaded all they need: one begins at once.

    child = Child()
    answer = child.ask(question, seconds=1.0)
    child.end()

A process that wants children has a nursery, which it begins when it needs the first. Questions are
pickles and answers JSON, so that no agent's words are code where they are read. All ends with the
process that asks, however that ends. Works where processes can be forked.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

CAN_FORK = hasattr(os, "fork")

_GUEST = "tokaido_env.arena.guest"  # what runs there

_BEGIN, _END = 0, 1
_REQUEST = struct.Struct("<Bqd")  # what to do, with which child, in how many seconds
_REPLY = struct.Struct("<q")
_KILLED = -(1 << 32)  # instead of an exit status
_LENGTH = struct.Struct("<Q")  # of a message, before it
_TO_CLOSE = 5.0  # seconds
_MOST_MESSAGE = 1 << 31


class Child:
    """A process that answers questions, as `guest.serve` does.

    Raises:
        OSError: if there can be no more processes.
    """

    def __init__(self) -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            nursery = _nursery()
            self._pid = nursery.begin(theirs)
        self._nursery = nursery
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        with mine:  # closed once both of its files are
            self._to, reader = mine.makefile("wb"), mine.makefile("rb")
        threading.Thread(target=read_all, args=(reader, self._answers.put), daemon=True).start()
        self._end = weakref.finalize(self, _end_child, nursery, self._pid, self._to, 0.0)

    def ask(self, question: Any, seconds: float | None) -> dict[str, Any]:
        """Send a question and wait for the answer.

        Raises:
            TimeoutError: if none came in time.
            EOFError, OSError, ValueError: if the process has ended, or talks nonsense.
        """
        write(self._to, pickle.dumps(question))
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        if not answer:
            raise EOFError
        read = json.loads(answer)
        if not isinstance(read, dict):
            raise ValueError("expected an object")
        return read

    def end(self, patience: float = 0.0) -> int | None:
        """End the process and all that it has begun.

        Args:
            patience: seconds in which it may end by itself.

        Returns:
            Its exit status, None if it was ended here.
        """
        if self._end.detach() is None:
            return None
        return _end_child(self._nursery, self._pid, self._to, patience)


def _end_child(nursery: _Nursery, pid: int, to: IO[bytes], patience: float) -> int | None:
    with contextlib.suppress(OSError):  # what was on its way to a process that has ended
        to.close()
    try:
        return nursery.end(pid, patience)
    except OSError:  # the nursery has ended, and its children with it
        return None


class _Nursery:
    """The process that forks children."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        path = os.pathsep.join(part or str(Path.cwd()) for part in sys.path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"import {_GUEST} as guest; guest.main({theirs.fileno()})"],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for the process that asks
            )
        weakref.finalize(self, _close, self._control, self._process)

    def begin(self, connection: socket.socket) -> int:
        """Fork a child that answers on a connection; return its number."""
        with self._lock:
            request = _REQUEST.pack(_BEGIN, 0, 0.0)
            socket.send_fds(self._control, [request], [connection.fileno()])
            return self._reply()

    def end(self, pid: int, patience: float) -> int | None:
        """End a child: see `Child.end`."""
        if self.owner != os.getpid():  # a fork of its owner: the child is not for it to end
            return None
        with self._lock:
            self._control.sendall(_REQUEST.pack(_END, pid, patience))
            status = self._reply()
        return None if status == _KILLED else status

    def _reply(self) -> int:
        reply = self._control.recv(_REPLY.size, socket.MSG_WAITALL)
        if len(reply) < _REPLY.size:
            raise OSError("the process that begins others has ended")
        return int(_REPLY.unpack(reply)[0])

    @property
    def is_alive(self) -> bool:
        """Whether it can still be asked by this process."""
        return self.owner == os.getpid() and self._process.poll() is None


def _close(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Let a nursery end, with all of its children."""
    control.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_TO_CLOSE)


_own: _Nursery | None = None


def _nursery() -> _Nursery:
    """Return the nursery of this process."""
    global _own
    if _own is None or not _own.is_alive:
        _own = _Nursery()
    return _own


# Messages


def write(file: IO[bytes], message: bytes) -> None:
    """Write a message."""
    file.write(_LENGTH.pack(len(message)) + message)
    file.flush()


def read_all(file: IO[bytes], put: Callable[[bytes], None]) -> None:
    """Read messages to the end, which is put as an empty one: what runs in a thread."""
    with file, contextlib.suppress(OSError):
        while message := _read(file):
            put(message)
    put(b"")


def _read(file: IO[bytes]) -> bytes:
    """Return a message, empty if there is none, or none that is whole."""
    head = file.read(_LENGTH.size)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    message = file.read(length) if length <= _MOST_MESSAGE else b""
    return message if len(message) == length else b""


# What runs in the nursery, and in a child until it serves


def run(control: int, serve: Callable[[socket.socket], None]) -> None:
    """Fork children that serve, and end them, until nobody asks any more."""
    children: set[int] = set()
    with socket.socket(fileno=control) as asked:
        while True:
            request, fds, _, _ = socket.recv_fds(asked, _REQUEST.size, 1)
            if not request:
                break
            what, pid, patience = _REQUEST.unpack(request)
            if what == _BEGIN:
                pid = os.fork()
                if not pid:
                    asked.close()
                    _become_child(fds[0], serve)
                os.close(fds[0])
                children.add(pid)
                asked.sendall(_REPLY.pack(pid))
            else:
                children.discard(pid)
                asked.sendall(_REPLY.pack(_end(pid, patience)))
    for pid in children:
        _end(pid, 0.0)


def _become_child(fd: int, serve: Callable[[socket.socket], None]) -> None:
    status = 1
    try:
        os.setsid()
        serve(socket.socket(fileno=fd))
        status = 0
    finally:
        os._exit(status)


def _end(pid: int, patience: float) -> int:
    """Wait a while for a child to end, then end it; return its exit status."""
    until, ended, status = time.monotonic() + patience, 0, 0
    while not ended:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended or time.monotonic() >= until:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if ended:
        return os.waitstatus_to_exitcode(status)
    os.kill(pid, signal.SIGKILL)  # before it had a group of its own
    os.waitpid(pid, 0)
    return _KILLED
