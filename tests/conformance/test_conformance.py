"""Each conformance check of the installed libraries."""

import re

import pytest
from checks import CHECKS
from library_check import TESTED, Check, verdict_of
from processes import ROOT
from rollouts import ROLLOUTS

ALL = (*CHECKS, *ROLLOUTS)
SLOW = ["performance_benchmark", "MaskablePPO learns"]
SLOW += ["AsyncVectorEnv, started by spawn", "DummyVecEnv and SubprocVecEnv"]
WITH_PINS = ["Makefile"]
WITH_PINS += [f"docs/recipes/{name}.py" for name in ("agilerl_dqn", "skrl_ppo", "tianshou_dqn")]


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
