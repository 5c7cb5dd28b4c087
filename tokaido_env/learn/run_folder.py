"""Run folders: layout, creation, settings files, locks and checks before a resume.

A run folder of any method holds

    config.toml             method, all settings, versions and layouts
    metrics.jsonl, tb/      metrics, for programs and for TensorBoard
    checkpoints/<done>.safetensors
                            the complete state of the run: see `checkpoint`
    policies/<done>         snapshots, as policy files
    last, best              policy files: the newest, and the one with the highest rating
    shards/<round>-<index>.safetensors
                            of `alphazero`: samples of self-play: see `replay_buffer`

`done` counts steps, updates or rounds, as the method does. Loading a file of the folder never
executes code from it. A resumed run makes the same bytes as one that never stopped.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agents.policy import Policy
from tokaido_env.agents.registry import check_spec_in_file, make, sha256_of
from tokaido_env.arena.ladder import Ladder, LadderError, ladder_for
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.arguments import repr_short, unknown_name
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.features.network_inputs import INPUTS_HASH
from tokaido_env.files import (
    FOLDER,
    LOCK_SUFFIX,
    NOTHING,
    TEMP_SUFFIX,
    file_kind,
    flush_folder,
    locked,
    read_toml,
    write_text,
)
from tokaido_env.learn.settings import (
    METHODS,
    PpoSettings,
    RunSettings,
    TdSettings,
    join_specs,
    split_specs,
)
from tokaido_env.learn.settings_schema import RunError

CONFIG, METRICS = "config.toml", "metrics.jsonl"
VERSION = 6  # of run folders

_TABLES = ("run", "settings", "layout", "versions", "files")  # of config.toml
_PACKAGES = ("tokaido-env", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
# A killed command may leave these in a new folder.
_UNFINISHED = rf"({TEMP_SUFFIX}|{re.escape(LOCK_SUFFIX)})"
_LEFTOVERS = rf"{re.escape(LOCK_SUFFIX)}|{re.escape(CONFIG)}{_UNFINISHED}"
_FILES = (
    r"config\.toml|metrics\.jsonl|best|last|policies/\d+"
    r"|checkpoints/\d+\.safetensors|shards/\d{4}-\d{4}\.safetensors"
)


class Config(NamedTuple):
    """The contents of a settings file.

    Attributes:
        method: the training method; None if the file does not name one.
        settings: some or all settings, with checked types.
    """

    method: str | None
    settings: dict[str, Any]


def read_config(path: str | Path, method: str | None = None, ignored: Iterable[str] = ()) -> Config:
    """Read the method and the settings of a TOML file in the format of `config.toml`.

    Args:
        path: the file; every table but [settings], and every setting, is optional.
        method: the expected method; None: the file's, or td.
        ignored: settings to leave out, because the command line sets them.

    Raises:
        RunError: if a name is unknown (the message has the nearest known name), or a value has the
            wrong type.
        AgentError: if the file names an agent that files may not name: see
            `registry.check_spec_in_file`. Policy files may be in the file's folder.
    """
    path = Path(path)
    found = _read(path, method)
    settings = {name: value for name, value in found.settings.items() if name not in ignored}
    if "agents" in settings:
        settings["agents"] = join_specs(
            check_spec_in_file(spec, f"{path}: agents", path.parent)
            for spec in split_specs(settings["agents"])
        )
    return found._replace(settings=settings)


def create_folder(folder: str | Path, settings: RunSettings) -> None:
    """Create a run folder with its `config.toml`.

    Raises:
        RunError: if the folder has other files; they stay as they are.
        InUseError: if another command uses the folder.
        BoardError: if a board does not exist.
        AgentError: if an opponent does not exist.
        LadderError: if the ladder does not exist.
    """
    folder = Path(folder)
    _check_empty(folder)
    for spec in opponent_specs(settings):
        make(spec)
    config = _config_text(settings, _hashes(settings, {}))  # raises BoardError
    load_ladder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    flush_folder(folder.resolve().parent)
    with locked(folder):
        _check_empty(folder)
        write_text(folder / CONFIG, config)


def extend(folder: str | Path, requested: Mapping[str, Any]) -> RunSettings:
    """Check that a run has the requested settings; raise its length if a longer run is requested.

    The learning-rate schedule spans the length: an extended run continues with the rate that a run
    of the new length has at this point. With a constant rate the extended run has the same bytes
    as a run of the new length, except for the rating at the first end.

    Returns:
        The settings of the run after the change.

    Raises:
        RunError: naming every setting that differs, with both values.
        InUseError: if another command uses the folder.
    """
    settings = load_settings(folder)
    own, length = asdict(settings), settings.LENGTH
    requested = dict(requested)
    grown = {length: requested.pop(length)} if requested.get(length, 0) > own[length] else {}
    if differences := _differences(own, requested):
        raise RunError(
            f"{folder}: cannot resume with other settings (only {length} may grow): {differences}"
        )
    trusted = split_specs(requested.get("agents", ""))
    with locked_run(folder, trusted, starts="start_from" in requested) as settings:
        if grown:
            settings = replace(settings, **grown)
            path = Path(folder) / CONFIG
            write_text(path, _config_text(settings, _table(_read_toml(path), "files")))
        return settings


@contextmanager
def locked_run(
    folder: str | Path, trusted: Container[str] = (), *, starts: bool = False
) -> Iterator[RunSettings]:
    """Lock a run for this process, delete unfinished files, and yield its settings.

    Args:
        folder: of the run.
        trusted: agent specs that the user has just typed.
        starts: also check the policy to start from, which a run with checkpoints does not read.

    Raises:
        RunError: as `load_settings`, or if a board or an agent has changed since the run began.
        AgentError: if the run names an agent that files may not name.
        InUseError: if another command uses the folder.
    """
    folder = Path(folder)
    load_settings(folder)  # refuses other folders before the lock file is written
    with locked(folder):
        settings = load_settings(folder)
        path = folder / CONFIG
        recorded = _table(_read_toml(path), "files")
        current = _hashes(settings, specs_to_make(folder, settings, trusted))
        if not starts and any((folder / "checkpoints").glob("*.safetensors")):
            current.pop("start_from", None)  # is in the checkpoint
        for text, found in current.items():
            if recorded.get(text) != found:
                raise RunError(
                    f"{path}: files: {repr_short(text)}: expected {found} as now, got "
                    f"{repr_short(recorded.get(text))}: restore the file, or begin a new run"
                )
        _delete_unfinished(folder)
        yield settings


def load_settings(folder: str | Path) -> RunSettings:
    """Read the settings of a run.

    Raises:
        RunError: if the folder has no run, or a run for other rules, actions or inputs.
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
                    f"{path}: {table}.{key}: expected {value!r}, got {repr_short(found)}: begin a "
                    "new run, or use the version of tokaido-env that made this one"
                )
    method, settings = _read(path)
    kind = METHODS[method or TdSettings.METHOD]
    missing = [name for name in kind.defaults() if name not in settings]
    if missing:
        raise RunError(f"{path}: settings missing: {', '.join(missing)}")
    return kind(**settings)


def opponent_specs(settings: RunSettings) -> list[str]:
    """Return the specs of the agents that the learner plays against, without its own snapshots."""
    return split_specs(settings.agents) if isinstance(settings, PpoSettings) else []


def specs_to_make(folder: Path, settings: RunSettings, trusted: Container[str]) -> dict[str, str]:
    """Return the spec to make each opponent from, by its spec in the settings.

    Raises:
        AgentError: as `registry.check_spec_in_file`.
    """
    where = f"{folder / CONFIG}: agents"
    specs = opponent_specs(settings)
    return {spec: check_spec_in_file(spec, where, folder, trusted) for spec in specs}


def load_ladder(settings: RunSettings) -> Ladder | None:
    """Read the ladder that rates a run's policies; return None if the run has no ratings.

    Raises:
        LadderError: if the ladder does not exist or does not fit; the message has the remedy.
    """
    if not settings.rate_every:
        return None
    path = Path(settings.ladder) if settings.ladder else ladder_for(settings.pool)
    try:
        return Ladder.load(path, settings.board, named=opponent_specs(settings))
    except LadderError as error:
        raise LadderError(
            f"{error}; choose another with --ladder FILE, or train without ratings: --rate-every 0"
        ) from None


def check_links(folder: Path) -> None:
    """Refuse a run folder with links: training writes and deletes files in its subfolders.

    Raises:
        RunError: naming the link.
    """
    parts = [folder / name for name in ("checkpoints", "policies", "shards", "tb")]
    for path in [*parts, *(path for part in parts[:3] for path in part.glob("*"))]:
        if path.is_symlink():
            raise RunError(f"{path}: expected a file or folder of the run, got a link")
    for path in parts:
        if file_kind(path) not in (FOLDER, NOTHING):
            raise RunError(f"{path}: expected a folder, got {file_kind(path)}")


def check_not_begun(folder: Path, length: str) -> None:
    """Refuse a run without checkpoints that has made progress: it would begin again from zero.

    A run saves a checkpoint before its first update, so that one without any has lost them.

    Args:
        folder: the run folder.
        length: the name of the run's length, in the summary of a policy's training.

    Raises:
        RunError: naming what the run has.
        PolicyError: if a policy of the run is damaged.
    """
    policies = [path for path in (folder / "last", folder / "best") if path.exists()]
    made = [path.name for path in policies if Policy.load(path).training.get(length)]
    snapshots = (path.name for path in (folder / "policies").glob("*") if path.name.isdecimal())
    made += [f"policies/{name}" for name in sorted(snapshots) if int(name)]
    metrics = folder / METRICS
    if metrics.exists() and metrics.stat().st_size:
        made.append(METRICS)
    if made:
        raise RunError(
            f"{folder / 'checkpoints'}: expected a checkpoint, got none, but the run has "
            f"{made[-1]}: restore the checkpoint, or begin a new run in another folder"
        )


def _delete_unfinished(folder: Path) -> None:
    """Delete unfinished files of a killed command; do not follow links."""
    parts = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    for part in (folder, *parts):
        for path in list(part.glob("*")):
            name = path.relative_to(folder).as_posix()
            is_ours = re.fullmatch(f"({_FILES}){_UNFINISHED}", name)
            if is_ours and path.is_file() and not path.is_symlink():
                path.unlink()


def _read(path: Path, method: str | None = None) -> Config:
    """Return the method and the settings of a file, checked except for the agents."""
    config = _read_toml(path)
    _check_known(path, "table", config, _TABLES)
    found = _table(config, "run").get("method")
    if found is not None and (found not in list(METHODS) or method not in (None, found)):
        expected = method or ", ".join(METHODS)
        raise RunError(f"{path}: run.method: expected {expected}, got {repr_short(found)}")
    if not isinstance(config.get("settings"), dict):
        raise RunError(f"{path}: expected a table [settings]")
    kind, settings = METHODS[found or method or TdSettings.METHOD], config["settings"]
    _check_known(path, "setting", settings, kind.defaults())
    try:
        return Config(found, {name: kind.checked(name, value) for name, value in settings.items()})
    except RunError as error:
        raise RunError(f"{path}: {error}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except ValueError as error:
        raise RunError(str(error)) from None


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a configuration; an empty one if it is missing."""
    table = config.get(name)
    return table if isinstance(table, dict) else {}


def _check_known(path: Path, noun: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise `RunError` with the nearest known name if a name is unknown."""
    for name in names:
        if name not in known:
            raise RunError(f"{path}: {unknown_name(noun, name, known)}")


def _differences(own: Mapping[str, Any], requested: Mapping[str, Any]) -> str:
    """Return a text of the requested settings that differ from the run's; empty if none does."""
    return "; ".join(
        f"{name}: expected {repr_short(own.get(name))}, got {repr_short(value)}"
        for name, value in requested.items()
        if value != own.get(name)
    )


def _check_empty(folder: Path) -> None:
    if folder.is_file() or (
        folder.exists() and not all(re.fullmatch(_LEFTOVERS, one.name) for one in folder.iterdir())
    ):
        raise RunError(
            f"{folder}: expected an empty folder: resume the run, or choose another folder"
        )


def _layout() -> dict[str, Any]:
    """Return the versions that must stay the same during a run."""
    return {"rules": RULES_VERSION, "actions": ACTION_TABLE_VERSION, "inputs": INPUTS_HASH}


def _hashes(settings: RunSettings, made: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of what a run reads, by setting or opponent; `made` of `specs_to_make`."""
    pool, start, more = settings.pool, settings.start_from, settings.extra_pool
    found = {spec: sha256_of(made.get(spec, spec)) for spec in opponent_specs(settings)}
    found["start_from"] = sha256_of(f"policy:{start}") if start else ""
    found |= {"board": pool.hash, "extra_boards": "" if more is None else more.hash}
    return {text: sha256 for text, sha256 in found.items() if sha256}


def _config_text(settings: RunSettings, files: Mapping[str, str]) -> str:
    versions = {"python": platform.python_version()}
    versions |= {name: _version_of(name) for name in _PACKAGES}
    run = {"method": settings.METHOD, "version": VERSION}
    help_texts = settings.help_texts()
    by_text = {json.dumps(text, ensure_ascii=False): one for text, one in files.items()}
    tables: tuple[dict[str, Any], ...] = (run, asdict(settings), _layout(), versions, by_text)
    return "\n".join(
        f"[{table}]\n" + "".join(_line(name, value, help_texts) for name, value in values.items())
        for table, values in zip(_TABLES, tables, strict=True)
    )


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # only `ppo` needs Stable-Baselines3
        return "none"


def _line(name: str, value: Any, help_texts: Mapping[str, str]) -> str:
    # JSON's numbers and strings are valid TOML, except that TOML needs DEL escaped.
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
    return f"{line:<40}  # {help_texts[name]}\n" if name in help_texts else line + "\n"
