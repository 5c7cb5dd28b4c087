"""Run folders: what a training run is, and where its parts are.

A run folder holds

    config.toml           all settings, versions and layouts
    metrics.jsonl, tb/    what was logged, for programs and for TensorBoard
    checkpoints/<steps>/  learner.safetensors, optimizer.safetensors, games.npz, state.json
    pool/                 the frozen copies, as policy files
    last, best            policy files: the newest, and the one that did best against `greedy`

Nothing in it can run code when it is loaded. A resumed run goes on exactly as if it had not
stopped.
"""

from __future__ import annotations

import json
import platform
import tomllib
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any

from tokaido_env.actions import ACTION_TABLE_VERSION
from tokaido_env.board import Board
from tokaido_env.luck import check_seed
from tokaido_env.observation import LAYOUT_HASH
from tokaido_env.record import write_text
from tokaido_env.rules import RULES_VERSION


class RunError(ValueError):
    """A run folder that cannot be used: the message says what was expected."""


@dataclass(frozen=True)
class Settings:
    """What a run is. Every field is in `config.toml`."""

    seed: int = 0
    steps: int = 2_500_000  # decisions of the learner
    board: str = "shikoku"
    games: int = 512  # side by side
    rollout: int = 32  # decisions a game between two updates
    minibatch: int = 4096
    epochs: int = 3
    learning_rate: float = 5e-4
    gae_lambda: float = 0.95
    entropy: float = 0.03
    clip: float = 0.2
    width: int = 256  # of two hidden layers, policy and value apart
    slots: int = 4  # opponents at once: the newest copy, and copies of any age
    freeze_every: int = 163_840  # steps between frozen copies
    checkpoint_every: int = 491_520  # steps
    eval_games: int = 400  # against greedy at each checkpoint

    def __post_init__(self) -> None:
        for field in fields(self):
            self._check(field.name, getattr(self, field.name), getattr(Settings, field.name))
        check_seed(self.seed + self.games - 1)  # of the last game
        if self.eval_games % 2:
            raise RunError(f"eval_games: expected an even number, got {self.eval_games}")
        if self.games * self.rollout % self.minibatch:
            raise RunError(
                f"minibatch: expected a divisor of games × rollout = {self.games * self.rollout}, "
                f"got {self.minibatch}"
            )

    def _check(self, name: str, value: Any, default: Any) -> None:
        kinds = (int, float) if isinstance(default, float) else (type(default),)
        if type(value) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise RunError(f"{name}: expected {wanted}, got {value!r}")
        if name == "seed":
            check_seed(value)
        elif not isinstance(value, str) and not 0 < value < float("inf"):
            raise RunError(f"{name}: expected more than 0, got {value}")


@dataclass(frozen=True)
class Progress:
    """What a run tells while it goes on."""

    steps: int
    total: int
    win_rate: float | None  # of the learner's last finished games against the pool
    greedy: float | None  # score of the newest evaluation against greedy


def start_run(folder: str | Path, settings: Settings) -> None:
    """Make a run folder that `train` can begin.

    Raises:
        RunError: if it exists already; nothing in it is touched.
    """
    folder = Path(folder)
    if folder.is_file() or (folder.exists() and any(folder.iterdir())):
        raise RunError(f"{folder}: is not empty; resume it, or choose another folder")
    Board.load(settings.board)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "config.toml", _config(settings))


def load_settings(folder: str | Path) -> Settings:
    """Read the settings of a run.

    Raises:
        RunError: if there is no run, or it was made for other rules, actions or features.
    """
    path = Path(folder) / "config.toml"
    if not path.is_file():
        raise RunError(f"{folder}: no run folder: expected a config.toml in it")
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{path}: {error}") from None
    for key, known in _layout().items():
        found = config.get("layout", {}).get(key)
        if found != known:
            raise RunError(
                f"{path}: layout.{key}: this version has {known!r}, the run {found!r}: "
                "train anew, or use the version that made it"
            )
    known_names = {field.name for field in fields(Settings)}
    settings = config.get("settings", {})
    if set(settings) != known_names:
        wrong = ", ".join(sorted(set(settings) ^ known_names))
        raise RunError(f"{path}: settings missing or unknown: {wrong}")
    return Settings(**settings)


def _layout() -> dict[str, Any]:
    """Return what a learner depends on: it cannot go on with another."""
    return {
        "rules": RULES_VERSION,
        "actions": ACTION_TABLE_VERSION,
        "features": LAYOUT_HASH,
    }


def _config(settings: Settings) -> str:
    packages = ("tokaido-env", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
    versions = {"python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in packages}
    tables = {"settings": asdict(settings), "layout": _layout(), "versions": versions}
    # JSON's numbers and strings are TOML's too.
    return "\n".join(
        f"[{table}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in values.items())
        for table, values in tables.items()
    )
