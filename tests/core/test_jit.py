"""Tests of the decorators that compile: no work at import, and threads."""

import os
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from processes import ROOT, run_script

from tokaido_env.core import jit

needs_compiler = pytest.mark.skipif(jit.INTERPRETED, reason="nothing is compiled")


def test_import__loads_no_large_library_and_resolves_every_public_name() -> None:
    script = "import sys, tokaido_env; print(*sys.modules)"
    loaded = set(run_script(script).split())
    large = {"numba", "stable_baselines3", "sb3_contrib", "torch", "pyspiel", "rich"}
    assert {"tokaido_env", "gymnasium"} <= loaded  # the package registers its environments there
    assert not loaded & large
    script = "import tokaido_env; print(all(hasattr(tokaido_env, n) for n in dir(tokaido_env)))"
    assert run_script(script) == "True\n"


CORE = """
import importlib, sys
import numba
folder = numba.config.CACHE_DIR
for name in ("batch", "game", "record", "render.ansi"):
    importlib.import_module("tokaido_env." + name)
import tokaido_env.agents
assert numba.config.CACHE_DIR == folder
modules = [module for name, module in sys.modules.items() if name.startswith("tokaido_env")]
found = {id(x): x for module in modules for x in vars(module).values()}.values()
compilers = [x for x in found if isinstance(x, numba.core.dispatcher.Dispatcher)]
print(len(compilers), sum(len(x.signatures) for x in compilers))
print(*{name.partition(".")[0] for name in sys.modules})
"""


@needs_compiler
def test_import__compiles_no_kernel() -> None:
    counts, modules = run_script(CORE).splitlines()
    compilers, compiled = map(int, counts.split())
    assert compilers > 50
    assert compiled == 0
    learning = {"stable_baselines3", "sb3_contrib", "torch", "pyspiel"}
    assert not set(modules.split()) & (learning | {"safetensors", "rich"})


# Threads

THREADS = """
import numba
from tokaido_env.core.jit import parallel

@parallel()
def threads(games, out):
    for j in numba.prange(len(games)):
        out[j] = numba.get_thread_id()
"""
COUNT = """
import os, sys, numpy
from threads import threads

def count(games):
    out = numpy.full(games, -1)
    threads(numpy.arange(games), out)
    return len(set(out.tolist()))

for games in map(int, os.environ["GAMES"].split()):
    print(games, count(games), end=" ", flush=True)
if os.fork() == 0:
    print("child", count(5000), end=" ", flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="there is one thread only")
def test_parallel__uses_threads_for_many_games_outside_forks(tmp_path: Path) -> None:
    """The form that is in the cache first makes no difference."""
    (tmp_path / "threads.py").write_text(THREADS, encoding="utf-8")
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}
    at_once = {"GAMES": "10", "NUMBA_NUM_THREADS": "2", "PYTHONPATH": paths}
    run_script(COUNT, **cache, **at_once)
    for _ in range(2):  # compiled, then from the cache
        output = run_script(COUNT, **cache, **at_once | {"GAMES": "5000 10 5000"})
        assert output == "5000 2 10 1 5000 2 child 1 "


def thread_ids(games: Any, out: Any) -> None:
    for j in numba.prange(len(games)):
        out[j] = numba.get_thread_id()


@needs_compiler
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="there is one thread only")
def test_parallel__runs_serially_while_another_python_thread_is_in_such_a_kernel() -> None:
    """Some of Numba's threading layers would end the process."""
    write: Any = jit.parallel()(thread_ids)

    def count() -> int:
        out = np.full(5000, -1)
        write(out, out)
        return len(set(out.tolist()))

    with jit._threads_in_use:
        assert count() == 1
    assert count() > 1
