"""Opponents for a person: levels from the ladder, weakest first, with a description each."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from tokaido_env.agents.registry import KINDS
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.boards.board_pool import BoardPool

UNRATED = ("generalist",)  # not on the ladder
LEVEL_STEP = 150  # least Elo between two levels; the stronger one scores about 70 %
_NAMES = {  # of levels, by kind and names of parameters
    "random": "Beginner",
    "greedy:epsilon": "Beginner",
    "greedy": "Intermediate",
    "heuristic": "Intermediate",
    "mcts:sims": "Advanced",
    "champion": "Champion",
    "champion:sims": "Champion with search",
}
_PLAYS = {  # by kind and names of parameters; other agents have the description of their kind
    "greedy:epsilon": "Takes the largest gain at once; {epsilon:.0%} of its decisions are random.",
    "mcts:sims": "Searches {sims:,.0f} continuations before each decision.",
    "champion:sims": "A network trained by self-play searches {sims:,.0f} continuations.",
}


def opponents() -> list[dict[str, Any]]:
    """Return the agents to play against: rated ones, weakest first, then those without a rating.

    Each has its `spec`; a `name`, that of a level for people; how it `plays` as text;
    `elo` with `ci95` on the default board's ladder, or None; and its `level` from 1, the weakest,
    or None between two levels.
    """
    pool = BoardPool.load()
    ratings = Ladder.load(ladder_for(pool), pool).agents  # the best first
    found, level, least = [], 0, float("-inf")
    for rating in reversed(ratings):
        is_level = rating.value >= least or rating is ratings[0]
        if is_level:
            level, least = level + 1, rating.value + LEVEL_STEP
        rated = {"elo": round(rating.value), "ci95": [round(rating.low), round(rating.high)]}
        found.append(_described(rating.agent) | rated | {"level": level if is_level else None})
    levels = [one for one in found if one["level"]]
    for name, same in groupby(levels, lambda one: _NAMES[_form(one["spec"])]):
        several = [*same]
        for number, one in enumerate(several, start=1):
            one["name"] = name if len(several) == 1 else f"{name} {number}"
    return [*found, *map(_described, UNRATED)]


def _form(spec: str) -> str:
    """Return the kind of a spec and the names of its parameters, joined by ":"."""
    kind, _, text = spec.partition(":")
    return ":".join([kind, *(part.partition("=")[0] for part in text.split(",") if text)])


def _described(spec: str) -> dict[str, Any]:
    kind, _, text = spec.partition(":")
    given = {part.partition("=")[0]: part.partition("=")[2] for part in text.split(",") if text}
    plays = KINDS[kind].meaning.partition(";")[0].rstrip(".") + "."
    if (form := _PLAYS.get(_form(spec))) is not None:
        plays = form.format(**{name: float(value) for name, value in given.items()})
    return {"spec": spec, "name": spec, "plays": plays, "elo": None, "level": None}
