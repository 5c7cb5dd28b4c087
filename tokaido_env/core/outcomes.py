"""Outcomes of chance: id <-> label."""

from __future__ import annotations

from collections.abc import Sequence

from tokaido_env.core.box import CHARACTERS, COASTAL_TOWNS, ICONS, SIDES, WARES
from tokaido_env.core.rules import MAX_OUTCOMES
from tokaido_env.core.state import Phase

Kinds = Sequence[tuple[str, int]]
"""Ware and price of the different boutique tokens, as `Board.kinds`."""

# Of the chance phases whose labels do not depend on the board.
_OUTCOME_LABELS = {
    Phase.ROLL: [f"roll:{k // 36 + 1}/{k // 6 % 6 + 1}/{k % 6 + 1}" for k in range(MAX_OUTCOMES)],
    Phase.DRAW: [f"ware:{ware}" for ware in WARES],
    Phase.REVEAL: [f"tile:{icon}" for icon in ICONS],
}
_OUTCOMES_BY_LABEL = {
    phase: {label: k for k, label in enumerate(labels)} for phase, labels in _OUTCOME_LABELS.items()
}


def outcome_label(kinds: Kinds, phase: Phase, setup: int, outcome: int) -> str:
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


def outcomes_by_label(kinds: Kinds, phase: Phase, setup: int) -> dict[str, int]:
    """Return the ids of outcomes by their labels; arguments as for `outcome_label`."""
    if phase != Phase.SETUP:
        return _OUTCOMES_BY_LABEL.get(phase, {})
    outcomes = len(kinds) if setup < len(COASTAL_TOWNS) else 2
    return {outcome_label(kinds, phase, setup, k): k for k in range(outcomes)}
