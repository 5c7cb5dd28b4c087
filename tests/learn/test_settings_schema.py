"""Settings of any kind: the same words, ranges and refusals wherever a value comes from."""

import argparse
from dataclasses import dataclass

import pytest
from tokaido_env.learn.declared import Declared, RunError, differences, setting

from tokaido_env.agents.registry import Parameter
from tokaido_env.learn.settings import Settings


def test_options_give_what_was_written_and_nothing_else() -> None:
    parser = argparse.ArgumentParser()
    Settings.add_options(parser)
    assert Settings.given(parser.parse_args([])) == {}
    words = ["--steps=12", "--entropy", "0.5", "--start-from="]
    assert Settings.given(parser.parse_args(words)) == {
        "steps": 12,
        "entropy": 0.5,
        "start_from": "",
    }
    with pytest.raises(RunError, match="steps: expected an integer from 1, got '0'"):
        Settings.given(parser.parse_args(["--steps", "0"]))


def test_settings_of_another_kind_are_read_and_refused_alike() -> None:
    @dataclass(frozen=True)
    class Other(Declared):
        units: int = setting(3, Parameter(int, 2, 5), "of something")
        share: float = setting(1.0, Parameter(float, 0, 1), "of something else")

    assert Other(share=0) == Other(units=3, share=0.0)
    assert Other.read("units", "4") == 4
    assert Other.meanings() == {"units": "of something", "share": "of something else"}
    parser = argparse.ArgumentParser()
    Other.add_options(parser)
    assert Other.given(parser.parse_args(["--units", "2"])) == {"units": 2}
    for wrong in (lambda: Other(units=6), lambda: Other.read("units", "6")):
        with pytest.raises(RunError, match=r"units: expected an integer from 2 to 5, got '?6"):
            wrong()


def test_differences_name_what_differs_and_what_is_missing() -> None:
    own = {"seed": 3, "board": "shikoku", "games": 8}
    assert differences(own, {"seed": 3, "games": 8}) == ""
    assert differences(own, {"seed": 4, "games": 8, "sims": 5}) == (
        "seed: the run has 3, asked for 4; sims: the run has None, asked for 5"
    )
