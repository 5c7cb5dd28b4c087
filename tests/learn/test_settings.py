"""Settings of the training methods: ranges, help texts, and how they are declared."""

import re
from typing import Any

import pytest

from tokaido_env.learn.settings import AlphaZeroSettings, RunError, TdSettings


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


def test_settings__take_an_integer_for_a_float() -> None:
    settings = TdSettings(temperature=0)
    assert type(settings.temperature) is float
    assert settings == TdSettings(temperature=0.0)
    with pytest.raises(RunError, match=r"^games: expected an integer from 1, got "):
        TdSettings(games=3.0)
