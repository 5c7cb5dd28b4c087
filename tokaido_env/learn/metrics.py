"""What a run logs: lines of JSON that a resumed run goes on from, and TensorBoard's files."""

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

MOST_METRICS = 256 << 20  # bytes
TIME = "time/"
"""What the names of figures begin with that differ from run to run: TensorBoard only has them."""


class Logs:
    """The logs of a run: `metrics.jsonl`, one JSON object a line, and TensorBoard's beside it.

    What a resumed run repeats is dropped from the lines.

    Args:
        path: of the file of lines; `tb/` is beside it.
        unit: that the run's length is counted in, the first key of each line.
        done: what the run goes on from; lines of later ones are dropped.
    """

    def __init__(self, path: Path, unit: str, done: int) -> None:
        self._path, self._unit, self._tb = path, unit, path.with_name("tb")
        kept = [line for at, line in _lines(path, unit) if at <= done]
        write_text(path, "".join(line + "\n" for line in kept))
        self._file = path.open("ab", buffering=0)  # nothing waits to be written when this fails
        with name_path_in_errors(self._tb):
            self._events = SummaryWriter(str(self._tb))

    def write(self, done: int, figures: Mapping[str, Any]) -> None:
        """Append the figures of an update or a round, JSON types; numbers to TensorBoard too."""
        lasting = {name: value for name, value in figures.items() if not name.startswith(TIME)}
        line = (json.dumps({self._unit: done} | lasting) + "\n").encode()
        with name_path_in_errors(self._path):
            while line:
                line = line[self._file.write(line) :]
        with name_path_in_errors(self._tb):
            for name, value in figures.items():
                if isinstance(value, int | float):
                    self._events.add_scalar(name, value, done)
            self._events.flush()

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        with name_path_in_errors(self._path):
            flush_to_disk(self._file)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        with name_path_in_errors(self._tb):
            self._events.close()


@contextmanager
def told_once() -> Iterator[None]:
    """Let TensorBoard's thread not print what its owner raises again: a full disk."""
    previous = threading.excepthook

    def tell(failure: threading.ExceptHookArgs) -> None:
        if not isinstance(failure.exc_value, OSError):
            previous(failure)

    threading.excepthook = tell
    try:
        yield
    finally:
        threading.excepthook = previous


def read_metrics(path: Path, unit: str) -> list[dict[str, Any]]:
    """Return the lines of a file of metrics, each of them an object with the unit first.

    Raises:
        RunError: naming a line that is none.
    """
    return [parse_json(line) for _, line in _lines(path, unit)]


def _lines(path: Path, unit: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file of metrics with what was done, but for a last one cut short.

    Raises:
        RunError: naming a line that is none, so that nothing is lost silently.
    """
    try:
        lines = read_text(path, MOST_METRICS).split("\n") if path.is_file() else [""]
    except ValueError as error:
        raise RunError(f"{path}: not a text file: {error}") from None
    for number, line in enumerate(lines, start=1):
        try:
            yield _done_of(line, unit), line
        except ValueError as error:
            if number < len(lines):
                where = f"{path}, line {number}: {error}: mend the line, or delete it"
                raise RunError(where) from None


def _done_of(line: str, unit: str) -> int:
    data = parse_json(line)
    done = data.get(unit) if isinstance(data, dict) else None
    if type(done) is not int:
        raise ValueError(f'expected an object with "{unit}", got {repr_short(data)}')
    return done
