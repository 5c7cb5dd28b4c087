"""Settings of the training methods: ranges, help texts, and how they are declared."""

import re
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from tokaido_env.agents.registry import Parameter
from tokaido_env.learn.settings import METHODS, AlphaZeroSettings, PpoSettings, RunSettings
from tokaido_env.learn.settings_schema import RunError, Settings, explain_memory_errors, setting

PPO = PpoSettings.defaults()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 0}, "steps: expected an integer from 1, got 0"),
        ({"entropy_coef": float("inf")}, "entropy_coef: expected a number from 0 to 10, got inf"),
        ({"steps": 10**400}, "steps: expected at most 9007199254740991 (2**53 - 1), got 1000"),
        ({"width": 4104}, "width: expected at most 4096, got 4104"),
        ({"games": 10**9}, "games * n_steps: expected at most 16777216, got 32000000000"),
        ({"board": "x" * 4001}, "board: expected at most 4000 characters, got 4001: 'xxx"),
        ({"ladder": "a\udcff"}, "ladder: expected a text in Unicode, got 'a\\udcff'"),
        ({"rating_games": 7}, "rating_games: expected an even number, got 7"),
        (
            {"minibatch_size": 100},
            "minibatch_size: expected a divisor of games * n_steps = 16384, as 64, got 100",
        ),
        ({"opponent_slots": 7}, "opponent_slots: expected a divisor of games = 512, as 4, got 7"),
        ({"share_past": 0.5}, "expected a sum of 1, got 0.5 + 0.5 + 0.25 = 1.25"),
        ({"agents": ""}, "agents: expected one or more specs, or share_agents = 0"),
        ({"agents": "greedy greedy"}, "agents: expected each once, got 'greedy greedy'"),
        ({"seed": -1}, "seed: expected an integer from 0"),
        ({"width": 20}, "width: expected a multiple of 8, got 20"),
        (
            {"uniform_sampling": 0.9},
            "visit_sampling + uniform_sampling: expected at most 1, got 0.26 + 0.9",
        ),
        ({"search_share": 0.0}, "search_share: expected above 0, got 0: searches make the samples"),
    ],
)
def test_settings__refuses_wrong_values(values: dict[str, Any], message: str) -> None:
    kind = PpoSettings if values.keys() <= PPO.keys() else AlphaZeroSettings
    with pytest.raises(ValueError, match=re.escape(message)):
        kind(**values)


def test_settings__accepts_rounded_shares() -> None:
    third = 0.3333333
    PpoSettings(share_latest=third, share_past=third, share_agents=third)


@pytest.mark.parametrize("kind", METHODS.values())
def test_settings__refuses_minibatches_of_one(kind: type[RunSettings]) -> None:
    values: dict[str, Any] = {"minibatch_size": 1}
    with pytest.raises(RunError, match="minibatch_size: expected an integer from 2, got 1"):
        kind(**values)


@pytest.mark.parametrize("kind", METHODS.values())
def test_settings__all_have_help_texts(kind: type[RunSettings]) -> None:
    assert set(kind.help_texts()) == set(kind.defaults()) == set(asdict(kind()))
    assert all(kind.help_texts().values())
    assert kind.LENGTH in kind.defaults()


# Declared settings


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
