"""Run folders: what stands where, and how a run is begun, found again and locked.

A run folder, whatever trains in it, holds

    config.toml           method, all settings, versions and layouts
    metrics.jsonl, tb/    what was logged, for programs and for TensorBoard
    checkpoints/<done>/   all that the run needs to go on: see `checkpoint`
    policies/<done>       snapshots, as policy files
    last, best            policy files: the newest, and the one that was rated highest
    shards/               of `alphazero`: samples of self-play, as `replay_buffer` tells

`done` counts steps, updates or rounds, as the method does. Nothing in the folder can run code when
it is loaded. A resumed run goes on exactly as if it had not stopped.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agents.network_inputs import INPUTS_HASH
from tokaido_env.agents.registry import check_spec_in_file, make
from tokaido_env.arena.ladder import Ladder, LadderError, ladder_for
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.arguments import MAX_VALUE_CHARS, repr_short
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.files import LOCK_SUFFIX, TEMP_SUFFIX, flush_folder, locked, read_toml, write_text
from tokaido_env.learn.settings import METHODS, PpoSettings, RunSettings, join_specs, split_specs
from tokaido_env.learn.settings_schema import RunError

CONFIG, METRICS = "config.toml", "metrics.jsonl"
VERSION = 2  # of run folders

_TABLES = ("run", "settings", "layout", "versions")  # of config.toml
_PACKAGES = ("tokaido-env", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
_LITTER = (
    LOCK_SUFFIX,
    CONFIG + TEMP_SUFFIX,
)  # what a command that was killed may leave in a new folder
_FILES = r"config\.toml|metrics\.jsonl|best|last|policies/\d+|shards/\d{4}-\d{4}\.npz"
_FOLDERS = r"checkpoints/\d+"


class Config(NamedTuple):
    """What a file of settings says.

    Attributes:
        method: of training; None if the file does not tell.
        settings: some or all of them, of the right types.
    """

    method: str | None
    settings: dict[str, Any]


def read_config(path: str | Path, method: str | None = None, given: Iterable[str] = ()) -> Config:
    """Read the method and the settings of a TOML file, as `config.toml` has them.

    Args:
        path: the file; any table but [settings], and any setting, may be missing.
        method: that is asked for; None: the file's, or ppo.
        given: settings that go before it: what it has of them does not count.

    Raises:
        RunError: naming what is unknown, and the nearest that is known, or of the wrong type.
        AgentError: if it names an agent that a file may not name: `registry.check_spec_in_file`.
            A policy may lie beside the file.
    """
    path = Path(path)
    found = _read(path, method)
    settings = {name: value for name, value in found.settings.items() if name not in given}
    if "agents" in settings:
        settings["agents"] = join_specs(
            check_spec_in_file(spec, f"{path}: agents", path.parent)
            for spec in split_specs(settings["agents"])
        )
    return found._replace(settings=settings)


def begin_folder(folder: str | Path, settings: RunSettings) -> None:
    """Make a run folder that can be trained in.

    Raises:
        RunError: if it exists already; nothing in it is touched.
        InUseError: if another command works in it.
        BoardError, AgentError, LadderError: if there is no such board, opponent or ladder.
    """
    folder = Path(folder)
    _check_empty(folder)
    config = _config(settings)  # the boards are made here
    for spec in agents_of(settings):
        make(spec)
    load_ladder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    flush_folder(folder.resolve().parent)
    with locked(folder):
        _check_empty(folder)
        write_text(folder / CONFIG, config)


def extend(folder: str | Path, asked: Mapping[str, Any]) -> RunSettings:
    """Compare a run with the settings that are asked of it; its length may grow.

    A learning rate falls over the length: in a run that grows it goes on with what a run of that
    size has at this point. If it is constant, the run goes on as if it had been longer from the
    start, but for the rating at its first end.

    Returns:
        The settings of the run as it is now.

    Raises:
        RunError: naming every setting that differs, with both values.
        InUseError: if another command works in the folder.
    """
    with kept_folder(folder) as settings:
        own, length = asdict(settings), settings.LENGTH
        asked = dict(asked)
        if asked.get(length, 0) > own[length]:
            settings = replace(settings, **{length: asked.pop(length)})
        if differing := _differences(own, asked):
            raise RunError(
                f"{folder}: cannot go on with other settings (only {length} may grow): {differing}"
            )
        if asdict(settings) != own:
            write_text(Path(folder) / CONFIG, _config(settings))
        return settings


@contextmanager
def kept_folder(folder: str | Path) -> Iterator[RunSettings]:
    """Lock a run for this process, sweep it, and give its settings.

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
        begun = _table(_read_toml(path), "versions").get("board_hash", known)
        if begun != known:
            raise RunError(
                f"{path}: versions.board_hash: begun on a board of hash {repr_short(begun)}, "
                f"{settings.board} now has {known}: restore the board, or train anew"
            )
        _sweep(folder)
        yield settings


def load_settings(folder: str | Path) -> RunSettings:
    """Read the settings of a run.

    Raises:
        RunError: if there is no run, or it was made for other rules, actions or features.
    """
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise RunError(f"{folder}: no run folder: expected a {CONFIG} in it")
    config = _read_toml(path)
    for table, known in (("run", {"version": VERSION}), ("layout", _layout())):
        for key, value in known.items():
            found = _table(config, table).get(key)
            if found != value:
                raise RunError(
                    f"{path}: {table}.{key}: this version has {value!r}, the run "
                    f"{repr_short(found)}: train anew, or use the version that made it"
                )
    method, settings = _read(path)
    kind = METHODS[method or PpoSettings.METHOD]
    missing = [name for name in kind.defaults() if name not in settings]
    if missing:
        raise RunError(f"{path}: settings missing: {', '.join(missing)}")
    return kind(**settings)


def agents_of(settings: RunSettings) -> list[str]:
    """Return the specs of the agents that a run's learner plays against."""
    return split_specs(settings.agents) if isinstance(settings, PpoSettings) else []


def load_ladder(settings: RunSettings) -> Ladder | None:
    """Read the ladder that a run is rated on, None if it is not rated.

    Raises:
        LadderError: saying what helps.
    """
    if not settings.rate_every:
        return None
    path = Path(settings.ladder) if settings.ladder else ladder_for(settings.pool)
    try:
        return Ladder.load(path, settings.board, named=agents_of(settings))
    except LadderError as error:
        raise LadderError(
            f"{error}; --ladder FILE names another, --rate-every 0 trains without ratings"
        ) from None


def _sweep(folder: Path) -> None:
    """Delete what a command that was killed has left half-written.

    What lies behind links is left alone.
    """
    parts = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    for part in (folder, *parts):
        for path in part.glob("*" + TEMP_SUFFIX):
            name = path.relative_to(folder).as_posix().removesuffix(TEMP_SUFFIX)
            if path.is_symlink():
                continue
            if path.is_dir() and re.fullmatch(_FOLDERS, name):
                shutil.rmtree(path)
            elif path.is_file() and re.fullmatch(_FILES, name):
                path.unlink()


def _read(path: Path, method: str | None = None) -> Config:
    """Return the method and the checked settings of a file, whatever agents they name."""
    config = _read_toml(path)
    _refuse_unknown(path, "table", config, _TABLES)
    told = _table(config, "run").get("method")
    if told is not None and (told not in list(METHODS) or method not in (None, told)):
        expected = method or ", ".join(METHODS)
        raise RunError(f"{path}: run.method: expected {expected}, got {repr_short(told)}")
    if not isinstance(config.get("settings"), dict):
        raise RunError(f"{path}: expected a table [settings]")
    kind, settings = METHODS[told or method or PpoSettings.METHOD], config["settings"]
    _refuse_unknown(path, "setting", settings, kind.defaults())
    try:
        return Config(told, {name: kind.checked(name, value) for name, value in settings.items()})
    except RunError as error:
        raise RunError(f"{path}: {error}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except ValueError as error:
        raise RunError(str(error)) from None


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a configuration, an empty one if there is none."""
    table = config.get(name)
    return table if isinstance(table, dict) else {}


def _refuse_unknown(path: Path, what: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            nearest = get_close_matches(name[:MAX_VALUE_CHARS], known, n=1, cutoff=0)
            raise RunError(
                f"{path}: unknown {what} {repr_short(name)}: the nearest is {nearest[0]!r}"
            )


def _differences(own: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return how the settings asked for differ from a run's own, empty if they do not."""
    return "; ".join(
        f"{name}: the run has {repr_short(own.get(name))}, asked for {repr_short(value)}"
        for name, value in asked.items()
        if value != own.get(name)
    )


def _check_empty(folder: Path) -> None:
    if folder.is_file() or (
        folder.exists() and any(path.name not in _LITTER for path in folder.iterdir())
    ):
        raise RunError(f"{folder}: is not empty; resume it, or choose another folder")


def _layout() -> dict[str, Any]:
    """Return what a learner depends on: it cannot go on with another."""
    return {"rules": RULES_VERSION, "actions": ACTION_TABLE_VERSION, "inputs": INPUTS_HASH}


def _config(settings: RunSettings) -> str:
    versions = {"python": platform.python_version(), "board_hash": settings.pool.hash}
    versions |= {name: _version_of(name) for name in _PACKAGES}
    run = {"method": settings.METHOD, "version": VERSION}
    meanings = settings.help_texts()
    tables: tuple[dict[str, Any], ...] = (run, asdict(settings), _layout(), versions)
    return "\n".join(
        f"[{table}]\n" + "".join(_line(name, value, meanings) for name, value in values.items())
        for table, values in zip(_TABLES, tables, strict=True)
    )


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # only `ppo` needs Stable-Baselines3
        return "none"


def _line(name: str, value: Any, meanings: Mapping[str, str]) -> str:
    # JSON's numbers and strings are TOML's too, but for one that TOML wants escaped.
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
    return f"{line:<40}  # {meanings[name]}\n" if name in meanings else line + "\n"
