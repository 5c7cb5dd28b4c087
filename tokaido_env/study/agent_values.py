"""The results that an agent expects (its values), in positions and in games."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, Keys, Legal, States
from tokaido_env.arena.executors.base import chunked
from tokaido_env.arena.game_runner import AgentFailed, naming_agent
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.state import copy_rows

Values = npt.NDArray[np.float64]


def check_has_values(agent: Agent, board: Board) -> None:
    """Prepare an agent for a board; raise `ValueError` if it gives no values of positions on it."""
    agent.prepare([board])
    batch = Batch(1, board, observation=None)
    batch.reset(0)
    position = batch.boards, batch.states, batch.legal, batch.keys(batch.all_games)
    if _judge(agent, *position) is None:
        raise ValueError(
            f"agent: expected one that gives values, got {repr_short(agent.spec)}: "
            "use champion or mcts:sims=100, for example"
        )


def game_values(agent: Agent, board: Board, batch: Batch) -> Values:
    """Return the values of n games for player_0: its result in a finished game, else the agent's.

    Args:
        agent: gives the values, with the random bits of the games.
        board: of all games.
        batch: the games; unfinished ones are at a decision.

    Returns:
        float64 (n,) in [-1, 1].

    Raises:
        AgentFailed: if the agent fails, or a value is not a number from -1 to 1.
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
