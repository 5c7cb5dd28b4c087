"""Matches: paired games between agents, played as one big batch.

Each pair is the same luck twice with seats swapped, so that neither dice nor seat favour anyone.
The seeds of the pairs lie in a domain of their own: no agent has trained on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.base import Agent
from tokaido_env.agents.match import Match, replay_games
from tokaido_env.batch import Batch
from tokaido_env.board import Board
from tokaido_env.luck import arena_seed, check_seed

CHUNK = 4096  # games at once


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
    loaded = Board.load(board)
    played = []
    for first in range(0, games // 2, CHUNK // 2):
        last = min(first + CHUNK // 2, games // 2)
        seeds = np.array([arena_seed(seed, pair) for pair in range(first, last)])
        played.append(play_pairs(a, b, seeds, loaded, progress))
    actions = _side_by_side([chunk[1] for chunk in played])
    return Match(a.spec, b.spec, np.concatenate([chunk[0] for chunk in played]), actions)


def play_pairs(
    a: Agent,
    b: Agent,
    seeds: npt.NDArray[np.int64],
    board: Board,
    progress: Callable[[int], None],
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int8]]:
    """Play a pair of games for each seed to the end; return games and actions as in `Match`."""
    each = np.repeat(seeds, 2)
    seats_of_a = np.tile(np.array([0, 1], np.int8), len(seeds))
    actions = _actions(a, b, each, seats_of_a, board, progress)
    games = replay_games(board, each, seats_of_a, actions)
    return games.reshape(-1, 2), actions.reshape(len(seeds), 2, -1)


def _actions(
    a: Agent,
    b: Agent,
    seeds: npt.NDArray[np.int64],
    seats_of_a: npt.NDArray[np.int8],
    board: Board,
    progress: Callable[[int], None],
) -> npt.NDArray[np.int8]:
    """Play a game for each seed and return the decisions, -1 after the last."""
    batch = Batch(len(seeds), board, autoreset=False, observation=None)
    batch.begin(np.arange(len(batch)), seeds)
    actions = np.full((len(seeds), 256), -1, np.int8)
    running = np.arange(len(batch))
    while len(running):
        for agent, moves_for_a in ((a, True), (b, False)):
            players = batch.states["player"][running]
            games = running[(players == seats_of_a[running]) == moves_for_a]
            games = games[batch.legal[games] != 0]
            if len(games):
                decisions = batch.slots["decisions"][games]
                if int(decisions.max()) >= actions.shape[1]:
                    actions = np.pad(actions, ((0, 0), (0, 256)), constant_values=-1)
                actions[games, decisions] = batch.decide(agent, games)
        before = len(running)
        running = running[~batch.over[running]]
        if len(running) < before:
            progress(before - len(running))
    return actions[:, : int(batch.slots["decisions"].max())]


def _side_by_side(parts: list[npt.NDArray[np.int8]]) -> npt.NDArray[np.int8]:
    """Put actions one after the other, filled up with -1 to the longest game."""
    longest = max(part.shape[2] for part in parts)
    filled = [
        np.pad(part, ((0, 0), (0, 0), (0, longest - part.shape[2])), constant_values=-1)
        for part in parts
    ]
    return np.concatenate(filled)


def round_robin(agents: int) -> list[tuple[int, int]]:
    """Return every two of a number of agents, by index, each pair once."""
    return list(itertools.combinations(range(agents), 2))
