"""Checkpoints that somebody else has made: their sums agree with what was changed."""

import hashlib
from pathlib import Path


def write_state(checkpoint: Path, text: str) -> None:
    """Replace the counters of a checkpoint."""
    (checkpoint / "state.json").write_text(text, encoding="utf-8")
    names = ("learner.safetensors", "optimizer.safetensors", "games.npz", "state.json")
    sums = [hashlib.sha256((checkpoint / name).read_bytes()).hexdigest() for name in names]
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, names, strict=True)]
    (checkpoint / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
