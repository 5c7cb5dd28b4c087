"""Processes that answer lines of JSON: start one, ask it with a deadline, end it.

process = LineProcess("exec:./bot", ["./bot"])
answer = process.ask([{"type": "hello", "protocols": [1]}], 30.0, {"protocol": 1})
process.end()
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from tokaido_env.agent import AgentError
from tokaido_env.core.arguments import repr_short, str_short

MAX_ANSWER = 1 << 16  # bytes
_EXIT_SECONDS = 2.0  # for a process that has closed its output
_MAX_CAUSE, _MAX_ERRORS = 170, 115  # characters: together below `record.MAX_DETAIL_CHARS`
_SYSTEM_LIMITS = errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE


class ProcessFailure(AgentError):  # noqa: N818  the failure of an agent, not of this package
    """The process of an agent did not decide.

    Args:
        spec: of the agent.
        reason: one of `record.REASONS`.
        detail: the cause in one line, and the last lines of standard error.
    """

    def __init__(self, spec: str, reason: str, detail: str) -> None:
        super().__init__(f"agent {repr_short(spec)}: {detail}")
        self.reason, self.detail = reason, detail


class LineProcess:
    """A process in a group of its own; the group ends with it and with this process.

    Args:
        spec: of the agent, for messages.
        words: the program and its arguments.
        max_answer: bytes.
        quotes_errors: whether failures quote its standard error; else it is that of this process.
    """

    def __init__(
        self,
        spec: str,
        words: Sequence[str],
        *,
        max_answer: int = MAX_ANSWER,
        quotes_errors: bool = True,
    ) -> None:
        self._spec, self._words = spec, words
        self._max_answer, self._quotes_errors = max_answer, quotes_errors
        self._finalizer: Finalize | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started and not ended; it may have exited."""
        return self._finalizer is not None and self._finalizer.still_active()

    def start(self) -> bool:
        """Start the process; return False if it runs already.

        Raises:
            ProcessFailure: if the program cannot be started.
            AgentError: if the system allows no more processes or files.
        """
        if self.runs:
            return False
        try:
            process, lifeline = self._open()
        except OSError as error:
            raise self._start_error(error) from None
        # At exit, too; not in a fork of this process.
        self._finalizer = Finalize(self, _end, (process, lifeline), exitpriority=1)
        self._process, self._printed, self._has_answered = process, b"", False
        files = process.stdin, process.stdout, process.stderr
        self._input, self._output, self._errors = (file.fileno() if file else -1 for file in files)
        self._readable = [file for file in (self._output, self._errors) if file >= 0]
        for number in (self._input, *self._readable):
            os.set_blocking(number, False)
        return True

    def _open(self) -> tuple[subprocess.Popen[bytes], int]:
        """Start the process; return it and this end of a pipe: closing it kills the group."""
        errors = subprocess.PIPE if self._quotes_errors else None
        other_end, lifeline = os.pipe()
        try:
            process = subprocess.Popen(
                *(self._words, 0, None, subprocess.PIPE, subprocess.PIPE, errors),
                start_new_session=True,
                pass_fds=[other_end],
            )
            _kill_group_on_close(other_end, process.pid)
        except OSError:
            os.close(lifeline)
            raise
        finally:
            os.close(other_end)
        return process, lifeline

    def limit_memory(self, mebibytes: int | None) -> None:
        """Limit the memory that the process may take in addition to its present one; Linux only."""
        status = Path(f"/proc/{self._process.pid}/status")
        if mebibytes is None or not status.is_file():
            return
        import resource  # not on every system

        with contextlib.suppress(OSError):  # it has exited
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            limit = (int(lines.get("VmData", "0").split()[0]) << 10) + (mebibytes << 20)
            _, hard_limit = resource.prlimit(self._process.pid, resource.RLIMIT_DATA)
            if hard_limit != resource.RLIM_INFINITY:
                limit = min(limit, hard_limit)
            resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (limit, hard_limit))

    def ask(
        self, messages: Sequence[Mapping[str, Any]], seconds: float | None, example: dict[str, Any]
    ) -> dict[str, Any]:
        """Send messages; return the answer to the last one. The process ends at any error.

        Args:
            messages: of which each becomes a line.
            seconds: for the answer; None: no limit.
            example: of an answer, which has to contain its key.

        Raises:
            ProcessFailure: if no valid answer came in time.
        """
        lines = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        until = None if seconds is None else time.monotonic() + seconds
        try:
            answer = _parsed(self._exchange(lines, until), example)
        except TimeoutError as error:
            hint = ": a program has to flush its output after each line"
            text = f"no answer in {seconds:g} s{error}{hint * (not self._has_answered)}"
            raise self.failure("time", text) from None
        except (BrokenPipeError, EOFError):
            text = "its process closed its input or output"
            with contextlib.suppress(subprocess.TimeoutExpired):
                text = f"its process ended with status {self._process.wait(_EXIT_SECONDS)}"
            raise self.failure("exit", text) from None
        except ValueError as error:
            raise self.failure("illegal", str(error)) from None
        except BaseException:  # else the next question would get this answer
            self.end()
            raise
        self._has_answered = True
        return answer

    def failure(self, reason: str, detail: str) -> ProcessFailure:
        """End the process; return its failure, for the caller to raise."""
        printed = self.end()
        detail = str_short(detail, _MAX_CAUSE) if self._quotes_errors else detail
        return ProcessFailure(self._spec, reason, detail + (f"; stderr: {printed}" * bool(printed)))

    def end(self) -> str:
        """End the process and all that it started; return the end of its standard error."""
        if self._finalizer is None or not self.runs:
            return ""
        for _ in range(4):  # no more: it may still write
            self._read_errors()
        self._finalizer()
        lines = self._printed.decode(errors="replace").splitlines()
        text = " | ".join(line.strip() for line in lines if line.strip())
        return str_short(text[-_MAX_ERRORS:], _MAX_ERRORS)

    def _start_error(self, error: OSError) -> AgentError:
        text = f"cannot start its process: {error.strerror}"
        if error.errno not in _SYSTEM_LIMITS:
            return ProcessFailure(self._spec, "exit", text)
        return AgentError(
            f"agent {repr_short(self._spec)}: {text}: the system allows no more processes, memory "
            "or open files (ulimit -a): use fewer workers (--executor), or raise the limit"
        )

    def _exchange(self, lines: bytes, until: float | None) -> bytes:
        """Send lines; return the output up to the first line end, without blank lines."""
        answer = _read(self._output)
        if answer.strip():
            raise ValueError(f"expected one line per request, got {_shown(answer)} too")
        size = len(answer)
        while lines or b"\n" not in answer.lstrip():
            ready = self._wait(until, to_write=bool(lines))
            if not ready:
                only = f", only {_shown(answer)} without a line end"
                raise TimeoutError(only * bool(answer.strip()))
            if self._errors in ready:
                self._read_errors()
            if self._input in ready:
                lines = lines[os.write(self._input, lines) :]
            if self._output in ready:
                answer = answer.lstrip() + _read(self._output)
            size = max(size, len(answer))
            if size > self._max_answer:
                raise ValueError(f"an answer of more than {self._max_answer:,} bytes")
        line, _, more = answer.lstrip().partition(b"\n")
        if more.strip():
            raise ValueError(f"expected one line per request, got {_shown(answer)}")
        return line

    def _wait(self, until: float | None, *, to_write: bool) -> set[int]:
        """Wait until a pipe is ready; return those that are, none after the deadline."""
        left = None if until is None else max(until - time.monotonic(), 0.0)
        if left == 0.0:
            return set()
        poll = select.poll()  # `select.select` refuses file descriptors from 1,024 on
        for file in self._readable:
            poll.register(file, select.POLLIN)
        if to_write:
            poll.register(self._input, select.POLLOUT)
        return {file for file, _ in poll.poll(None if left is None else 1000 * left + 1)}

    def _read_errors(self) -> None:
        if self._errors not in self._readable:
            return
        try:
            self._printed = (self._printed + _read(self._errors))[-4 * _MAX_ERRORS :]
        except EOFError:
            self._readable = [self._output]


def _parsed(line: bytes, example: dict[str, Any]) -> dict[str, Any]:
    """Return the object of a line of JSON that has the key of the example."""
    with contextlib.suppress(ValueError, RecursionError):
        answer = json.loads(line)
        if isinstance(answer, dict) and example.keys() <= answer.keys():
            return answer
    raise ValueError(f"expected a line such as {json.dumps(example)}, got {_shown(line)}")


def _shown(line: bytes) -> str:
    return repr_short(line[:200].decode(errors="replace"), 60)


def _read(file: int) -> bytes:
    """Return the bytes that a pipe has ready."""
    try:
        received = os.read(file, 1 << 16)
    except BlockingIOError:
        return b""
    if not received:
        raise EOFError
    return received


def _kill_group_on_close(lifeline: int, group: int) -> None:
    """Let the system kill a process group when the other end of a pipe closes.

    Linux can, even while an agent holds Python's global interpreter lock and no thread runs. The
    group has to hold this end open.
    """
    import fcntl  # not on every system

    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -group)
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _end(process: subprocess.Popen[bytes], lifeline: int) -> None:
    os.close(lifeline)
    with process, contextlib.suppress(ProcessLookupError, PermissionError):
        process.kill()
        os.killpg(process.pid, signal.SIGKILL)
