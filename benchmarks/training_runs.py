"""Training runs of benchmarks: commands, and what they cost."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

Words = list[str]


class Run(NamedTuple):
    """The training of one seed of a baseline.

    Attributes:
        path: of its files, without the ending; of a run folder, the folder.
        spec: of the trained agent.
        training: command that trains it; empty for an agent without parameters.
        decisions: number of decisions of the training; of `td` an upper bound.
    """

    path: Path
    spec: str
    training: Words
    decisions: int


def train(run: Run) -> int:
    """Train unless it is done, and add up processor time; return the exit status."""
    cost, before = ROOT / f"{run.path}.cost.json", {"seconds": 0.0, "wall": 0.0}
    if cost.is_file():
        known = json.loads(cost.read_text(encoding="utf-8"))
        if known["done"]:
            return 0
        if "--resume" in run.training:  # a resumed training costs its first part too
            before |= known
    if "--resume" not in run.training:
        shutil.rmtree(ROOT / f"{run.path}.curve", ignore_errors=True)  # of a killed training
    since, start, status = _children(), time.monotonic(), 1
    try:
        status = run_python(run.training) if run.training else 0
    finally:
        used = before["seconds"] + _children() - since
        wall = before["wall"] + time.monotonic() - start
        data = {"seconds": round(used, 1), "wall": round(wall, 1), "done": not status}
        text = json.dumps(data | {"decisions": decisions_of(run)}) + "\n"
        cost.write_text(text, encoding="utf-8")
    return status


def decisions_of(run: Run) -> int:
    """Return the decisions of a training: by its curve or its metrics, else as asked for."""
    curve = sorted((ROOT / f"{run.path}.curve").glob("*.pt"))
    if curve:
        return int(curve[-1].stem.partition("-")[0])
    metrics = ROOT / run.path / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.is_file() else []
    return int(json.loads(lines[-1])["decisions"]) if lines else run.decisions


def run_python(words: Words) -> int:
    """Run Python with these arguments in the root, on one thread; return its status."""
    print("python", shlex.join(words), flush=True)
    limits = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, *words]
    environment = os.environ | limits | {"PYTHONPATH": _path()}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _path() -> str:
    """Return the module path: this checkout, then what the user's environment adds."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


def _children() -> float:
    """Return the processor time of all finished child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
