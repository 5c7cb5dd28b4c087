"""Tests of the cache of compiled entries."""

import hashlib
import os
import pickle
import pkgutil
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from numba import types
from processes import ROOT, run_script

import tokaido_env
from tokaido_env.core import jit, kernel_cache as cache
from tokaido_env.core.jit import entry, kernel
from tokaido_env.core.kernel_cache import config, fingerprint

needs_compiler = pytest.mark.skipif(jit.INTERPRETED, reason="nothing is compiled")
needs_locks = pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")


def cached_in(folder: Path) -> dict[str, str]:
    """Return environment variables for a cache in a folder, with fast compilation."""
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder), "NUMBA_CACHE_DIR": ""}
    return home | {"NUMBA_OPT": "1"}


def cache_files(folder: Path, name: str = "") -> list[Path]:
    """Return the files of compiled entries with `name` in the file name."""
    return sorted(folder.rglob(f"*{name}-*.nbc"))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the cache folder that this process uses during the test."""
    monkeypatch.setattr(cache, "_folder", lambda: tmp_path)
    cache._warn_unwritable.cache_clear()
    cache._warn_untrusted.cache_clear()
    return tmp_path


def doubled(number: int) -> int:
    return 2 * number


def hits(compiled: Any) -> int:
    return sum(compiled.stats.cache_hits.values())


# Stale entries


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package's sources."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tokaido_env", tmp_path / "copy" / "tokaido_env", ignore=ignored)
    return tmp_path / "copy"


def imported(name: str) -> ModuleType | None:
    """Return a module, or None if it needs a library that is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "tokaido_env").startswith("tokaido_env"):
            raise
        return None


def entries() -> dict[str, Any]:
    """Return all cached entries of the package by name."""
    names = [module.name for module in pkgutil.walk_packages(tokaido_env.__path__, "tokaido_env.")]
    prefixes = tuple(f"tokaido_env.{name}" for name in ("core", "agents", "arena", "study"))
    chosen = [name for name in names if name.startswith(prefixes)]
    found: dict[str, Any] = {}
    for module in filter(None, map(imported, chosen)):
        for name, value in vars(module).items():
            cells = value.__closure__ or () if isinstance(value, FunctionType) else ()
            for each in (value, *(cell.cell_contents for cell in cells)):
                if isinstance(getattr(each, "_cache", None), cache.KernelCache):
                    found[f"{module.__name__}.{name} {each.targetoptions['parallel']}"] = each
    return found


@needs_compiler
def test_fingerprint__exists_and_is_unique_for_every_entry() -> None:
    fingerprints = {name: fingerprint(each, ()) for name, each in entries().items()}
    assert len(fingerprints) > 60
    assert None not in fingerprints.values(), fingerprints
    distinct = {id(each) for each in entries().values()}
    assert len(set(fingerprints.values())) == len(distinct)


@needs_compiler
def test_fingerprint__depends_on_called_functions_constants_and_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(number: Any) -> Any:
        inner = kernel(lambda x: x + number)
        return entry(lambda x: inner(x))

    numbers = (1, 2, 1.0, True, "1", (1, 2), (2, 1), np.arange(3), np.arange(3.0))
    numbers += (slice(1), slice(2), slice(1, None))
    fingerprints = [fingerprint(made(number), (types.int64,)) for number in numbers]
    assert None not in fingerprints
    assert len(set(fingerprints)) == len(numbers)
    assert [fingerprint(made(number), (types.int64,)) for number in numbers] == fingerprints
    assert fingerprint(made(1), (types.int32,)) != fingerprints[0]
    assert fingerprint(made(object()), (types.int64,)) is None
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    assert fingerprint(made(1), (types.int64,)) != fingerprints[0]


@needs_compiler
def test_fingerprint__depends_on_the_order_of_fields() -> None:
    def signature(fields: str) -> Any:
        kind = namedtuple("Pair", fields)
        return (types.NamedTuple((types.int64, types.int64), kind),)

    compiled = entry(doubled)
    one, other = (fingerprint(compiled, signature(fields)) for fields in ("a b", "b a"))
    assert None not in (one, other)
    assert one != other


# The folder


def test_cache_folder__follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "relative")  # ignored
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "tokaido_env" / "kernels"
    assert [path.name for path in tmp_path.iterdir()] == ["xdg"]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    folder = cache.cache_folder()
    assert folder == tmp_path / "numba" / "tokaido_env" / "kernels"
    assert folder.is_dir()


@pytest.mark.parametrize("where", ["a file", "/proc"])
def test_cache_folder__is_none_where_nothing_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / where))
    assert cache.cache_folder() is None


@needs_compiler
def test_entry__compiles_without_a_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_folder", lambda: None)
    for _ in range(2):
        compiled: Any = entry(doubled)
        assert compiled(4) == 8
        assert hits(compiled) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="finds home folders differently")
def test_cache_folder__is_none_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs with an unknown user id."""
    import pwd

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert cache.cache_folder() is None


# Owners and permissions

needs_owners = pytest.mark.skipif(sys.platform == "win32", reason="files have no modes there")


class Payload:
    """An object that creates a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.touch, (self.trace,)


def write_payload(file: Path, trace: Path) -> None:
    contents = pickle.dumps(Payload(trace))
    file.write_bytes(hashlib.sha256(contents).digest() + contents)


@needs_compiler
@needs_owners
@pytest.mark.parametrize("owner", ["user", "writable by others", "another user"])
def test_cache__loads_only_files_that_only_the_user_may_write(
    folder: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry(doubled)(4)
    (file,) = cache_files(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    write_payload(file, folder / "trace")
    compiled: Any = entry(doubled)
    if owner == "user":
        with pytest.raises(TypeError):  # the payload is not a kernel
            compiled(4)
        assert (folder / "trace").exists()
        return
    if owner == "another user":
        monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    else:
        file.chmod(0o620)
    with pytest.warns(RuntimeWarning) as warned:
        assert compiled(4) + entry(lambda x: 3 * x)(4) == 8 + 12
    assert not (folder / "trace").exists()
    (message,) = {str(each.message) for each in warned}
    assert message.startswith(f"{folder}: compiled kernels are code and were not loaded: ")
    assert ("XDG_CACHE_HOME" if owner == "another user" else "chmod -R go-w") in message


@needs_owners
@pytest.mark.parametrize("owner", ["writable by others", "another user"])
@pytest.mark.parametrize("part", [".", "kernels"])
def test_cache_folder__is_none_if_others_may_write_it(
    owner: str, part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    before = os.umask(0)
    try:
        folder = cache.cache_folder()
    finally:
        os.umask(before)
    assert folder == tmp_path / "tokaido_env" / "kernels"
    for each in (folder, folder.parent):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700
    uid = folder.stat().st_uid
    if owner == "another user":
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    else:
        (folder.parent / part).chmod(0o770)
    cache._warn_untrusted.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"^{folder}: compiled kernels are code") as warned:
        assert [cache.cache_folder(), cache.cache_folder()] == [None, None]
    assert len(warned) == 1
    assert list(folder.iterdir()) == []


# Damage


def truncated(contents: bytes) -> bytes:
    return contents[: len(contents) // 2]


def flipped(contents: bytes) -> bytes:
    middle = len(contents) // 2
    return contents[:middle] + bytes([contents[middle] ^ 1]) + contents[middle + 1 :]


@needs_compiler
@pytest.mark.parametrize("damage", [truncated, flipped, lambda contents: b""])
def test_cache__replaces_a_damaged_file_with_a_warning(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    entry(doubled)(4)
    (file,) = cache_files(folder)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    compiled: Any = entry(doubled)
    with pytest.warns(RuntimeWarning, match=f"{file.name}: cannot read .* damaged"):
        assert compiled(4) == 8
    assert hits(compiled) == 0
    compiled = entry(doubled)
    assert compiled(4) == 8
    assert hits(compiled) == 1
    assert cache_files(folder) == [file]


FULL = """
import resource, warnings
from tokaido_env.core.jit import entry

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    print(entry(lambda x: x + 1)(4), entry(lambda x: x + 2)(4), len(warned))
    print(warned[0].message)
"""


@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit there")
def test_cache__warns_once_of_a_full_disk(tmp_path: Path) -> None:
    """The limit of a kilobyte for each file stands for a full disk."""
    lines = run_script(FULL, **cached_in(tmp_path)).splitlines()
    assert lines[0] == "5 6 1"
    assert str(tmp_path / "tokaido_env" / "kernels") in lines[1]
    assert "File too large" in lines[1]
    left = [path.name for path in (tmp_path / "tokaido_env" / "kernels").iterdir()]
    assert left == ["lock"]


# Concurrent processes


def test_write__has_a_new_temporary_name_in_processes_of_one_id(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in containers that share a folder, where each first process has the id 1."""
    names, replace = list[str](), Path.replace

    def renamed(self: Path, target: Path) -> Path:
        names.append(self.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", renamed)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    for _ in range(50):
        monkeypatch.setattr(tempfile, "_name_sequence", None)  # as at the start of a process
        cache._write(folder / "kernel-0.nbc", b"compiled")
    assert len(set(names)) == 50
    assert [path.name for path in folder.iterdir()] == ["kernel-0.nbc"]


SMALL = """
from tokaido_env.core.jit import entry

@entry
def sums(numbers):
    total = 0
    for number in numbers:
        total += number * number
    return total
"""
AT_ONCE = """
import sys, numpy
from small import sums
print("ready", flush=True)
sys.stdin.readline()
sums(numpy.arange(9))
print(sum(sums.stats.cache_misses.values()), sum(sums.stats.cache_hits.values()))
"""


def started(script: str, **environment: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        stdin=pipe,
        stdout=pipe,
        text=True,
    )


@pytest.mark.slow
@needs_compiler
@needs_locks
def test_cache__compiles_an_entry_in_one_of_several_processes(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SMALL, encoding="utf-8")
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    environment = cached_in(tmp_path / "cache") | {"PYTHONPATH": paths}
    several = [started(AT_ONCE, **environment) for _ in range(2)]
    for process in several:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in several:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = sorted(process.communicate(timeout=120)[0] for process in several)
    assert outputs == ["0 1\n", "1 0\n"]
    assert len(cache_files(tmp_path / "cache")) == 1


# Notices


def test_compile_notice__counts_all_compilations_and_is_rare(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(cache, "NOTICE_AFTER", 0.3)
    notice = cache.CompileNotice()
    for _ in range(8):
        with notice, notice:
            time.sleep(0.1)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tokaido_env: compiling for the first time, about half a minute; ")
    assert f"the result is cached in {folder} (python -m tokaido_env warmup " in line
    monkeypatch.setattr(cache, "NOTICE_INTERVAL", 0.0)
    with notice:
        time.sleep(0.2)
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with notice:
        time.sleep(0.4)
    assert capsys.readouterr().err == ""
