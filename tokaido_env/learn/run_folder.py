"""Run folders: their files, and the settings in `config.toml`.

A run folder of any method holds

    config.toml             method, all settings, versions, and hashes of the boards
    metrics.jsonl, tb/      metrics, for programs and for TensorBoard
    checkpoints/<done>.safetensors
                            the complete state of the run: see `run.Run.save`
    policies/<done>         snapshots, as policy files
    last, best              policy files: the newest, and the newest not shown to be weaker
    shards/<round>-<index>.safetensors
                            of `alphazero`: samples of self-play: see `replay_buffer`

`done` counts updates or rounds, as the method does. Loading a file of the folder never executes
code from it. This module does not import PyTorch, which `tokaido train --help` does not need.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import field

from tokaido_env.arena.ladder import Ladder, LadderError, ladder_for
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.arguments import repr_short, unknown_name
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.decoding import Source, Struct
from tokaido_env.features.network_inputs import INPUTS_HASH
from tokaido_env.files import LOCK_SUFFIX, TEMP_SUFFIX, flush_folder, locked, read_toml, write_text
from tokaido_env.learn.settings import METHODS, RunError, RunSettings, TdSettings

CONFIG, METRICS = "config.toml", "metrics.jsonl"
VERSION = 9  # of run folders

_PACKAGES = ("tokaido-env", "numpy", "numba", "torch")
# A killed command leaves these files.
_UNFINISHED = re.compile(rf".+({re.escape(TEMP_SUFFIX)}|{re.escape(LOCK_SUFFIX)})")


class Config(NamedTuple):
    """The contents of a settings file.

    Attributes:
        method: the training method; None if the file does not name one.
        settings: some or all settings, with checked types.
    """

    method: str | None
    settings: dict[str, Any]


class _Tables(Struct, frozen=True):
    """The tables of a settings file; only [settings] is required."""

    settings: dict[str, Any]
    run: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)
    boards: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)


def read_config(path: str | Path, method: str | None = None) -> Config:
    """Read the method and the settings of a TOML file in the format of `config.toml`.

    Args:
        path: the file; every table but [settings], and every setting, is optional.
        method: the expected method; None: the file's, or td.

    Raises:
        RunError: if a name is unknown (the message has the nearest known name), or a value has the
            wrong type, or if the file is no TOML.
    """
    return _config_of(Path(path), _read_tables(Path(path)), method)


def create_folder(folder: str | Path, settings: RunSettings) -> None:
    """Create a run folder with its `config.toml`.

    Raises:
        RunError: if the folder has other files; they stay as they are.
        InUseError: if another command uses the folder.
        BoardError: if a board does not exist.
        LadderError: if the ladder does not exist.
    """
    folder = Path(folder)
    _check_empty(folder)
    config = _config_text(settings)  # raises BoardError
    load_ladder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    flush_folder(folder.resolve().parent)
    with locked(folder):
        _check_empty(folder)
        write_text(folder / CONFIG, config)


def extended(folder: str | Path, requested: Mapping[str, Any]) -> RunSettings:
    """Return the settings of a run, longer if that is requested; refuse other requested settings.

    Schedules span the length: an extended run continues with the learning rate and temperature
    that a run of the new length has at this point. Where both are constant, the extended run has
    the same bytes as a run of the new length, except for the rating at the first end.

    Raises:
        RunError: naming every setting that differs, with both values.
    """
    settings = load_settings(folder)
    own, length = asdict(settings), settings.LENGTH
    grown = max(requested.get(length, 0), own[length])
    differences = "; ".join(
        f"{name}: expected {repr_short(own[name])}, got {repr_short(value)}"
        for name, value in requested.items()
        if value != (grown if name == length else own[name])
    )
    if differences:
        raise RunError(
            f"{folder}: cannot resume with other settings (only {length} may grow): {differences}"
        )
    return replace(settings, **{length: grown})


def save_settings(folder: Path, settings: RunSettings) -> None:
    """Write the settings of a run to its folder."""
    write_text(folder / CONFIG, _config_text(settings))


def load_settings(folder: str | Path) -> RunSettings:
    """Read the settings of a run.

    Raises:
        RunError: if the folder has no run, or a run for other rules, actions, inputs or boards.
    """
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise RunError(f"{folder}: no run folder: expected a {CONFIG} in it")
    run = Source(f"{path}: run", read_toml(path).get("run"), RunError)
    run.check_versions("begin a new run", version=VERSION)
    tables = _read_tables(path)
    method, values = _config_of(path, tables)
    settings = METHODS[method or TdSettings.METHOD](**values)
    for table, expected in _fixed_tables(settings).items():
        found = getattr(tables, table)
        for key in expected:
            if found.get(key) != expected[key]:
                raise RunError(
                    f"{path}: {table}.{key}: expected {expected[key]!r} as now, got "
                    f"{repr_short(found.get(key))}: restore the boards or the version of "
                    "tokaido-env that made this run, or begin a new run"
                )
    return settings


def load_ladder(settings: RunSettings) -> Ladder | None:
    """Read the ladder that rates a run's policies; return None if the run has no ratings.

    Raises:
        LadderError: if the ladder of the settings does not exist, or is for other boards.
    """
    if not settings.rate_every:
        return None
    if settings.ladder:
        return Ladder.load(settings.ladder, settings.board)
    try:
        return Ladder.load(ladder_for(settings.pool), settings.board)
    except LadderError:  # no shipped ladder is for these boards
        return None


def delete_unfinished(folder: Path) -> None:
    """Delete the unfinished files and the locks of killed commands."""
    for path in list(folder.rglob("*")):
        if _UNFINISHED.fullmatch(path.name):
            path.unlink()


def _check_empty(folder: Path) -> None:
    """Refuse a folder with files; a killed command leaves unfinished ones."""
    is_empty = not folder.exists() or all(
        path.name.startswith((LOCK_SUFFIX, f"{CONFIG}.")) for path in folder.iterdir()
    )
    if not is_empty:
        raise RunError(
            f"{folder}: expected an empty folder: resume the run, or choose another folder"
        )


# The settings file


def _read_tables(path: Path) -> _Tables:
    try:
        data = read_toml(path)
    except ValueError as error:  # it names the file
        raise RunError(str(error)) from None
    return Source(path, data, RunError).decode(_Tables)


def _config_of(path: Path, tables: _Tables, method: str | None = None) -> Config:
    """Return the method and the settings of a file, checked."""
    found = tables.run.get("method")
    if found is not None and (found not in list(METHODS) or method not in (None, found)):
        expected = method or ", ".join(METHODS)
        raise RunError(f"{path}: run.method: expected {expected}, got {repr_short(found)}")
    kind = METHODS[found or method or TdSettings.METHOD]
    for name in tables.settings:
        if name not in kind.defaults():
            raise RunError(f"{path}: {unknown_name('setting', name, kind.defaults())}")
    try:
        return Config(
            found, {name: kind.checked(name, one) for name, one in tables.settings.items()}
        )
    except ValueError as error:
        raise RunError(f"{path}: {error}") from None


def _fixed_tables(settings: RunSettings) -> dict[str, dict[str, Any]]:
    """Return the tables that must stay the same during a run."""
    inputs = {"rules": RULES_VERSION, "actions": ACTION_TABLE_VERSION, "inputs": INPUTS_HASH}
    boards = {"board": settings.pool.hash}
    if settings.extra_pool is not None:
        boards["extra_boards"] = settings.extra_pool.hash
    return {
        "run": {"method": settings.METHOD, "version": VERSION},
        "layout": inputs,
        "boards": boards,
    }


def _config_text(settings: RunSettings) -> str:
    versions = {"python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in _PACKAGES}
    fixed, help_texts = _fixed_tables(settings), settings.help_texts()
    tables = {"run": fixed.pop("run"), "settings": asdict(settings), **fixed, "versions": versions}
    return "\n".join(
        f"[{table}]\n" + "".join(_line(name, value, help_texts) for name, value in values.items())
        for table, values in tables.items()
    )


def _line(name: str, value: Any, help_texts: Mapping[str, str]) -> str:
    # JSON's numbers and strings are valid TOML, except that TOML needs DEL escaped.
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
    return f"{line:<40}  # {help_texts[name]}\n" if name in help_texts else line + "\n"
