"""Standings: results of agents over several matches, best first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tokaido_env.arena.match import Match
from tokaido_env.arena.ratings import Rating


class Standing(NamedTuple):
    """Results of an agent in all its games against others.

    Attributes:
        rank: from 1; equal results share one.
        agent: its spec.
        games: number of games.
        wins: number of wins.
        draws: number of draws.
        losses: number of losses.
        forfeits: number of losses by forfeit.
        score: share of games won, half of the draws included.
        seats: its score as player_0 and as player_1.
        points: its mean points in a game.
        rating: relative to the other agents in these matches, None without one.
    """

    rank: int
    agent: str
    games: int
    wins: int
    draws: int
    losses: int
    forfeits: int
    score: float
    seats: tuple[float, float]
    points: float
    rating: Rating | None

    def to_dict(self) -> dict[str, Any]:
        """Return the standing as plain JSON types."""
        rating = None
        if self.rating is not None:
            full = self.rating.to_dict()
            rating = {"elo": full["elo"], "ci95": full["ci95"]}
        return self._asdict() | {
            "score": round(self.score, 6),
            "seats": [round(score, 6) for score in self.seats],
            "points": round(self.points, 4),
            "rating": rating,
        }


def standings(matches: Iterable[Match], ratings: Sequence[Rating] = ()) -> list[Standing]:
    """Return the results of each agent against others, best first.

    Rated agents come first, by rating, which accounts for their opponents; the others follow by
    score.

    Args:
        matches: those of an agent against itself do not count; repeated games count once.
        ratings: from the same matches.
    """
    played = _counted(matches)
    rated = {rating.agent: rating for rating in ratings}
    agents = dict.fromkeys(agent for match in played for agent in (match.a, match.b))
    rows = [_standing(agent, played, rated.get(agent)) for agent in agents]
    order = sorted(rows, key=lambda row: (*_sort_key(row), row.agent))
    keys = [_sort_key(row) for row in order]
    return [row._replace(rank=1 + keys.index(key)) for row, key in zip(order, keys, strict=True)]


def has_ratings(rows: Sequence[Standing]) -> bool:
    """Return whether an agent in standings has a rating."""
    return any(row.rating is not None for row in rows)


def has_forfeits(rows: Sequence[Standing]) -> bool:
    """Return whether an agent in standings lost a game by forfeit."""
    return any(row.forfeits for row in rows)


def forfeits_of(match: Match, side: int) -> int:
    """Return the number of games that `a` (0) or `b` (1) of a match lost by forfeit."""
    return int(((match.games["forfeit"] > 0) & (match.results == side)).sum())


def _counted(matches: Iterable[Match]) -> list[Match]:
    """Return the matches between different agents, each once."""
    different = {
        (frozenset((m.a, m.b)), m.games["seed"].tobytes(), m.games["board"].tobytes()): m
        for m in matches
        if m.a != m.b
    }
    return list(different.values())


def _standing(agent: str, matches: Sequence[Match], rating: Rating | None) -> Standing:
    sides = [(m, int(agent == m.b)) for m in matches if agent in (m.a, m.b)]
    # (pairs, 2): `a` is player_0 in the first game of a pair.
    results = [1 - m.results[:, ::-1] if side else m.results for m, side in sides]
    all_results = np.concatenate(results)
    points = np.concatenate([m.games["points"][:, :, side].reshape(-1, 3) for m, side in sides])
    first, second = all_results.mean(axis=0)
    return Standing(
        rank=0,
        agent=agent,
        games=int(all_results.size),
        wins=int((all_results == 1.0).sum()),
        draws=int((all_results == 0.5).sum()),
        losses=int((all_results == 0.0).sum()),
        forfeits=sum(forfeits_of(m, side) for m, side in sides),
        score=float(all_results.mean()),
        seats=(float(first), float(second)),
        points=float(points.sum(axis=1).mean()),
        rating=rating,
    )


def _sort_key(row: Standing) -> tuple[bool, float]:
    """Return the rank key of an agent, smaller is better, rounded like the output."""
    if row.rating is None:
        return True, -round(row.score, 6)
    return False, -round(row.rating.elo, 2)
