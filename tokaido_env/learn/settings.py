"""Run folders: what a training run is, and where its parts are.

A run folder holds

    config.toml           all settings, versions and layouts
    metrics.jsonl, tb/    what was logged, for programs and for TensorBoard
    checkpoints/<steps>/  learner.safetensors, optimizer.safetensors, games.npz, state.json, and
                          SHA256SUMS of these, which runs from before it may lack
    pool/                 <steps>: frozen copies, as policy files; pool.json: results against them
    last, best            policy files: the newest, and the one that was rated highest

Nothing in it can run code when it is loaded. A resumed run goes on exactly as if it had not
stopped.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.inputs import INPUTS_HASH
from tokaido_env.agents.policy import Sizes
from tokaido_env.agents.registry import Parameter, check_from_file, make
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.arena.ladder_file import LadderError
from tokaido_env.arena.ratings import Rating
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.checks import MOST_SHOWN, check_seed, shown
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.files import LOCK, UNFINISHED, locked, read_toml, sync_folder, write_text
from tokaido_env.learn.boards import BOARD_MEANING, SEEING, SEEING_MEANING, boards_seen
from tokaido_env.learn.declared import (
    COUNT,
    RATE,
    SHARE,
    TEXT,
    Declared,
    RunError,
    differences,
    setting,
)
from tokaido_env.learn.refit import GAMES, check_games

CONFIG = "config.toml"
MOST_DECISIONS = 2**24  # at once, of about 5 KB
MOST_WIDTH = 2**12  # a policy file so wide takes 27 MB
TABLES = ("settings", "layout", "versions")  # of config.toml

_LITTER = (LOCK, CONFIG + UNFINISHED)  # what a command that was killed may leave in a new folder
_FILES = r"config\.toml|metrics\.jsonl|best|last|pool/\d+|pool/pool\.json"  # that a run writes
_CHECKPOINTS = r"checkpoints/\d+"
# Settings that runs from before them do not have, and what they stand for.
LATER: dict[str, Any] = {"see_board": "auto", "value_from": "all", "refit_games": 0}

SELF_PLAY = "self-play"

_SPEC = re.compile(r"""'([^']*)'(?!\S)|"([^"]*)"(?!\S)|(\S+)""")


@dataclass(frozen=True)
class Settings(Declared):
    """What a run is. Every field, with its meaning, is in `config.toml` and in `--help`.

    A step is a decision of the learner. What happens every so many steps happens between two
    updates of the network, at the first one after a multiple of the number.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    seed: int = setting(0, Parameter(int), "of games, network and opponents, 0 to 2**53 - 1")
    board: str = setting("shikoku", TEXT, BOARD_MEANING)
    see_board: str = setting("auto", SEEING, SEEING_MEANING)
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
    threads: int = setting(2, Parameter(int, 1, 256), "of PyTorch; results depend on it")

    share_latest: float = setting(0.5, SHARE, "share of games against the newest self")
    share_past: float = setting(0.25, SHARE, "share of games against snapshots, by hardness")
    share_agents: float = setting(0.25, SHARE, "share of games against `agents`; sum is 1")
    agents: str = setting("greedy heuristic", TEXT, "specs, with spaces between; alike often")
    value_from: str = setting(
        SELF_PLAY,
        Parameter(str, words=(SELF_PLAY, "all")),
        "games that the policy's value is learnt from: self-play, those against the newest self, "
        "or all",
    )
    refit_games: int = setting(
        GAMES,
        Parameter(int, 0),
        "games of the best and the last policy against itself, to whose results their values are "
        "fitted at the end of a run; 0: none; only if the value is that of self-play",
    )
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
    ladder: str = setting("", TEXT, "ladder file for ratings; empty: this project's")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(check_seed(self.seed) + self.games - 1)  # of the last game
        if self.rating_games % 2:
            raise RunError(f"rating_games: expected an even number, got {self.rating_games}")
        check_most("games * rollout", self.games * self.rollout, MOST_DECISIONS)
        if self.refit_games:
            check_games("refit_games", self.refit_games)
        _check_divisor("minibatch", self.minibatch, "games * rollout", self.games * self.rollout)
        _check_divisor("slots", self.slots, "games", self.games)
        check_width(self.width)
        self._check_opponents()

    @property
    def sizes(self) -> Sizes:
        """How wide the layers of the network are."""
        return Sizes.of_width(self.width)

    @property
    def pool(self) -> BoardPool:
        """The boards that are played on."""
        return BoardPool.load(self.board)

    @property
    def boards_seen(self) -> npt.NDArray[np.void] | None:
        """The boards that the network reads, `BOARD` (b,), None if it reads none."""
        return boards_seen(self.pool, self.see_board)

    def _check_opponents(self) -> None:
        shares = (self.share_latest, self.share_past, self.share_agents)
        if abs(sum(shares) - 1) > 1e-6:
            parts = " + ".join(f"{share:g}" for share in shares)
            raise RunError(
                "share_latest + share_past + share_agents: "
                f"expected a sum of 1, got {parts} = {sum(shares):g}"
            )
        if self.value_from == SELF_PLAY and not self.share_latest:
            raise RunError(
                "share_latest: expected above 0, as the value is learnt from self-play, got 0: or "
                "value_from = all"
            )
        specs = split_specs(self.agents)
        if self.share_agents and not specs:
            raise RunError("agents: expected one or more specs, or share_agents = 0")
        if len(set(specs)) < len(specs):
            raise RunError(f"agents: expected each once, got {shown(self.agents)}")


MEANINGS = Settings.meanings()
DEFAULTS = Settings.defaults()

# By duration on two cores: five minutes, an hour, a working day.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        **{"steps": 2_949_120, "width": 256, "freeze_every": 163_840},
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


def split_specs(text: str) -> list[str]:
    """Return the specs of a text: its words, or what stands in quotes, which may hold spaces."""
    return ["".join(parts) for parts in _SPEC.findall(text)]


def join_specs(specs: Iterable[str]) -> str:
    """Return specs as a text that `split_specs` takes apart.

    Raises:
        RunError: if there is one that no quotes can hold.
    """
    return " ".join(_in_quotes(spec) for spec in specs)


def _in_quotes(spec: str) -> str:
    for text in (spec, f"'{spec}'", f'"{spec}"'):
        if split_specs(text) == [spec]:
            return text
    raise RunError(f"agent {shown(spec)}: expected one without spaces, or without quotes")


def read_settings(path: str | Path, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Read the table [settings] of a TOML file, as `config.toml` has it; any may be missing.

    Args:
        path: the file.
        given: settings that go before it: what it has of them does not count.

    Raises:
        RunError: naming what is unknown, and the nearest that is known, or of the wrong type.
        AgentError: if it names an agent that a file may not name: `registry.check_from_file`.
            A policy may lie beside the file.
    """
    path = Path(path)
    settings = {k: v for k, v in _read_table(path).items() if k not in (given or {})}
    if "agents" in settings:
        specs = split_specs(settings["agents"])
        settings["agents"] = join_specs(
            check_from_file(spec, f"{path}: agents", path.parent) for spec in specs
        )
    return settings


def start_run(folder: str | Path, settings: Settings) -> None:
    """Make a run folder that `ppo.train` can begin.

    Raises:
        RunError: if it exists already; nothing in it is touched.
        InUseError: if another command works in it.
        BoardError, AgentError, LadderError: if there is no such board, opponent or ladder.
    """
    folder = Path(folder)
    _check_empty(folder)
    config = _config(settings)  # the boards are made here
    for spec in split_specs(settings.agents):
        make(spec)
    load_ladder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    sync_folder(folder.resolve().parent)
    with locked(folder):
        _check_empty(folder)
        write_text(folder / CONFIG, config)


def resume_run(folder: str | Path, asked: Mapping[str, Any]) -> None:
    """Compare a run with the settings that are asked of it; `steps` may grow.

    The learning rate falls over `steps`: in a run that grows it goes on with what a run of that
    size has at this point. If it is constant, the run goes on as if it had been longer from the
    start, but for the rating at its first end.

    Raises:
        RunError: naming every setting that differs, with both values.
        InUseError: if another command works in the folder.
    """
    with kept_run(folder) as settings:
        own = asdict(settings)
        if asked.get("steps", 0) > settings.steps:
            settings = replace(settings, steps=asked["steps"])
            asked = {name: value for name, value in asked.items() if name != "steps"}
        if differing := differences(own, asked):
            raise RunError(
                f"{folder}: cannot go on with other settings (only steps may grow): {differing}"
            )
        if settings.steps != own["steps"]:
            write_text(Path(folder) / CONFIG, _config(settings))


@contextmanager
def kept_run(folder: str | Path) -> Iterator[Settings]:
    """Keep a run for this process, sweep it, and give its settings.

    Raises:
        RunError: as `load_settings`, or if the run's board has changed since it was begun.
        InUseError: if another command works in the folder.
    """
    folder = Path(folder)
    load_settings(folder)  # what is no run is refused before anything is written
    with locked(folder):
        settings = load_settings(folder)
        path = folder / CONFIG
        known = settings.pool.hash
        begun = _table(read_toml(path), "versions").get("board_hash", known)
        if begun != known:
            raise RunError(
                f"{path}: versions.board_hash: begun on a board of hash {shown(begun)}, "
                f"{settings.board} now has {known}: restore the board, or train anew"
            )
        sweep(folder, _FILES, _CHECKPOINTS)
        yield settings


def sweep(folder: Path, files: str, folders: str = "$^") -> None:
    """Delete what a command that was killed has left half-written in a folder that is kept.

    Args:
        folder: of this command; what lies behind links in it is left alone.
        files: a regular expression, of the paths within the folder at which files are written.
        folders: the same of the folders that are written whole.
    """
    rooms = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    for room in (folder, *rooms):
        for path in room.glob("*" + UNFINISHED):
            name = path.relative_to(folder).as_posix().removesuffix(UNFINISHED)
            if path.is_symlink():
                continue
            if path.is_dir() and re.fullmatch(folders, name):
                shutil.rmtree(path)
            elif path.is_file() and re.fullmatch(files, name):
                path.unlink()


def load_settings(folder: str | Path) -> Settings:
    """Read the settings of a run.

    Raises:
        RunError: if there is no run, or it was made for other rules, actions or features.
    """
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise RunError(f"{folder}: no run folder: expected a {CONFIG} in it")
    layout = _table(_read_config(path), "layout")
    for key, known in _layout().items():
        if layout.get(key) != known:
            raise RunError(
                f"{path}: layout.{key}: this version has {known!r}, the run "
                f"{shown(layout.get(key))}: train anew, or use the version that made it"
            )
    settings = LATER | _read_table(path)
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
    path = Path(settings.ladder) if settings.ladder else ladder_for(settings.pool)
    try:
        return Ladder.load(path, settings.board, named=split_specs(settings.agents))
    except LadderError as error:
        raise LadderError(
            f"{error}; --ladder FILE names another, --rate-every 0 trains without ratings"
        ) from None


def check_width(width: int) -> None:
    """Raise `RunError` unless a network can have a first layer of so many units."""
    if width % 8:
        raise RunError(f"width: expected a multiple of 8, got {width}")
    check_most("width", width, MOST_WIDTH)


def check_most(name: str, value: int, most: int) -> None:
    """Raise `RunError` if a setting asks for more memory than any machine has for it."""
    if value > most:
        raise RunError(f"{name}: expected at most {most}, got {value}")


def _check_divisor(name: str, value: int, of: str, whole: int) -> None:
    if whole % value:
        raise RunError(f"{name}: expected a divisor of {of} = {whole}, got {value}")


def _refuse_unknown(
    path: str | Path, what: str, names: Iterable[str], known: Iterable[str]
) -> None:
    for name in names:
        if name not in known:
            nearest = get_close_matches(name[:MOST_SHOWN], known, n=1, cutoff=0)
            raise RunError(f"{path}: unknown {what} {shown(name)}: the nearest is {nearest[0]!r}")


def _read_table(path: Path) -> dict[str, Any]:
    """Return the checked settings of a file, whatever agents they name."""
    config = _read_config(path)
    _refuse_unknown(path, "table", config, TABLES)
    if not isinstance(config.get("settings"), dict):
        raise RunError(f"{path}: expected a table [settings]")
    settings = config["settings"]
    _refuse_unknown(path, "setting", settings, DEFAULTS)
    try:
        return {name: Settings.checked(name, value) for name, value in settings.items()}
    except RunError as error:
        raise RunError(f"{path}: {error}") from None


def _read_config(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except ValueError as error:
        raise RunError(str(error)) from None


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a configuration, an empty one if there is none."""
    table = config.get(name)
    return table if isinstance(table, dict) else {}


def _check_empty(folder: Path) -> None:
    if folder.is_file() or (
        folder.exists() and any(path.name not in _LITTER for path in folder.iterdir())
    ):
        raise RunError(f"{folder}: is not empty; resume it, or choose another folder")


def _layout() -> dict[str, Any]:
    """Return what a learner depends on: it cannot go on with another."""
    return {
        "rules": RULES_VERSION,
        "actions": ACTION_TABLE_VERSION,
        "inputs": INPUTS_HASH,
    }


def _config(settings: Settings) -> str:
    packages = ("tokaido-env", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
    versions = {"python": platform.python_version(), "board_hash": settings.pool.hash}
    versions |= {name: metadata.version(name) for name in packages}
    contents = (asdict(settings), _layout(), versions)
    return "\n".join(
        f"[{table}]\n" + "".join(_line(name, value) for name, value in values.items())
        for table, values in zip(TABLES, contents, strict=True)
    )


def _line(name: str, value: Any) -> str:
    # JSON's numbers and strings are TOML's too, but for one that TOML wants escaped.
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
    return f"{line:<40}  # {MEANINGS[name]}\n" if name in MEANINGS else line + "\n"
