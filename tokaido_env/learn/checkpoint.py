"""Checkpoints: the complete state of a run, in files that hold data only.

A checkpoint is a folder of four files and their checksums. Its files are on disk before the folder
gets its name, and the folder loses its name before it is deleted: neither a kill nor a power cut
leaves a partial checkpoint.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from tokaido_env.agents.policy import check_tensors
from tokaido_env.core.arguments import escape_text, repr_short
from tokaido_env.files import (
    FOLDER,
    NOTHING,
    TEMP_SUFFIX,
    file_kind,
    flush_folder,
    flush_to_disk,
    read_json,
)
from tokaido_env.learn.network import PolicyNetwork
from tokaido_env.learn.safe_npz import check_file, read_arrays
from tokaido_env.learn.settings_schema import RunError

KEPT = 2  # checkpoints of a run
MAX_BYTES = 256 << 20  # of one file: the widest network's optimizer takes 140 MB
_LEARNER, _OPTIMIZER = "learner.safetensors", "optimizer.safetensors"
_GAMES, _STATE = "games.npz", "state.json"
_SUMS = "SHA256SUMS"  # in the format of `sha256sum --check`

_TWISTER_KEYS = 624  # of the Mersenne Twister
_TORCH_RNG = "torch_rng"  # tensor name of PyTorch's random state

# The errors of reading a truncated, foreign or incomplete checkpoint.
READ_ERRORS = (
    *(OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError),
    *(AttributeError, IndexError, OverflowError),
    *(BadZipFile, SafetensorError),
)


class Checkpoint(NamedTuple):
    """The state of a run, except the random states of PyTorch and NumPy.

    Attributes:
        done: the finished length of the run.
        weights: the learner's weights by tensor name.
        moments: Adam's moments by parameter number and name.
        games: the state of the learner's games, as arrays.
        counters: further state of the run, as JSON types.
    """

    done: int
    weights: Mapping[str, torch.Tensor]
    moments: Mapping[int, Mapping[str, torch.Tensor]]
    games: Mapping[str, Any]
    counters: Mapping[str, Any]


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints of a run, oldest first."""
    return sorted(path for path in (folder / "checkpoints").glob("*") if path.name.isdigit())


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically, and delete all but the newest ones of the run.

    It includes the current random states of PyTorch and NumPy.

    Raises:
        RunError: if the checkpoint cannot be written; earlier ones stay as they are.
    """
    final = folder / "checkpoints" / f"{checkpoint.done:09d}"
    unfinished = final.with_name(final.name + TEMP_SUFFIX)
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        flush_folder(folder)
        _write(unfinished, checkpoint)
        unfinished.replace(final)
        flush_folder(final.parent)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise RunError(
            f"{final}: not saved: {error.strerror or error}: earlier checkpoints are intact: free "
            "disk space, then continue with --resume"
        ) from None
    delete_old(folder)


def delete_old(folder: Path) -> None:
    """Delete all but the newest checkpoints of a run."""
    for old in checkpoints(folder)[:-KEPT]:
        unnamed = old.with_name(old.name + TEMP_SUFFIX)
        shutil.rmtree(unnamed, ignore_errors=True)
        old.replace(unnamed)
        flush_folder(old.parent)
        shutil.rmtree(unnamed)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, and restore its random states of PyTorch and NumPy.

    Raises:
        One of `READ_ERRORS`.
    """
    counters = _read_state(path)
    weights = _read_tensors(path / _LEARNER)
    tensors = _read_tensors(path / _OPTIMIZER)
    games = read_arrays(_checked(path / _GAMES), MAX_BYTES)
    torch.set_rng_state(tensors.pop(_TORCH_RNG))
    _set_numpy_state(counters["numpy"])
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        number, name = key.split(".")
        moments.setdefault(int(number), {})[name] = tensor
    return Checkpoint(int(path.name), weights, moments, games, counters)


def broken_checkpoint(path: Path, error: Exception, remedy: str) -> RunError:
    """Return the error that reports an unreadable checkpoint."""
    text = str(error) if isinstance(error, ValueError | SafetensorError) else repr(error)
    reason = escape_text(f"no key {error}" if isinstance(error, KeyError) else text, 300)
    return RunError(f"{path}: broken checkpoint: {reason}: {remedy}")


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


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    """Write and flush the files of a checkpoint, the checksums last."""
    state = dict(checkpoint.counters)
    state["numpy"] = _numpy_state()
    _write_file(folder / _LEARNER, save(dict(checkpoint.weights)))
    _write_file(folder / _OPTIMIZER, save(_optimizer_tensors(checkpoint)))
    _write_file(folder / _GAMES, _npz(checkpoint.games))
    _write_file(folder / _STATE, json.dumps(state, indent=1).encode())
    sums = "".join(_sum(folder / name) + "\n" for name in (_LEARNER, _OPTIMIZER, _GAMES, _STATE))
    _write_file(folder / _SUMS, sums.encode())
    flush_folder(folder)


def _write_file(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        flush_to_disk(file)


def _checked(path: Path) -> Path:
    """Return the path of a checkpoint's file after verifying its checksum.

    Raises:
        ValueError: naming the file, if it was changed.
    """
    sums = path.with_name(_SUMS)
    check_file(path, MAX_BYTES)
    check_file(sums, MAX_BYTES)
    if _sum(path).encode() not in sums.read_bytes().splitlines():
        raise ValueError(f"{path.name}: changed: its SHA-256 is not the one in {_SUMS}")
    return path


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(_checked(path))
    except SafetensorError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _read_state(path: Path) -> dict[str, Any]:
    counters = read_json(_checked(path / _STATE))
    if not isinstance(counters, dict) or not {"run", "numpy"} <= set(counters):
        raise ValueError(f"{_STATE}: expected an object with run, numpy and others")
    return counters


def restore_learner(
    network: PolicyNetwork, optimizer: torch.optim.Optimizer, checkpoint: Checkpoint
) -> None:
    """Restore a network and its optimizer from a checkpoint.

    Raises:
        One of `READ_ERRORS`: naming the tensor, if it does not fit or is not finite.
    """
    load_checked(network, checkpoint.weights, _LEARNER)
    _check_moments(optimizer.param_groups[0]["params"], checkpoint.moments)
    optimizer.load_state_dict(optimizer.state_dict() | {"state": checkpoint.moments})


def load_checked(
    network: PolicyNetwork, weights: Mapping[str, torch.Tensor], where: str = _LEARNER
) -> None:
    """Load weights from an untrusted source into a network.

    Raises:
        One of `READ_ERRORS`: naming the tensor, if it does not fit or is not finite.
    """
    network.load_state_dict(dict(weights))
    for name, tensors in network.policies().items():
        check_tensors(where + name, tensors, network.board is not None)


def moments_of(optimizer: torch.optim.Optimizer) -> dict[int, dict[str, torch.Tensor]]:
    """Return Adam's moments in the format of `Checkpoint.moments`."""
    return {number: dict(own) for number, own in optimizer.state_dict()["state"].items()}


def _check_moments(
    parameters: Sequence[torch.Tensor], moments: Mapping[int, Mapping[str, torch.Tensor]]
) -> None:
    """Raise `ValueError`, naming the tensor, unless the moments fit Adam on these parameters."""
    for number, own in moments.items():
        if number >= len(parameters) or set(own) != {"step", "exp_avg", "exp_avg_sq"}:
            raise ValueError(f"{_OPTIMIZER}: {number}: expected Adam's moments of one parameter")
        for name, tensor in own.items():
            shape = () if name == "step" else tuple(parameters[number].shape)
            fits = tuple(tensor.shape) == shape and tensor.dtype == torch.float32
            if not fits or not bool(torch.isfinite(tensor).all()):
                raise ValueError(
                    f"{_OPTIMIZER}: {number}.{name}: expected finite float32 numbers of shape "
                    f"{shape}, got {tensor.dtype} of shape {tuple(tensor.shape)}"
                )
            if name != "exp_avg" and bool((tensor < 0).any()):
                raise ValueError(f"{_OPTIMIZER}: {number}.{name}: expected numbers from 0")


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}"


def _npz(arrays: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _optimizer_tensors(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """Return Adam's moments by parameter number, and PyTorch's random state."""
    tensors = {_TORCH_RNG: torch.get_rng_state()}
    for number, moments in checkpoint.moments.items():
        for name, tensor in moments.items():
            tensors[f"{number}.{name}"] = tensor.clone()
    return tensors


def _numpy_state() -> list[Any]:
    """Return NumPy's global random state, which shuffles SB3's minibatches, as JSON types."""
    name, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return [str(name), [int(key) for key in keys], position, has_gauss, gauss]


def _set_numpy_state(state: list[Any]) -> None:
    name, keys, position, has_gauss, gauss = state
    valid = isinstance(keys, list) and len(keys) == _TWISTER_KEYS and type(position) is int
    if not valid or not 0 <= position <= _TWISTER_KEYS:  # NumPy does not check the position
        raise ValueError(
            f"{_STATE}: numpy: expected {_TWISTER_KEYS} keys and a position in them, got position "
            f"{repr_short(position)}"
        )
    np.random.set_state((name, np.array(keys, np.uint32), position, has_gauss, gauss))  # noqa: NPY002
