"""Each conformance check of the installed libraries."""

import pytest
from checks import CHECKS
from library_check import TESTED, Check, verdict_of
from rollouts import ROLLOUTS

ALL = (*CHECKS, *ROLLOUTS)
SLOW = ["performance_benchmark", "MaskablePPO learns"]
SLOW += ["AsyncVectorEnv, started by spawn", "DummyVecEnv and SubprocVecEnv"]


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
