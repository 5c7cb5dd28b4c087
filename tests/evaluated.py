"""The kernels of the heuristic and of reach features for tests to call, and best effects."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import Board, Game, Phase
from tokaido_env.core.jit import entry
from tokaido_env.features.evaluation import (
    SCRATCH,
    around_of,
    count_terms,
    evaluate,
    game_phase,
    places_of,
    quiescent,
)
from tokaido_env.features.lookahead_features import N_REACH, next_reach, write_reach
from tokaido_env.features.terms import WEIGHTS

BOARD = Board.load()


@entry
def _count(boards: Any, states: Any, scratch: Any) -> int:
    quiet = quiescent(boards[0], states[0], scratch[0])
    places = places_of(boards[0], quiet, around_of(boards[0], quiet))
    count_terms(boards[0], quiet, places, scratch[0]["terms"])
    return int(game_phase(boards[0], states[0]))


@entry
def _value(boards: Any, states: Any, scratch: Any) -> float:
    return float(evaluate(boards[0], states[0], WEIGHTS, scratch[0]))


@entry
def _write_reach(boards: Any, states: Any, seat: int, out: Any) -> None:
    reach = next_reach(boards[0], states[0], seat, around_of(boards[0], states[0]))
    write_reach(reach, 0, out)


def terms_of(
    states: npt.NDArray[np.void], boards: npt.NDArray[np.void] = BOARD.record
) -> tuple[npt.NDArray[np.int16], int]:
    """The terms of both players, (2, N_TERMS), and how near the end is, of a position (1,)."""
    scratch = np.zeros(1, SCRATCH)
    progressed = _count(boards, states, scratch)
    return scratch[0]["terms"].copy(), int(progressed)


def value_of(states: npt.NDArray[np.void], boards: npt.NDArray[np.void] = BOARD.record) -> float:
    """The evaluation of a position (1,) for player_0."""
    return float(_value(boards, states, np.zeros(1, SCRATCH)))


def reach_of(
    states: npt.NDArray[np.void], boards: npt.NDArray[np.void], seat: int
) -> npt.NDArray[np.float32]:
    """The reach features of a seat, (N_REACH,), in a position (1,)."""
    out = np.zeros(N_REACH, np.float32)
    _write_reach(boards, states, seat, out)
    return out


def best_leaf(game: Game, action: int) -> Game:
    """Return the game after an action and its best effect for the player who takes it."""
    after, sign = game.copy(), 1 - 2 * int(game.player or 0)
    after.play(action)
    if after.phase != Phase.EFFECT:
        return after
    leaves = []
    for effect in after.legal_actions():
        leaves.append(after.copy())
        leaves[-1].play(effect)
    return max(leaves, key=lambda leaf: sign * value_of(leaf.state))
