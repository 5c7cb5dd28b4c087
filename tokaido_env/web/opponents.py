"""Opponents for a person: levels from the ladder, weakest first, with a description each."""

from __future__ import annotations

from typing import NamedTuple

from tokaido_env.agents.registry import KINDS, cost_of
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.boards.board_pool import BoardPool

UNRATED = ("generalist",)
"""Agents that the ladder does not contain."""

LEVEL_STEP = 150
"""Least Elo between two levels: the stronger one scores about 70 %."""

_SECONDS_PER_COST = 2e-6  # measured: one game, one thread, AMD EPYC, 2026-11-25
_PLAYS = {  # by kind and names of parameters
    "random": "Plays at random.",
    "greedy": "Takes the largest gain at once.",
    "greedy:epsilon": "Takes the largest gain at once; {epsilon:.0%} of its decisions are random.",
    "heuristic": "Weighs every move by hand-written rules.",
    "mcts:sims": "Searches {sims:,.0f} continuations before each decision.",
    "champion": "A network trained by self-play on the default board decides without search.",
    "champion:sims": "A network trained by self-play searches {sims:,.0f} continuations.",
    "generalist": "A network trained on many boards decides without search.",
}


class Opponent(NamedTuple):
    """An agent to play against, with its Elo on the default board's ladder, if it has one.

    `level` is from 1, the weakest; None for agents between two levels. `plays` and `thinks` say how
    it plays and how long it thinks.
    """

    spec: str
    plays: str
    thinks: str
    elo: int | None = None
    ci95: tuple[int, int] | None = None
    level: int | None = None


def opponents() -> list[Opponent]:
    """Return the agents to play against: rated ones, weakest first, then those without a rating."""
    pool = BoardPool.load()
    ratings = Ladder.load(ladder_for(pool), pool).agents  # the best first
    found: list[Opponent] = []
    level, least = 0, float("-inf")
    for rating in reversed(ratings):
        is_level = rating.elo >= least or rating is ratings[0]
        if is_level:
            level, least = level + 1, rating.elo + LEVEL_STEP
        low, high = map(round, rating.ci95)
        plays, thinks = _description(rating.agent)
        rated = rating.agent, plays, thinks, round(rating.elo), (low, high)
        found.append(Opponent(*rated, level if is_level else None))
    return [*found, *(Opponent(spec, *_description(spec)) for spec in UNRATED)]


def _description(spec: str) -> tuple[str, str]:
    """Return a sentence on how an agent plays, and its thinking time as text."""
    kind, _, text = spec.partition(":")
    given = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    plays = _PLAYS.get(":".join([kind, *given]))
    if plays is None:  # the general description
        plays = KINDS[kind].meaning.partition(";")[0].rstrip(".") + "."
    else:
        plays = plays.format(**{name: float(value) for name, value in given.items()})
    seconds = cost_of(spec) * _SECONDS_PER_COST
    return plays, "answers at once" if seconds < 0.1 else f"thinks about {seconds:.1g} s"
