"""Damaged input of every kind is taken or refused: some hundreds; `make fuzz N=…` for more."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import KINDS

from tokaido_env.core.jit import INTERPRETED

N = 300


@pytest.mark.skipif(INTERPRETED, reason="it is its processes that compile")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_input_is_taken_or_refused(kind: str) -> None:
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), str(N), "--only", kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-7].replace(",", "")) == N
