"""A few cases of the fuzzer for every format; `make fuzz N=…` runs more."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from fuzz import FORMATS, Fuzzer

from tokaido_env.core.jit import INTERPRETED

FEW = 40
MANY = 300


@pytest.mark.parametrize("name", FORMATS)
def test_fuzz__takes_or_refuses_damaged_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong file costs one line that names it, and nothing in it runs."""
    monkeypatch.chdir(tmp_path)  # restored after the test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fuzzer = Fuzzer(name, tmp_path)
        refused = [bool(fuzzer.case(number)) for number in range(FEW)]
    assert sum(refused) > FEW // 5


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="its process compiles the kernels")
def test_fuzz__stays_within_bounds_time_and_memory() -> None:
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), str(MANY)]
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1800, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count(f"{MANY} cases") == len(FORMATS)
