"""The conformance tests of other libraries, and the table that tells of them."""

import importlib.metadata
import importlib.util
import os

import pytest

from tokaido_env.tools import certify
from tokaido_env.tools.certify import CHECKS, DRAWING, Check, Verdict


def is_installed(check: Check) -> bool:
    try:
        importlib.metadata.version(check.package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return all(importlib.util.find_spec(name) for name in check.needs)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.package}, {check.name}")
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
    asked = {"pettingzoo", "gymnasium", "stable_baselines3", "open_spiel", "torchrl", "ray"}
    assert packages == asked


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
    assert "noise" not in "".join(lines)


def test_a_check_that_needs_more_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = Check("numpy", "drawn", failing, ("numpy", "no_such_module"))
    monkeypatch.setattr(certify, "CHECKS", (needy,))
    (verdict,) = certify.certify()
    assert (verdict.outcome, verdict.detail) == ("not installed", "needs no_such_module")


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
