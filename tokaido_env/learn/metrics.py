"""Metrics of a run: JSON lines, which a resumed run continues, and TensorBoard's files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tokaido_env.files import flush_to_disk, name_path_in_errors, write_text
from tokaido_env.learn.run_folder import METRICS
from tokaido_env.learn.settings import RunError

TIME = "time/seconds"
"""The figure that differs from run to run: only TensorBoard and the terminal get it."""


class Logs:
    """Writer of `metrics.jsonl`, one JSON object per line, and of TensorBoard's files in `tb`.

    Args:
        folder: the run folder.
        unit: updates or rounds: the first key of each line.
        done: the finished length of the run; later lines are deleted, as the run repeats them.

    Raises:
        RunError: if a line is invalid.
    """

    def __init__(self, folder: Path, unit: str, done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # takes a second

        self._path, self._unit = folder / METRICS, unit
        write_text(self._path, "".join(_lines_until(self._path, unit, done)))
        # TensorBoard drops the later steps of earlier files, as the run repeats them.
        self._events = SummaryWriter(str(folder / "tb"), purge_step=done + 1)

    def write(self, done: int, figures: Mapping[str, Any]) -> None:
        """Append the figures of update or round `done`, of JSON types; TensorBoard gets numbers."""
        repeatable = {name: value for name, value in figures.items() if name != TIME}
        line = json.dumps({self._unit: done} | repeatable) + "\n"
        with name_path_in_errors(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(line)
            flush_to_disk(file)  # a checkpoint on disk has all its lines
        for name, value in figures.items():
            if isinstance(value, int | float):
                self._events.add_scalar(name, value, done)
        self._events.flush()

    def close(self) -> None:
        """Close TensorBoard's file."""
        self._events.close()


def _lines_until(path: Path, unit: str, done: int) -> Iterator[str]:
    """Yield the lines up to a finished length; a killed run may have cut the last one."""
    text = path.read_text("utf-8") if path.exists() else ""
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if line.endswith("\n"):
            try:
                at = json.loads(line)[unit]
            except (ValueError, KeyError, TypeError):
                raise RunError(f'{path}, line {number}: expected an object with "{unit}"') from None
            if at <= done:
                yield line
