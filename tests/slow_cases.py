"""Parametrised cases of which `make test` runs only the first."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_except_first(cases: Iterable[Any]) -> list[Any]:
    """Mark all cases but the first as slow; a tuple has the values of several parameters."""
    first, *rest = cases
    rows = (case if isinstance(case, tuple) else (case,) for case in rest)
    return [first, *(pytest.param(*row, marks=pytest.mark.slow) for row in rows)]
