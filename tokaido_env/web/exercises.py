"""Exercises: positions of played games in which a decision lost more than its interval."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.core.actions import LABELS
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.serialization import state_to_dict
from tokaido_env.core.state import copy_rows
from tokaido_env.study.review import Review, interval_half_width
from tokaido_env.web.game_session import sampled_wins
from tokaido_env.web.position_form import JsonDict

MAX_EXERCISES = 8  # of one game


def exercises_of(review: Review, judge: Agent, players: Collection[int]) -> list[JsonDict]:
    """Return the exercises of the reviewed game as JSON types, the largest loss first.

    Each has `board`, `board_hash`, `position`, `judge`, the action `played`, and `odds`: by legal
    action the win probability ± its 95 % interval, and whether it loses no more than its interval.
    """
    rows = [row for row in review.choices().tolist() if review.loss[row] > review.error[row]]
    rows = [row for row in rows if review.trajectory.movers[row] in players]
    rows = sorted(rows, key=lambda row: -review.loss[row])[:MAX_EXERCISES]
    found = [_exercise(review, judge, row) for row in rows]
    return [one for one in found if not one["odds"][one["played"]][2]]


def _exercise(review: Review, judge: Agent, row: int) -> JsonDict:
    played, board = review.trajectory, review.trajectory.board
    states, actions = copy_rows(played.states, np.array([row])), actions_of(int(played.legal[row]))
    wins = sampled_wins(judge, board, states, actions, arena_seed(0, row))
    lost = wins[[wins.mean(axis=1).argmax()]] - wins
    means, errors = wins.mean(axis=1).round(4), interval_half_width(wins).round(4)
    good = lost.mean(axis=1) <= interval_half_width(lost)
    odds = zip(means.tolist(), errors.tolist(), good.tolist(), strict=True)
    return {
        "board": board.name,
        "board_hash": board.hash,
        "position": state_to_dict(board.name, board.record[0], states[0]),
        "judge": review.judge,
        "played": LABELS[int(played.events[row])],
        "odds": dict(zip((LABELS[action] for action in actions), odds, strict=True)),
    }
