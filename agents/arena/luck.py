"""How far chance favoured an agent in a game, to be taken off its result: fewer games tell more.

Each outcome of chance is compared with what the odds of the rules promised:

    luck = Σ  value(position after the outcome) - Σ odds × value(position after each outcome)

The sum has mean zero whatever the agents do and whatever the value function is worth, because the
odds are known; so `result - luck` has the mean of the result, and the better the value function,
the less it spreads. This is the chance part of AIVAT (Burch, Schmid, Moravčík, Morrill and Bowling
2018, "AIVAT: A New Variance Reduction Technique for Agent Evaluation in Imperfect Information
Games"). The value function is the heuristic's, one decision deep.

The set-up is left out: both games of a pair have the same one with seats swapped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.arena.match import Match
from tokaido_env.agents.players.heuristic import SCRATCH, evaluate, guides_of, value_of_action
from tokaido_env.boards.board import Board
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.bits import lowest
from tokaido_env.core.box import Row
from tokaido_env.core.jit import int64, pooled, subroutine
from tokaido_env.core.rules import MAX_OUTCOMES, apply_outcome, legal, outcome_weights
from tokaido_env.core.state import DRAW, REVEAL, ROLL, SETUP
from tokaido_env.trajectory import NO_EVENT, Trajectory, in_parts

_KINDS = (ROLL, DRAW, REVEAL)


def with_luck(match: Match, boards: Board | BoardPool) -> Match:
    """Return a match, played on a board or a pool, with the luck of its games counted."""
    games = match.games.copy()
    flat = games.reshape(-1)
    actions = match.actions.reshape(len(flat), -1)
    luck = luck_of_games(boards, flat["seed"], actions, flat["board"]).sum(axis=1)
    flat["luck"] = np.where(flat["seat_of_a"] == 0, luck, -luck)
    return replace(match, games=games)


def luck_of_games(
    boards: Board | BoardPool,
    seeds: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int8],
    which: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.float64]:
    """Play finished games through and return how far chance favoured player_0 in each.

    Args:
        boards: of the games.
        seeds: int64 (n,), of the games.
        actions: int8 (n, longest), the decisions of each game; all legal.
        which: int64 (n,), the board of each game; by default that of its seed.

    Returns:
        float64 (n, 3), in results from 0 to 1, by rolls, draws and reveals: of mean zero.
    """
    luck = np.zeros((len(seeds), len(_KINDS)))
    for some, played in in_parts(boards, seeds, actions, which):
        column, phases = luck_of_events(played), played.states["phase"]
        for kind, phase in enumerate(_KINDS):
            drawn = phases == phase
            luck[some, kind] = np.bincount(played.games[drawn], column[drawn], len(played))
    return luck


def luck_of_events(played: Trajectory) -> npt.NDArray[np.float64]:
    """Return how far chance favoured player_0 with each event, in results from 0 to 1.

    Returns:
        float64 (rows,), a column of the trajectory: 0 for decisions and in the set-up.
    """
    luck = np.zeros(len(played.states))
    boards, outcomes = played.board.record, played.outcomes
    outcomes[played.states["phase"] == SETUP] = NO_EVENT
    _note_luck(
        len(played), played.offsets, boards, guides_of(boards), played.states, outcomes, luck
    )
    return luck


@pooled(at_least=2)
def _note_luck(
    first: int,
    last: int,
    offsets: Any,
    boards: Any,
    guides: Any,
    states: Any,
    outcomes: Any,
    luck: Any,
) -> None:
    """Write the luck of each event of games, float64 (rows,)."""
    scratch = np.empty(1, SCRATCH)[0]
    odds = np.empty(MAX_OUTCOMES, np.int64)
    for row in range(offsets[first], offsets[last]):
        outcome = int64(outcomes[row])
        if outcome >= 0:
            s = states[row]
            luck[row] = _surprise(boards[0], guides[0], s, outcome, odds, scratch) / 2.0


@subroutine
def _surprise(board: Row, guide: Row, s: Row, outcome: int, odds: Any, scratch: Row) -> float:
    """Return by how much an outcome is better for player_0 than the mean, in values."""
    weights = 0
    mean = 0.0
    happened = 0.0
    for other in range(outcome_weights(board, s, odds)):
        if odds[other] > 0:
            scratch["states"][2] = s
            apply_outcome(board, scratch["states"][2], other)
            value = float(_outlook(board, guide, scratch["states"][2], scratch))
            weights += odds[other]
            mean += odds[other] * value
            if other == outcome:
                happened = value
    return happened - mean / weights


@subroutine
def _outlook(board: Row, guide: Row, s: Row, scratch: Row) -> np.float32:
    """Return the value for player_0, after the best decision if one is to be taken."""
    mask = legal(board, s)
    if mask == np.uint64(0):
        return evaluate(board, guide, s, scratch)
    sign = np.float32(1 - 2 * int64(s["player"]))
    best = np.float32(-2.0)
    while mask != np.uint64(0):
        best = max(best, value_of_action(board, guide, s, lowest(mask), scratch))
        mask &= mask - np.uint64(1)
    return sign * best
