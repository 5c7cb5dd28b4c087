"""Tests of the cache of compiled entries."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba import types
from processes import ROOT

from tokaido_env.core import jit, kernel_cache as cache
from tokaido_env.core.jit import entry

needs_compiler = pytest.mark.skipif(jit.INTERPRETED, reason="nothing is compiled")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the cache folder that this process uses during the test."""
    monkeypatch.setattr(cache, "_folder", lambda: tmp_path)
    return tmp_path


def doubled(number: int) -> int:
    return 2 * number


def hits(compiled: Any) -> int:
    return sum(compiled.stats.cache_hits.values())


# What an entry depends on

DECORATORS = {"kernel", "subroutine", "allocator", "entry", "pooled", "parallel"}


FILES_WITH_KERNELS = [
    file
    for file in (*(ROOT / "tokaido_env").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"))
    if "tokaido_env.core.jit import" in file.read_text("utf-8")
    and file.parent.name not in cache.KERNEL_PACKAGES
]


def names_in(tree: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}


@pytest.mark.parametrize("file", FILES_WITH_KERNELS, ids=lambda file: file.name)
def test_kernels__use_only_kernel_packages_and_their_own_file(file: Path) -> None:
    """Others are not in the hash: an edit of them would leave stale entries."""
    module = ast.parse(file.read_text("utf-8"))
    foreign = {
        alias.asname or alias.name
        for each in ast.walk(module)
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("tokaido_env")
        for alias in each.names
        if f"{each.module}.{alias.name}".split(".")[1] not in cache.KERNEL_PACKAGES
    }
    uses: dict[str, set[str]] = {}
    waiting: set[str] = set()
    for each in module.body:
        if isinstance(each, ast.FunctionDef):
            uses[each.name] = {name for part in each.body for name in names_in(part)}
            if any(names_in(decorator) & DECORATORS for decorator in each.decorator_list):
                waiting.add(each.name)
        elif isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            uses |= dict.fromkeys(set().union(*map(names_in, targets)), names_in(each.value))
    used: set[str] = set()
    while waiting:
        used |= waiting
        waiting = set().union(*(uses.get(name, set()) for name in waiting)) - used
    assert used & foreign == set()


def test_sources__of_an_entry_are_its_package_and_those_below(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache, "_PACKAGE", tmp_path)
    monkeypatch.setattr(cache, "_STARTED", float("inf"))
    packages = (*cache.KERNEL_PACKAGES, "arena", "cli")
    files = {name: tmp_path / name / "module.py" for name in packages}

    def write(file: Path, text: str) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
        os.utime(file, (0, 0))  # as copies have that keep the time

    def hashes() -> list[str | None]:
        cache._hash_sources.cache_clear()
        return [cache._hash_sources(files[name]) for name in packages[:-1]]

    for file in files.values():
        write(file, "A = 1")
    before = hashes()
    changed = {}
    for name, file in files.items():
        write(file, "A = 2")
        changed[name] = [a != b for a, b in zip(before, hashes(), strict=True)]
        write(file, "A = 1")
    assert changed == {
        "core": [True, True, True, True],
        "features": [False, True, True, True],
        "agents": [False, False, True, True],
        "arena": [False, False, False, True],
        "cli": [False, False, False, False],
    }
    # Changed since the start of this process, which may have imported another version.
    monkeypatch.setattr(cache, "_STARTED", files["core"].stat().st_ctime - 1)
    assert hashes() == [None] * 4


@needs_compiler
def test_path__depends_on_the_signature_the_form_and_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def path(function: Any, kind: Any = types.int64) -> Any:
        return function._cache.path((kind,))

    serial: Any = entry(doubled)
    threaded: Any = jit._compile(doubled, parallel=True)
    paths = {path(serial), path(threaded), path(serial, types.int32)}
    monkeypatch.setattr(cache.config, "BOUNDSCHECK", 1)
    assert len(paths | {path(serial)}) == 4
    factor = 3
    assert path(entry(lambda number: factor * number)) is None  # no source shows the factor


# The folder


def test_cache_folder__follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):  # the second goes before the first
        monkeypatch.setenv(name, str(tmp_path / name))
        assert cache.cache_folder() == tmp_path / name / "tokaido_env" / "kernels"
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.devnull)
    assert cache.cache_folder() is None


@needs_compiler
def test_entry__compiles_without_a_folder_that_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "_folder", lambda: Path(os.devnull))
    compiled: Any = entry(doubled)
    assert (compiled(4), hits(compiled)) == (8, 0)


@needs_compiler
def test_entry__is_compiled_again_if_its_file_is_damaged(folder: Path) -> None:
    entry(doubled)(4)
    (file,) = folder.glob("*.nbc")
    content = file.read_bytes()
    file.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    for hit in (0, 1):
        compiled: Any = entry(doubled)
        assert (compiled(4), hits(compiled)) == (8, hit)


@needs_compiler
def test_cache__keeps_the_newest_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAX_FILES", 2)
    compiled: Any = entry(doubled)
    for age, number in enumerate((1, 1.0, True)):
        compiled(number)
        for file in folder.glob("*.nbc"):
            os.utime(file, (file.stat().st_mtime - 1,) * 2)
        assert len(list(folder.glob("*.nbc"))) == min(age + 1, 2)


# Concurrent processes

AT_ONCE = """
import sys, numpy
from tokaido_env.core.rng import seats_of_seeds
print("ready", flush=True)
sys.stdin.readline()
seats_of_seeds(numpy.arange(9), numpy.zeros(9, numpy.int8))
print(sum(seats_of_seeds.stats.cache_hits.values()))
"""


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")
def test_entry__is_compiled_by_one_of_several_processes(tmp_path: Path) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    several = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [process.stdout and process.stdout.readline() for process in several] == ["ready\n"] * 3
    for process in several:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found = sorted(process.communicate(timeout=120)[0] for process in several)
    assert found == ["0\n", "1\n", "1\n"]
