"""Compilation: nothing at import, never stale, never in the way where nothing can be written."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import prange
from positions import position

from tokaido_env import jit

ROOT = Path(__file__).resolve().parents[1]

needs_compiler = pytest.mark.skipif(jit.INTERPRETED, reason="nothing is compiled")


def run_script(script: str, folder: Path = ROOT, **environment: str) -> str:
    """Run Python in a process of its own with the package of a folder; return what it printed."""
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


# Importing


def test_importing_the_package_imports_nothing_big() -> None:
    loaded = set(run_script("import sys, tokaido_env; print(*sys.modules)").split())
    big = {"numba", "pettingzoo", "stable_baselines3", "sb3_contrib", "torch", "pyspiel", "rich"}
    assert {"tokaido_env", "gymnasium"} <= loaded  # it registers its environments there
    assert not loaded & big


def test_every_public_name_is_there() -> None:
    script = "import tokaido_env; print(all(hasattr(tokaido_env, n) for n in dir(tokaido_env)))"
    assert run_script(script) == "True\n"


CORE = """
import importlib, sys
import numba
folder = numba.config.CACHE_DIR
for name in ("rules", "luck", "observation", "bots", "batch", "game", "record", "render.ansi"):
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
def test_importing_the_core_compiles_nothing_and_needs_no_learning_library() -> None:
    counts, modules = run_script(CORE).splitlines()
    compilers, compiled = map(int, counts.split())
    assert compilers > 50
    assert compiled == 0
    learning = {"pettingzoo", "stable_baselines3", "sb3_contrib", "torch", "pyspiel"}
    assert not set(modules.split()) & (learning | {"safetensors", "rich"})


# Work and memory for threads


def _fill(out: Any, taken: Any, threads: int) -> None:
    """Count how often each number is taken, a few at a time."""
    for _ in prange(threads):
        first = jit.take(taken, 3)
        while first < len(out):
            for i in range(first, min(first + 3, len(out))):
                out[i] += 1
            first = jit.take(taken, 3)


def test_threads_take_each_piece_of_work_once() -> None:
    fill: Any = jit.parallel(_fill, at_least=2)
    out = np.zeros(100_000, np.int64)
    fill(out, np.zeros(1, np.int64), 4)
    assert (out == 1).all()


@pytest.mark.parametrize("dtype", ["<f4", "<i8", [("a", "<i8"), ("b", "u1", 300)], ("<f4", 32)])
@pytest.mark.parametrize("length", [0, 1, 77])
def test_no_two_threads_write_to_one_cache_line(dtype: Any, length: int) -> None:
    rows = jit.rows_apart(3, length, np.dtype(dtype))
    begins = [rows[i].__array_interface__["data"][0] for i in range(3)]
    used = length * np.dtype(dtype).itemsize
    for one, following in itertools.pairwise(begins):
        assert following - (one + used) >= 128  # a pair of lines: some processors fetch two


# The cache

OBSERVE = """
import json, os
import numpy
from tokaido_env.board import Board
from tokaido_env.observation import FEATURES, N_FEATURES, encode_game
from tokaido_env.position import from_dict
board, seen = Board.load(), numpy.zeros(N_FEATURES, numpy.float32)
encode_game(board.record, from_dict(board, json.loads(os.environ["POSITION"])), 0, 0, seen)
(coins,) = (feature.start for feature in FEATURES if feature.name == "my_coins_beyond")
print(seen[coins], "and", sum(encode_game.stats.cache_hits.values()), "from the cache")
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a copy of the package's sources."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tokaido_env", tmp_path / "copy" / "tokaido_env", ignore=ignored)
    return tmp_path / "copy"


def cached_in(place: Path) -> dict[str, str]:
    """An environment with the cache in a place; less optimised, which compiles faster."""
    home = {"HOME": str(place), "XDG_CACHE_HOME": str(place), "NUMBA_CACHE_DIR": ""}
    return home | {"NUMBA_OPT": "1"}


@needs_compiler
def test_a_change_in_a_called_file_is_never_missed(package: Path, tmp_path: Path) -> None:
    """Coins are seen by a scale of `MAX_COINS` beyond nine, which is not in the encoder's file."""
    rich = json.dumps(position(mine={"gold": 6, "coins": 36}))

    def observe() -> str:
        return run_script(OBSERVE, package, POSITION=rich, **cached_in(tmp_path / "cache")).strip()

    state = package / "tokaido_env" / "state.py"
    original = state.read_text(encoding="utf-8")
    assert "MAX_COINS = 63 " in original
    assert observe() == "0.5 and 0 from the cache"
    state.write_text(original.replace("MAX_COINS = 63 ", "MAX_COINS = 36 "), encoding="utf-8")
    assert observe() == "1.0 and 0 from the cache"
    state.write_text(original, encoding="utf-8")
    assert observe() == "0.5 and 1 from the cache"
    assert len(list((tmp_path / "cache" / "tokaido_env").iterdir())) == 2


def test_the_cache_is_in_a_folder_of_the_sources_hash(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = jit.cache_folder()
    assert folder is not None
    assert folder.parent == tmp_path / "tokaido_env"
    assert folder.is_dir()
    assert jit.cache_folder() == folder
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert jit.cache_folder() == tmp_path / "numba" / "tokaido_env" / folder.name


@pytest.mark.parametrize("where", ["a file", "/proc", "/dev/null"])
def test_where_nothing_can_be_written_there_is_no_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / where))
    assert jit.cache_folder() is None


@pytest.mark.skipif(sys.platform == "win32", reason="homes are found otherwise")
def test_who_has_no_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number nobody knows."""
    import pwd

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert jit.cache_folder() is None


# Threads

THREADS = """
import numba
from tokaido_env.jit import parallel

@parallel
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
@pytest.mark.parametrize("first", ["10", "5000"])
def test_many_games_run_in_threads_few_and_forked_ones_do_not(tmp_path: Path, first: str) -> None:
    """Whichever form the cache holds already."""
    (tmp_path / "threads.py").write_text(THREADS, encoding="utf-8")
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}
    at_once = {"GAMES": first, "NUMBA_NUM_THREADS": "2", "PYTHONPATH": paths}
    run_script(COUNT, **cache, **at_once)
    for _ in range(2):  # compiled, then from the cache
        told = run_script(COUNT, **cache, **at_once | {"GAMES": "5000 10 5000"})
        assert told == "5000 2 10 1 5000 2 child 1 "


HOLD = """
import ctypes, threading
import numba, numpy
from tokaido_env.jit import parallel

inside, go = threading.Event(), threading.Event()

@ctypes.CFUNCTYPE(ctypes.c_int)
def stay():
    inside.set()
    return go.wait(60)

@parallel
def threads(games, out):
    for j in numba.prange(len(games)):
        out[j] = numba.get_thread_id()
        if games[j] < 0:
            stay()

def count(games):
    out = numpy.full(len(games), -1)
    threads(games, out)
    return len(set(out.tolist()))

games = numpy.arange(5000)
told = [count(games)]
holder = threading.Thread(target=lambda: told.append(count(games - 1)))
holder.start()
assert inside.wait(60)
told.append(count(games))  # while the other is in it
go.set()
holder.join()
told.append(count(games))
print(*told)
"""


@needs_compiler
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="there is one thread only")
@pytest.mark.parametrize("layer", ["workqueue"])
def test_only_one_python_thread_at_a_time_runs_in_threads(layer: str) -> None:
    """The second one runs serially meanwhile; some threading layers would end the process."""
    environment = {"NUMBA_NUM_THREADS": "2", "NUMBA_THREADING_LAYER": layer}
    no_cache = {"XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    assert run_script(HOLD, **environment, **no_cache) == "2 1 2 2\n"


# Games all the same

PLAY = """
import hashlib, random
from tokaido_env import Game, env
digest = hashlib.sha256()
for seed in range(2):
    game, rng = Game(seed=seed), random.Random(seed)
    while not game.is_over:
        digest.update(bytes(game.state) + repr((game.legal_actions(), game.scores())).encode())
        game.play(rng.choice(game.legal_actions()))
    digest.update(repr((game.winner(), game.record().events)).encode())
e = env()
e.reset(seed=5)
for _ in range(50):
    digest.update(e.state().tobytes() + e.observe("player_1")["observation"].tobytes())
    e.step(e.game.legal_actions()[-1])
print(digest.hexdigest())
"""


def test_a_game_is_played_where_nothing_can_be_written(package: Path, tmp_path: Path) -> None:
    """Neither in the user's cache nor beside the sources."""
    (tmp_path / "file").touch()
    before = sorted(package.rglob("*"))
    short = "from tokaido_env import Game; g = Game(seed=1); g.play('pilgrim'); print(g.rounds)"
    assert run_script(short, package, **cached_in(tmp_path / "file")) == "1\n"
    assert sorted(package.rglob("*")) == before


@needs_compiler
def test_interpreted_games_are_the_same_bytes_as_compiled_ones() -> None:
    assert run_script(PLAY, NUMBA_DISABLE_JIT="1") == run_script(PLAY)
