"""The conformance tests of every library, joined from several environments of Python.

    make certify-all
    python benchmarks/certify_all.py .venv .venv-others

Some libraries ask for versions of others that exclude each other, so no single environment has
them all. Each environment runs `certify_rollouts.py`; of each check the joined table shows what
came of it where it ran: a failure before a pass, a pass with the tested versions before another.
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
"""A row: package, version, check, outcome, detail, and environment, where it ran."""

ROLLOUTS = Path(__file__).with_name("certify_rollouts.py")

ORDER = ("FAILED", "passed", "not installed")


def certified(environment: Path) -> list[Row]:
    """Return the rows of one environment, none if it is not there.

    Raises:
        RuntimeError: no table came out of it.
    """
    python = environment / "bin" / "python"
    if not (environment / "ready").exists():
        return []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.json")
        command = [str(python), str(ROLLOUTS), "--json", str(table)]
        # Two cores are two cores: what libraries start beside would only be measured with it.
        done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
        if not table.exists():
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode} and no table")
        rows: list[Row] = json.loads(table.read_text())
    return [row | {"environment": environment.name} for row in rows]


def joined(rows: Iterable[Row]) -> list[Row]:
    """Return one row a check, in the order of the first environment."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        check = row["package"], row["check"]
        if check not in best or _rank(row) < _rank(best[check]):
            best[check] = row
    return list(best.values())


def _rank(row: Row) -> tuple[int, bool]:
    return ORDER.index(row["outcome"]), "tested with" in row["detail"]


def markdown(rows: Iterable[Row]) -> str:
    """Return rows as a table for docs/libraries.md."""
    lines = ["| library | what ran | outcome | |", "|---|---|---|---|"]
    for row in rows:
        library = f"{row['package']} {row['version']}".strip()
        lines.append(f"| {library} | {row['check']} | {row['outcome']} | {row['detail']} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all tables and the joined one; return 1 if a check failed or did not run anywhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environments", nargs="+", type=Path, help="folders made by `make`")
    options = parser.parse_args(arguments)
    rows, absent = [], []
    for environment in options.environments:
        print(f"\n{environment}", flush=True)
        found = certified(environment)
        rows += found
        if not found:
            absent.append(environment)
            print("not installed: what `make` printed above tells why")
    table = joined(rows)
    print(f"\nPython {platform.python_version()}, {platform.system()}\n\n{markdown(table)}\n")
    for environment in absent:
        print(f"{environment} is not there: its libraries are not in this table, or not installed")
    return 0 if all(row["outcome"] == "passed" for row in table) and not absent else 1


if __name__ == "__main__":
    sys.exit(main())
