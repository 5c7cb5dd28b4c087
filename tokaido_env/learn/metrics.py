"""What a run logs: lines of JSON that a resumed run goes on from, and TensorBoard's files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tokaido_env.core.checks import shown
from tokaido_env.files import naming, parse_json, read_text, sync, write_text
from tokaido_env.learn.declared import RunError

MOST_METRICS = 256 << 20  # bytes


class Lines:
    """A file of one JSON object a line, each with its steps; drops what a resumed run repeats.

    Args:
        path: of the file.
        steps: what a run goes on from; lines of later ones are dropped.
    """

    def __init__(self, path: Path, steps: int) -> None:
        kept = [line for done, line in _lines(path) if done <= steps]
        write_text(path, "".join(line + "\n" for line in kept))
        self.path = path
        self.file = path.open("ab", buffering=0)  # nothing waits to be written when this fails

    def write(self, steps: int, values: Mapping[str, Any]) -> None:
        """Append a line of values, JSON types."""
        line = (json.dumps({"steps": steps} | dict(values)) + "\n").encode()
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


class Events:
    """TensorBoard's logs; what goes wrong names their folder."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.folder = folder
        with naming(folder):
            self.writer = SummaryWriter(str(folder))

    def write(self, steps: int, values: Mapping[str, Any]) -> None:
        """Write the numbers among some values."""
        with naming(self.folder):
            for name, value in values.items():
                if isinstance(value, int | float):
                    self.writer.add_scalar(name, value, steps)
            self.writer.flush()

    def close(self) -> None:
        """Close the file."""
        with naming(self.folder):
            self.writer.close()


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
