"""Games of an agent against itself, each with luck of its own: from the set-up or from positions.

A pair of such games with swapped seats would be the same game twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import (
    AgentFactory,
    Executor,
    SerialExecutor,
    agent_spec_of,
    chunked,
    gather,
    policy_sha256,
    split,
)
from tokaido_env.arena.match import games_to_play
from tokaido_env.arena.playing import SECONDS, Job, Numbers, named, widened
from tokaido_env.arena.tournament import GamesTask
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.checks import shown
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import reward, total
from tokaido_env.core.state import copy_rows

Seeds = npt.NDArray[np.int64]
States = npt.NDArray[np.void]
Values = npt.NDArray[np.float64]


def play_alone(
    agent: Agent,
    board: Board,
    seeds: Seeds,
    progress: Callable[[int], None] = lambda games: None,
    executor: Executor | None = None,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int8]]:
    """Play whole games.

    Args:
        agent: plays both seats.
        board: of all games.
        seeds: int64 (n,), of the games, one or more.
        progress: called with the number of games finished now and then.
        executor: who plays; the games are the same. None: this process.

    Returns:
        `GAME` (n,), and int8 (n, longest), the decisions of each game, -1 after its last.
    """
    executor = executor or SerialExecutor()
    games = games_to_play(seeds, 0, 0)
    actions = np.full((len(seeds), 0), -1, np.int8)
    for _, finished in executor.map(_units(agent, board, games, executor.workers), (agent,)):
        numbers, moves = finished.numbers, finished.actions
        new = int((games["decisions"][numbers] == 0).sum())
        actions = widened(actions, moves.shape[1])
        games[numbers], actions[numbers, : moves.shape[1]] = finished.games, moves
        progress(new)
    return games, actions


def _units(
    agent: Agent, board: Board, games: npt.NDArray[np.void], workers: int
) -> list[GamesTask]:
    """Cut games into work for an executor."""
    return [
        GamesTask(
            (agent_spec_of(agent),) * 2,
            tuple(
                Job(numbers, games[numbers], [board], np.zeros(len(numbers), np.int64), len(games))
                for numbers in chunked(some, agent.games_at_once)
            ),
        )
        for some in split(np.arange(len(games)), workers)
    ]


def play_on(
    agent: Agent,
    board: Board,
    states: States,
    seeds: Seeds,
    progress: Callable[[int], None] = lambda games: None,
    executor: Executor | None = None,
) -> tuple[Values, Values]:
    """Play positions to the end.

    Args:
        agent: plays both seats.
        board: of all games.
        states: `STATE` (n,), to begin from.
        seeds: int64 (n,), of the luck from there on.
        progress: called with the number of games finished now and then.
        executor: who plays; the games are the same. None: this process.

    Returns:
        The results of player_0, 1, 0.5 or 0, and its lead in points: float64 (n,) each.

    Raises:
        IllegalMove, AgentFailed: if the agent failed, naming it.
    """
    executor, mark = executor or SerialExecutor(), policy_sha256(agent.spec)
    ends = np.zeros((len(states), 2))
    units = (
        PlayOnTask(agent.spec, mark, board, some, copy_rows(states, some), seeds[some])
        for some in split(np.arange(len(states)), executor.workers)
    )
    gather(ends, executor, units, (agent,), progress)
    return ends[:, 0], ends[:, 1]


class PlayOnTask(NamedTuple):
    """Positions to be played to the end, as work for an executor.

    Its parts are numbers of positions, int64 (k,), and what came of them: the result of player_0
    and its lead in points, float64 (k, 2).

    Attributes:
        agent: spec of who plays both seats.
        mark: of its policy file, as `policy_sha256`.
        board: of all games.
        numbers: int64 (n,), of the positions.
        states: `STATE` (n,).
        seeds: int64 (n,), of the luck from there on.
    """

    agent: str
    mark: str
    board: Board
    numbers: Numbers
    states: States
    seeds: Seeds

    def run(self, make: AgentFactory) -> Iterator[tuple[Numbers, Values]]:
        """Play the positions: see `Task.run`."""
        agent = make(self.agent, self.mark)
        for some in chunked(np.arange(len(self.numbers)), agent.games_at_once):
            yield from self._play(agent, some)

    def _play(self, agent: Agent, some: Numbers) -> Iterator[tuple[Numbers, Values]]:
        """Play some of the positions at once."""
        batch = Batch(len(some), self.board, autoreset=False, observation=None)
        batch.reset(self.seeds[some], copy_rows(self.states, some))
        given, given_at = np.zeros(len(some), np.bool_), time.monotonic()
        while not given.all():
            running = np.flatnonzero(~batch.over)
            if len(running):
                with named(agent):
                    batch.decide(agent, running)
            if batch.over.all() or time.monotonic() - given_at > SECONDS:
                finished = np.flatnonzero(batch.over & ~given)
                ends = np.zeros((len(finished), 2))
                _note_ends(batch.boards, copy_rows(batch.states, finished), ends)
                yield self.numbers[some[finished]], ends
                given[finished], given_at = True, time.monotonic()

    def __str__(self) -> str:
        more = f"position {self.numbers[0] + 1} and {len(self.numbers) - 1} more"
        return f"{more}, played to the end by {shown(self.agent)}"


@entry
def _note_ends(boards: Any, states: Any, ends: Any) -> None:
    """Write the result of player_0 and its lead in points, float64 (n, 2)."""
    for i in range(len(states)):
        ends[i, 0] = (reward(boards[0], states[i], 0, False) + 1.0) / 2.0
        ends[i, 1] = total(boards[0], states[i], 0) - total(boards[0], states[i], 1)
