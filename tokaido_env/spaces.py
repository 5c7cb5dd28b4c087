"""Gymnasium spaces of observations and actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import BOARD_SCALES
from tokaido_env.core.observation import SCALES
from tokaido_env.features.afterstate_observation import (
    AFTERSTATE_FEATURES,
    AFTERSTATE_INPUTS,
    GEOMETRY,
    bounds_of,
)
from tokaido_env.observers import ObservationFormat, check_observation


def action_space() -> spaces.Discrete:
    """Return the action space, Discrete(49)."""
    return spaces.Discrete(N_ACTIONS)


def observation_space(
    observation: ObservationFormat = "float32", see_board: bool = False
) -> spaces.Space[Any]:
    """Return the observation space.

    Args:
        observation: "float32", "uint8" or "geometry" for a vector, "afterstates" for a dict.
        see_board: append the board features to the vector.

    Raises:
        ValueError: for an unknown format, or `see_board` with one that describes the board.
    """
    check_observation(observation, see_board)
    if observation == "afterstates":
        return _afterstate_space()
    if observation == "geometry":
        return spaces.Box(*bounds_of(GEOMETRY))
    scales = np.concatenate([SCALES, BOARD_SCALES]) if see_board else SCALES
    if observation == "float32":
        return spaces.Box(0.0, 1.0, scales.shape, np.float32)
    highest = scales.clip(0, 255).astype(np.uint8)
    return spaces.Box(np.zeros_like(highest), highest, dtype=np.uint8)


def mask_space() -> spaces.Box:
    """Return the space of an action mask, int8 (49,) of 0 and 1."""
    return spaces.Box(0, 1, (N_ACTIONS,), np.int8)


def _afterstate_space() -> spaces.Dict:
    low, high = bounds_of(AFTERSTATE_INPUTS)
    actions = np.tile(bounds_of(AFTERSTATE_FEATURES)[:, None], (1, N_ACTIONS, 1))
    return spaces.Dict(
        {
            "observation": spaces.Box(low, high),
            "actions": spaces.Box(actions[0], actions[1]),
            "action_mask": mask_space(),
        }
    )
