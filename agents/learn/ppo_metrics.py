"""What a run logs: lines of JSON that a resumed run goes on from, and TensorBoard's files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter, TensorBoardOutputFormat

from tokaido_env.agents.learn.declared import RunError
from tokaido_env.core.checks import shown
from tokaido_env.files import naming, parse_json, read_text, sync, write_text

MOST_METRICS = 256 << 20  # bytes


class JsonLines(KVWriter):
    """Appends what is logged to a file, one object a line; drops what a resumed run repeats."""

    NAME = "json"  # values that are recorded with `exclude` of this are left out

    def __init__(self, path: Path, steps: int) -> None:
        kept = [line for done, line in _lines(path) if done <= steps]
        write_text(path, "".join(line + "\n" for line in kept))
        self.path = path
        self.file = path.open("ab", buffering=0)  # nothing waits to be written when this fails

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0
    ) -> None:
        """Append one line."""
        values = {
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in sorted(key_values.items())
            if self.NAME not in (key_excluded.get(key) or ())
        }
        line = (json.dumps({"steps": step} | values) + "\n").encode()
        with naming(self.path):
            while line:
                line = line[self.file.write(line) :]

    def sync(self) -> None:
        """Wait until all is on the disk."""
        with naming(self.path):
            sync(self.file)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class TensorBoard(TensorBoardOutputFormat):
    """Writes TensorBoard's logs; what goes wrong names their folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with naming(folder):
            super().__init__(str(folder))

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0
    ) -> None:
        """Write what is logged."""
        with naming(self.folder):
            super().write(key_values, key_excluded, step)

    def close(self) -> None:
        """Close the file."""
        with naming(self.folder):
            super().close()


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file of metrics, each with its steps, but for a last one cut short.

    Raises:
        RunError: naming a line that is none, so that nothing is lost silently.
    """
    try:
        lines = read_text(path, MOST_METRICS).split("\n") if path.is_file() else [""]
    except ValueError as error:
        raise RunError(f"{path}: not a text file: {error}") from None
    for number, line in enumerate(lines, start=1):
        try:
            yield _steps_of(line), line
        except ValueError as error:
            if number < len(lines):
                where = f"{path}, line {number}: {error}: mend the line, or delete it"
                raise RunError(where) from None


def _steps_of(line: str) -> int:
    data = parse_json(line)
    steps = data.get("steps") if isinstance(data, dict) else None
    if type(steps) is not int:
        raise ValueError(f'expected an object with "steps", got {shown(data)}')
    return steps


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
