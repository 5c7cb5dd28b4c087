"""The results that an agent expects (its values): at decisions, and after chance samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, Keys, Legal, States
from tokaido_env.arena.executors import (
    CallTask,
    Executor,
    agent_spec_of,
    chunked,
    gather,
    split_work,
)
from tokaido_env.arena.game_runner import AgentFailed, Numbers, naming_agent
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.rng import agent_keys
from tokaido_env.core.state import copy_rows
from tokaido_env.trajectory import Trajectory

_MAX_ROWS = 2**15  # games of one batch of samples: about 30 MB

Values = npt.NDArray[np.float64]


def has_values(agent: Agent, board: Board) -> bool:
    """Return whether an agent gives values."""
    batch = Batch(1, board, observation=None)
    batch.reset(0)
    position = batch.boards, batch.states, batch.legal, batch.keys(batch.all_games)
    return _judge(agent, *position) is not None


def check_has_values(agent: Agent, board: Board) -> None:
    """Raise `ValueError` if an agent gives no values."""
    if not has_values(agent, board):
        raise ValueError(
            f"agent: expected one that gives values, got {repr_short(agent.spec)}: "
            "use champion or mcts:sims=100, for example"
        )


def values_at_decisions(
    agent: Agent, trajectory: Trajectory, seeds: Numbers, rows: Numbers, executor: Executor
) -> Values:
    """Return an agent's values for player_0 at decisions of its own games, float64 (k,).

    The agent gets the random bits that it had when it decided there.

    Args:
        agent: gives the values; it played the games.
        trajectory: the games.
        seeds: int64, of all games.
        rows: int64 (k,), the rows of the decisions.
        executor: runs the agent.

    Raises:
        AgentFailed: if the agent fails, or a value is not a number from -1 to 1.
    """
    games = trajectory.games[rows]
    number = np.cumsum(trajectory.decided)[rows] - 1
    first = np.searchsorted(games, np.arange(len(trajectory)))  # of each game, among the rows
    keys = np.empty(len(rows), np.uint64)
    agent_keys(seeds[games], trajectory.movers[rows], number - number[first][games], keys)
    values, agents = np.empty(len(rows)), (agent_spec_of(agent),)

    def task(some: Numbers) -> CallTask:
        positions = copy_rows(trajectory.states, rows[some]), trajectory.legal[rows[some]]
        text = f"values of {repr_short(agent.spec)} at {len(some)} decisions"
        arguments = some, trajectory.board, *positions, keys[some]
        return CallTask(_position_values_task, agents, arguments, text)

    parts = split_work(np.arange(len(rows)), executor.workers)
    gather(values, executor, map(task, parts), (agent,))
    return values


def _position_values_task(
    agent: Agent, indices: Numbers, board: Board, states: States, legal: Legal, keys: Keys
) -> Iterator[tuple[Numbers, Values]]:
    yield indices, position_values(agent, board, states, legal, keys)


def values_after_chance(
    agent: Agent, trajectory: Trajectory, events: Numbers, seeds: Numbers, executor: Executor
) -> Values:
    """Return an agent's values for player_0 after resampled chance, float64 (k, samples).

    Args:
        agent: gives the values.
        trajectory: whole games.
        events: int64 (k,), rows at chance.
        seeds: int64 (k, samples), of the samples.
        executor: draws the samples and runs the agent.

    Raises:
        AgentFailed: as `values_at_decisions`.
    """
    values, agents = np.empty(seeds.shape), (agent_spec_of(agent),)

    def task(some: Numbers) -> CallTask:
        states = copy_rows(trajectory.states, events[some])
        text = f"values of {repr_short(agent.spec)} after {len(some)} chance samples"
        return CallTask(
            _chance_values_task, agents, (some, trajectory.board, states, seeds[some]), text
        )

    parts = split_work(np.arange(len(events)), executor.workers)
    gather(values, executor, map(task, parts), (agent,))
    return values


def _chance_values_task(
    agent: Agent, indices: Numbers, board: Board, states: States, seeds: Numbers
) -> Iterator[tuple[Numbers, Values]]:
    samples = seeds.shape[1]
    for some in chunked(np.arange(len(indices)), max(_MAX_ROWS // samples, 1)):
        batch = Batch(len(some) * samples, board, autoreset=False, observation=None)
        batch.reset(seeds[some].reshape(-1), copy_rows(states, np.repeat(some, samples)))
        yield indices[some], game_values(agent, board, batch).reshape(len(some), samples)


def game_values(agent: Agent, board: Board, batch: Batch) -> Values:
    """Return player_0's results in finished games and an agent's values in the others: (n,).

    Args:
        agent: gives the values, with the random bits of the games.
        board: of all games.
        batch: the games; unfinished ones are at a decision.
    """
    values = batch.rewards(batch.all_games)[:, 0].astype(np.float64)
    running = np.flatnonzero(~batch.over)
    states, legal = copy_rows(batch.states, running), batch.legal[running]
    values[running] = position_values(agent, board, states, legal, batch.keys(running))
    return values


def position_values(agent: Agent, board: Board, states: States, legal: Legal, keys: Keys) -> Values:
    """Return an agent's values for player_0 in positions, float64 (n,).

    Args:
        agent: gives the values.
        board: of all positions.
        states: `STATE` (n,), each at a decision.
        legal: uint64 (n,), the legal actions as bits.
        keys: uint64 (n,), the agent's random bits.

    Raises:
        AgentFailed: if the agent fails, or a value is not a number from -1 to 1.
    """
    values = np.empty(len(states))
    for some in chunked(np.arange(len(states)), agent.games_at_once):
        part = _judge(agent, board.record, copy_rows(states[some]), legal[some], keys[some])
        if np.shape(part) != values[some].shape:
            raise AgentFailed(
                f"agent {repr_short(agent.spec)}: judge: expected values of shape "
                f"{values[some].shape}, got {np.shape(part)}"
            )
        values[some] = part
    if not (np.abs(values) <= 1).all():
        wrong = values[~(np.abs(values) <= 1)][0]
        raise AgentFailed(
            f"agent {repr_short(agent.spec)}: judge: expected values from -1 to 1, got {wrong}"
        )
    return values


def _judge(agent: Agent, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
    with naming_agent(agent):
        return agent.judge(boards, states, legal, keys)[1]
