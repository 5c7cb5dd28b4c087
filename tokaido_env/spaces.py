"""The spaces that all adapters declare."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import N_FEATURES, SCALES


def action_space() -> spaces.Discrete:
    """Return the space of actions."""
    return spaces.Discrete(N_ACTIONS)


def vector_space(observation: str = "float32") -> spaces.Box:
    """Return the space of observations as vectors, "float32" or "uint8"."""
    if observation == "float32":
        return spaces.Box(0.0, 1.0, (N_FEATURES,), np.float32)
    highest = SCALES.clip(0, 255).astype(np.uint8)
    return spaces.Box(np.zeros_like(highest), highest, dtype=np.uint8)
