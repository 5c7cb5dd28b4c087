"""Each conformance check of the installed libraries, and the table of `make certify-all`."""

import importlib.metadata
import json
import re
from pathlib import Path

import pytest
from certify import certify, merged
from checks import CHECKS
from library_check import TESTED, Check, verdict_of
from processes import ROOT
from rollouts import ROLLOUTS

ALL = (*CHECKS, *ROLLOUTS)
SLOW = ["performance_benchmark", "MaskablePPO learns"]
SLOW += ["AsyncVectorEnv, started by spawn", "DummyVecEnv and SubprocVecEnv"]
WITH_PINS = ["Makefile"]
WITH_PINS += [f"docs/recipes/{name}.py" for name in ("agilerl_dqn", "skrl_ppo", "tianshou_dqn")]

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(
            check,
            id=f"{check.package}, {check.name}",
            marks=[pytest.mark.slow] if check.name in SLOW else [],
        )
        for check in ALL
    ],
)
def test_library__passes(check: Check) -> None:
    verdict = verdict_of(check)
    if verdict.outcome == "not installed":
        pytest.skip(str(verdict))
    assert verdict.outcome == "passed", verdict


def test_checks__have_a_tested_version() -> None:
    assert {check.package for check in ALL} == set(TESTED)


@pytest.mark.parametrize("file", WITH_PINS)
def test_pins__are_the_tested_versions(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    pins = dict(re.findall(r"\b(agilerl|shimmy|skrl|supersuit|tianshou)==([\d.]+)", text))
    assert pins
    assert pins.items() <= TESTED.items()
    assert file != "Makefile" or len(pins) == 5


def failing() -> str:
    print("noise of a test")
    raise AssertionError("obs is wrong\nand more")


GOOD = Check("numpy", "good", lambda: "42 turns/s")


def test_certify__reports_failures_and_runs_all_checks(tmp_path: Path, capsys: Output) -> None:
    file, numpy = tmp_path / "table.json", importlib.metadata.version("numpy")
    bad, absent = Check("numpy", "bad", failing), Check("no_such_package", "absent", failing)
    needs = Check("numpy", "drawn", failing, ("json", "no_such_module"))
    assert certify([GOOD], None) == 0
    capsys.readouterr()
    assert certify([bad, GOOD, absent, needs], file) == 1
    _, *lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["FAILED", "numpy", numpy, "bad"]
    assert lines[0].endswith("AssertionError: obs is wrong")
    assert lines[1].startswith("passed ")
    assert lines[1].endswith("42 turns/s")
    assert lines[2].startswith("not installed ")
    assert lines[3].endswith("needs no_such_module")
    assert lines[4] == "1 passed, 1 failed, 2 not installed"
    assert "noise" not in "".join(lines)
    rows = json.loads(file.read_text())
    expected = {"package": "numpy", "version": numpy, "check": "good"}
    assert rows[1] == expected | {"outcome": "passed", "detail": "42 turns/s"}
    assert [row["outcome"] for row in rows] == ["FAILED", "passed", *["not installed"] * 2]


def test_merged__prefers_failures_and_tested_versions() -> None:
    def row(outcome: str, detail: str = "") -> dict[str, str]:
        return {"package": "a", "check": "b", "outcome": outcome, "detail": detail}

    best_first = [row("FAILED"), row("passed"), row("passed", "(tested with 1)")]
    best_first.append(row("not installed"))
    for number, best in enumerate(best_first):
        assert merged(reversed(best_first[number:])) == [best]


def test_verdict__names_the_tested_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TESTED, "numpy", "0.0.1")
    assert verdict_of(GOOD).detail == "42 turns/s (tested with 0.0.1)"
