"""Standings: results of agents over several matches, best first."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from tokaido_env.arena.result import Result, Score


class Standing(NamedTuple):
    """Results of an agent in all its games against others.

    Attributes:
        rank: from 1; equal results share one.
        agent: its spec.
        games: number of games.
        score: share of games won, half of the draws included.
        seats: its score as player_0 and as player_1.
        points: its mean points in a game.
        forfeits: number of losses by forfeit.
    """

    rank: int
    agent: str
    games: int
    score: float
    seats: tuple[float, float]
    points: float
    forfeits: int


def standings(result: Result) -> list[Standing]:
    """Return the results of each agent against others, best first.

    Rated agents come first, by rating, which accounts for their opponents; the others follow by
    score. Matches of an agent against itself do not count.
    """
    played = [one for one in result.scores if one.a != one.b and one.games is not None]
    ratings = {one.agent: one.value for one in result.estimates_of("Elo")}

    def key(row: Standing) -> tuple[bool, float]:
        """Return the rank key, smaller is better, rounded like the output."""
        rated = row.agent in ratings
        return not rated, -round(ratings[row.agent], 2) if rated else -round(row.score, 6)

    agents = dict.fromkeys(agent for score in played for agent in (score.a, score.b))
    rows = sorted((_standing(agent, played) for agent in agents), key=lambda x: (*key(x), x.agent))
    keys = [key(row) for row in rows]
    return [row._replace(rank=1 + keys.index(own)) for row, own in zip(rows, keys, strict=True)]


def _standing(agent: str, scores: Sequence[Score]) -> Standing:
    own = [score for score in scores if agent in (score.a, score.b)]

    def mean(values: Sequence[float], counts: Sequence[int]) -> float:
        return float(sum(map(mul, values, counts)) / max(sum(counts), 1))

    sides = [int(agent == score.b) for score in own]
    games = [(one.games, side) for one, side in zip(own, sides, strict=True) if one.games]
    # As player_0, agent b plays the games in which agent a is player_1.
    seats = [(1 - g.seats[1], 1 - g.seats[0]) if side else g.seats for g, side in games]
    each = [one.n for one in own]
    whole = [one.n - sum(g.forfeits) for one, (g, _) in zip(own, games, strict=True)]
    values = [1 - one.value if side else one.value for one, side in zip(own, sides, strict=True)]
    return Standing(
        rank=0,
        agent=agent,
        games=sum(each),
        score=mean(values, each),
        seats=(mean([one for one, _ in seats], each), mean([two for _, two in seats], each)),
        points=mean([sum(g.points[side]) for g, side in games], whole),
        forfeits=sum(g.forfeits[side] for g, side in games),
    )
