"""Declared settings: types, ranges and errors, on command lines and in Python."""

import argparse
from dataclasses import dataclass

import pytest

from tokaido_env.agents.registry import Parameter
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.learn.settings_schema import RunError, Settings, explain_memory_errors, setting


def test_options__return_only_the_given_settings() -> None:
    parser = argparse.ArgumentParser()
    PpoSettings.add_arguments(parser)
    assert PpoSettings.from_options(parser.parse_args([])) == {}
    words = ["--steps=12", "--entropy-coef", "0.5", "--start-from="]
    assert PpoSettings.from_options(parser.parse_args(words)) == {
        "steps": 12,
        "entropy_coef": 0.5,
        "start_from": "",
    }
    with pytest.raises(RunError, match="steps: expected an integer from 1, got '0'"):
        PpoSettings.from_options(parser.parse_args(["--steps", "0"]))


def test_settings__are_checked_alike_from_text_and_python() -> None:
    @dataclass(frozen=True)
    class Other(Settings):
        units: int = setting(3, Parameter(int, 2, 5), "of something")
        share: float = setting(1.0, Parameter(float, 0, 1), "of something else")

    assert Other(share=0) == Other(units=3, share=0.0)
    assert type(Other(share=0).share) is float
    assert Other.parse("units", "4") == 4
    assert Other.help_texts() == {"units": "of something", "share": "of something else"}
    parser = argparse.ArgumentParser()
    Other.add_arguments(parser)
    assert Other.from_options(parser.parse_args(["--units", "2"])) == {"units": 2}
    for wrong in (lambda: Other(units=6), lambda: Other.parse("units", "6")):
        with pytest.raises(RunError, match=r"units: expected an integer from 2 to 5, got '?6"):
            wrong()


def test_explain_memory_errors__names_the_settings_to_lower() -> None:
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        with (
            pytest.raises(RunError, match="runs/x: out of memory: lower"),
            explain_memory_errors("runs/x"),
        ):
            raise error
    with pytest.raises(RuntimeError, match="another"), explain_memory_errors("runs/x"):
        raise RuntimeError("another")
