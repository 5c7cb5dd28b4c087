"""Options of the test suite."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import Browser, browsing
from positions import shikoku_data, write_board

from tokaido_env.core.jit import INTERPRETED


def pytest_configure() -> None:
    """Set what the processes have in common that the tests start, those of pytest-xdist too.

    Bytecode is kept: where the environment wants none, each would compile the package anew. Threads
    of OpenMP and BLAS would wait for each other, busily, as there is a process for each core; Numba
    takes as many as ever. Ctrl-C stops them: a shell's job in the background is begun without it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--games",
        type=int,
        default=40 if INTERPRETED else 1000,
        help="random games to walk in step with the reference (test_reference.py)",
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with a profile of its own; without one on the system, the tests are left out."""
    with browsing(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board on which games end after two rounds, at the cap."""
    folder = tmp_path_factory.mktemp("boards")
    return write_board(folder / "short.toml", shikoku_data() | {"max_rounds": 2})
