"""Record file of the games that people play: finished games, and last the game in progress."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from tokaido_env.core.arguments import str_short
from tokaido_env.files import flush_to_disk
from tokaido_env.record import BLANK, Record


class GameFile:
    """A record file to which games are appended.

    The game in progress is its last line, which `save` replaces; other lines stay as they are, also
    those that another program appends meanwhile.

    Args:
        path: of the file, which `save` creates if it is missing.
        resumes: whether its last game goes on; otherwise the first game is a new line.
    """

    def __init__(self, path: Path, *, resumes: bool = False) -> None:
        self.path = path
        self._line = b""  # of the game in progress, as it is in the file
        if resumes:
            lines = path.read_bytes()
            start = lines.rstrip(BLANK.encode()).rfind(b"\n") + 1
            self._line = lines[start:]

    def start_game(self) -> None:
        """Let the next `save` append a line for a new game instead of replacing the last one."""
        self._line = b""

    def save(self, record: Record) -> None:
        """Write the game in progress to the disk.

        Raises:
            OSError: if it cannot be written; the file has its last state then.
        """
        line = record.to_json().encode() + b"\n"
        if line == self._line:
            return
        self.path.touch()
        with self.path.open("r+b", buffering=0) as file:
            start = self._start(file)
            try:
                _write_end(file, start, line)
            except OSError:  # the old line has its place
                _write_end(file, start, self._line)
                raise
        self._line = line

    def save_error(self, record: Record) -> str:
        """Save the game in progress; return "", or as text why it is not saved."""
        try:
            self.save(record)
        except OSError as error:  # the game continues, and its next move tries again
            return f"not saved: {str_short(str(error), 200)}"
        return ""

    def _start(self, file: BinaryIO) -> int:
        """Return where the game's line starts: in place of its last state, or at the end."""
        end = file.seek(0, os.SEEK_END)
        start = max(0, end - len(self._line))
        file.seek(start)
        if self._line and file.read() == self._line:
            return start
        self._line = b""
        file.seek(max(0, end - 1))
        if file.read() not in (b"", b"\n"):
            file.write(b"\n")
            end += 1
        return end


def _write_end(file: BinaryIO, start: int, line: bytes) -> None:
    """Replace the end of a file, from `start` on."""
    file.seek(start)
    while line:
        line = line[file.write(line) :]
    file.truncate()
    flush_to_disk(file)
