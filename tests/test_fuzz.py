"""A few fuzz cases of every kind; `make fuzz N=…` runs more."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from fuzz import KINDS, cases_of, rng_of

from tokaido_env.core.jit import INTERPRETED

FEW = 20
MANY = 300


@pytest.mark.parametrize("kind", KINDS)
def test_fuzz__takes_or_refuses_damaged_input(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # restored after the test
    cases = cases_of(kind, tmp_path)
    cases.check_valid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(FEW):
            cases.case(rng_of(kind, 0, number))


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="its processes compile the kernels")
@pytest.mark.parametrize("kind", KINDS)
def test_fuzz__stays_within_bounds_time_and_memory(kind: str) -> None:
    """In new processes, half of them with bounds checks."""
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), str(MANY), "--only", kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-7].replace(",", "")) == MANY
