"""Tests that no way to load a file executes code from it or reads other files (`traces.py`)."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import traces
from processes import ROOT

pytest.importorskip("torch")

SLOW = "train --resume, alpha"  # it searches first

Results = Callable[[str], dict[str, Any]]


def marked(names: Iterable[str]) -> list[Any]:
    slow = pytest.mark.slow
    return [pytest.param(name, marks=[slow] if name.startswith(SLOW) else []) for name in names]


@pytest.fixture(scope="module")
def results_of(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return a function that gives the result of a loading or a control by name.

    They run in one process, the slow ones in another.
    """

    @functools.cache
    def results_and_errors(slow: bool) -> tuple[dict[str, dict[str, Any]], str]:
        names = [name for name in traces.LOADINGS if name.startswith(SLOW) == slow]
        folder, out = tmp_path_factory.mktemp("traces"), tmp_path_factory.mktemp("out") / "results"
        done = subprocess.run(
            [sys.executable, str(ROOT / "tests" / "traces.py"), str(folder), str(out), *names],
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}, done.stderr

    def result_of(name: str) -> dict[str, Any]:
        results, errors = results_and_errors(name.startswith(SLOW))
        assert name in results, errors
        return results[name]

    return result_of


@pytest.mark.parametrize("name", marked(traces.cases()))
def test_loading__executes_nothing(results_of: Results, name: str) -> None:
    result = results_of(name)
    allowed = ["read note.toml"] if name.endswith(traces.MAY_READ) else []
    assert [event for event in result["events"] if event not in allowed] == [], result["output"]
    assert traces.PASSWORD not in result["output"]


@pytest.mark.parametrize("name", marked(traces.LOADINGS))
def test_loading__accepts_good_files(results_of: Results, name: str) -> None:
    """Otherwise the tests of hostile files would prove nothing."""
    good = results_of(f"{name}: good")
    assert good["status"] == 0, good["output"]


@pytest.mark.parametrize("name", traces.CONTROLS)
def test_audit_monitor__records_every_kind_of_event(results_of: Results, name: str) -> None:
    sign, _ = traces.CONTROLS[name]
    result = results_of(name)
    assert [event for event in result["events"] if event.startswith(sign)], result
