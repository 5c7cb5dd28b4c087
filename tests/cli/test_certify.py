"""The conformance tests of other libraries, and the table that tells of them."""

import importlib.metadata
import importlib.util
import json
import os
import re
from pathlib import Path

import pytest

from tokaido_env.cli import certify
from tokaido_env.cli.certify import CHECKS, DRAWING, Check, Needs, Verdict
from tokaido_env.core.extras import how_to_install

ROOT = Path(__file__).resolve().parents[2]
WITH_PINS = ["Makefile"]
WITH_PINS += [f"docs/recipes/{name}.py" for name in ("agilerl_dqn", "skrl_ppo", "tianshou_dqn")]


def is_installed(check: Check) -> bool:
    try:
        importlib.metadata.version(check.package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return not check.needs.missing()


SLOW = ("performance_benchmark", "MaskablePPO learns", "playouts")


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(
            check,
            id=f"{check.package}, {check.name}",
            marks=[pytest.mark.slow] if check.name in SLOW else [],
        )
        for check in CHECKS
    ],
)
def test_the_environment_conforms(
    check: Check, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(certify, "CHECKS", (check,))
    assert certify.main([]) == 0
    installed = is_installed(check)
    told = capsys.readouterr().out.splitlines()
    assert told[1].split()[:2] == (["passed", check.package] if installed else ["not", "installed"])
    assert told[-1] == (
        "1 passed, 0 failed, 0 not installed"
        if installed
        else "0 passed, 0 failed, 1 not installed"
    )


def test_every_library_is_asked() -> None:
    packages = {check.package for check in CHECKS}
    asked = {"pettingzoo", "gymnasium", "stable_baselines3", "sb3_contrib", "open_spiel", "ray"}
    asked |= {"torchrl", "tianshou", "agilerl", "skrl", "supersuit", "shimmy", "minari"}
    assert packages == set(certify.TESTED) == asked | {"textarena"}


@pytest.mark.parametrize("file", WITH_PINS)
def test_what_is_installed_for_a_check_is_the_version_it_was_tested_with(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    pins = dict(re.findall(r"\b(agilerl|shimmy|skrl|supersuit|tianshou)==([\d.]+)", text))
    assert pins
    assert pins.items() <= certify.TESTED.items()
    assert file != "Makefile" or len(pins) == 5


def failing() -> str:
    print("noise of a test")
    raise AssertionError("obs is wrong\nand more")


def test_a_failure_is_told_with_its_reason_and_the_others_still_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = (
        Check("numpy", "bad", failing),
        Check("numpy", "good", lambda: "42 turns/s"),
        Check("no_such_package", "absent", failing),
    )
    monkeypatch.setattr(certify, "CHECKS", checks)
    assert certify.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("FAILED ")
    assert lines[1].endswith("AssertionError: obs is wrong")
    assert lines[2].startswith("passed ")
    assert lines[2].endswith("42 turns/s")
    assert lines[3].startswith("not installed ")
    assert lines[4] == "1 passed, 1 failed, 1 not installed"
    assert lines[3].endswith("pip install no-such-package")
    assert "noise" not in "".join(lines)


def test_a_check_that_needs_more_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = ("numpy", "no_such_module")
    by_index, of_extra = Needs(needs), Needs(needs, "tune")
    checks = Check("numpy", "drawn", failing, by_index), Check("numpy", "drawn", failing, of_extra)
    monkeypatch.setattr(certify, "CHECKS", checks)
    found = [(verdict.outcome, verdict.detail) for verdict in certify.certify()]
    by_name = "needs no_such_module: pip install no-such-module"
    by_extra = f"needs no_such_module: {how_to_install('tune')}"
    assert found == [("not installed", by_name), ("not installed", by_extra)]


def test_extras_that_checks_need_are_those_of_the_package() -> None:
    extras = importlib.metadata.metadata("tokaido_env").get_all("Provides-Extra")
    assert {check.needs.extra for check in CHECKS} - {""} <= set(extras or ())


def test_windows_of_checks_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the user has set holds again afterwards."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "x11")
    drivers = []
    rendered = [check for check in CHECKS if check.needs == DRAWING]
    assert len(rendered) == 2

    def look(**options: object) -> None:
        drivers.append(os.environ["SDL_VIDEODRIVER"])
        raise AssertionError

    monkeypatch.setattr("tokaido_env.env", look)
    monkeypatch.setattr("gymnasium.make", lambda name, **options: look(**options))
    for check in rendered:
        with pytest.raises(AssertionError):
            check.run()
    assert drivers == ["dummy", "dummy"]
    assert os.environ["SDL_VIDEODRIVER"] == "x11"


def test_verdicts_name_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "CHECKS", (Check("numpy", "good", lambda: ""),))
    told: list[Verdict] = []
    assert certify.certify(told.append) == told
    assert [verdict.version for verdict in told] == [importlib.metadata.version("numpy")]


def test_another_version_than_the_tested_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "CHECKS", (Check("numpy", "good", lambda: "42 turns/s"),))
    monkeypatch.setitem(certify.TESTED, "numpy", "0.0.1")
    (verdict,) = certify.certify()
    assert verdict.detail == "42 turns/s (tested with 0.0.1)"


def test_the_table_can_be_read_by_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checks = (Check("numpy", "good", lambda: "42 turns/s"), Check("numpy", "bad", failing))
    monkeypatch.setattr(certify, "CHECKS", checks)
    assert certify.main(["--json", str(tmp_path / "table.json")]) == 1
    good, bad = json.loads((tmp_path / "table.json").read_text())
    numpy = {"package": "numpy", "version": importlib.metadata.version("numpy")}
    assert good == numpy | {"check": "good", "outcome": "passed", "detail": "42 turns/s"}
    assert bad["outcome"] == "FAILED"
