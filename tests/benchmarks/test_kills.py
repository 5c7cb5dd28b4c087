"""Killed and resumed commands write the same bytes as commands without kills.

One kill each of short commands; `benchmarks/kills.py` has many kills of longer ones, and training.
"""

import random
import sys
from pathlib import Path

import pytest

from tokaido_env.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import kills  # noqa: E402

TIMING = kills.Timing(start=2.0, end=4.0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize(
    "command",
    [
        kills.evaluate("python:custom_agents:Dice greedy --games 16 --executor serial"),
        kills.ladder("random greedy --games 20"),
    ],
)
def test_kill__resumed_command_writes_the_same_bytes(
    command: kills.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    assert main(command(whole)) == 0
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    monkeypatch.setenv("SECONDS_A_DECISION", "0.002")
    row, log = kills.Row("a command", (command,), 1.0), tmp_path / "log"
    assert len(kills.run_with_kills(row, parts, [TIMING], log, random.Random(0), 1)) == 1
    assert kills.difference(kills.contents(whole), kills.contents(parts)) == []
