"""Opponents for a person: levels from the ladder, weakest first, with a description each."""

from __future__ import annotations

from typing import Any

from tokaido_env.agents.registry import KINDS
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.boards.board_pool import BoardPool

LEVELS = {  # weakest first; the stronger one of two neighbours scores 62 % or more
    "random": "Beginner 1",
    "greedy:epsilon=0.8": "Beginner 2",
    "greedy:epsilon=0.6": "Beginner 3",
    "greedy:epsilon=0.4": "Beginner 4",
    "greedy:epsilon=0.2": "Beginner 5",
    "greedy": "Intermediate 1",
    "heuristic": "Intermediate 2",
    "mcts:sims=400": "Advanced",
    "champion": "Champion",
    "champion:sims=400": "Champion with search",
}


def opponents() -> list[dict[str, Any]]:
    """Return the agents to play against: rated ones, weakest first, then those without a rating.

    Each has its `spec`; a `name`, that of a level for people; how it `plays`, as text; `elo`
    with `ci95` on the default board's ladder, or None; and its `level` from 1, the weakest, or None
    between two levels.
    """
    pool = BoardPool.load()
    ratings = {one.agent: one for one in Ladder.load(ladder_for(pool), pool).agents}
    numbers = {spec: number for number, spec in enumerate(LEVELS, start=1)}
    found: list[dict[str, Any]] = []
    for spec in (*reversed(ratings), "generalist"):  # which is not on the ladder
        plays = KINDS[spec.partition(":")[0]].meaning.partition(";")[0].rstrip(".") + "."
        if share := spec.partition("epsilon=")[2]:
            plays = f"{100 * float(share):.0f} % of its moves are random, others gain most at once."
        if spec.startswith("champion:sims="):
            plays = "Searches with the strongest network of this package on the default board."
        named = {"spec": spec, "name": LEVELS.get(spec, spec), "plays": plays}
        found.append(named | {"elo": None, "ci95": None, "level": numbers.get(spec)})
        if (rating := ratings.get(spec)) is not None:
            interval = [round(rating.low), round(rating.high)]
            found[-1] |= {"elo": round(rating.value), "ci95": interval}
    return found
