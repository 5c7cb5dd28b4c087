"""Contents of valid files, for tests that damage them."""

import json
from pathlib import Path
from typing import Any

from tokaido_env.arena.generalisation import FIGURES
from tokaido_env.arena.ladder import LADDER
from tokaido_env.arena.result import BoardsEntry, Measure, Result, Score, content_hash

GOLDEN = Path(__file__).with_name("golden")


def with_hash(data: dict[str, Any]) -> dict[str, Any]:
    """A result with the hash of its contents."""
    body = {key: value for key, value in data.items() if key != "hash"}
    return body | {"hash": content_hash(body)}


def ladder(spec: str = "greedy", **changes: Any) -> dict[str, Any]:
    """The project's ladder with another agent instead of `greedy`."""
    text = LADDER.read_text(encoding="utf-8").replace('"greedy"', json.dumps(spec))
    return with_hash(json.loads(text) | changes)


def generalisation(trained_on: str | None = "family:train/10", **changes: Any) -> dict[str, Any]:
    """The output of `generalise --json` for an agent trained on ten boards."""
    agent, opponents = "policy:runs/a", ("mcts:sims=400", "greedy")
    pools = {"family:test/2": ("family:2000000", "family:2000001"), "family:train/1": ("family:0",)}
    scores = [
        Score.of_pairs(agent, opponent, board, 0, (10, 0, 20, 0, 10), group=pool)
        for opponent in opponents
        for pool, boards in pools.items()
        for board in boards
        if opponent == opponents[0] or "test" in pool
    ]
    estimates = [
        Measure.named(name, agent, 0.5, (0.375, 0.625), other=other, group=pool)
        for pool in pools
        for other in (*opponents, "")
        for name in FIGURES
    ]
    about: dict[str, Any] = {"other": "family:train/1", "group": "family:test/2"}
    estimates.append(Measure.named("gap", agent, -0.125, (-0.25, 0.0625), **about))
    entries = [
        BoardsEntry(name, "0123456789abcdef", len(boards), True) for name, boards in pools.items()
    ]
    result = Result.made(
        "generalise",
        agents=(agent,),
        boards=tuple(entries),
        seed=0,
        scores=tuple(scores),
        estimates=tuple(estimates),
        trained_on=trained_on,
    )
    return with_hash(result.to_dict() | changes)
