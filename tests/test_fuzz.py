"""Damaged input of every kind is taken or refused: a few cases; `make fuzz N=…` for more."""

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
def test_damaged_input_is_taken_or_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # and back again
    cases = cases_of(kind, tmp_path)
    cases.check_sound()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(FEW):
            cases.case(rng_of(kind, 0, number))


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="it is its processes that compile")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_input_stays_within_bounds_time_and_memory(kind: str) -> None:
    """In processes of their own, half of them with every index of the kernels checked."""
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), str(MANY), "--only", kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-7].replace(",", "")) == MANY
