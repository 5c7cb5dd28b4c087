"""Tests of `tokaido warmup`: later calls compile nothing."""

import pytest
from processes import run_script

from tokaido_env.__main__ import main
from tokaido_env.cli import warmup
from tokaido_env.core.jit import INTERPRETED

needs_compiler = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

UNUSED = """
import gc, pkgutil, sys
from importlib import import_module
from numba.core.dispatcher import Dispatcher
import tokaido_env
from tokaido_env.__main__ import main
from tokaido_env.core.kernel_cache import KernelCache
for module in pkgutil.walk_packages(tokaido_env.__path__, "tokaido_env."):
    try:
        import_module(module.name)
    except ModuleNotFoundError as error:  # of an extra
        assert not error.name.startswith("tokaido_env"), error
assert main(["warmup"]) == 0
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
def test_warmup__leaves_out_what_needs_missing_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = {"game": (lambda: None, ()), "learn": (lambda: None, ("no_such_package",))}
    monkeypatch.setattr(warmup, "GROUPS", groups)
    assert main(["warmup"]) == 0
    printed = capsys.readouterr().out
    assert "game" in printed
    assert "learn" not in printed
