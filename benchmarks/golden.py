"""Make derived files again after a change of a rule or a board, and print what changed.

    python benchmarks/golden.py                make the files that take seconds
    python benchmarks/golden.py --only ladder  make one of them, however long it takes

The table of docs/dev/releasing.md lists all derived files and their commands, in order of
dependence. On an unchanged tree the first command changes no byte.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dev" / "releasing.md"
QUICK = "seconds"


class DerivedFiles(NamedTuple):
    """A row of the table: files that one command makes.

    Attributes:
        name: for `--only`.
        files: patterns below the root; of a page, only the table is derived.
        command: makes the files; empty if the row has a link, to a page with several commands.
        time: about how long that takes; `QUICK` for files that are made by default.
    """

    name: str
    files: tuple[str, ...]
    command: str
    time: str


def derived_files() -> list[DerivedFiles]:
    """Return the rows of the table."""
    text = PAGE.read_text(encoding="utf-8").partition("## Derived files")[2]
    found = []
    for name, files, how, time in re.findall(
        r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", text, re.M
    ):
        if name != "what":
            command = how.strip("`") if how.startswith("`") else ""
            found.append(DerivedFiles(name, tuple(re.findall("`(.+?)`", files)), command, time))
    return found


def files_of(derived: DerivedFiles) -> dict[Path, str]:
    """Return the existing files with their SHA-256."""
    paths = sorted({path for pattern in derived.files for path in ROOT.glob(pattern)})
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def make(derived: DerivedFiles) -> int:
    """Run the command and print the changed files; return its exit status."""
    if not derived.command:
        print(f"{derived.name}: several commands make it: {PAGE}", file=sys.stderr)
        return 2
    before = files_of(derived)
    words = shlex.split(derived.command)
    program = {"python": [sys.executable], "tokaido": [sys.executable, "-m", "tokaido_env"]}
    status = subprocess.run([*program[words[0]], *words[1:]], cwd=ROOT, check=False).returncode
    after = files_of(derived)
    changed = [
        str(path.relative_to(ROOT))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]
    print(
        f"{derived.name}: {'failed' if status else ', '.join(changed) or 'unchanged'}", flush=True
    )
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the chosen files; return the exit status of the first failure, or 0."""
    derived = {one.name: one for one in derived_files()}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=derived, metavar="NAME")
    only = parser.parse_args(arguments).only
    chosen = [derived[name] for name in only or derived if only or derived[name].time == QUICK]
    return next(filter(None, map(make, chosen)), 0)


if __name__ == "__main__":
    sys.exit(main())
