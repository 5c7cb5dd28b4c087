"""Runs of each method that take seconds, and what stands in their folders."""

import json
from pathlib import Path
from typing import Any

from tokaido_env.learn.settings import (
    AlphaZeroSettings,
    PpoSettings,
    RunSettings,
    SelfPlaySettings,
)

VALUES: dict[str, Any] = {
    **{"games": 8, "n_steps": 32, "minibatch_size": 128, "width": 32, "opponent_slots": 4},
    **{"agents": "greedy", "steps": 256, "snapshot_every": 256, "pool_size": 4},
    **{"rate_every": 0, "calibration_games": 0, "threads": 1},
}
"""Of a run of PPO that takes a second."""

SHORT: dict[str, RunSettings] = {
    "ppo": PpoSettings(
        **VALUES
        | {"n_steps": 16, "minibatch_size": 64, "steps": 640, "snapshot_every": 128}
        | {"resample_every": 256, "checkpoint_every": 256, "rate_every": 512, "rating_games": 4}
        | {"final_learning_rate": 0.5, "calibration_games": 16}
    ),
    "selfplay": SelfPlaySettings(
        **{"seed": 3, "updates": 3, "games": 12, "minibatch_size": 256, "width": 8, "threads": 1},
        **{"checkpoint_every": 2, "snapshot_every": 2, "ema_decay": 0.5},
        **{"extra_boards": "shikoku_ring,shikoku_art", "extra_boards_every": 2},
        **{"rate_every": 2, "rating_games": 2},
    ),
    "alphazero": AlphaZeroSettings(
        **{"rounds": 3, "shards": 3, "games": 6, "first_sims": 3, "sims": 3, "width": 16},
        **{"minibatch_size": 256, "promotion_games": 12, "replay_rounds": 2},
        **{"rate_every": 2, "rating_games": 2},
    ),
}
"""Of a run of each method that takes some seconds."""


def contents(folder: Path, *, logs: bool = False) -> dict[str, bytes]:
    """All files; without logs, those that do not depend on the time."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    return {name: data for name, data in files.items() if logs or not name.startswith("tb/")}


def metrics(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def words_of(settings: RunSettings) -> list[str]:
    """The options of `train` that ask for such settings."""
    from dataclasses import asdict

    own = asdict(settings).items()
    method = ["--method", settings.METHOD]
    return method + [f"--{name.replace('_', '-')}={value}" for name, value in own]
