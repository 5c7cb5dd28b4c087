"""Options of the test suite."""

import pytest

from tokaido_env.core.jit import INTERPRETED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--games",
        type=int,
        default=40 if INTERPRETED else 1000,
        help="random games to walk in step with the reference (test_reference.py)",
    )
