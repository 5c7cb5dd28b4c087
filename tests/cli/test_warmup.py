"""Tests of `tokaido warmup`: later calls compile nothing."""

import json
from pathlib import Path

import pytest
from processes import run_script

from tokaido_env.cli import warmup
from tokaido_env.core.jit import INTERPRETED

needs_compiler = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

USED = """
import gc, json
from numba.core.dispatcher import Dispatcher
from tokaido_env.core.kernel_cache import KernelCache
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


UNUSED = """
import gc, pkgutil, sys
from importlib import import_module
from numba.core.dispatcher import Dispatcher
import tokaido_env
from tokaido_env.cli.warmup import main
from tokaido_env.core.kernel_cache import KernelCache
for module in pkgutil.walk_packages(tokaido_env.__path__, "tokaido_env."):
    try:
        import_module(module.name)
    except ModuleNotFoundError as error:  # of an extra
        assert not error.name.startswith("tokaido_env"), error
assert main([]) == 0
print([
    f"{each.py_func.__module__}.{each.py_func.__qualname__}"
    for each in gc.get_objects()
    if isinstance(each, Dispatcher) and isinstance(each._cache, KernelCache) and not each.signatures
])
"""


@needs_compiler
@pytest.mark.slow
def test_warmup__calls_every_kernel() -> None:
    assert run_script(UNUSED, NUMBA_NUM_THREADS="2").splitlines()[-1] == "[]"


@needs_compiler
def test_warmup__compiles_each_kernel_of_games_and_batches() -> None:
    warmed, used = (
        set(json.loads(run_script(script + USED, NUMBA_NUM_THREADS="2").splitlines()[-1]))
        for script in (WARM, PLAY)
    )
    assert len(used) > 10
    assert used - warmed == set()


def test_warmup__names_the_nearest_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert warmup.main(["game", "gaem"]) == 1
    assert capsys.readouterr().err == "warmup: unknown group 'gaem': the nearest is 'game'\n"


@needs_compiler
def test_warmup__leaves_out_groups_of_missing_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warmed: list[str] = []
    monkeypatch.setattr(warmup, "find_spec", lambda name: None if name == "torch" else name)
    monkeypatch.setattr(warmup, "warm", warmed.extend)
    assert warmup.main([]) == 0
    assert warmed == [name for name in warmup.GROUPS if name != "learn"]
    assert warmup.main(["game", "learn"]) == 1
    assert capsys.readouterr().err == "warmup: learn: needs torch, which is not installed\n"


def test_warmup__refuses_an_unwritable_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert warmup.main(["game"]) == 1
    assert capsys.readouterr().err.startswith("warmup: found no writable folder")
