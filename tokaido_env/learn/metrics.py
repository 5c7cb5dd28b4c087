"""Metrics logs of a run: JSON lines, which a resumed run continues, and TensorBoard's files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from tokaido_env.core.arguments import repr_short
from tokaido_env.files import flush_to_disk, name_path_in_errors, parse_json, read_text, write_text
from tokaido_env.learn.settings_schema import RunError

MAX_METRICS = 256 << 20  # bytes of the file
TIME = "time/"
"""Prefix of the figures that differ from run to run; only TensorBoard gets them."""


class Logs:
    """Writer of `metrics.jsonl`, one JSON object per line, and of TensorBoard's files.

    Args:
        path: of `metrics.jsonl`; the folder `tb` is next to it.
        unit: steps, updates or rounds: the first key of each line.
        done: the finished length of the run; later lines are deleted, as the run repeats them.

    Raises:
        RunError: if the line of that length is missing, or a line is invalid.
    """

    def __init__(self, path: Path, unit: str, done: int) -> None:
        self._path, self._unit, self._tb = path, unit, path.with_name("tb")
        kept = [(at, line) for at, line in _lines(path, unit) if at <= done]
        last = kept[-1][0] if kept else 0
        if last != done:
            raise RunError(
                f"{path}: expected the line of {done} {unit} at the end, as in the checkpoint, got "
                f"{last}: restore the file, or begin a new run"
            )
        write_text(path, "".join(line + "\n" for _, line in kept))
        self._file = path.open("ab", buffering=0)  # no buffered line is lost on an error
        with name_path_in_errors(self._tb):
            # TensorBoard drops the later steps of earlier files, as the run repeats them.
            self._events = SummaryWriter(str(self._tb), purge_step=done + 1)

    def write(self, done: int, figures: Mapping[str, Any]) -> None:
        """Append the figures of an update or a round; TensorBoard gets the numbers."""
        repeatable = {name: value for name, value in figures.items() if not name.startswith(TIME)}
        line = (json.dumps({self._unit: done} | repeatable) + "\n").encode()
        with name_path_in_errors(self._path):
            while line:
                line = line[self._file.write(line) :]
        with name_path_in_errors(self._tb):
            for name, value in figures.items():
                if isinstance(value, int | float):
                    self._events.add_scalar(name, value, done)
            self._events.flush()

    def sync(self) -> None:
        """Flush all lines to disk."""
        with name_path_in_errors(self._path):
            flush_to_disk(self._file)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        with name_path_in_errors(self._tb):
            self._events.close()


@contextmanager
def hide_writer_errors() -> Iterator[None]:
    """Hide tracebacks of TensorBoard's thread: `Logs.write` raises these errors too."""
    previous = threading.excepthook

    def report(failure: threading.ExceptHookArgs) -> None:
        if not isinstance(failure.exc_value, OSError):
            previous(failure)

    threading.excepthook = report
    try:
        yield
    finally:
        threading.excepthook = previous


def _lines(path: Path, unit: str) -> Iterator[tuple[int, str]]:
    """Yield the finished length and text of each line, without a truncated last line.

    Raises:
        RunError: naming an invalid line, so that no line is lost silently.
    """
    try:
        lines = read_text(path, MAX_METRICS).split("\n") if path.is_file() else [""]
    except ValueError as error:
        raise RunError(f"{path}: not a text file: {error}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _done_of(line, unit), line
        except ValueError as error:
            if number < len(lines):
                where = f"{path}, line {number}: {error}: repair the line, or delete it"
                raise RunError(where) from None


def _done_of(line: str, unit: str) -> int:
    data = parse_json(line)
    done = data.get(unit) if isinstance(data, dict) else None
    if type(done) is not int:
        raise ValueError(f'expected an object with "{unit}", got {repr_short(data)}')
    return done
