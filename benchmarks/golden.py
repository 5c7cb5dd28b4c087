"""Derived files of this checkout, and the commands that make them again after a rule change.

    python benchmarks/golden.py                make the files that take seconds, print the changes
    python benchmarks/golden.py --list         print all derived files, in order of dependence
    python benchmarks/golden.py --only ladder  make one of them, however long it takes
    python benchmarks/golden.py --docs         also put the list into docs/dev/releasing.md

On an unchanged tree the first command changes no byte.
"""

from __future__ import annotations

import argparse
import hashlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pages import fill

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dev" / "releasing.md"
QUICK = "seconds"

LONG = 12  # words of a command that the table of the page does not repeat
LADDER = """tokaido ladder random greedy:epsilon=0.8 greedy:epsilon=0.6 greedy:epsilon=0.4
  greedy:epsilon=0.2 greedy heuristic mcts:sims=100 mcts:sims=400 champion mcts:sims=4000
  mcts:sims=20000 champion:sims=400 --games 4000 --max-distance 3 --seed 0
  --out tokaido_env/arena/ladder.json"""
FAMILY = """tokaido ladder random greedy:epsilon=0.8 greedy:epsilon=0.6 greedy:epsilon=0.4
  greedy:epsilon=0.2 greedy heuristic champion mcts:sims=100 mcts:sims=400 --games 2000
  --max-distance 3 --seed 0 --board family:valid
  --out tokaido_env/arena/ladder-family.json"""


class DerivedFiles(NamedTuple):
    """Derived files that one command makes.

    Attributes:
        name: for `--only`.
        files: patterns below the root; of a page, only the table is derived.
        command: makes the files; empty for several commands, which the page lists.
        time: about how long that takes; `QUICK` for files that are made by default.
        page: documents the files.
    """

    name: str
    files: tuple[str, ...]
    command: str
    time: str
    page: str = ""


DERIVED = (
    DerivedFiles("records", ("tests/golden/*.json*",), "python tests/golden_records.py", QUICK),
    DerivedFiles(
        "sample-inputs",
        ("tokaido_env/agents/sample_inputs.npz",),
        "python benchmarks/sample_inputs.py",
        "a second; needed before networks are trained, changes the moves of all others",
    ),
    DerivedFiles(
        "champion",
        ("tokaido_env/agents/champion.safetensors",),
        "",
        "9¼ hours on one to two cores, 8 minutes of them with a GPU",
        "docs/benchmarks/champion.md",
    ),
    DerivedFiles(
        "generalist",
        ("tokaido_env/agents/generalist.safetensors",),
        "",
        "7 hours on one to two cores",
        "docs/dev/generalist.md",
    ),
    DerivedFiles(
        "ladder",
        ("tokaido_env/arena/ladder.json",),
        LADDER,
        "an hour on two cores",
        "docs/benchmarks/ladder.md",
    ),
    DerivedFiles(
        "ladder-family",
        ("tokaido_env/arena/ladder-family.json",),
        FAMILY,
        "four minutes on two busy cores",
        "docs/benchmarks/ladder.md",
    ),
    DerivedFiles(
        "simulations",
        ("docs/benchmarks/simulations-*.json", "docs/pictures/simulations.svg"),
        "",
        "35 minutes on two cores",
        "docs/benchmarks/champion.md",
    ),
    DerivedFiles(
        "tokaido-100",
        ("docs/benchmarks/tokaido-100.md",),
        "python benchmarks/tokaido_100.py --docs",
        "some hours on two cores",
        "docs/benchmarks/tokaido-100.md",
    ),
    DerivedFiles(
        "tracks",
        ("docs/benchmarks/results.json",),
        "python benchmarks/tracks.py --docs",
        "70 minutes on one core",
        "docs/benchmarks/tokaido-100.md",
    ),
    DerivedFiles(
        "learning",
        (
            "docs/benchmarks/learning.json",
            "docs/benchmarks/learning.md",
            "docs/pictures/learning.svg",
        ),
        "python benchmarks/learning.py --docs",
        "80 minutes of one core for each seed of two million decisions",
        "docs/benchmarks/learning.md",
    ),
    DerivedFiles(
        "regret-set",
        ("tokaido_env/study/regret.npz",),
        "python benchmarks/regret_set.py",
        "an hour on two cores",
        "docs/benchmarks/regret.md",
    ),
    DerivedFiles(
        "solved-set",
        ("tokaido_env/study/solved.npz",),
        "python benchmarks/solved_set.py",
        "three minutes on two busy cores",
        "docs/benchmarks/regret.md",
    ),
    DerivedFiles(
        "regret-table",
        ("docs/benchmarks/regret.md", "docs/dev/regret.md", "docs/pictures/regret.svg"),
        "python benchmarks/regret_table.py --docs",
        "a quarter of an hour on two cores",
        "docs/benchmarks/regret.md",
    ),
    DerivedFiles(
        "reference",
        tuple(f"docs/reference/{page}.md" for page in ("actions", "observation", "cli")),
        "python benchmarks/reference_pages.py",
        QUICK,
    ),
    DerivedFiles(
        "drawings",
        (
            *("docs/pictures/*-light.svg", "docs/pictures/*-dark.svg"),
            *("docs/pictures/family.svg", "docs/pictures/game.gif"),
        ),
        "python docs/make_pictures.py drawings",
        QUICK,
        "docs/how-to/draw-pictures.md",
    ),
    DerivedFiles(
        "tutorial",
        ("docs/pictures/tutorial.svg",),
        "python docs/make_pictures.py curve runs/curve",
        "23 minutes on two busy cores, with `tokaido train --run runs/curve --rate-every 15`",
        "docs/get-started/tutorial.md",
    ),
    DerivedFiles(
        "photographs",
        ("docs/pictures/*.png",),
        "python docs/make_pictures.py",
        "some minutes, with Chromium",
        "docs/how-to/draw-pictures.md",
    ),
    DerivedFiles(
        "speeds", ("benchmarks/README.md",), "", "a quarter of an hour", "benchmarks/README.md"
    ),
    DerivedFiles(
        "parquet",
        ("data/*.parquet",),
        "python benchmarks/parquet_files.py",
        "two minutes on two cores",
        "docs/benchmarks/published-data.md",
    ),
    DerivedFiles(
        "metadata",
        ("croissant.json",),
        "python benchmarks/croissant.py",
        QUICK,
        "docs/benchmarks/published-data.md",
    ),
)


def table() -> str:
    """Return all derived files as a Markdown table."""
    rows = ["| what | files | command | takes |", "|---|---|---|---|"]
    for derived in DERIVED:
        files = " ".join(f"`{name}`" for name in derived.files)
        rows.append(f"| {derived.name} | {files} | {_how(derived)} | {derived.time} |")
    return "\n".join(rows) + "\n"


def _how(derived: DerivedFiles) -> str:
    """Return the command of files; a link, if only their page has it or it is long."""
    words = derived.command.split()
    if not words or len(words) > LONG:
        return f"[{Path(derived.page).name}]({_link(derived.page)})"
    return f"`{' '.join(words)}`"


def _link(page: str) -> str:
    return f"../{page.removeprefix('docs/')}" if page.startswith("docs/") else f"../../{page}"


def files_of(derived: DerivedFiles) -> dict[Path, str]:
    """Return the existing files with their SHA-256."""
    paths = sorted({path for pattern in derived.files for path in ROOT.glob(pattern)})
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def make(derived: DerivedFiles) -> int:
    """Run the command and print the changed files; return its exit status."""
    if not derived.command:
        print(f"{derived.name}: several commands make it: {derived.page}", file=sys.stderr)
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add, names = parser.add_argument, [derived.name for derived in DERIVED]
    add("--list", action="store_true", help="only print the table")
    add("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    add("--docs", action="store_true", help="put the table into docs/dev/releasing.md")
    options = parser.parse_args(arguments)
    if options.docs:
        fill(PAGE, table())
    if options.list:
        print(table(), end="")
    if options.docs or options.list:
        return 0
    chosen = [m for m in DERIVED if (m.name in options.only if options.only else m.time == QUICK)]
    return next(filter(None, map(make, chosen)), 0)


if __name__ == "__main__":
    sys.exit(main())
