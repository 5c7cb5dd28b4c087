"""How to search: what a spec asks for, as the kernels read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokaido_env.agent import AgentError
from tokaido_env.core.arguments import repr_short

FULL = 400
"""Rounds of a playout that goes on to the end of the game: no game has more."""

TEMPERATURE = 1.5
"""What a search by a network divides its logits by before they propose, by default.

A trained policy is surer of itself than its search should be: at 1 it leaves too much untried.
"""

STRATIFIED, DRAWN = "stratified", "drawn"
"""How a search by a network samples chance: as `tree` tells, or as a game draws its own."""


JUDGED, SAMPLED = "judged", "sampled"
"""Where a simulation by a network ends that comes to new chance: there, or at the decision behind a
sample."""


class SearchConfig(NamedTuple):
    """How to search."""

    sims: int
    """Simulations a position."""
    rollout: int = 0
    """Rounds of the playout at a new node, without a network."""
    temperature: float = 1.0
    """What a network's logits are divided by before they propose."""
    stratified: bool = False
    """Whether samples of chance are stratified, as `tree` tells."""
    evaluates_chance: bool = True
    """Whether a simulation ends at chance."""


def network_search_config(
    sims: int,
    temperature: float = TEMPERATURE,
    dice: str = STRATIFIED,
    chance: str = JUDGED,
) -> SearchConfig:
    """Return how to search by a network.

    Raises:
        AgentError: if a parameter is out of range.
    """
    if not 0.0 < temperature < np.inf:
        raise AgentError(f"search: temperature: expected a number above 0, got {temperature}")
    if dice not in (STRATIFIED, DRAWN):
        raise AgentError(
            f"search: dice: expected {STRATIFIED!r} or {DRAWN!r}, got {repr_short(dice)}"
        )
    if chance not in (JUDGED, SAMPLED):
        raise AgentError(
            f"search: chance: expected {JUDGED!r} or {SAMPLED!r}, got {repr_short(chance)}"
        )
    return SearchConfig(
        sims,
        temperature=float(temperature),
        stratified=dice == STRATIFIED,
        evaluates_chance=chance == JUDGED,
    )


def config_to_spec(config: SearchConfig) -> str:
    """Return a config by a network as it stands in a spec: what is as by default is left out."""
    temperature = str(config.temperature).removesuffix(".0")
    parts = [f"sims={config.sims}"]
    parts += [f"temperature={temperature}"] * (config.temperature != TEMPERATURE)
    parts += [f"dice={DRAWN}"] * (not config.stratified)
    return ",".join(parts + [f"chance={SAMPLED}"] * (not config.evaluates_chance))
