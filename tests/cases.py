"""Cases of a parametrized test of which `make test` runs the first alone."""

from collections.abc import Iterable
from typing import Any

import pytest


def rest_slow(cases: Iterable[Any]) -> list[Any]:
    """Mark all cases but the first as slow; a tuple holds the values of several parameters."""
    first, *rest = cases
    rows = (case if isinstance(case, tuple) else (case,) for case in rest)
    return [first, *(pytest.param(*row, marks=pytest.mark.slow) for row in rows)]
