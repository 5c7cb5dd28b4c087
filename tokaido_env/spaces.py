"""The spaces that all adapters declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.checks import check_choice, shown
from tokaido_env.core.observation import N_FEATURES, OBSERVATION_DTYPES, SCALES


def action_space() -> spaces.Discrete:
    """Return the space of actions."""
    return spaces.Discrete(N_ACTIONS)


def options_of(options: object) -> Mapping[str, Any]:
    """Return the options of a reset, or raise `ValueError`."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ValueError(
            f"options: expected None or a dict such as {{'state': position}}, got {shown(options)}"
        )
    return options


def vector_space(observation: str = "float32") -> spaces.Box:
    """Return the space of observations as vectors, "float32" or "uint8"."""
    check_choice("observation", observation, OBSERVATION_DTYPES)
    if observation == "float32":
        return spaces.Box(0.0, 1.0, (N_FEATURES,), np.float32)
    highest = SCALES.clip(0, 255).astype(np.uint8)
    return spaces.Box(np.zeros_like(highest), highest, dtype=np.uint8)
