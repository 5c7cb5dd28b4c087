"""Ladders of simulated matches between agents of known strengths."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from matches import match_of_results

from tokaido_env.arena.ladder import Ladder, make_ladder
from tokaido_env.arena.match import Match
from tokaido_env.arena.ratings import expected_score
from tokaido_env.boards.board import Board

SLOW = "mcts:sims=4000"
STRENGTHS = {
    "random": 0.0,
    "greedy": 300.0,
    "policy:a": 420.0,
    "mcts:sims=400": 500.0,
    SLOW: 600.0,
    "mcts:sims=10000": 620.0,
}


class SimulatedMatches:
    """Simulates matches, and stops with Ctrl-C after so many.

    Attributes:
        played: agents, games and seed of each match.
    """

    def __init__(self, strengths: dict[str, float] = STRENGTHS, stop_after: int = 1000) -> None:
        self.strengths = strengths
        self.stop_after = stop_after
        self.played: list[tuple[str, str, int, int]] = []

    def play(self, a: str, b: str, games: int, seed: int) -> Match:
        """Return a match with the same results in either order of the agents."""
        if len(self.played) == self.stop_after:
            raise KeyboardInterrupt
        self.played.append((a, b, games, seed))
        first, second = sorted((a, b))
        rng = np.random.default_rng([crc32(f"{first} {second}".encode()), seed])
        p = expected_score(self.strengths[first] - self.strengths[second])
        results = (rng.random((games // 2, 2)) < p).astype(float)
        return match_of_results(results if a == first else 1 - results[:, ::-1], seed, a, b)


def make_simulated_ladder(
    path: Path,
    agents: Sequence[str] = tuple(STRENGTHS),
    games_of: Callable[[str, str], int] = lambda a, b: 60,
    seed: int = 0,
    simulated: SimulatedMatches | None = None,
    **options: Any,
) -> Ladder:
    """Make a ladder from simulated matches, or resume it."""
    play = (simulated or SimulatedMatches()).play
    return make_ladder(agents, games_of, seed, Board.load(), play, path, **options)
