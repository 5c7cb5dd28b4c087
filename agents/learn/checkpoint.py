"""Checkpoints: all that a run needs to go on exactly, in files that hold data only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from tokaido_env.agents.learn.declared import RunError
from tokaido_env.core.checks import plain
from tokaido_env.files import read_json, write_text

KEPT = 2
_TORCH = "torch_rng"  # the name of its random state

# What reading a cut, foreign or incomplete checkpoint can raise.
BROKEN = (
    *(OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError),
    *(AttributeError, IndexError, OverflowError),
    *(BadZipFile, SafetensorError),
)


class Checkpoint(NamedTuple):
    """What a run needs to go on exactly, beside the random states of PyTorch and NumPy.

    Attributes:
        steps: decisions of the learner so far.
        updates: passes over the decisions of an update so far.
        weights: of the learner, by name.
        moments: of Adam, by parameter number and name.
        games: of the learner, as arrays.
        counters: of the run, as JSON types.
    """

    steps: int
    updates: int
    weights: Mapping[str, torch.Tensor]
    moments: Mapping[int, Mapping[str, torch.Tensor]]
    games: Mapping[str, Any]
    counters: Mapping[str, Any]


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints of a run, oldest first."""
    return sorted(path for path in (folder / "checkpoints").glob("*") if path.name.isdigit())


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint of a run, whole or not at all, and drop all but the newest.

    The random states of PyTorch and NumPy, as they are now, are part of it.

    Raises:
        RunError: if it cannot be written; those before are as they were.
    """
    final = folder / "checkpoints" / f"{checkpoint.steps:09d}"
    unfinished = final.with_name(final.name + ".tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        _write(unfinished / "learner.safetensors", save(dict(checkpoint.weights)))
        _write(unfinished / "optimizer.safetensors", save(_optimizer_tensors(checkpoint)))
        with (unfinished / "games.npz").open("wb") as file:
            np.savez(file, **checkpoint.games)
        state = dict(checkpoint.counters)
        state |= {"updates": checkpoint.updates, "numpy": _numpy_state()}
        write_text(unfinished / "state.json", json.dumps(state, indent=1))
        shutil.rmtree(final, ignore_errors=True)
        unfinished.replace(final)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise RunError(
            f"{final}: not saved: {error.strerror or error}: the checkpoints before it are whole: "
            "make room, then go on with --resume"
        ) from None
    for old in checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; the random states of PyTorch and NumPy become those that it holds.

    Raises:
        One of `BROKEN`.
    """
    counters: dict[str, Any] = read_json(path / "state.json")
    weights = load_file(path / "learner.safetensors")
    tensors = load_file(path / "optimizer.safetensors")
    with (path / "games.npz").open("rb") as file, np.load(file) as arrays:
        games = dict(arrays)
    torch.set_rng_state(tensors.pop(_TORCH))
    _set_numpy_state(counters["numpy"])
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        number, name = key.split(".")
        moments.setdefault(int(number), {})[name] = tensor
    return Checkpoint(int(path.name), counters["updates"], weights, moments, games, counters)


def snapshots_needed(folder: Path) -> set[str]:
    """Return the names of the opponents without which no checkpoint can be gone on from.

    Raises:
        RunError: if a checkpoint is broken.
    """
    needed: set[str] = set()
    for path in checkpoints(folder):
        try:
            pool = read_json(path / "state.json")["pool"]
            needed |= {*pool["snapshots"], *pool["seated"]}  # one that was dropped may still sit
        except BROKEN as error:
            raise broken(path, error, "delete it") from None
    return needed


def broken(path: Path, error: Exception, advice: str) -> RunError:
    """Return what is to be said of a checkpoint that cannot be read."""
    what = plain(f"{type(error).__name__}: {error}", 300)
    return RunError(f"{path}: broken checkpoint: {what}: {advice}")


def check_links(folder: Path) -> None:
    """Refuse a run whose parts lie elsewhere: what is too old is deleted from them.

    Raises:
        RunError: naming the link.
    """
    parts = [folder / name for name in ("checkpoints", "pool", "tb")]
    parts += [*(folder / "checkpoints").glob("*"), *(folder / "pool").glob("*")]
    for path in parts:
        if path.is_symlink():
            raise RunError(f"{path}: is a link: expected a part of the run itself")


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _optimizer_tensors(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """Return Adam's moments by parameter number, and PyTorch's random state."""
    tensors = {_TORCH: torch.get_rng_state()}
    for number, moments in checkpoint.moments.items():
        for name, tensor in moments.items():
            tensors[f"{number}.{name}"] = tensor.clone()
    return tensors


def _numpy_state() -> list[Any]:
    """Return NumPy's global random state, which SB3 shuffles minibatches with, as JSON types."""
    name, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return [str(name), [int(key) for key in keys], position, has_gauss, gauss]


def _set_numpy_state(state: list[Any]) -> None:
    name, keys, position, has_gauss, gauss = state
    np.random.set_state((name, np.array(keys, np.uint32), position, has_gauss, gauss))  # noqa: NPY002
