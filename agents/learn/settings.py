"""Run folders: what a training run is, and where its parts are.

A run folder holds

    config.toml           all settings, versions and layouts
    metrics.jsonl, tb/    what was logged, for programs and for TensorBoard
    checkpoints/<steps>/  learner.safetensors, optimizer.safetensors, games.npz, state.json
    pool/                 <steps>: frozen copies, as policy files; pool.json: results against them
    last, best            policy files: the newest, and the one that was rated highest

Nothing in it can run code when it is loaded. A resumed run goes on exactly as if it had not
stopped.
"""

from __future__ import annotations

import json
import platform
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import Any

from tokaido_env.agents.arena.ladder import LADDER, Ladder, LadderError
from tokaido_env.agents.arena.ratings import Rating
from tokaido_env.agents.learn.declared import (
    COUNT,
    RATE,
    SHARE,
    TEXT,
    Declared,
    RunError,
    differences,
    setting,
)
from tokaido_env.agents.players.inputs import INPUTS_HASH
from tokaido_env.agents.players.policy import Sizes
from tokaido_env.agents.registry import Parameter, make
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.checks import check_seed
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.files import write_text

TABLES = ("settings", "layout", "versions")  # of config.toml


@dataclass(frozen=True)
class Settings(Declared):
    """What a run is. Every field, with its meaning, is in `config.toml` and in `--help`.

    A step is a decision of the learner. What happens every so many steps happens between two
    updates of the network, at the first one after a multiple of the number.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    seed: int = setting(0, Parameter(int), "of games, network and opponents, 0 to 2**53 - 1")
    board: str = setting("shikoku", TEXT, "a built-in board or a file")
    steps: int = setting(1_966_080, COUNT, "decisions of the learner in the whole run")
    start_from: str = setting("", TEXT, "policy file to begin with; empty: random weights")

    games: int = setting(512, COUNT, "games side by side")
    rollout: int = setting(32, COUNT, "decisions in each game between two updates")
    minibatch: int = setting(2048, COUNT, "decisions; a divisor of games * rollout")
    epochs: int = setting(3, COUNT, "passes over the decisions of an update")
    learning_rate: float = setting(1e-3, RATE, "of Adam, at the beginning")
    final_learning_rate: float = setting(
        1.0, SHARE, "share of learning_rate left after `steps`, linear between; 1 is constant"
    )
    gae_lambda: float = setting(0.95, SHARE, "of generalised advantage estimation; gamma is 1")
    entropy: float = setting(0.005, Parameter(float, 0, 10), "weight of the entropy bonus")
    clip: float = setting(0.2, Parameter(float, 0.001, 1), "range of the probability ratio")
    width: int = setting(256, COUNT, "units of the network's first layer, a multiple of 8")

    share_latest: float = setting(0.5, SHARE, "share of games against the newest self")
    share_past: float = setting(0.25, SHARE, "share of games against snapshots, by hardness")
    share_agents: float = setting(0.25, SHARE, "share of games against `agents`; sum is 1")
    agents: str = setting("greedy heuristic", TEXT, "specs, with spaces between; alike often")
    slots: int = setting(8, COUNT, "opponents at once; a divisor of games")
    reseat_every: int = setting(131_072, COUNT, "steps between seatings of the slots")
    freeze_every: int = setting(163_840, COUNT, "steps between snapshots")
    pool_size: int = setting(24, Parameter(int, 2), "snapshots kept to play against")

    checkpoint_every: int = setting(491_520, COUNT, "steps between checkpoints")
    rate_every: int = setting(
        491_520, Parameter(int, 0), "steps between ratings on the ladder; 0: none, best is last"
    )
    rating_games: int = setting(
        400, Parameter(int, 2), "games against each of three opponents in a rating, even"
    )
    ladder: str = setting("", TEXT, "ladder file for ratings; empty: agents/arena/ladder.json")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(check_seed(self.seed) + self.games - 1)  # of the last game
        if self.rating_games % 2:
            raise RunError(f"rating_games: expected an even number, got {self.rating_games}")
        _check_divisor("minibatch", self.minibatch, "games * rollout", self.games * self.rollout)
        _check_divisor("slots", self.slots, "games", self.games)
        check_width(self.width)
        self._check_opponents()

    @property
    def sizes(self) -> Sizes:
        """How wide the layers of the network are."""
        return Sizes.of_width(self.width)

    def _check_opponents(self) -> None:
        shares = (self.share_latest, self.share_past, self.share_agents)
        if abs(sum(shares) - 1) > 1e-6:
            parts = " + ".join(f"{share:g}" for share in shares)
            raise RunError(
                "share_latest + share_past + share_agents: "
                f"expected a sum of 1, got {parts} = {sum(shares):g}"
            )
        specs = self.agents.split()
        if self.share_agents and not specs:
            raise RunError("agents: expected one or more specs, or share_agents = 0")
        if len(set(specs)) < len(specs):
            raise RunError(f"agents: expected each once, got {self.agents!r}")


MEANINGS = Settings.meanings()
DEFAULTS = Settings.defaults()

# By duration on two cores: five minutes, an hour, a working day.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        **{"steps": 1_966_080, "width": 256, "freeze_every": 163_840},
        **{"checkpoint_every": 491_520, "rate_every": 491_520},
    },
    "standard": {
        **{"steps": 30_000_000, "width": 256, "freeze_every": 819_200},
        **{"checkpoint_every": 1_966_080, "rate_every": 1_966_080},
    },
    "long": {
        **{"steps": 140_000_000, "width": 512, "freeze_every": 3_276_800},
        **{"checkpoint_every": 3_276_800, "rate_every": 6_553_600},
    },
}


@dataclass(frozen=True)
class Progress:
    """What a run tells after each update.

    Attributes:
        steps: done so far.
        total: of the whole run.
        win_rates: `Pool.win_rates`.
        rating: the newest, None before the first.
        is_new: whether the rating was found since the last report.
        is_best: whether a new rating is higher than those before it.
    """

    steps: int
    total: int
    win_rates: Mapping[str, float]
    rating: Rating | None
    is_new: bool
    is_best: bool


def read_setting(name: str, text: str) -> Any:
    """Return what a text, as on the command line, stands for.

    Raises:
        RunError: if it stands for nothing that is allowed.
    """
    return Settings.read(name, text)


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the table [settings] of a TOML file, as `config.toml` has it; any may be missing.

    Raises:
        RunError: naming what is unknown, and the nearest that is known, or of the wrong type.
    """
    config = _read_config(Path(path))
    _refuse_unknown(path, "table", config, TABLES)
    if not isinstance(config.get("settings"), dict):
        raise RunError(f"{path}: expected a table [settings]")
    settings = config["settings"]
    _refuse_unknown(path, "setting", settings, DEFAULTS)
    try:
        return {name: Settings.checked(name, value) for name, value in settings.items()}
    except RunError as error:
        raise RunError(f"{path}: {error}") from None


def start_run(folder: str | Path, settings: Settings) -> None:
    """Make a run folder that `ppo.train` can begin.

    Raises:
        RunError: if it exists already; nothing in it is touched.
        BoardError, AgentError, LadderError: if there is no such board, opponent or ladder.
    """
    folder = Path(folder)
    if folder.is_file() or (folder.exists() and any(folder.iterdir())):
        raise RunError(f"{folder}: is not empty; resume it, or choose another folder")
    Board.load(settings.board)
    for spec in settings.agents.split():
        make(spec)
    load_ladder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "config.toml", _config(settings))


def resume_run(folder: str | Path, asked: Mapping[str, Any]) -> None:
    """Compare a run with the settings that are asked of it; `steps` may grow.

    The learning rate falls over `steps`: in a run that grows it goes on with what a run of that
    size has at this point. If it is constant, the run goes on as if it had been longer from the
    start, but for the rating at its first end.

    Raises:
        RunError: naming every setting that differs, with both values.
    """
    settings = load_settings(folder)
    own = asdict(settings)
    if asked.get("steps", 0) > settings.steps:
        settings = replace(settings, steps=asked["steps"])
        asked = {name: value for name, value in asked.items() if name != "steps"}
    if differing := differences(own, asked):
        raise RunError(
            f"{folder}: cannot go on with other settings (only steps may grow): {differing}"
        )
    if settings.steps != own["steps"]:
        write_text(Path(folder) / "config.toml", _config(settings))


def load_settings(folder: str | Path) -> Settings:
    """Read the settings of a run.

    Raises:
        RunError: if there is no run, or it was made for other rules, actions or features.
    """
    path = Path(folder) / "config.toml"
    if not path.is_file():
        raise RunError(f"{folder}: no run folder: expected a config.toml in it")
    config = _read_config(path)
    for key, known in _layout().items():
        found = config.get("layout", {}).get(key)
        if found != known:
            raise RunError(
                f"{path}: layout.{key}: this version has {known!r}, the run {found!r}: "
                "train anew, or use the version that made it"
            )
    settings = read_settings(path)
    missing = [name for name in DEFAULTS if name not in settings]
    if missing:
        raise RunError(f"{path}: settings missing: {', '.join(missing)}")
    return Settings(**settings)


def load_ladder(settings: Settings) -> Ladder | None:
    """Read the ladder that a run is rated on, None if it is not rated.

    Raises:
        LadderError: saying what helps.
    """
    if not settings.rate_every:
        return None
    path = Path(settings.ladder) if settings.ladder else LADDER
    try:
        return Ladder.load(path, settings.board)
    except LadderError as error:
        raise LadderError(
            f"{error}; --ladder FILE names another, --rate-every 0 trains without ratings"
        ) from None


def check_width(width: int) -> None:
    """Raise `RunError` unless a network can have a first layer of so many units."""
    if width % 8:
        raise RunError(f"width: expected a multiple of 8, got {width}")


def _check_divisor(name: str, value: int, of: str, whole: int) -> None:
    if whole % value:
        raise RunError(f"{name}: expected a divisor of {of} = {whole}, got {value}")


def _refuse_unknown(
    path: str | Path, what: str, names: Iterable[str], known: Iterable[str]
) -> None:
    for name in names:
        if name not in known:
            nearest = get_close_matches(name, known, n=1, cutoff=0)
            raise RunError(f"{path}: unknown {what} {name!r}: the nearest is {nearest[0]!r}")


def _read_config(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no TOML, or no UTF-8
        raise RunError(f"{path}: not a TOML file: {error}") from None


def _layout() -> dict[str, Any]:
    """Return what a learner depends on: it cannot go on with another."""
    return {
        "rules": RULES_VERSION,
        "actions": ACTION_TABLE_VERSION,
        "inputs": INPUTS_HASH,
    }


def _config(settings: Settings) -> str:
    packages = ("tokaido-env", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
    versions = {"python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in packages}
    contents = (asdict(settings), _layout(), versions)
    return "\n".join(
        f"[{table}]\n" + "".join(_line(name, value) for name, value in values.items())
        for table, values in zip(TABLES, contents, strict=True)
    )


def _line(name: str, value: Any) -> str:
    # JSON's numbers and strings are TOML's too.
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    return f"{line:<40}  # {MEANINGS[name]}\n" if name in MEANINGS else line + "\n"
