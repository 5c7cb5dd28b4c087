"""Declared settings: types, ranges and errors, on command lines and in Python."""

import argparse
from dataclasses import dataclass

import pytest

from tokaido_env.agents.registry import Parameter
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.learn.settings_schema import RunError, Settings, setting


def test_options_give_what_was_written_and_nothing_else() -> None:
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


def test_settings_of_another_kind_are_read_and_refused_alike() -> None:
    @dataclass(frozen=True)
    class Other(Settings):
        units: int = setting(3, Parameter(int, 2, 5), "of something")
        share: float = setting(1.0, Parameter(float, 0, 1), "of something else")

    assert Other(share=0) == Other(units=3, share=0.0)
    assert Other.parse("units", "4") == 4
    assert Other.help_texts() == {"units": "of something", "share": "of something else"}
    parser = argparse.ArgumentParser()
    Other.add_arguments(parser)
    assert Other.from_options(parser.parse_args(["--units", "2"])) == {"units": 2}
    for wrong in (lambda: Other(units=6), lambda: Other.parse("units", "6")):
        with pytest.raises(RunError, match=r"units: expected an integer from 2 to 5, got '?6"):
            wrong()
