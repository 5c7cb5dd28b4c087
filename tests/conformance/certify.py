"""Run the conformance tests of libraries, and a rollout through each, and print a table.

    python tests/conformance/certify.py
    python tests/conformance/certify.py .venv .venv-others

The first form tests the libraries of this Python environment, in some minutes. Some libraries need
versions of others that exclude each other, so no single environment has them all: the second form,
of `make certify-all`, runs the first in each environment. The merged table has one outcome per
check: a failure before a pass, a pass with the tested versions before one with others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from checks import CHECKS
from library_check import Check, verdict_of
from rollouts import ROLLOUTS

import tokaido_env

Row = dict[str, str]
"""A row: package, version, check, outcome, detail and environment."""

ORDER = ("FAILED", "passed", "not installed")


def certify(checks: Sequence[Check], json_file: Path | None) -> int:
    """Print the table of this environment, and write it; return 1 if a check failed, else 0."""
    print(f"tokaido_env {tokaido_env.__version__}, Python {platform.python_version()}")
    verdicts = []
    for check in checks:
        verdicts.append(verdict_of(check))
        print(verdicts[-1], flush=True)
    if json_file is not None:
        json_file.write_text(json.dumps(list(map(asdict, verdicts)), indent=1))
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    passed, failed, missing = (outcomes[name] for name in ("passed", "FAILED", "not installed"))
    print(f"{passed} passed, {failed} failed, {missing} not installed")
    return 1 if failed else 0


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
        command = [str(python), __file__, "--json", str(table)]
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
    """Return rows as a Markdown table."""
    lines = ["| library | check | outcome | |", "|---|---|---|---|"]
    for row in rows:
        library = f"{row['package']} {row['version']}".strip()
        lines.append(f"| {library} | {row['check']} | {row['outcome']} | {row['detail']} |")
    return "\n".join(lines)


def certify_all(environments: Sequence[Path]) -> int:
    """Print all tables and the merged one; return 1 if a check failed or ran nowhere."""
    rows, absent = [], []
    for environment in environments:
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


def main() -> int:
    """Print the table of this environment or of several."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folders = "folders of environments that `make certify-all` made (default: this environment)"
    parser.add_argument("environments", nargs="*", type=Path, help=folders)
    file = "also write the table of this environment to this file as JSON (default: none)"
    parser.add_argument("--json", type=Path, metavar="FILE", help=file)
    options = parser.parse_args()
    if options.environments:
        return certify_all(options.environments)
    return certify((*CHECKS, *ROLLOUTS), options.json)


if __name__ == "__main__":
    sys.exit(main())
