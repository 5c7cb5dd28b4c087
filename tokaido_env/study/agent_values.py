"""What results an agent expects: in its games, and where chance would have gone on anew."""

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

_ROWS = 2**15  # positions drawn at once

Values = npt.NDArray[np.float64]


def check_tells(agent: Agent, board: Board) -> None:
    """Raise `ValueError` if an agent does not tell what results it expects."""
    batch = Batch(1, board, observation=None)
    batch.reset(0)
    if _asked(agent, batch.boards, batch.states, batch.legal, batch.keys(batch.all_games)) is None:
        raise ValueError(
            f"{repr_short(agent.spec)} does not tell what results it expects: expected an agent that "
            "judges positions, such as champion or mcts:sims=100"
        )


def values_of(
    agent: Agent, played: Trajectory, seeds: Numbers, rows: Numbers, executor: Executor
) -> Values:
    """Return what an agent expects for player_0 in rows of a trajectory, float64 (k,).

    It has the random bits with which it decided there.

    Args:
        agent: that is asked.
        played: games of it.
        seeds: int64, of all games.
        rows: int64 (k,), where it had to decide.
        executor: who asks.

    Raises:
        AgentFailed: if it fails, or says what is no number from -1 to 1.
    """
    games = played.games[rows]
    number = np.cumsum(played.decided)[rows] - 1
    first = np.searchsorted(games, np.arange(len(played)))  # of each game, among the rows
    keys = np.empty(len(rows), np.uint64)
    agent_keys(seeds[games], played.movers[rows], number - number[first][games], keys)
    values, judge = np.empty(len(rows)), (agent_spec_of(agent),)

    def task(some: Numbers) -> CallTask:
        positions = copy_rows(played.states, rows[some]), played.legal[rows[some]], keys[some]
        text = f"{len(some)} positions judged by {repr_short(agent.spec)}"
        return CallTask(_judge, judge, (some, played.board, *positions), text)

    parts = split_work(np.arange(len(rows)), executor.workers)
    gather(values, executor, map(task, parts), (agent,))
    return values


def _judge(
    agent: Agent, numbers: Numbers, board: Board, states: States, legal: Legal, keys: Keys
) -> Iterator[tuple[Numbers, Values]]:
    """Yield what an agent expects in numbered positions, as `expected_of`."""
    yield numbers, expected_of(agent, board, states, legal, keys)


def values_after(
    agent: Agent, played: Trajectory, events: Numbers, seeds: Numbers, executor: Executor
) -> Values:
    """Return what an agent would expect for player_0 if chance went on anew, float64 (k, draws).

    Args:
        agent: that is asked.
        played: whole games.
        events: int64 (k,), rows where chance comes in.
        seeds: int64 (k, draws), of what is drawn.
        executor: who draws and asks.

    Raises:
        AgentFailed: as `values_of`.
    """
    out, judge = np.empty(seeds.shape), (agent_spec_of(agent),)

    def task(some: Numbers) -> CallTask:
        arguments = some, played.board, copy_rows(played.states, events[some]), seeds[some]
        text = f"{len(some)} draws of chance judged by {repr_short(agent.spec)}"
        return CallTask(_draw, judge, arguments, text)

    parts = split_work(np.arange(len(events)), executor.workers)
    gather(out, executor, map(task, parts), (agent,))
    return out


def _draw(
    agent: Agent, numbers: Numbers, board: Board, states: States, seeds: Numbers
) -> Iterator[tuple[Numbers, Values]]:
    """Let chance go on by seeds, int64 (n, draws); yield what an agent expects after each draw."""
    draws = seeds.shape[1]
    for some in chunked(np.arange(len(numbers)), max(_ROWS // draws, 1)):
        batch = Batch(len(some) * draws, board, autoreset=False, observation=None)
        batch.reset(seeds[some].reshape(-1), copy_rows(states, np.repeat(some, draws)))
        yield numbers[some], worth_of(agent, board, batch).reshape(len(some), draws)


def worth_of(agent: Agent, board: Board, batch: Batch) -> Values:
    """Return the results of player_0 in games, what an agent expects where they go on: (n,).

    Args:
        agent: that is asked, with the random bits of the games.
        board: of all games.
        batch: the games; those that go on have a decision to take.
    """
    values = batch.rewards(batch.all_games)[:, 0].astype(np.float64)
    running = np.flatnonzero(~batch.over)
    states, legal = copy_rows(batch.states, running), batch.legal[running]
    values[running] = expected_of(agent, board, states, legal, batch.keys(running))
    return values


def expected_of(agent: Agent, board: Board, states: States, legal: Legal, keys: Keys) -> Values:
    """Return what results an agent expects for player_0 in positions, float64 (n,).

    Args:
        agent: that is asked.
        board: of all positions.
        states: `STATE` (n,), with a decision to take.
        legal: uint64 (n,), the legal actions as bits.
        keys: uint64 (n,), the agent's random bits.

    Raises:
        AgentFailed: if it fails, or says what is no number from -1 to 1.
    """
    values = np.empty(len(states))
    for some in chunked(np.arange(len(states)), agent.games_at_once):
        told = _asked(agent, board.record, copy_rows(states[some]), legal[some], keys[some])
        if np.shape(told) != values[some].shape:
            raise AgentFailed(
                f"agent {repr_short(agent.spec)}: judge: expected results of shape "
                f"{values[some].shape}, got {np.shape(told)}"
            )
        values[some] = told
    if not (np.abs(values) <= 1).all():
        wrong = values[~(np.abs(values) <= 1)][0]
        raise AgentFailed(
            f"agent {repr_short(agent.spec)}: judge: expected results from -1 to 1, got {wrong}"
        )
    return values


def _asked(agent: Agent, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
    with naming_agent(agent):
        return agent.judge(boards, states, legal, keys)[1]
