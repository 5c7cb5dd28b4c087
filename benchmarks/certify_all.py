"""Conformance tests of all libraries, merged from several Python environments.

    make certify-all
    python benchmarks/certify_all.py .venv .venv-others

Some libraries need versions of others that exclude each other, so no single environment has them
all. Each environment runs `certify_rollouts.py`. The merged table has one outcome per check: a
failure before a pass, a pass with the tested versions before one with others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

Row = dict[str, str]
"""A row: package, version, check, outcome, detail and environment."""

ROLLOUTS = Path(__file__).with_name("certify_rollouts.py")

ORDER = ("FAILED", "passed", "not installed")


def certified(environment: Path) -> list[Row]:
    """Return the rows of one environment, none if it does not exist.

    Raises:
        RuntimeError: if the environment wrote no table.
    """
    python = environment / "bin" / "python"
    if not (environment / "ready").exists():
        return []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.json")
        command = [str(python), str(ROLLOUTS), "--json", str(table)]
        # Threads of libraries would disturb the measured rates.
        done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
        if not table.exists():
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode} and no table")
        rows: list[Row] = json.loads(table.read_text())
    return [row | {"environment": environment.name} for row in rows]


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return one row per check, in the order of the first environment."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        check = row["package"], row["check"]
        if check not in best or _rank(row) < _rank(best[check]):
            best[check] = row
    return list(best.values())


def _rank(row: Row) -> tuple[int, bool]:
    return ORDER.index(row["outcome"]), "tested with" in row["detail"]


def markdown(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table for benchmarks/README.md."""
    lines = ["| library | check | outcome | |", "|---|---|---|---|"]
    for row in rows:
        library = f"{row['package']} {row['version']}".strip()
        lines.append(f"| {library} | {row['check']} | {row['outcome']} | {row['detail']} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all tables and the merged one; return 1 if a check failed or ran nowhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "environments",
        nargs="+",
        type=Path,
        help="folders of environments that `make certify-all` made",
    )
    options = parser.parse_args(arguments)
    rows, absent = [], []
    for environment in options.environments:
        print(f"\n{environment}", flush=True)
        found = certified(environment)
        rows += found
        if not found:
            absent.append(environment)
            print("not installed: see the output of `make` above")
    table = merged(rows)
    print(f"\nPython {platform.python_version()}, {platform.system()}\n\n{markdown(table)}\n")
    for environment in absent:
        print(f"{environment} does not exist: the table lacks its libraries")
    return 0 if all(row["outcome"] == "passed" for row in table) and not absent else 1


if __name__ == "__main__":
    sys.exit(main())
