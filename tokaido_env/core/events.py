"""Ids, labels and codes of events, and the errors of illegal moves.

An event is a decision or an outcome of chance. The meaning of an outcome's id depends on its
*stage*: its chance phase or, during set-up, the step. An event's *code* is `256 * stage + id`. The
stage of decisions is 0, so the code of an action is its id.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.arguments import as_integer, repr_short
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.constants import CHARACTERS, COASTAL_TOWNS, ICONS, SIDES, WARES
from tokaido_env.core.rules import MAX_OUTCOMES, legal_mask
from tokaido_env.core.state import OVER, Phase
from tokaido_env.core.stepping import weights_of

TokenKinds = tuple[tuple[str, int], ...]
"""Ware and price of each kind of boutique token, as `Board.kinds`."""

# Stages of events: 0 for decisions, the phase for chance, SETUP_STAGE + step during set-up.
DECISION_STAGE, SETUP_STAGE = 0, len(Phase)
CODES_PER_STAGE = 256
"""The difference between the codes of one id at consecutive stages."""

_STEPS = len(COASTAL_TOWNS) + len(CHARACTERS)
_MAX_LISTED = 10  # outcomes in an error
_MAX_MOVE_CHARS = 50  # of a move in an error

# Labels that do not depend on the board.
_OUTCOME_LABELS = {
    Phase.ROLL: [f"roll:{k // 36 + 1}/{k // 6 % 6 + 1}/{k % 6 + 1}" for k in range(MAX_OUTCOMES)],
    Phase.DRAW: [f"ware:{ware}" for ware in WARES],
    Phase.REVEAL: [f"tile:{icon}" for icon in ICONS],
}
_OUTCOMES_BY_LABEL = {
    phase: {label: k for k, label in enumerate(labels)} for phase, labels in _OUTCOME_LABELS.items()
}


def outcome_label(kinds: TokenKinds, phase: Phase, setup: int, outcome: int) -> str:
    """Return the label of an outcome of chance.

    Args:
        kinds: kinds of boutique tokens.
        phase: the chance phase.
        setup: the set-up step (`rules.setup_step`), used at SETUP only.
        outcome: the outcome's id.
    """
    if phase != Phase.SETUP:
        return _OUTCOME_LABELS[phase][outcome]
    if setup < len(COASTAL_TOWNS):
        ware, price = kinds[outcome]
        return f"boutique:{COASTAL_TOWNS[setup]}={ware}/{price}"
    character = setup - len(COASTAL_TOWNS)
    return f"side:{CHARACTERS[character]}={SIDES[character][outcome]}"


def outcomes_by_label(kinds: TokenKinds, phase: Phase, setup: int) -> dict[str, int]:
    """Return the ids of a chance phase's outcomes by label; `setup` counts at SETUP only."""
    if phase != Phase.SETUP:
        return _OUTCOMES_BY_LABEL.get(phase, {})
    outcomes = len(kinds) if setup < len(COASTAL_TOWNS) else 2
    return {outcome_label(kinds, phase, setup, k): k for k in range(outcomes)}


@functools.lru_cache(maxsize=64)
def event_codes(kinds: TokenKinds) -> dict[str, int]:
    """Return the codes of all events by label, on a board with these kinds of boutique tokens."""
    codes = dict(IDS)
    for phase, ids in _OUTCOMES_BY_LABEL.items():
        codes |= {label: CODES_PER_STAGE * phase + outcome for label, outcome in ids.items()}
    for step in range(_STEPS):
        stage = SETUP_STAGE + step
        ids = outcomes_by_label(kinds, Phase.SETUP, step)
        codes |= {label: CODES_PER_STAGE * stage + outcome for label, outcome in ids.items()}
    return codes


@functools.lru_cache(maxsize=64)
def event_labels(kinds: TokenKinds) -> dict[int, str]:
    """Return the labels of all events by code, on a board with these kinds of boutique tokens."""
    return {code: label for label, code in event_codes(kinds).items()}


def illegal_move_message(
    kinds: TokenKinds,
    boards: npt.NDArray[np.void],
    states: npt.NDArray[np.void],
    i: int,
    move: object,
) -> str:
    """Return the error message for an illegal move: the move, the phase and the legal moves.

    Args:
        kinds: kinds of boutique tokens.
        boards: `BOARD` (n,), the board of each game.
        states: `STATE` (n,).
        i: the index of the game.
        move: an action or outcome by id or label, or any other object.
    """
    phase, number = Phase(states["phase"][i]), as_integer(move)
    text = repr_short(move if number is None else number, _MAX_MOVE_CHARS)
    if phase == OVER:
        return f"illegal action {text}: the game is over"
    actions = actions_of(legal_mask(boards, states, i))
    if actions:
        if number is not None and 0 <= number < len(LABELS):
            text += f" ({LABELS[number]})"
        elif not isinstance(move, str) or move not in LABELS:
            text += " (no such action)"
        legal = ", ".join(f"{LABELS[action]} ({action})" for action in actions)
        return (
            f"illegal action {text}: legal are {legal} for player {states['player'][i]} "
            f"at {phase.name}"
        )
    weights = np.zeros(MAX_OUTCOMES, np.int64)
    _, step = weights_of(boards, states, i, weights)
    possible = np.flatnonzero(weights).tolist()
    labels = [f"{outcome_label(kinds, phase, step, k)} ({k})" for k in possible[:_MAX_LISTED]]
    listed = ", ".join(labels + ["…"] * (len(possible) > _MAX_LISTED))
    return f"no outcome {text} at {phase.name}: possible are {listed}"
