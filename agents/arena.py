"""Matches: paired games between agents, played as one big batch.

Each pair is the same luck twice with seats swapped, so that neither dice nor seat favour anyone.
The seeds of the pairs lie in a domain of their own: no agent has trained on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.base import Agent
from tokaido_env.batch import Batch
from tokaido_env.board import Board
from tokaido_env.jit import entry
from tokaido_env.luck import arena_seed, check_seed
from tokaido_env.rules import score

CHUNK = 4096  # games at once
Z95 = 1.959963984540054

POINTS = ("faith", "commerce", "culture", "total")


@dataclass(frozen=True)
class Match:
    """The result of agent `a` against agent `b`.

    Attributes:
        results: float64 (pairs, 2): 1 for a win of `a`, 0.5 for a shared victory or the cap, 0 for
            a loss; first with `a` as player_0, then as player_1.
        points: int64 (pairs, 2, 2, 3): points of `a` and `b` by faith, commerce and culture.
    """

    a: str
    b: str
    results: npt.NDArray[np.float64]
    points: npt.NDArray[np.int64]

    @property
    def score(self) -> float:
        """The share of games that `a` won, half of the draws included."""
        return float(self.results.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the score."""
        return score_interval(self.results)

    def mean_points(self, agent: int) -> dict[str, float]:
        """Return the mean points of `a` (0) or `b` (1) by character, and their total."""
        means = [float(x) for x in self.points[:, :, agent].mean(axis=(0, 1))]
        return dict(zip(POINTS, [*means, sum(means)], strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the match as plain JSON types."""
        low, high = self.interval
        return {
            "a": self.a,
            "b": self.b,
            "games": int(self.results.size),
            "wins": int((self.results == 1.0).sum()),
            "draws": int((self.results == 0.5).sum()),
            "losses": int((self.results == 0.0).sum()),
            "score": round(self.score, 6),
            "ci95": [round(low, 6), round(high, 6)],
            "mean": {
                name: {key: round(value, 4) for key, value in self.mean_points(i).items()}
                for i, name in enumerate("ab")
            },
        }


def play_match(
    a: Agent,
    b: Agent,
    games: int,
    seed: int,
    board: str | Path | Board = "shikoku",
    *,
    progress: Callable[[int], None] = lambda games: None,
) -> Match:
    """Play paired games between two agents.

    Args:
        a: one agent.
        b: the other.
        games: how many, even and positive.
        seed: of the match, 0 to 2**53 - 1; the same seed gives the same games to any two agents.
        board: as for `Game`.
        progress: called with the number of games finished now and then.

    Raises:
        IllegalMove: if an agent chose an illegal action, naming it.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games: expected an even number from 2, seats are swapped; got {games}")
    check_seed(seed)
    pairs = games // 2
    results = np.empty((pairs, 2))
    points = np.empty((pairs, 2, 2, 3), np.int64)
    for first in range(0, pairs, CHUNK // 2):
        chunk = slice(first, min(first + CHUNK // 2, pairs))
        seeds = np.array([arena_seed(seed, pair) for pair in range(chunk.start, chunk.stop)])
        played = _play(a, b, np.repeat(seeds, 2), board, progress)
        results[chunk], points[chunk] = _results(played)
    return Match(a.spec, b.spec, results, points)


def score_interval(results: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired results, (pairs, 2) within [0, 1].

    Wilson's interval (1927), which stays within [0, 1] and is honest at 0 and 1, with the effective
    number of independent games that the spread between pairs shows (Kish 1965), from one to four a
    pair.
    """
    pairs = len(results)
    p = float(results.mean())
    variance = float(results.mean(axis=1).var(ddof=1)) / pairs if pairs > 1 else 0.0
    n = p * (1 - p) / variance if variance > 0 else pairs
    n = min(max(n, pairs), 4 * pairs)
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def _play(
    a: Agent,
    b: Agent,
    seeds: npt.NDArray[np.int64],
    board: str | Path | Board,
    progress: Callable[[int], None],
) -> Batch:
    """Play games to the end; `a` sits at seat 0 in even games, at seat 1 in odd ones."""
    batch = Batch(len(seeds), board, autoreset=False, observation=None)
    batch.begin(np.arange(len(batch)), seeds)
    seat_of_a = np.arange(len(batch)) % 2
    running = np.arange(len(batch))
    while len(running):
        for agent, moves_for_a in ((a, True), (b, False)):
            players = batch.states["player"][running]
            games = running[(players == seat_of_a[running]) == moves_for_a]
            games = games[batch.legal[games] != 0]
            if len(games):
                batch.decide(agent, games)
        before = len(running)
        running = running[~batch.over[running]]
        if len(running) < before:
            progress(before - len(running))
    return batch


def _results(batch: Batch) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    n = len(batch)
    seat_of_a = np.arange(n) % 2
    rewards = batch.rewards(np.arange(n))[np.arange(n), seat_of_a].astype(np.float64)
    points = np.empty((n, 2, 3), np.int64)
    _points(batch.boards, batch.states, points)
    points[1::2] = points[1::2, ::-1]
    return ((rewards + 1) / 2).reshape(-1, 2), points.reshape(-1, 2, 2, 3)


@entry
def _points(boards: Any, states: Any, out: Any) -> None:
    for i in range(len(states)):
        for seat in range(2):
            faith, commerce, culture = score(boards[0], states[i], seat)
            out[i, seat, 0] = faith
            out[i, seat, 1] = commerce
            out[i, seat, 2] = culture


def round_robin(agents: int) -> list[tuple[int, int]]:
    """Return every two of a number of agents, by index, each pair once."""
    return list(itertools.combinations(range(agents), 2))
