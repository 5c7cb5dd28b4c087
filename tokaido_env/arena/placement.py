"""Placement of one more agent on a ladder in few games; the ladder's ratings stay fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokaido_env.agents.registry import cost_of
from tokaido_env.arena.ladder import Ladder, LadderError, PlayMatch
from tokaido_env.arena.match import Match, match_seed
from tokaido_env.arena.ratings import RESAMPLES, Rating, expected_score, rate_against
from tokaido_env.core.arguments import check_seed

OPPONENTS = 4  # of a placement, by default

PLACING = "rate"  # in seeds, stands for any agent that is placed

# The number of games against an opponent: `games_against`. Chosen by hand, not tuned.
FAST_GAMES = 1000
SEARCHES = 800_000  # simulations a decision times games
MIN_GAMES = 40
MAX_SIMULATIONS = 4000  # of opponents, unless slow ones are included


@dataclass(frozen=True)
class LadderRating:
    """The rating of one agent placed on a ladder.

    Attributes:
        rating: of the agent, relative to the anchor of the ladder.
        matches: of the agent, in the order in which opponents were chosen.
        ladder: hash of the ladder.
        seed: from which the seeds of the matches are derived.
    """

    rating: Rating
    matches: tuple[Match, ...]
    ladder: str
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types."""
        return {
            **self.rating.to_dict(),
            "ladder": self.ladder,
            "seed": self.seed,
            "matches": [
                match.to_dict() | {"seed": match_seed(self.seed, PLACING, match.b)}
                for match in self.matches
            ],
        }


def rate_on_ladder(
    agent: str,
    ladder: Ladder,
    *,
    play: PlayMatch,
    seed: int = 0,
    opponents: int = OPPONENTS,
    include_slow: bool = False,
    resamples: int = RESAMPLES,
) -> LadderRating:
    """Place one agent on a ladder; the ladder's ratings stay fixed.

    The first opponent is in the middle of the fast agents. Each next one is the opponent with the
    greatest expected information: the number of games times p (1 - p), with p the expected score.
    The numbers of games, `games_between`, follow from the specs and not from a clock: the result
    is the same on every machine.

    Args:
        agent: its spec; if it is on the ladder, it does not meet itself.
        ladder: a finished ladder.
        play: see `PlayMatch`; on the board of the ladder.
        seed: from which the seed of each opponent's match is derived, the same for every agent.
        opponents: number of opponents.
        include_slow: also play against slow agents.
        resamples: for the interval, see `ratings.rate_against`.

    Raises:
        LadderError: if the ladder is not finished, or has no opponent for the agent.
    """
    seed = check_seed(seed)
    if not ladder.agents:
        played = len(ladder.matches)
        raise LadderError(
            f"the ladder is not finished: {played} matches, no ratings; run its command again"
        )
    matches: list[Match] = []
    rating: Rating | None = None
    while len(matches) < opponents:
        met = {match.b for match in matches}
        opponent = _next_opponent(agent, ladder, met, rating, include_slow)
        if opponent is None:
            break
        games = games_between(agent, opponent, include_slow=include_slow)
        matches.append(play(agent, opponent, games, match_seed(seed, PLACING, opponent)))
        rating = rate_against(
            agent,
            matches,
            ladder.matches,
            anchor=ladder.anchor,
            seed=seed,
            known_seed=ladder.seed,
            resamples=resamples,
        )
    if rating is None:
        raise LadderError(
            f"no opponent on the ladder for {agent!r}: expected opponents from 1, and another "
            f"agent with at most {MAX_SIMULATIONS} simulations; --include-slow adds slower ones"
        )
    return LadderRating(rating, tuple(matches), ladder.hash, seed)


def games_between(agent: str, opponent: str, *, include_slow: bool = False) -> int:
    """Return the number of games of a placement between two agents: the slower one decides."""
    allowed = games_against(opponent, include_slow=include_slow)
    return min(games_against(agent, include_slow=True), allowed)


def games_against(opponent: str, *, include_slow: bool = False) -> int:
    """Return the number of games of a placement against an agent, by its spec.

    An agent that does not search: 1000. One that costs N simulations: 800,000 / N, rounded down to
    an even number, within 40 and 1000. With more than 4000: none, unless `include_slow`.
    """
    cost = cost_of(opponent)
    if cost > MAX_SIMULATIONS and not include_slow:
        return 0
    return min(max(SEARCHES // max(cost, 1) // 2 * 2, MIN_GAMES), FAST_GAMES)


def _next_opponent(
    agent: str, ladder: Ladder, met: set[str], rating: Rating | None, include_slow: bool
) -> str | None:
    """Return the next opponent, None if no agent is left."""
    games = {
        other.agent: games_between(agent, other.agent, include_slow=include_slow)
        for other in ladder.agents
        if other.agent != agent and other.agent not in met
    }
    left = [other for other in ladder.agents if games.get(other.agent)]
    if not left:
        return None
    if rating is None:
        most = max(games.values())
        fast = [other.agent for other in left if games[other.agent] == most]
        return fast[(len(fast) - 1) // 2]
    elo = rating.elo

    def information(other: Rating) -> float:
        p = expected_score(elo - other.elo)
        return games[other.agent] * p * (1 - p)

    return max(left, key=information).agent
