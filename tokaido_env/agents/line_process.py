"""Processes that answer lines of JSON: start one, ask it with a deadline, end it.

process = LineProcess("exec:./bot", ["./bot"])
process.start()
answer = process.ask([{"type": "hello", "protocols": [1]}], 30.0, {"protocol": 1})
process.end()
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.util import Finalize
from typing import IO, Any

from tokaido_env.agent import AgentError
from tokaido_env.core.arguments import repr_short, str_short

MAX_ANSWER = 1 << 16  # bytes
_EXIT_SECONDS = 2.0  # for a process that has closed its output
_MAX_CAUSE, _MAX_ERRORS = 170, 115  # characters: together below `record.MAX_DETAIL_CHARS`


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
    """A program that answers lines of JSON, in a process group of its own.

    The group ends with the program, and at the exit of this process. An answer has at most
    `MAX_ANSWER` bytes.

    Args:
        spec: of the agent, for messages.
        words: the program and its arguments.
    """

    def __init__(self, spec: str, words: Sequence[str]) -> None:
        self._spec, self._words = spec, words
        self._finalizer: Finalize | None = None

    def start(self) -> bool:
        """Start the process; return False if it runs already.

        Raises:
            AgentError: if the system cannot start it.
        """
        if self._finalizer is not None and self._finalizer.still_active():
            return False
        # What it wrote to standard error since the last question, for messages.
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115  closed by `end`
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        try:
            process = subprocess.Popen(self._words, start_new_session=True, **pipes)  # type: ignore[call-overload]
        except OSError as error:
            self._errors.close()
            text = f"cannot start its process: {error.strerror}"
            raise AgentError(f"agent {repr_short(self._spec)}: {text}") from None
        # At exit, too; not in a fork of this process.
        self._finalizer = Finalize(self, _end, (process, self._errors), exitpriority=1)
        self._process = process
        self._output = process.stdout.fileno()
        return True

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
            return _parsed(self._exchange(lines, until), example)
        except TimeoutError as error:
            raise self.failure("time", f"no answer in {seconds:g} s{error}") from None
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

    def failure(self, reason: str, detail: str) -> ProcessFailure:
        """End the process; return its failure, for the caller to raise."""
        printed = self.end()
        detail = str_short(detail, _MAX_CAUSE) + (f"; stderr: {printed}" if printed else "")
        return ProcessFailure(self._spec, reason, detail)

    def end(self) -> str:
        """End the process and all that it started; return the end of its standard error."""
        if self._finalizer is None or not self._finalizer.still_active():
            return ""
        file = self._errors.fileno()
        start = max(0, os.fstat(file).st_size - 4 * _MAX_ERRORS)
        lines = os.pread(file, 4 * _MAX_ERRORS, start).decode(errors="replace").splitlines()
        self._finalizer()
        text = " | ".join(line.strip() for line in lines if line.strip())
        return str_short(text[-_MAX_ERRORS:], _MAX_ERRORS)

    def _exchange(self, lines: bytes, until: float | None) -> bytes:
        """Send lines; return the output up to the first line end, without blank lines."""
        early = self._read(time.monotonic()).strip()
        if early:
            raise ValueError(f"expected one line per request, got {_shown(early)} too")
        self._errors.truncate(0)
        self._process.stdin.write(lines)
        self._process.stdin.flush()
        answer = b""
        while b"\n" not in answer:
            received = self._read(until)
            if not received:
                raise TimeoutError(f", only {_shown(answer)} without a line end" if answer else "")
            answer = (answer + received).lstrip()
            if len(answer) > MAX_ANSWER:
                raise ValueError(f"an answer of more than {MAX_ANSWER:,} bytes")
        line, _, more = answer.partition(b"\n")
        if more.strip():
            raise ValueError(f"expected one line per request, got {_shown(answer)}")
        return line

    def _read(self, until: float | None) -> bytes:
        """Wait for output; return it, b"" after the deadline."""
        left = None if until is None else 1000 * max(until - time.monotonic(), 0.0)
        poll = select.poll()  # `select.select` refuses file descriptors from 1,024 on
        poll.register(self._output, select.POLLIN)
        if not poll.poll(left):
            return b""
        received = os.read(self._output, MAX_ANSWER)
        if not received:
            raise EOFError
        return received


def _parsed(line: bytes, example: dict[str, Any]) -> dict[str, Any]:
    """Return the object of a line of JSON that has the key of the example."""
    with contextlib.suppress(ValueError, RecursionError):
        answer = json.loads(line)
        if isinstance(answer, dict) and example.keys() <= answer.keys():
            return answer
    raise ValueError(f"expected a line such as {json.dumps(example)}, got {_shown(line)}")


def _shown(line: bytes) -> str:
    return repr_short(line[:200].decode(errors="replace"), 60)


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    errors.close()
    with contextlib.suppress(OSError), process:  # what it did not read is lost
        process.kill()
