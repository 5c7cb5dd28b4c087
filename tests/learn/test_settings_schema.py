"""Declared settings: types, ranges and errors."""

from dataclasses import dataclass

import pytest

from tokaido_env.agents.registry import Parameter
from tokaido_env.learn.settings_schema import RunError, Settings, explain_memory_errors, setting


def test_settings__are_checked_and_converted() -> None:
    @dataclass(frozen=True)
    class Other(Settings):
        units: int = setting(3, Parameter(int, 2, 5), "of something")
        share: float = setting(1.0, Parameter(float, 0, 1), "of something else")

    assert Other(share=0) == Other(units=3, share=0.0)
    assert type(Other(share=0).share) is float
    assert Other.help_texts() == {"units": "of something", "share": "of something else"}
    for wrong in (6, 1, "3", 3.0):
        with pytest.raises(RunError, match="units: expected an integer from 2 to 5, got "):
            Other(units=wrong)  # type: ignore[arg-type]


def test_explain_memory_errors__names_the_settings_to_lower() -> None:
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        with (
            pytest.raises(RunError, match="runs/x: out of memory: lower"),
            explain_memory_errors("runs/x"),
        ):
            raise error
    with pytest.raises(RuntimeError, match="another"), explain_memory_errors("runs/x"):
        raise RuntimeError("another")
