"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_text(path: Path, text: str) -> None:
    """Write a file: whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a new file that takes the place of `path` if all goes well and else is gone."""
    unfinished = path.with_name(path.name + ".tmp")
    try:
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
