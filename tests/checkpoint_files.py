"""Changes of checkpoint files with matching SHA-256 sums."""

import hashlib
from pathlib import Path


def write_state(checkpoint: Path, text: str) -> None:
    """Replace `state.json` of a checkpoint and update its sums."""
    (checkpoint / "state.json").write_text(text, encoding="utf-8")
    names = ("learner.safetensors", "optimizer.safetensors", "games.npz", "state.json")
    sums = [hashlib.sha256((checkpoint / name).read_bytes()).hexdigest() for name in names]
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, names, strict=True)]
    (checkpoint / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
