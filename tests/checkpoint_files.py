"""Changes of a checkpoint file, written with a SHA-256 that matches."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokaido_env.learn.checkpoint import MAX_BYTES
from tokaido_env.tensor_file import Array, read_tensors, write_tensors


def state_of(path: Path) -> Any:
    """Return the JSON state of a checkpoint."""
    return json.loads(read_tensors(path, MAX_BYTES).header["state"])


def rewrite(
    path: Path, state: str | None = None, arrays: Mapping[str, Array | None] | None = None
) -> None:
    """Replace the state of a checkpoint, and some arrays; None removes an array."""
    header, found = read_tensors(path, MAX_BYTES)
    state = header.get("state", "") if state is None else state
    changed = {k: array for k, array in {**found, **(arrays or {})}.items() if array is not None}
    write_tensors(path, changed, {"state": state})
