"""Checkpoints: the complete state of a run, in one file of tensors that holds data only.

The tensors have prefixes: "network." the learner's weights, "adam." its moments, "games." the
arrays of its games; `torch_rng` is PyTorch's random state. The header has the other state as JSON,
and a SHA-256 of all contents. Files are written atomically: neither a kill nor a power cut leaves a
partial checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import torch
from msgspec import Meta

from tokaido_env.agents.policy import check_tensors
from tokaido_env.core.arguments import escape_text
from tokaido_env.decoding import Source, Struct
from tokaido_env.files import flush_folder, parse_json
from tokaido_env.learn.network import ValueNetwork
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.tensor_file import Array, as_numbers, read_tensors, write_tensors

T = TypeVar("T")

KEPT = 2  # checkpoints of a run
MAX_BYTES = 512 << 20  # of a file: the widest network and its optimizer take 210 MB
SUFFIX = ".safetensors"

_NETWORK, _ADAM, _GAMES = "network", "adam", "games"  # prefixes of tensors
_TORCH_RNG = "torch_rng"

# The errors of reading a truncated, foreign or incomplete checkpoint.
READ_ERRORS = (
    *(OSError, ValueError, KeyError, TypeError, RuntimeError),
    *(AttributeError, IndexError, OverflowError),
)


class Checkpoint(NamedTuple):
    """The state of a run, except the random states of PyTorch and NumPy.

    Attributes:
        done: the finished length of the run.
        weights: the learner's weights by tensor name.
        moments: Adam's moments by parameter number and name.
        games: the state of the learner's games, as arrays; those that are read from a file are as
            `tensor_file.as_numbers` returns them.
        counters: further state of the run, as JSON types.
    """

    done: int
    weights: Mapping[str, torch.Tensor]
    moments: Mapping[int, Mapping[str, torch.Tensor]]
    games: Mapping[str, Any]
    counters: Mapping[str, Any]


class NumpyState(Struct, frozen=True):
    """NumPy's global random state, a Mersenne Twister, which shuffles SB3's minibatches.

    Attributes:
        keys: its 624 words.
        position: in the words; NumPy does not check it.
        has_gauss: 1 if a normal variate is stored, else 0.
        gauss: that variate.
    """

    keys: Annotated[
        list[Annotated[int, Meta(ge=0, lt=2**32)]], Meta(min_length=624, max_length=624)
    ]
    position: Annotated[int, Meta(ge=0, le=624)]
    has_gauss: int
    gauss: float


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints of a run, oldest first."""
    found = (folder / "checkpoints").glob("*" + SUFFIX)
    return sorted(path for path in found if path.stem.isdecimal())


def done_of(path: Path) -> int:
    """Return the finished length of the run at a checkpoint, by its file name."""
    return int(path.stem)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically, and delete all but the newest ones of the run.

    It includes the current random states of PyTorch and NumPy.

    Raises:
        RunError: if the checkpoint cannot be written; earlier ones stay as they are.
    """
    path = folder / "checkpoints" / f"{checkpoint.done:09d}{SUFFIX}"
    state = json.dumps({**checkpoint.counters, "numpy": _numpy_state().to_dict()})
    arrays = _arrays_of(checkpoint)
    try:
        path.parent.mkdir(exist_ok=True)
        flush_folder(folder)
        write_tensors(path, arrays, {"state": state})
    except OSError as error:
        earlier = checkpoints(folder)
        start = f"from {earlier[-1].name}" if earlier else "from the start"
        raise RunError(
            f"{path}: not saved: {error.strerror or error}: free disk space, then continue {start} "
            "with --resume"
        ) from None
    for old in checkpoints(folder)[:-KEPT]:
        old.unlink()


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, and restore its random states of PyTorch and NumPy.

    Raises:
        One of `READ_ERRORS`.
    """
    header, arrays = read_tensors(path, MAX_BYTES)
    counters = parse_json(header.get("state", ""))
    torch.set_rng_state(torch.from_numpy(arrays[_TORCH_RNG]))
    _set_numpy_state(decode_counter(counters, "numpy", NumpyState))
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in _tensors_of(_ADAM, arrays).items():
        number, name = key.split(".")
        moments.setdefault(int(number), {})[name] = tensor
    weights, games = _tensors_of(_NETWORK, arrays), _part(_GAMES, arrays)
    return Checkpoint(done_of(path), weights, moments, games, counters)


def decode_counter(counters: Mapping[str, Any], key: str, kind: type[T]) -> T:
    """Return an entry of `Checkpoint.counters` as a type that `msgspec` supports.

    Raises:
        KeyError: if there is no such entry.
        ValueError: if it has another type.
    """
    return Source(f"state: {key}", counters[key], ValueError).decode(kind)


def broken_checkpoint(path: Path, error: Exception, remedy: str) -> RunError:
    """Return the error that reports an unreadable checkpoint."""
    text = str(error) if isinstance(error, ValueError) else repr(error)
    reason = escape_text(f"no key {error}" if isinstance(error, KeyError) else text, 300)
    return RunError(f"{path}: broken checkpoint: {reason}: {remedy}")


def restore_learner(
    network: ValueNetwork, optimizer: torch.optim.Optimizer, checkpoint: Checkpoint
) -> None:
    """Restore a network and its optimizer from a checkpoint.

    Raises:
        One of `READ_ERRORS`: naming the tensor, if it does not fit or is not finite.
    """
    load_checked(network, checkpoint.weights)
    _check_moments(optimizer.param_groups[0]["params"], checkpoint.moments)
    optimizer.load_state_dict(optimizer.state_dict() | {"state": checkpoint.moments})


def load_checked(network: ValueNetwork, weights: Mapping[str, torch.Tensor]) -> None:
    """Load weights from an untrusted source into a network.

    Args:
        network: the network, changed in place.
        weights: by tensor name.

    Raises:
        One of `READ_ERRORS`: naming the tensor, if it does not fit or is not finite.
    """
    network.load_state_dict(dict(weights))
    check_tensors(_NETWORK, network.to_policy().tensors)


def moments_of(optimizer: torch.optim.Optimizer) -> dict[int, dict[str, torch.Tensor]]:
    """Return Adam's moments in the format of `Checkpoint.moments`."""
    return {number: dict(own) for number, own in optimizer.state_dict()["state"].items()}


def _check_moments(
    parameters: Sequence[torch.Tensor], moments: Mapping[int, Mapping[str, torch.Tensor]]
) -> None:
    """Raise `ValueError`, naming the tensor, unless the moments fit Adam on these parameters."""
    for number, own in moments.items():
        if number >= len(parameters) or set(own) != {"step", "exp_avg", "exp_avg_sq"}:
            raise ValueError(f"{_ADAM}.{number}: expected Adam's moments of one parameter")
        for name, tensor in own.items():
            shape = () if name == "step" else tuple(parameters[number].shape)
            fits = tuple(tensor.shape) == shape and tensor.dtype == torch.float32
            if not fits or not bool(torch.isfinite(tensor).all()):
                raise ValueError(
                    f"{_ADAM}.{number}.{name}: expected finite float32 numbers of shape "
                    f"{shape}, got {tensor.dtype} of shape {tuple(tensor.shape)}"
                )
            if name != "exp_avg" and bool((tensor < 0).any()):
                raise ValueError(f"{_ADAM}.{number}.{name}: expected numbers from 0")


def _arrays_of(checkpoint: Checkpoint) -> dict[str, Array]:
    """Return the arrays of a checkpoint's file."""
    tensors = {f"{_NETWORK}.{name}": tensor for name, tensor in checkpoint.weights.items()}
    for number, moments in checkpoint.moments.items():
        tensors |= {f"{_ADAM}.{number}.{name}": tensor for name, tensor in moments.items()}
    tensors[_TORCH_RNG] = torch.get_rng_state()
    games = {f"{_GAMES}.{name}": array for name, array in as_numbers(checkpoint.games).items()}
    return games | {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _part(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays with a prefix, by their names without it."""
    start = prefix + "."
    return {
        name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
    }


def _tensors_of(prefix: str, arrays: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in _part(prefix, arrays).items()}


def _numpy_state() -> NumpyState:
    state: Any = np.random.get_state()  # noqa: NPY002
    _, keys, position, has_gauss, gauss = state
    return NumpyState(keys.tolist(), position, has_gauss, gauss)


def _set_numpy_state(state: NumpyState) -> None:
    keys = np.array(state.keys, np.uint32)
    np.random.set_state(("MT19937", keys, state.position, state.has_gauss, state.gauss))  # noqa: NPY002
