"""No file leaves a trace by being loaded: every way into the project, each with hostile files."""

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

pytest.importorskip("sb3_contrib")

SLOW = (
    "exploit --run",
    "train --resume, alpha",
    "replay --gif",
)  # they train, search and draw at first

Found = Callable[[str], dict[str, Any]]


def marked(names: Iterable[str]) -> list[Any]:
    slow = pytest.mark.slow
    return [pytest.param(name, marks=[slow] if name.startswith(SLOW) else []) for name in names]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a loading or a control did, in a process that hears it; slow ones have their own."""

    @functools.cache
    def heard(slow: bool) -> tuple[dict[str, dict[str, Any]], str]:
        names = [name for name in traces.LOADINGS if name.startswith(SLOW) == slow]
        folder, out = tmp_path_factory.mktemp("traces"), tmp_path_factory.mktemp("out") / "found"
        done = subprocess.run(
            [sys.executable, str(ROOT / "tests" / "traces.py"), str(folder), str(out), *names],
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}, done.stderr

    def found_of(name: str) -> dict[str, Any]:
        results, wrong = heard(name.startswith(SLOW))
        assert name in results, wrong
        return results[name]

    return found_of


@pytest.mark.parametrize("name", marked(traces.cases()))
def test_loading_leaves_no_trace(found: Found, name: str) -> None:
    heard, told = found(name)["heard"], found(name)["told"]
    if name.endswith(traces.MAY_READ):
        heard = [each for each in heard if each != "read note.toml"]
    assert heard == [], told
    assert traces.WORD not in told


@pytest.mark.parametrize("name", marked(traces.LOADINGS))
def test_what_is_good_is_loaded(found: Found, name: str) -> None:
    """Else nothing would be shown by what is hostile."""
    good = found(f"{name}: good")
    assert good["status"] == 0, good["told"]


@pytest.mark.parametrize("name", traces.CONTROLS)
def test_what_leaves_a_trace_is_heard(found: Found, name: str) -> None:
    sign, _ = traces.CONTROLS[name]
    assert [each for each in found(name)["heard"] if each.startswith(sign)], found(name)
