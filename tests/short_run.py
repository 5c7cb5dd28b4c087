"""Settings of training runs that take seconds, and helpers for their folders."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.learn.settings import AlphaZeroSettings, RunSettings, TdSettings

TINY: dict[str, Any] = {
    **{"updates": 1, "games": 4, "minibatch_size": 64, "width": 8, "threads": 1},
    "rate_every": 0,
}
"""Settings of a run of `td` that takes less than a second."""

SHORT: dict[str, RunSettings] = {
    "td": TdSettings(
        **{"seed": 3, "updates": 3, "games": 12, "minibatch_size": 256, "width": 8, "threads": 1},
        **{"checkpoint_every": 2, "snapshot_every": 2},
        **{"extra_boards": "shikoku_ring,shikoku_art", "extra_boards_every": 2},
        **{"rate_every": 2, "rating_games": 2},
    ),
    "alphazero": AlphaZeroSettings(
        **{"rounds": 3, "shards": 3, "games": 6, "sims": 3, "width": 16},
        **{"minibatch_size": 256, "promotion_games": 12, "replay_rounds": 2},
        **{"samples_per_position": 0.5},
        **{"extra_boards": "shikoku_ring,shikoku_art", "extra_boards_every": 2},
        **{"rate_every": 2, "rating_games": 2},
    ),
}
"""A run of each method that takes some seconds."""

METHODS = tuple(SHORT)
Finished = Callable[[str], Path]
"""The fixture `finished_run`: the folder of a method's finished run."""


def contents(folder: Path, *, logs: bool = False) -> dict[str, bytes]:
    """Return all files of a run; without logs, those that do not depend on the time."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "curve.svg")  # drawn by the command
    }
    return {name: data for name, data in files.items() if logs or not name.startswith("tb/")}


def metrics(run: Path) -> list[dict[str, Any]]:
    """Return the lines of `metrics.jsonl`."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def options_of(settings: RunSettings) -> list[str]:
    """Return the options of `train` for such settings."""
    items = asdict(settings).items()
    return ["--method", settings.METHOD, *(f"--{k.replace('_', '-')}={v}" for k, v in items)]


def copy_run(folder: Path, tmp_path: Path) -> Path:
    """Copy a run, to change the copy."""
    return Path(shutil.copytree(folder, tmp_path / "run"))


def newest_checkpoint(run: Path) -> Path:
    return max((run / "checkpoints").glob("*.safetensors"))


def train(words: list[str]) -> int:
    """Run `train`; return its exit status."""
    from tokaido_env.__main__ import main

    return main(["train", *words])


def resume(run: Path, *options: str) -> int:
    """Run `train --resume`; return its exit status."""
    return train(["--resume", str(run), *options])


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that `train` has printed to stderr."""
    error = capsys.readouterr().err
    assert error.startswith("train: ")
    assert error.count("\n") == 1
    return error
