"""The settings of a search, and how a spec string gives them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokaido_env.agent import AgentError
from tokaido_env.agents.ending_actions import EXACT, NETWORK
from tokaido_env.core.arguments import check_choice

FULL = 400
"""Rounds of a rollout to the end of the game: no game has more."""

TEMPERATURE = 2.0
"""The default that divides a network's logits before they become priors.

At 1 a trained policy is so sure of its best action that the search leaves too much untried.
"""

C_PUCT = 0.3
"""The default exploration constant of PUCT."""

BOUND, VISITS = "bound", "visits"
"""How a search with a network chooses: by `search_tree.highest_bound`, or the most visited."""

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
    c_puct: float = C_PUCT
    """The exploration constant of PUCT; only with a network."""
    chooses_by_bound: bool = False
    """Whether the choice is by `highest_bound` instead of visits."""
    exact_endings: bool = False
    """Whether leaves after an end trigger have exact results, and actions too (`endings`)."""
    stops_early: bool = False
    """Whether a search ends once it is decided (`search_tree.is_decided`)."""


def network_search_config(
    sims: int,
    temperature: float = TEMPERATURE,
    dice: str = STRATIFIED,
    chance: str = JUDGED,
    c_puct: float = C_PUCT,
    choice: str = BOUND,
    endings: str = EXACT,
) -> SearchConfig:
    """Return the settings of a search with a network.

    Raises:
        ValueError: if a setting is out of range.
    """
    if not 0.0 < temperature < np.inf:
        raise AgentError(f"search: temperature: expected a number above 0, got {temperature}")
    if not 0.0 < c_puct < np.inf:
        raise AgentError(f"search: c_puct: expected a number above 0, got {c_puct}")
    check_choice("search: dice", dice, (STRATIFIED, DRAWN))
    check_choice("search: chance", chance, (JUDGED, SAMPLED))
    check_choice("search: choice", choice, (BOUND, VISITS))
    check_choice("search: endings", endings, (EXACT, NETWORK))
    return SearchConfig(
        sims,
        temperature=float(temperature),
        stratified=dice == STRATIFIED,
        evaluates_chance=chance == JUDGED,
        c_puct=float(c_puct),
        chooses_by_bound=choice == BOUND,
        exact_endings=endings == EXACT,
    )


def config_to_spec(config: SearchConfig) -> str:
    """Return the parameters of a spec for a search with a network, without those at the default."""
    temperature, c_puct = (str(x).removesuffix(".0") for x in (config.temperature, config.c_puct))
    parts = [f"sims={config.sims}"]
    parts += [f"temperature={temperature}"] * (config.temperature != TEMPERATURE)
    parts += [f"c_puct={c_puct}"] * (config.c_puct != C_PUCT)
    parts += [f"dice={DRAWN}"] * (not config.stratified)
    parts += [f"chance={SAMPLED}"] * (not config.evaluates_chance)
    parts += [f"choice={VISITS}"] * (not config.chooses_by_bound)
    return ",".join(parts + [f"endings={NETWORK}"] * (not config.exact_endings))
