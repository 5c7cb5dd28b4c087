"""Tokaido Duo as a reinforcement-learning environment.

    game = Game(seed=7)       one game
    batch = Batch(4096)       many games as arrays
    game_seed(7, i)           the seed of game i of seed 7
    env(), raw_env()          PettingZoo environments
    gymnasium.make("tokaido_env:TokaidoDuo-v0")   Gymnasium environment; also `make_vec`
    agents                    opponents for training and evaluation

The import is quick and compiles nothing. Each name loads its module when it is first used. Kernels
are compiled on their first call and cached on disk.
"""

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from tokaido_env import agents
    from tokaido_env.aec import env, raw_env
    from tokaido_env.batch import Batch
    from tokaido_env.boards.board import Board
    from tokaido_env.boards.reader import BoardError
    from tokaido_env.core.actions import LABELS as ACTIONS
    from tokaido_env.core.arguments import IllegalMove, SeedError
    from tokaido_env.core.observation import FEATURES, Feature
    from tokaido_env.core.rng import game_seed
    from tokaido_env.core.state import Phase
    from tokaido_env.game import Game
    from tokaido_env.position import PositionError
    from tokaido_env.record import Record, RecordError

__version__ = "0.1.0"

__all__ = [
    "ACTIONS",
    "FEATURES",
    "Batch",
    "Board",
    "BoardError",
    "Feature",
    "Game",
    "IllegalMove",
    "Phase",
    "PositionError",
    "Record",
    "RecordError",
    "SeedError",
    "agents",
    "env",
    "game_seed",
    "raw_env",
]

_MODULES = {
    "ACTIONS": "core.actions",
    "FEATURES": "core.observation",
    "Batch": "batch",
    "Board": "boards.board",
    "BoardError": "boards.reader",
    "Feature": "core.observation",
    "Game": "game",
    "IllegalMove": "core.arguments",
    "Phase": "core.state",
    "PositionError": "position",
    "Record": "record",
    "RecordError": "record",
    "SeedError": "core.arguments",
    "env": "aec",
    "game_seed": "core.rng",
    "raw_env": "aec",
}


if "TokaidoDuo-v0" not in gymnasium.registry:  # it is, when this module is reloaded
    gymnasium.register(
        "TokaidoDuo-v0",
        entry_point="tokaido_env.gym:TokaidoDuoEnv",
        vector_entry_point="tokaido_env.gym:TokaidoDuoVectorEnv",
    )


def __getattr__(name: str) -> Any:
    if name == "agents":
        return importlib.import_module("tokaido_env.agents")
    if name not in _MODULES:
        raise AttributeError(f"module 'tokaido_env' has no attribute {name!r}")
    attribute = "LABELS" if name == "ACTIONS" else name
    value = getattr(importlib.import_module(f"tokaido_env.{_MODULES[name]}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
