"""Print tables, help and progress in a pseudo-terminal of changing width.

    python pseudo_terminal.py TABLES.json WIDTHS

prints a line `@ WIDTH NAME` above each text; `printed` runs this in a pseudo-terminal.
"""

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tokaido_env.__main__ import COMMANDS, main
from tokaido_env.arena.intervals import Estimate
from tokaido_env.report.progress import match_bar, run_bar
from tokaido_env.report.tables import Table, print_table

TITLE = "12/45 greedy:epsilon=0.5 – policy:runs/quite-a-long-name"
_COLORS, _MOVES = re.compile(r"\x1b\[[0-9;]*m|\r(?=\n)"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def printed(
    folder: Path, tables: Sequence[Table], widths: Sequence[int]
) -> dict[tuple[int, str], str]:
    """Return texts by width and name: tables by their number, help of commands, "bar", "run"."""
    file = folder / "tables.json"
    file.write_text(json.dumps(tables))
    leader, follower = os.openpty()
    command = [sys.executable, __file__, str(file), *map(str, widths)]
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    env |= {"TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": follower, "stderr": follower}
    with subprocess.Popen(command, env=env, **streams) as process:
        os.close(follower)
        data = b"".join(iter(lambda: _read(leader), b""))
    os.close(leader)
    assert process.returncode == 0, data[-2000:]
    text = _MOVES.sub("\n", _COLORS.sub("", data.decode()))
    parts = re.split(r"^@ (\d+) (\S+)\n", text, flags=re.MULTILINE)[1:]
    return {
        (int(width), name): text
        for width, name, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 1 << 16)
    except OSError:  # of Linux, at the end
        return b""


def _print_all(file: str, *widths: str) -> None:
    """Print everything at each width, but only every fourth command's help, in turn."""
    import fcntl
    import termios

    tables = [Table(*one) for one in json.loads(Path(file).read_text())]
    for i, width in enumerate(widths):
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 30, int(width), 0, 0))
        for number, table in enumerate(tables):
            print(f"@ {width} {number}")
            print_table(table)
        for name in ("tokaido", *COMMANDS)[i % 4 :: 4]:
            print(f"@ {width} {name}", flush=True)
            assert main([*[name] * (name in COMMANDS), "--help"]) == 0
        _print_progress(width)


def _print_progress(width: str) -> None:
    print(f"@ {width} bar", flush=True)
    with match_bar(TITLE, 12_000, 3_400, lambda: ", a 51.25 % (48.75 – 53.75)") as count:
        count(56)
    print(f"\n@ {width} run", flush=True)
    with run_bar(4_000_000, "steps") as bar:
        bar.update(1_234_567, "value loss 0.125", Estimate(-12.3, -30.0, 5.0))


if __name__ == "__main__":
    _print_all(*sys.argv[1:])
