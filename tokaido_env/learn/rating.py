"""Ladder ratings of a learner in few games, to compare the checkpoints of a run."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import cost_of, make
from tokaido_env.arena.ladder import Ladder
from tokaido_env.arena.match import Match, match_seed
from tokaido_env.arena.placement import rate_on_ladder
from tokaido_env.arena.result import Measure
from tokaido_env.arena.tournament import play_match

OPPONENTS = 3
MAX_COST = 100  # of opponents, as of `registry.cost_of`: slower ones would delay training
RESAMPLES = 300  # of the bootstrap


def rate_learner(agent: Agent, ladder: Ladder, max_games: int, seed: int = 0) -> Measure:
    """Return an agent's Elo on a ladder, with its 95 % interval, from games with fast agents.

    All ratings of a run use the same game seeds, so that their differences come from play. `tokaido
    rate` uses others, so that its ratings of a selected policy are unbiased.

    Args:
        agent: the learner.
        ladder: a finished ladder; the games are played on its boards.
        max_games: most games against each of three opponents; even.
        seed: the run's seed.

    Raises:
        LadderError: if the ladder is not finished, or has no opponent for the agent.
    """

    def play(spec: str, opponent: str, games: int, seed: int) -> Match:
        return play_match(agent, make(opponent), min(games, max_games), seed, ladder.pool)

    fast = tuple(one for one in ladder.agents if cost_of(one.agent) <= MAX_COST)
    placed = rate_on_ladder(
        agent.spec,
        replace(ladder, result=structs.replace(ladder.result, estimates=fast)),
        play=play,
        seed=match_seed(seed, "train"),
        opponents=OPPONENTS,
        resamples=RESAMPLES,
    )
    return placed.estimate("Elo")
