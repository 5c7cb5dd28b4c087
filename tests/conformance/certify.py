"""Run the conformance tests of libraries, and a rollout through each, and print a table.

    python tests/conformance/certify.py
    python tests/conformance/certify.py .venv .venv-others

The first form tests the libraries of this Python environment, in some minutes. Some libraries need
versions of others that exclude each other, so no single environment has them all: the second form,
of `make certify-all`, runs the first in each environment. Every check must pass in one of them and
fail in none.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from checks import CHECKS
from library_check import verdict_of
from rollouts import ROLLOUTS

OUTPUT = "CERTIFY_OUTPUT"
"""The environment variable with the file for the outcomes, by check."""


def certify() -> int:
    """Print the table of this environment; return 1 if a check failed, else 0."""
    outcomes = {}
    for check in (*CHECKS, *ROLLOUTS):
        verdict = verdict_of(check)
        outcomes[f"{check.package}, {check.name}"] = verdict.outcome
        print(verdict, flush=True)
    if OUTPUT in os.environ:
        Path(os.environ[OUTPUT]).write_text(json.dumps(outcomes))
    return int("FAILED" in outcomes.values())


def certify_all(environments: list[Path]) -> int:
    """Print the table of each environment; return 1 if a check failed or passed nowhere, else 0."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for environment in environments:
        print(f"\n{environment}", flush=True)
        if not (environment / "ready").exists():
            print("not installed: see the output of `make` above")
            found[str(environment)].add("not installed")
            continue
        with tempfile.NamedTemporaryFile() as file:
            # Threads of libraries would disturb the measured rates.
            own = {"OMP_NUM_THREADS": "1", OUTPUT: file.name}
            command = [str(environment / "bin" / "python"), __file__]
            subprocess.run(command, env=os.environ | own, check=False)
            for check, outcome in json.load(file).items():
                found[check].add(outcome)
    wrong = [
        check for check, outcomes in found.items() if outcomes - {"not installed"} != {"passed"}
    ]
    print(f"\n{len(found)} checks; failed, or passed nowhere: {', '.join(wrong) or 'none'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(certify_all([*map(Path, sys.argv[1:])]) if sys.argv[1:] else certify())
