"""Settings of the training methods: ranges, help texts, and how they are declared."""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from tokaido_env.agents.registry import Parameter
from tokaido_env.learn.settings import AlphaZeroSettings, TdSettings
from tokaido_env.learn.settings_schema import RunError, Settings, setting


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"updates": 0}, "updates"),
        ({"value_lambda": float("inf")}, "value_lambda"),
        ({"width": 4104}, "width"),
        ({"width": 20}, "width"),
        ({"games": 10**9}, "games"),
        ({"rating_games": 7}, "rating_games"),
        ({"device": "tpu"}, "device"),
        ({"seed": -1}, "seed"),
        ({"uniform_sampling": 0.9}, "visit_sampling + uniform_sampling"),
        ({"search_share": 0.0}, "search_share"),
    ],
)
def test_settings__refuses_wrong_values(values: dict[str, Any], name: str) -> None:
    kind = TdSettings if values.keys() <= TdSettings.defaults().keys() else AlphaZeroSettings
    with pytest.raises(ValueError, match=f"^{re.escape(name)}: expected "):
        kind(**values)


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
