"""Events: ids <-> labels of decisions and of outcomes of chance, and why a move is refused.

An outcome's id means something at its place only: a chance phase or, within the set-up, a step. An
event's *code* tells both, `256 * place + id`; the place of decisions is 0, so that the code of an
action is its id.
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
"""Ware and price of the different boutique tokens, as `Board.kinds`."""

# Places of events: a decision, a chance phase by its number, or a step of the set-up after those.
DECISION_STAGE, SETUP_STAGE = 0, len(Phase)
CODES_PER_STAGE = 256
"""What codes of neighbouring places are apart."""

_STEPS = len(COASTAL_TOWNS) + len(CHARACTERS)
_SHOWN = 10  # outcomes named in an error
_MOST_MOVE = 50  # characters of a move, there

# Of the chance phases whose labels do not depend on the board.
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
        kinds: of boutique tokens.
        phase: the chance phase.
        setup: the step of the set-up (`rules.setup_step`), read at SETUP only.
        outcome: its id.
    """
    if phase != Phase.SETUP:
        return _OUTCOME_LABELS[phase][outcome]
    if setup < len(COASTAL_TOWNS):
        ware, price = kinds[outcome]
        return f"boutique:{COASTAL_TOWNS[setup]}={ware}/{price}"
    character = setup - len(COASTAL_TOWNS)
    return f"side:{CHARACTERS[character]}={SIDES[character][outcome]}"


def outcomes_by_label(kinds: TokenKinds, phase: Phase, setup: int) -> dict[str, int]:
    """Return the ids of outcomes by their labels; arguments as for `outcome_label`."""
    if phase != Phase.SETUP:
        return _OUTCOMES_BY_LABEL.get(phase, {})
    outcomes = len(kinds) if setup < len(COASTAL_TOWNS) else 2
    return {outcome_label(kinds, phase, setup, k): k for k in range(outcomes)}


@functools.lru_cache(maxsize=64)
def event_codes(kinds: TokenKinds) -> dict[str, int]:
    """Return the codes of all events by their labels."""
    codes = dict(IDS)
    for phase, ids in _OUTCOMES_BY_LABEL.items():
        codes |= {label: CODES_PER_STAGE * phase + outcome for label, outcome in ids.items()}
    for step in range(_STEPS):
        place = SETUP_STAGE + step
        ids = outcomes_by_label(kinds, Phase.SETUP, step)
        codes |= {label: CODES_PER_STAGE * place + outcome for label, outcome in ids.items()}
    return codes


@functools.lru_cache(maxsize=64)
def event_labels(kinds: TokenKinds) -> dict[int, str]:
    """Return the labels of all events by their codes."""
    return {code: label for label, code in event_codes(kinds).items()}


def illegal_move_message(
    kinds: TokenKinds,
    boards: npt.NDArray[np.void],
    states: npt.NDArray[np.void],
    i: int,
    move: object,
) -> str:
    """Say why a move of game `i` is refused: what it was, where, and what was on offer.

    Args:
        kinds: of boutique tokens.
        boards: `BOARD` (n,), the board of each game.
        states: `STATE` (n,).
        i: which game.
        move: an action or an outcome, by id or by label, or anything else that came in its place.
    """
    phase, number = Phase(states["phase"][i]), as_integer(move)
    move = move if number is None else number
    if phase == OVER:
        return f"illegal action {repr_short(move, _MOST_MOVE)}: the game is over"
    actions = actions_of(legal_mask(boards, states, i))
    if actions:
        known = number is not None and 0 <= number < len(LABELS)
        name = f" ({LABELS[number or 0]})" if known else ""
        legal = ", ".join(f"{LABELS[action]} ({action})" for action in actions)
        who = f"player {states['player'][i]} at {phase.name}"
        return f"illegal action {repr_short(move, _MOST_MOVE)}{name}: legal are {legal} for {who}"
    weights = np.zeros(MAX_OUTCOMES, np.int64)
    _, step = weights_of(boards, states, i, weights)
    possible = np.flatnonzero(weights).tolist()
    listed = ", ".join(f"{outcome_label(kinds, phase, step, k)} ({k})" for k in possible[:_SHOWN])
    more = ", …" if len(possible) > _SHOWN else ""
    return f"no outcome {repr_short(move, _MOST_MOVE)} at {phase.name}: possible are {listed}{more}"
