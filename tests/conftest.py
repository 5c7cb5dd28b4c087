"""Options of the test suite."""

from collections.abc import Iterator

import pytest
from browsers import Browser, browsing

from tokaido_env.core.jit import INTERPRETED


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
