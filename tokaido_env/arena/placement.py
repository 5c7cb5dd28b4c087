"""Placement of one more agent on a ladder in few games; the ladder's ratings stay fixed."""

from __future__ import annotations

from tokaido_env.agents.registry import cost_of
from tokaido_env.arena.ladder import Ladder, LadderError, PlayMatch
from tokaido_env.arena.match import Match, match_seed
from tokaido_env.arena.ratings import RESAMPLES, expected_score, rate_against
from tokaido_env.arena.result import Measure, Result, Score
from tokaido_env.arena.tournament import MatchState
from tokaido_env.core.arguments import check_seed

OPPONENTS = 4  # of a placement, by default

PLACING = "rate"  # in seeds, stands for any agent that is placed

# The number of games against an opponent: `games_against`. Chosen by hand, not tuned.
FAST_GAMES = 1000
SEARCHES = 800_000  # simulations a decision times games
MIN_GAMES = 40
MAX_SIMULATIONS = 4000  # of opponents, unless slow ones are included


def rate_on_ladder(
    agent: str,
    ladder: Ladder,
    *,
    play: PlayMatch,
    seed: int = 0,
    opponents: int = OPPONENTS,
    include_slow: bool = False,
    resamples: int = RESAMPLES,
) -> Result:
    """Place one agent on a ladder; the ladder's ratings stay fixed.

    The first opponent is in the middle of the fast agents. Each next one is the opponent with the
    greatest expected information: the number of games times p (1 - p), with p the expected score.
    The numbers of games, `games_between`, follow from the specs and not from a clock: the result
    is the same on every machine.

    Args:
        agent: its spec; if it is on the ladder, it does not meet itself.
        ladder: a finished ladder.
        play: see `PlayMatch`; on the board of the ladder.
        seed: from it follows the seed of each opponent's match, the same for every agent.
        opponents: number of opponents.
        include_slow: also play against slow agents.
        resamples: for the interval, see `ratings.rate_against`.

    Returns:
        The scores of its matches, in the order in which opponents were chosen, its Elo, and the
        scores to expect by this Elo; if the scores are far from these, no Elo describes the agent.

    Raises:
        LadderError: if the ladder is not finished, or has no opponent for the agent.
    """
    seed, known = check_seed(seed), ladder.result
    if not ladder.agents:
        raise LadderError(
            f"the ladder is not finished: {len(known.scores)} matches, no ratings; run its "
            "command again"
        )
    seeds = {"seed": seed, "known_seed": ladder.seed, "resamples": resamples}
    matches: list[Match] = []
    scores: list[Score] = []
    rating: Measure | None = None
    while len(matches) < opponents:
        met = {match.b for match in matches}
        opponent = _next_opponent(agent, ladder, met, rating, include_slow)
        if opponent is None:
            break
        games = games_between(agent, opponent, include_slow=include_slow)
        own = match_seed(seed, PLACING, opponent)
        matches.append(play(agent, opponent, games, own))
        scores.append(Score.of(matches[-1], ladder.pool.name, own))
        rating = rate_against(agent, matches, known.scores, anchor=known.anchor, **seeds)
    if rating is None:
        raise LadderError(
            f"no opponent on the ladder for {agent!r}: expected opponents from 1, and another "
            f"agent with at most {MAX_SIMULATIONS} simulations; --include-slow adds slower ones"
        )
    return Result.made(
        "rate",
        agents=(agent,),
        boards=known.boards,
        seed=seed,
        scores=tuple(scores),
        estimates=(rating.rounded(2), *_expected_scores(rating, ladder, scores)),
        anchor=known.anchor,
        ladder=known.hash,
    )


def _expected_scores(rating: Measure, ladder: Ladder, scores: list[Score]) -> list[Measure]:
    """Return the scores against the opponents of matches that follow from a rating."""
    known = {one.agent: one.value for one in ladder.agents}
    found = [(one, expected_score(rating.value - known[one.b])) for one in scores]
    return [
        Measure(*(round(p, 6),) * 3, "expected score", one.a, one.n, other=one.b)
        for one, p in found
    ]


def possible_matches(
    agent: str, ladder: Ladder, *, seed: int, include_slow: bool, max_games: int
) -> dict[str, MatchState]:
    """Return the matches of a placement with all opponents, without games, by opponent.

    Args:
        agent: its spec; if it is on the ladder, it does not meet itself.
        ladder: a finished ladder.
        seed: from it follows the seed of each opponent's match.
        include_slow: also include slow agents.
        max_games: of a match, even.
    """
    games = _games_by_opponent(agent, ladder, include_slow)
    return {
        opponent: MatchState(
            *(agent, opponent, min(count, max_games), match_seed(seed, PLACING, opponent)),
            ladder.pool,
        )
        for opponent, count in games.items()
        if count
    }


def _games_by_opponent(agent: str, ladder: Ladder, include_slow: bool) -> dict[str, int]:
    return {
        other.agent: games_between(agent, other.agent, include_slow=include_slow)
        for other in ladder.agents
        if other.agent != agent
    }


def games_between(agent: str, opponent: str, *, include_slow: bool = False) -> int:
    """Return the games of a placement between two specs, the fewer of both `games_against`."""
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
    agent: str, ladder: Ladder, met: set[str], rating: Measure | None, include_slow: bool
) -> str | None:
    """Return the next opponent, None if no agent is left."""
    games = _games_by_opponent(agent, ladder, include_slow)
    left = [other for other in ladder.agents if games.get(other.agent) and other.agent not in met]
    if not left:
        return None
    if rating is None:
        most = max(games.values())
        fast = [other.agent for other in left if games[other.agent] == most]
        return fast[(len(fast) - 1) // 2]
    elo = rating.value

    def information(other: Measure) -> float:
        p = expected_score(elo - other.value)
        return games[other.agent] * p * (1 - p)

    return max(left, key=information).agent
