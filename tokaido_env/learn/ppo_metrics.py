"""What Stable-Baselines3 logs, as `metrics` keeps it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter, TensorBoardOutputFormat

from tokaido_env.files import naming
from tokaido_env.learn.metrics import Lines


class JsonLines(KVWriter):
    """Appends what is logged to a file, one object a line; drops what a resumed run repeats."""

    NAME = "json"  # values that are recorded with `exclude` of this are left out

    def __init__(self, path: Path, steps: int) -> None:
        self.lines = Lines(path, steps)

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0
    ) -> None:
        """Append one line."""
        values = {
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in sorted(key_values.items())
            if self.NAME not in (key_excluded.get(key) or ())
        }
        self.lines.write(step, values)

    def sync(self) -> None:
        """Wait until all is on the disk."""
        self.lines.sync()

    def close(self) -> None:
        """Close the file."""
        self.lines.close()


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
