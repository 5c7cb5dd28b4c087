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
    """Set up this process and those that the tests start, also with pytest-xdist.

    Bytecode is written, or each process would compile the package again. OpenMP and BLAS get one
    thread, since there is a test process for each core; Numba keeps its threads. Ctrl-C works
    again: a shell starts background jobs without it.
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
        help="random games to compare with the reference (test_reference.py)",
    )
    parser.addoption(
        "--subsets",
        type=int,
        default=40,
        help="subsets of the files of a run to resume without, by method (learn/test_run.py)",
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with a new profile; without a browser the tests are skipped."""
    with browsing(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with a cap of two rounds."""
    folder = tmp_path_factory.mktemp("boards")
    return write_board(folder / "short.toml", shikoku_data() | {"max_rounds": 2})
