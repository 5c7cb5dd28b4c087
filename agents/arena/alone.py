"""Games of an agent against itself, each with luck of its own: from the set-up or from positions.

A pair of such games with swapped seats would be the same game twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.agent import Agent
from tokaido_env.agents.arena.match import replay_games
from tokaido_env.agents.arena.playing import Job, play_games
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.jit import parallel
from tokaido_env.core.rules import reward, total

Seeds = npt.NDArray[np.int64]
States = npt.NDArray[np.void]
Values = npt.NDArray[np.float64]


def play_alone(
    agent: Agent,
    board: Board,
    seeds: Seeds,
    progress: Callable[[int], None] = lambda games: None,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int8]]:
    """Play whole games.

    Args:
        agent: plays both seats.
        board: of all games.
        seeds: int64 (n,), of the games, one or more.
        progress: called with the number of games finished now and then.

    Returns:
        `GAME` (n,), and int8 (n, longest), the decisions of each game, -1 after its last.
    """
    played: list[tuple[Seeds, npt.NDArray[np.int8]]] = []
    numbers = np.arange(len(seeds))
    seats = np.zeros(len(seeds), np.int8)
    for some in _parts(numbers, agent):
        job = Job(some, seeds[some], seats[some], [board], len(seeds))
        play_games(agent, agent, job, lambda *games: played.append(games[:2]), progress)
    actions = np.full((len(seeds), max(moves.shape[1] for _, moves in played)), -1, np.int8)
    for which, moves in played:
        actions[which, : moves.shape[1]] = moves
    return replay_games(board, seeds, seats, actions), actions


def play_on(
    agent: Agent,
    board: Board,
    states: States,
    seeds: Seeds,
    progress: Callable[[int], None] = lambda games: None,
) -> tuple[Values, Values]:
    """Play positions to the end.

    Args:
        agent: plays both seats.
        board: of all games.
        states: `STATE` (n,), to begin from.
        seeds: int64 (n,), of the luck from there on.
        progress: called with the number of games finished now and then.

    Returns:
        The results of player_0, 1, 0.5 or 0, and its lead in points: float64 (n,) each.
    """
    ends = np.zeros((len(states), 2))
    for some in _parts(np.arange(len(states)), agent):
        batch = Batch(len(some), board, autoreset=False, observation=None)
        batch.reset(seeds[some], states[some])
        running = np.flatnonzero(~batch.over)
        while len(running):
            batch.decide(agent, running)
            before = len(running)
            running = running[~batch.over[running]]
            progress(before - len(running))
        part = np.zeros((len(some), 2))
        _note_ends(batch.boards, batch.states, part)
        ends[some] = part
    return ends[:, 0], ends[:, 1]


@parallel
def _note_ends(boards: Any, states: Any, ends: Any) -> None:
    """Write the result of player_0 and its lead in points, float64 (n, 2)."""
    for i in prange(len(states)):
        ends[i, 0] = (reward(boards[0], states[i], 0, False) + 1.0) / 2.0
        ends[i, 1] = total(boards[0], states[i], 0) - total(boards[0], states[i], 1)


def _parts(numbers: npt.NDArray[np.int64], agent: Agent) -> list[npt.NDArray[np.int64]]:
    size = agent.games_at_once
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]
