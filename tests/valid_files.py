"""Contents of valid files, for tests that damage them."""

import json
from pathlib import Path
from typing import Any

from tokaido_env.arena.ladder import LADDER, content_hash

GOLDEN = Path(__file__).with_name("golden")


def with_hash(data: dict[str, Any]) -> dict[str, Any]:
    """A ladder with the hash of its contents."""
    body = {key: value for key, value in data.items() if key != "hash"}
    return body | {"hash": content_hash(body)}


def ladder(spec: str = "greedy", **changes: Any) -> dict[str, Any]:
    """The project's ladder with another agent instead of `greedy`."""
    text = LADDER.read_text(encoding="utf-8").replace('"greedy"', json.dumps(spec))
    return with_hash(json.loads(text) | changes)


def generalisation(trained_on: str | None = "family:train/10", **changes: Any) -> dict[str, Any]:
    """The output of `generalise --json` for an agent trained on ten boards."""
    share = {"value": 0.5, "ci95": [0.375, 0.625]}

    def scores(pool: str, numbers: tuple[int, ...]) -> dict[str, Any]:
        head = {"pool": pool, "hash": "0123456789abcdef", "boards": len(numbers), "pairs": 40}
        each = [{"board": f"family:{number}", **share} for number in numbers]
        shares = dict.fromkeys(("mean", "iqm", "above_even", "worst_tenth"), share)
        shares |= {"profile": [share] * 19}
        return {**head, "drawn": True, **shares, "each": each}

    data = {"version": 2, "agent": "policy:runs/a", "opponent": "mcts:sims=400", "seed": 0}
    data |= {"trained_on": trained_on, "test": scores("family:test/2", (2000000, 2000001))}
    data |= {"train": scores("family:train/1", (0,))}
    data |= {"opponents": [{"opponent": spec, **share} for spec in ("mcts:sims=400", "greedy")]}
    data |= {"opponents_mean": share}
    return data | {"gap": {"value": -0.125, "ci95": [-0.25, 0.0625]}} | changes
