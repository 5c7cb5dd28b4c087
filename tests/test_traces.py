"""No file leaves a trace by being loaded: every way into the project, each with hostile files."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import traces
from processes import ROOT

pytest.importorskip("sb3_contrib")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What every loading and every control did, in a process that hears it."""
    folder, out = tmp_path_factory.mktemp("traces"), tmp_path_factory.mktemp("out") / "found.json"
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "traces.py"), str(folder), str(out)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    return results


@pytest.mark.parametrize("name", traces.cases())
def test_loading_leaves_no_trace(found: dict[str, dict[str, Any]], name: str) -> None:
    heard, told = found[name]["heard"], found[name]["told"]
    if name.endswith(traces.MAY_READ):
        heard = [each for each in heard if each != "read note.toml"]
    assert heard == [], told
    assert traces.WORD not in told


@pytest.mark.parametrize("name", traces.LOADINGS)
def test_what_is_good_is_loaded(found: dict[str, dict[str, Any]], name: str) -> None:
    """Else nothing would be shown by what is hostile."""
    good = found[f"{name}: good"]
    assert good["status"] == 0, good["told"]


@pytest.mark.parametrize("name", traces.CONTROLS)
def test_what_leaves_a_trace_is_heard(found: dict[str, dict[str, Any]], name: str) -> None:
    sign, _ = traces.CONTROLS[name]
    assert [each for each in found[name]["heard"] if each.startswith(sign)], found[name]
