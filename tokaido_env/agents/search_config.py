"""The settings of a search, and how a spec string gives them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokaido_env.agent import AgentError
from tokaido_env.core.arguments import check_choice

FULL = 400
"""Rounds of a rollout to the end of the game: no game has more."""

TEMPERATURE = 1.5
"""The default that divides a network's logits before they become priors.

At 1 a trained policy is so sure of its best action that the search leaves too much untried. With an
earlier champion 1.5 and stratified dice together gained 2.2 points at 64 simulations
(`docs/dev/champion.md`).
"""

STRATIFIED, DRAWN = "stratified", "drawn"
"""How a search with a network samples rolls: see `search_tree`; or as a game draws its own."""

JUDGED, SAMPLED = "judged", "sampled"
"""Where a simulation at a new chance node ends: there, or at the decision after a sample."""


class SearchConfig(NamedTuple):
    """The settings of a search, as the kernels read them."""

    sims: int
    """Simulations for a position."""
    rollout: int = 0
    """Rounds of random play from a leaf; only without a network."""
    temperature: float = 1.0
    """The number that divides a network's logits before they become priors."""
    stratified: bool = False
    """Whether samples of rolls are stratified (`search_tree`)."""
    evaluates_chance: bool = True
    """Whether the network evaluates chance nodes, so that simulations end there."""


def network_search_config(
    sims: int, temperature: float = TEMPERATURE, dice: str = STRATIFIED, chance: str = JUDGED
) -> SearchConfig:
    """Return the settings of a search with a network.

    Raises:
        ValueError: if a setting is out of range.
    """
    if not 0.0 < temperature < np.inf:
        raise AgentError(f"search: temperature: expected a number above 0, got {temperature}")
    check_choice("search: dice", dice, (STRATIFIED, DRAWN))
    check_choice("search: chance", chance, (JUDGED, SAMPLED))
    return SearchConfig(
        sims,
        temperature=float(temperature),
        stratified=dice == STRATIFIED,
        evaluates_chance=chance == JUDGED,
    )


def config_to_spec(config: SearchConfig) -> str:
    """Return the parameters of a spec for a search with a network, without those at the default."""
    temperature = str(config.temperature).removesuffix(".0")
    parts = [f"sims={config.sims}"]
    parts += [f"temperature={temperature}"] * (config.temperature != TEMPERATURE)
    parts += [f"dice={DRAWN}"] * (not config.stratified)
    return ",".join(parts + [f"chance={SAMPLED}"] * (not config.evaluates_chance))
