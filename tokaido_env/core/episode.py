"""One game, for callers in Python: a step, and what the rules say of where it stands."""

from __future__ import annotations

from typing import Any

from tokaido_env.core.jit import entry
from tokaido_env.core.luck import resolve
from tokaido_env.core.rules import (
    apply,
    apply_outcome,
    capacity,
    is_chance,
    legal,
    outcome_weights,
    picker,
    setup_step,
    wares_held,
)


@entry
def advance(
    boards: Any, states: Any, lucks: Any, i: int, move: int, sampled: bool, events: Any
) -> tuple[int, int, int]:
    """Play one move of game `i`, then let chance resolve itself if `sampled`.

    Args:
        move: an action, at chance an outcome, or -1 for none.
        events: a uint8 array of `MAX_EVENTS`; receives the outcomes that chance drew.

    Returns:
        The legal mask, the player to decide (-1 for nobody) and the number of outcomes drawn.
    """
    board = boards[i]
    s = states[i]
    if move >= 0:
        if is_chance(s):
            apply_outcome(board, s, move)
        else:
            apply(board, s, move)
    drawn = 0
    if sampled:
        drawn = resolve(board, s, lucks[i], events)
    return int(legal(board, s)), int(s["player"]), drawn


@entry
def weights_of(boards: Any, states: Any, i: int, out: Any) -> tuple[int, int]:
    """Return the number of outcomes of game `i` and its set-up step; write the weights to `out`."""
    return outcome_weights(boards[i], states[i], out), setup_step(states[i])


@entry
def picker_of(states: Any, i: int) -> int:
    """Return whose pick it is in game `i`: `rules.picker`."""
    return picker(states[i])


@entry
def wares_of(states: Any, i: int, seat: int) -> tuple[int, int]:
    """Return how many wares a seat of game `i` holds, and how many it may keep."""
    return wares_held(states[i], seat), capacity(states[i], seat)
