"""Tests of `tokaido certify`: each conformance check, and its table."""

import importlib.metadata
import json
import os
import re
import sys
from pathlib import Path

import pytest
from processes import ROOT

from tokaido_env.cli import certify
from tokaido_env.cli.certify import CHECKS, DRAWING, TESTED, Check
from tokaido_env.core.optional_deps import install_command

sys.path.insert(0, str(ROOT / "benchmarks"))

from certify_rollouts import ROLLOUTS

ALL = (*CHECKS, *ROLLOUTS)
SLOW = ["performance_benchmark", "MaskablePPO learns", "playouts", "a rollout of 1,024 games"]
SLOW += ["AsyncVectorEnv, started by spawn", "DummyVecEnv and SubprocVecEnv"]
WITH_PINS = ["Makefile"]
WITH_PINS += [f"docs/recipes/{name}.py" for name in ("agilerl_dqn", "skrl_ppo", "tianshou_dqn")]

Output = pytest.CaptureFixture[str]


def run_checks(capsys: Output, *checks: Check, status: int = 0) -> list[str]:
    """Run checks; return the lines of the table and of the totals."""
    assert certify.main([], checks) == status
    return capsys.readouterr().out.splitlines()[1:]


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
def test_certify__each_check_passes(check: Check, capsys: Output) -> None:
    line, total = run_checks(capsys, check)
    if line.startswith("not installed"):
        pytest.skip(line)
    assert line.split()[:2] == ["passed", check.package]
    assert total == "1 passed, 0 failed, 0 not installed"


def test_checks__have_a_tested_version_and_a_known_extra() -> None:
    assert {check.package for check in ALL} == set(TESTED)
    extras = importlib.metadata.metadata("tokaido_env").get_all("Provides-Extra")
    assert {check.extra for check in ALL} - {""} <= set(extras or ())


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


def test_certify__reports_a_failure_and_runs_the_other_checks(capsys: Output) -> None:
    absent = Check("no_such_package", "absent", failing)
    lines = run_checks(capsys, Check("numpy", "bad", failing), GOOD, absent, status=1)
    numpy = importlib.metadata.version("numpy")
    assert lines[0].split()[:4] == ["FAILED", "numpy", numpy, "bad"]
    assert lines[0].endswith("AssertionError: obs is wrong")
    assert lines[1].startswith("passed ")
    assert lines[1].endswith("42 turns/s")
    assert lines[2].startswith("not installed ")
    assert lines[2].endswith("pip install no-such-package")
    assert lines[3] == "1 passed, 1 failed, 1 not installed"
    assert "noise" not in "".join(lines)


def test_check__names_missing_modules_and_how_to_install_them(capsys: Output) -> None:
    need = Check("numpy", "drawn", failing, "tune", ("json", "no_such_module"))
    assert run_checks(capsys, need)[0].endswith(f"needs no_such_module: {install_command('tune')}")
    pinned = Check("shimmy", "plays", failing, needs=("open_spiel",)).install
    assert pinned == f"pip install shimmy=={TESTED['shimmy']} open-spiel=={TESTED['open_spiel']}"


def test_checks__open_no_visible_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "x11")
    drivers = []
    rendered = [check for check in CHECKS if check.needs == DRAWING]
    assert len(rendered) == 2

    def record_driver(**options: object) -> None:
        drivers.append(os.environ["SDL_VIDEODRIVER"])
        raise AssertionError

    monkeypatch.setattr("tokaido_env.env", record_driver)
    monkeypatch.setattr("gymnasium.make", lambda name, **options: record_driver(**options))
    for check in rendered:
        with pytest.raises(AssertionError):
            check.run()
    assert drivers == ["dummy", "dummy"]
    assert os.environ["SDL_VIDEODRIVER"] == "x11"


def test_certify__reports_an_untested_version(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setitem(TESTED, "numpy", "0.0.1")
    assert run_checks(capsys, GOOD)[0].endswith("42 turns/s (tested with 0.0.1)")


def test_certify__writes_json(tmp_path: Path) -> None:
    checks = GOOD, Check("numpy", "bad", failing)
    assert certify.main(["--json", str(tmp_path / "table.json")], checks) == 1
    good, bad = json.loads((tmp_path / "table.json").read_text())
    numpy = {"package": "numpy", "version": importlib.metadata.version("numpy")}
    assert good == numpy | {"check": "good", "outcome": "passed", "detail": "42 turns/s"}
    assert bad["outcome"] == "FAILED"
