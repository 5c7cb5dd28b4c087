"""Checkpoints: all that a run needs to go on exactly, in files that hold data only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from sb3_contrib import MaskablePPO

from tokaido_env.agents.learn.settings import RunError
from tokaido_env.core.checks import plain
from tokaido_env.files import read_json, write_text

KEPT = 2

# What reading a cut, foreign or incomplete checkpoint can raise.
BROKEN = (
    *(OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError),
    *(AttributeError, IndexError, OverflowError),
    *(BadZipFile, SafetensorError),
)


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints of a run, oldest first."""
    return sorted(path for path in (folder / "checkpoints").glob("*") if path.name.isdigit())


def write_checkpoint(
    folder: Path, model: MaskablePPO, games: Mapping[str, Any], counters: Mapping[str, Any]
) -> None:
    """Write a checkpoint of a run, whole or not at all, and drop all but the newest.

    Args:
        folder: of the run.
        model: the learner.
        games: arrays.
        counters: JSON types.

    Raises:
        RunError: if it cannot be written; those before are as they were.
    """
    final = folder / "checkpoints" / f"{model.num_timesteps:09d}"
    unfinished = final.with_name(final.name + ".tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        _write(unfinished / "learner.safetensors", save(model.policy.state_dict()))
        _write(unfinished / "optimizer.safetensors", save(_optimizer_tensors(model)))
        with (unfinished / "games.npz").open("wb") as file:
            np.savez(file, **games)
        state = dict(counters) | {"updates": model._n_updates, "numpy": _numpy_state()}
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


def read_checkpoint(
    path: Path, model: MaskablePPO
) -> tuple[dict[str, np.typing.NDArray[Any]], dict[str, Any]]:
    """Give the learner what a checkpoint holds of it; return the arrays and the counters.

    Raises:
        One of `BROKEN`.
    """
    counters: dict[str, Any] = read_json(path / "state.json")
    model.policy.load_state_dict(load_file(path / "learner.safetensors"))
    _restore_optimizer(model, load_file(path / "optimizer.safetensors"))
    with (path / "games.npz").open("rb") as file, np.load(file) as arrays:
        games = dict(arrays)
    model.num_timesteps = int(path.name)
    model._n_updates = counters["updates"]
    _set_numpy_state(counters["numpy"])
    return games, counters


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
    told = plain(f"{type(error).__name__}: {error}", 300)
    return RunError(f"{path}: broken checkpoint: {told}: {advice}")


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


def _optimizer_tensors(model: MaskablePPO) -> dict[str, torch.Tensor]:
    """Return Adam's moments by parameter number, and PyTorch's random state."""
    tensors = {"torch_rng": torch.get_rng_state()}
    for number, moments in model.policy.optimizer.state_dict()["state"].items():
        for name, tensor in moments.items():
            tensors[f"{number}.{name}"] = tensor.clone()
    return tensors


def _restore_optimizer(model: MaskablePPO, tensors: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(tensors.pop("torch_rng"))
    state = model.policy.optimizer.state_dict()
    state["state"] = {}
    for key, tensor in tensors.items():
        number, name = key.split(".")
        state["state"].setdefault(int(number), {})[name] = tensor
    model.policy.optimizer.load_state_dict(state)


def _numpy_state() -> list[Any]:
    """Return NumPy's global random state, which SB3 shuffles minibatches with, as JSON types."""
    name, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return [str(name), [int(key) for key in keys], position, has_gauss, gauss]


def _set_numpy_state(state: list[Any]) -> None:
    name, keys, position, has_gauss, gauss = state
    np.random.set_state((name, np.array(keys, np.uint32), position, has_gauss, gauss))  # noqa: NPY002
