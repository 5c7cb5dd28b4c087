"""Warming up: afterwards nothing is left to compile."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT, run_script

from tokaido_env.cli import warmup
from tokaido_env.core.jit import INTERPRETED

needs_compiler = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

USED = """
import gc, json
from numba.core.dispatcher import Dispatcher
from tokaido_env.core.cache import KernelCache
used = [
    f"{each.py_func.__module__}.{each.py_func.__qualname__} {each.targetoptions} {signature}"
    for each in gc.get_objects()
    if isinstance(each, Dispatcher) and isinstance(each._cache, KernelCache)
    for signature in each.signatures
]
print(json.dumps(used))
"""
WARM = "from tokaido_env.cli.warmup import main\nassert main(['game', 'batch']) == 0\n"
PLAY = """
import random
import numpy
from tokaido_env import Batch, Game

game = Game(seed=3)
while not game.is_over:
    game.play(random.choice(game.legal_actions()))
print(game.winner(), game.scores(), game.record().winner)
for games in (1, 3, 2000):
    for observation in ("float32", "uint8", None):
        batch = Batch(games, observation=observation)
        turn = batch.reset(seed=1)
        for _ in range(30):
            turn = batch.step(turn.mask.argmax(axis=1))
"""


@needs_compiler
def test_what_is_used_was_warmed_up_before() -> None:
    """Each form of each kernel of games and batches, whatever the disk holds already."""
    warmed, used = (
        set(json.loads(run_script(script + USED, NUMBA_NUM_THREADS="2").splitlines()[-1]))
        for script in (WARM, PLAY)
    )
    assert len(used) > 10
    assert used - warmed == set()


COUNT = """
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    from tokaido_env import Game
    game = Game(seed=3)
    while not game.is_over:
        game.play(game.legal_actions()[0])
    game.scores(), game.to_dict(), game.record()
print(len(recorder.buffer))
"""


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="there, both compile")
def test_two_warm_up_at_once_and_nothing_is_left_to_compile(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": "", "NUMBA_OPT": "1"}
    several = [
        subprocess.Popen(
            [sys.executable, "-m", "tokaido_env", "warmup", "game"],
            env=os.environ | cache | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    told = [process.communicate(timeout=300)[0].splitlines() for process in several]
    assert [process.returncode for process in several] == [0, 0]
    folder = tmp_path / "tokaido_env" / "kernels"
    assert {lines[0] for lines in told} == {f"compiled kernels are kept in {folder}"}
    made = [0 if "already" in lines[-1] else int(lines[-1].split()[0]) for lines in told]
    assert sum(made) == len(list(folder.glob("*.nbc"))) > 3
    assert run_script(COUNT, **cache) == "0\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["gmae"], "warmup: unknown 'gmae': expected some of game, env, batch, agents, search, "),
        (["game", "x" * 1000], f"warmup: unknown '{'x' * 40}': expected some of game, "),
    ],
)
def test_an_unknown_name_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert warmup.main(arguments) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(expected)
    assert told.err.count("\n") == 1


@needs_compiler
def test_what_is_not_installed_is_left_out_or_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warmed: list[str] = []
    monkeypatch.setattr(warmup, "find_spec", lambda name: None if name == "torch" else name)
    monkeypatch.setattr(warmup, "warm", warmed.extend)
    assert warmup.main([]) == 0
    assert warmed == [name for name in warmup.GROUPS if name != "learn"]
    assert warmup.main(["game", "learn"]) == 1
    assert capsys.readouterr().err == "warmup: learn: torch is not installed\n"


def test_where_nothing_can_be_kept_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert warmup.main(["game"]) == 1
    assert capsys.readouterr().err.startswith("warmup: no")
