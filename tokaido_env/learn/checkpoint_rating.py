"""Where a learner stands: its place on a ladder in few games."""

from __future__ import annotations

from dataclasses import replace

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import cost_of, make
from tokaido_env.arena.ladder import Ladder, match_seed
from tokaido_env.arena.match import Match
from tokaido_env.arena.placement import rate_on_ladder
from tokaido_env.arena.ratings import Rating
from tokaido_env.arena.tournament import play_match

OPPONENTS = 3
FAST_SIMULATIONS = 100  # of opponents
RESAMPLES = 300


def place(agent: Agent, ladder: Ladder, most: int, seed: int = 0) -> Rating:
    """Place an agent on a ladder in few games, against its agents that do not think long.

    The luck is the same at every rating of a run, so that two differ by the play, and other than
    that of `evaluate.py rate`, so that a policy that was chosen by its rating can be rated fairly.

    Args:
        agent: to be placed.
        ladder: a finished one; the games are played on its boards.
        most: games against each of three opponents, even.
        seed: of the run.

    Raises:
        LadderError: as `placing.rate`.
    """

    def play(spec: str, opponent: str, games: int, seed: int) -> Match:
        return play_match(agent, make(opponent), min(games, most), seed, ladder.pool)

    fast = tuple(one for one in ladder.agents if cost_of(one.agent) <= FAST_SIMULATIONS)
    placed = rate_on_ladder(
        agent.spec,
        replace(ladder, agents=fast),
        play=play,
        seed=match_seed(seed, "train"),
        opponents=OPPONENTS,
        resamples=RESAMPLES,
    )
    return placed.rating
