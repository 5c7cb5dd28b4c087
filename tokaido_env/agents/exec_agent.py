"""Agents in any language: `exec:PROGRAM [ARGS]` plays a program over standard input and output.

Messages are lines of JSON; both sides ignore unknown keys (docs/how-to/write-an-agent.md):

    to the program                                                 its answer
    {"type": "hello", "protocols": [1], …}                         {"protocol": 1}
    {"type": "board", "board_hash": "…", "board": {…}}             none
    {"type": "decide", "position": {…}, "legal": ["pass", …], …}   {"action": "pass"}

A program that fails is ended, and starts again at the next decision.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.python_agent import PerGameAdapter
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import MAX_SEED, repr_short, str_short
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.files import expand_home
from tokaido_env.game import Game

PROTOCOL = 1
START_SECONDS = 30.0  # for the answer to `hello`
MAX_ANSWER = 1 << 16  # bytes
_EXIT_SECONDS = 1.0  # for a program that has closed its output
_MAX_CAUSE, _MAX_ERRORS = 170, 115  # characters: together below `record.MAX_DETAIL_CHARS`


class ProgramFailure(AgentError):  # noqa: N818  the failure of an agent
    """A program did not decide.

    Attributes:
        reason: one of `record.REASONS`.
        detail: the cause, and the last lines of standard error.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def make_exec_agent(command: str) -> Agent:
    """Make the agent of `exec:COMMAND`; its program starts at the first decision.

    Raises:
        AgentError: if the command names no program that can be executed.
    """
    spec = f"exec:{command}"
    where = f"agent {repr_short(spec)}"
    if os.name != "posix":
        raise AgentError(f"{where}: expected Linux or macOS, where pipes can be polled: use WSL")
    try:
        words = [expand_home(word) for word in shlex.split(command)]
    except ValueError as error:
        raise AgentError(f"{where}: expected words as in a shell: {error}") from None
    if not words or "\0" in command or shutil.which(words[0]) is None:
        raise AgentError(
            f"{where}: expected an executable file or a command of PATH: give a path (exec:./bot), "
            "make it executable (chmod +x bot), or name its interpreter (exec:perl bot.pl)"
        )
    return PerGameAdapter(ProgramPlayer(spec, words), spec)


class ProgramPlayer:
    """Chooses by asking a program, or raises `ProgramFailure`; a copy has a program of its own.

    Args:
        spec: the spec of the agent.
        words: the program and its arguments.

    Attributes:
        seconds: the limit of a decision; None: no limit.
        has_own_group: whether the program gets a process group, all of which ends with it.
    """

    seconds: float | None = None
    has_own_group = True

    def __init__(self, spec: str, words: list[str]) -> None:
        self._spec, self._words = spec, words
        self._runs = False

    def __reduce__(self) -> tuple[type[ProgramPlayer], tuple[str, list[str]]]:
        return ProgramPlayer, (self._spec, self._words)

    def start(self) -> None:
        """Start the program."""
        self._boards: set[str] = set()  # their hashes
        self._printed = b""  # the end of standard error
        hello = {"type": "hello", "protocols": [PROTOCOL], "rules": RULES_VERSION}
        with self._ending_at_failure():
            self._open()
            answer = self._ask([hello | {"seconds": self.seconds}], START_SECONDS)
            if _value(answer, "protocol", PROTOCOL) != PROTOCOL:
                text = f"expected protocol {PROTOCOL}, got {_shown(answer)}"
                raise ProgramFailure("illegal", text)

    def choose(self, game: Game, rng: np.random.Generator) -> int:
        """Return the id of the program's action."""
        if not self._runs:
            self.start()
        with self._ending_at_failure():
            board, legal, messages = game.board, game.legal_labels(), []
            if board.hash not in self._boards:
                self._boards.add(board.hash)
                messages = [{"type": "board", "board_hash": board.hash, "board": board.to_dict()}]
            decide: dict[str, Any] = {"type": "decide", "board_hash": board.hash, "legal": legal}
            decide |= {"seed": int(rng.integers(MAX_SEED + 1)), "seconds": self.seconds}
            messages.append(decide | {"position": game.to_dict()})
            label = _value(self._ask(messages, self.seconds), "action", "pass")
            if label not in legal:
                text = f"illegal action {repr_short(label, 40)}: legal are {', '.join(legal)}"
                raise ProgramFailure("illegal", text)
            return IDS[label]

    def _open(self) -> None:
        pipe, own_group = subprocess.PIPE, self.has_own_group
        try:
            process = subprocess.Popen(
                *(self._words, 0, None, pipe, pipe, pipe), start_new_session=own_group
            )
        except OSError as error:
            raise ProgramFailure("exit", f"cannot start it: {error.strerror}") from None
        self._process, self._runs = process, True
        self._finalizer = Finalize(self, _end, (process, own_group), exitpriority=1)  # at exit, too
        files = (process.stdin, process.stdout, process.stderr)
        self._input, self._output, self._errors = (file.fileno() for file in files if file)
        self._readable = [self._output, self._errors]
        for file in (self._input, *self._readable):
            os.set_blocking(file, False)

    def _ask(self, messages: list[dict[str, Any]], seconds: float | None) -> bytes:
        """Send messages; return the line that answers the last one."""
        lines = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        until = None if seconds is None else time.monotonic() + seconds
        try:
            answer = self._exchange(lines, until)
        except TimeoutError as error:
            hint = "" if self._boards else ": a program has to flush its output after each line"
            raise ProgramFailure("time", f"no answer in {seconds:g} s{error}{hint}") from None
        except (BrokenPipeError, EOFError):
            text = "its program closed its input or output"
            with contextlib.suppress(subprocess.TimeoutExpired):
                text = f"its program ended with status {self._process.wait(_EXIT_SECONDS)}"
            raise ProgramFailure("exit", text) from None
        line, _, more = answer.partition(b"\n")
        if more:
            raise ProgramFailure("illegal", f"expected one line per request, got {_shown(answer)}")
        return line

    def _exchange(self, lines: bytes, until: float | None) -> bytes:
        """Send lines; return the output up to the first line end, and what follows it at once."""
        answer = _read(self._output)
        if answer:
            raise ProgramFailure(
                "illegal", f"expected one line per request, got {_shown(answer)} too"
            )
        while lines or b"\n" not in answer:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            asked = [self._input] if lines else []
            ready, writable, _ = select.select(self._readable, asked, [], left)
            if left == 0.0 or not ready + writable:
                raise TimeoutError(f", only {_shown(answer)} without a line end" * bool(answer))
            if self._errors in ready:
                self._read_errors()
            if writable:
                lines = lines[os.write(self._input, lines) :]
            if self._output in ready:
                answer += _read(self._output)
            if len(answer) > MAX_ANSWER:
                raise ProgramFailure("illegal", f"an answer of more than {MAX_ANSWER:,} bytes")
        return answer

    def _read_errors(self) -> None:
        try:
            self._printed = (self._printed + _read(self._errors))[-4 * _MAX_ERRORS :]
        except EOFError:
            self._readable = [self._output]

    @contextlib.contextmanager
    def _ending_at_failure(self) -> Iterator[None]:
        """End the program after any error: else the next question would get this answer."""
        try:
            yield
        except BaseException as error:
            printed = self._end()
            if isinstance(error, ProgramFailure):
                error.detail = str_short(error.detail, _MAX_CAUSE)
                error.detail += f"; stderr: {printed}" if printed else ""
                error.args = (f"agent {repr_short(self._spec)}: {error.detail}",)
            raise

    def _end(self) -> str:
        """End the program; return the last lines of its standard error."""
        if not self._runs:
            return ""
        for _ in range(4):  # no more: it may still write
            self._read_errors()
        self._finalizer()
        self._runs = False
        lines = self._printed.decode(errors="replace").splitlines()
        text = " | ".join(line.strip() for line in lines if line.strip())
        return str_short(text[-_MAX_ERRORS:], _MAX_ERRORS)


def _value(line: bytes, key: str, example: object) -> Any:
    """Return a value of a line of JSON."""
    with contextlib.suppress(ValueError, RecursionError):
        answer = json.loads(line)
        if isinstance(answer, dict) and key in answer:
            return answer[key]
    expected = json.dumps({key: example})
    raise ProgramFailure("illegal", f"expected a line such as {expected}, got {_shown(line)}")


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


def _end(process: subprocess.Popen[bytes], has_own_group: bool) -> None:
    with process, contextlib.suppress(ProcessLookupError, PermissionError):
        process.kill()
        if has_own_group:
            os.killpg(process.pid, signal.SIGKILL)
