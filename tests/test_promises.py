"""The five promises of CONTRIBUTING, a test for each; the tests of the modules have the details."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from processes import ROOT
from short_run import TINY, contents

from tokaido_env import Batch, Board, Game, IllegalMove
from tokaido_env.__main__ import main
from tokaido_env.agents.policy import Policy
from tokaido_env.agents.registry import AgentError
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.arena.result import Result
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.record import load
from tokaido_env.study.regret_set import RegretSet

MATCH = ["evaluate", "python:custom_agents:Dice", "greedy", "--games", "16", "--executor", "serial"]


def options_of_td(folder: Path, updates: int) -> list[str]:
    named = TINY | {"updates": updates, "seed": 2}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in named.items()]
    return ["train", "--run", str(folder), *words]


def stop_early(words: list[str], log: Path, how: signal.Signals) -> None:
    """Start a command, and stop it as soon as it has logged something."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    running = subprocess.Popen(
        [sys.executable, "-m", "tokaido_env", *words],
        env=os.environ | {"PYTHONPATH": path, "SECONDS_A_DECISION": "0.01"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not log.is_file() or not log.stat().st_size:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(how)
    assert running.wait(120) in (130, -how)


@pytest.mark.skipif(sys.platform == "win32" or INTERPRETED, reason="needs signals, and seconds")
def test_promise_1__nothing_finished_is_lost(tmp_path: Path) -> None:
    """A match that Ctrl-C stops and a training that is killed end with the usual bytes."""
    pytest.importorskip("torch")
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    assert main([*MATCH, "--records", str(whole)]) == 0
    stop_early([*MATCH, "--records", str(parts)], parts, signal.SIGINT)
    assert 0 < len(load(parts)) < 16
    assert main([*MATCH, "--records", str(parts)]) == 0
    assert parts.read_bytes() == whole.read_bytes()
    once, resumed = tmp_path / "once", tmp_path / "resumed"
    assert main(options_of_td(once, 40)) == 0
    stop_early(options_of_td(resumed, 40), resumed / "metrics.jsonl", signal.SIGKILL)
    assert (resumed / "best").read_bytes() != (once / "best").read_bytes()
    assert main(["train", "--resume", str(resumed)]) == 0
    assert contents(resumed) == contents(once)


class Runs:
    """An object whose unpickling makes a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def test_promise_2__nothing_read_from_a_file_runs(tmp_path: Path) -> None:
    """Neither what a pickle does, nor code that a ladder names as an agent."""
    trace, hostile, arrays = (tmp_path / name for name in ("trace", "hostile", "arrays.npz"))
    hostile.write_bytes(pickle.dumps(Runs(trace)))
    np.savez(arrays, states=np.array([Runs(trace)], object))
    readers: list[Callable[[Path], Any]] = [
        *(load, Policy.load, Ladder.load, Result.load, RegretSet.load, Board.load)
    ]
    for read in readers:
        for path in (hostile, arrays):
            with pytest.raises(ValueError, match=path.name):
                read(path)
    text = LADDER.read_text(encoding="utf-8").replace('"greedy"', '"python:subprocess:Popen"')
    hostile.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="hash: expected") as error:
        Ladder.load(hostile)
    expected, old = re.findall(r"\b[0-9a-f]{16}\b", str(error.value))
    hostile.write_text(text.replace(old, expected), encoding="utf-8")
    with pytest.raises(AgentError, match="python:subprocess:Popen"):
        Ladder.load(hostile)
    assert not trace.exists()


def test_promise_3__a_wrong_file_or_option_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("games.jsonl").write_text('{"format": "tokaido-duo"', encoding="utf-8")
    for words, named in (
        ("evaluate greedy random --gmaes 2 --json new", "--gmaes"),
        ("evaluate greedy random --games many --json new", "--games"),
        ("evaluate greedy nobody --games 2 --json new", "nobody"),
        ("evaluate greedy policy:games.jsonl --games 2 --json new", "games.jsonl"),
        ("replay games.jsonl --html new", "games.jsonl"),
        ("train --run new --width many", "--width"),
    ):
        assert main(words.split()) in (1, 2)
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert named in printed.err
        assert [path.name for path in tmp_path.iterdir()] == ["games.jsonl"]


@pytest.mark.skipif(INTERPRETED, reason="one thread")
def test_promise_4__same_seed_same_bytes(tmp_path: Path) -> None:
    """A match and a short training, by 1 and 2 threads, and by processes."""
    pytest.importorskip("torch")
    before, matches, runs = numba.get_num_threads(), [], []
    for number, executor in ((1, "serial"), (2, "serial"), (2, "processes:2")):
        records, run = (tmp_path / f"{number}-{executor[0]}{suffix}" for suffix in (".jsonl", ""))
        try:
            numba.set_num_threads(min(number, numba.config.NUMBA_NUM_THREADS))
            words = ["mcts:sims=20", "heuristic", "--games", "60", "--executor", executor]
            assert main(["evaluate", *words, "--records", str(records)]) == 0
            assert main(options_of_td(run, 2)) == 0
        finally:
            numba.set_num_threads(before)
        matches.append(records.read_bytes())
        runs.append(contents(run))
    assert len(matches[0].splitlines()) == 60
    assert matches[1:] == matches[:1] * 2
    assert runs[1:] == runs[:1] * 2


def test_promise_5__no_illegal_index_reaches_a_kernel() -> None:
    game, batch = Game(seed=3), Batch(2)
    batch.reset(seed=3)
    held = game.states.tobytes(), batch.states.tobytes()
    legal = [int(mask).bit_length() - 1 for mask in batch.legal]
    closed = next(action for action in range(49) if not (game.legal_mask >> action) & 1)
    for action in (-1, -49, closed, 49, 64, 2**40):
        with pytest.raises(IllegalMove):
            game.play(action)
        with pytest.raises(IllegalMove):
            batch.step(np.array([legal[0], action]))
    for wrong in (-1, 2, 2**40):
        with pytest.raises(IndexError):
            batch.observe(np.array([wrong]), np.array([0]))
        with pytest.raises(IndexError):
            batch.advance(np.array([wrong]), np.array([legal[0]]))
    with pytest.raises(ValueError, match="seats"):
        batch.observe(np.array([0]), np.array([2]))
    assert (game.states.tobytes(), batch.states.tobytes()) == held
