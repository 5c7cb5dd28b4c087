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
from numba import prange

from tokaido_env.agents.arena.match import Match
from tokaido_env.agents.players.heuristic import SCRATCH, evaluate, guides_of, value_of_action
from tokaido_env.boards.board import Board
from tokaido_env.core.bits import lowest
from tokaido_env.core.jit import allocator, int64, parallel, subroutine
from tokaido_env.core.luck import LUCK, begin_luck, key_of_seed, sample
from tokaido_env.core.rules import (
    MAX_OUTCOMES,
    Row,
    apply,
    apply_outcome,
    is_chance,
    legal,
    outcome_weights,
)
from tokaido_env.core.state import DRAW, OVER, ROLL, SETUP, start


def with_luck(match: Match, board: Board) -> Match:
    """Return a match with the luck of its games counted."""
    games = match.games.copy()
    flat = games.reshape(-1)
    actions = match.actions.reshape(len(flat), -1)
    luck = luck_of_games(board, flat["seed"], actions).sum(axis=1)
    flat["luck"] = np.where(flat["seat_of_a"] == 0, luck, -luck)
    return replace(match, games=games)


def luck_of_games(
    board: Board,
    seeds: npt.NDArray[np.int64],
    actions: npt.NDArray[np.int8],
) -> npt.NDArray[np.float64]:
    """Play finished games through and return how far chance favoured player_0 in each.

    Args:
        board: of all games.
        seeds: int64 (n,), of the games.
        actions: int8 (n, longest), the decisions of each game; all legal.

    Returns:
        float64 (n, 3), in results from 0 to 1, by rolls, draws and reveals: of mean zero.
    """
    luck = np.zeros((len(seeds), 3))
    states = np.repeat(start(board.record), len(seeds))
    _sum_luck(luck, board.record, guides_of(board.record), states, seeds, actions)
    return luck


@parallel
def _sum_luck(luck: Any, boards: Any, guides: Any, states: Any, seeds: Any, actions: Any) -> None:
    """Add up the luck of n games, float64 (n, 3), each played in its row of `states`."""
    for i in prange(len(luck)):
        _sum_luck_of_game(boards[0], guides[0], states[i], int64(seeds[i]), actions[i], luck[i])


@allocator
def _sum_luck_of_game(board: Row, guide: Row, s: Row, seed: int, actions: Any, out: Any) -> None:
    scratch = np.empty(1, SCRATCH)[0]
    odds = np.empty(MAX_OUTCOMES, np.int64)
    stream = np.empty(1, LUCK)[0]
    begin_luck(stream, key_of_seed(seed))
    decisions = 0
    while int(s["phase"]) != OVER:
        if is_chance(s):
            outcome = int64(sample(board, s, stream))
            phase = int64(s["phase"])
            if phase != SETUP:
                surprise = _surprise(board, guide, s, outcome, odds, scratch)
                out[_kind_of_chance(phase)] += surprise / 2.0
            apply_outcome(board, s, outcome)
        else:
            apply(board, s, int64(actions[decisions]))
            decisions += 1


@subroutine
def _kind_of_chance(phase: int) -> int:
    if phase == ROLL:
        return 0
    return 1 if phase == DRAW else 2


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
