"""Run Python scripts in new processes; limit the files of this one."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run_script(script: str, folder: Path = ROOT, **environment: str) -> str:
    """Run Python in a new process with the package of a folder; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes, as on a full disk; a write stops there."""
    resource = pytest.importorskip("resource", reason="no file size limits here")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def wait_for_end(processes: Iterable[str], seconds: float = 10.0) -> None:
    """Wait until processes, by their ids, have ended; only Linux knows."""
    until = time.monotonic() + seconds
    for process in processes:
        while _is_running(Path(f"/proc/{process}/stat")):
            assert time.monotonic() < until, process
            time.sleep(0.05)


def _is_running(stat: Path) -> bool:
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
