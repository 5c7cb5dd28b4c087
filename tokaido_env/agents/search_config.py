"""The settings of a search, and how a spec string gives them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokaido_env.agent import AgentError
from tokaido_env.agents.ending_actions import EXACT, NETWORK
from tokaido_env.core.arguments import check_choice

TEMPERATURE = 1.0
"""The default that divides a network's logits before they become priors.

At 1 their softmax is what `alphazero` trains: the shares of a search's visits.
"""

C_PUCT = 0.3
"""The default exploration constant of PUCT."""


class SearchConfig(NamedTuple):
    """The settings of a search, as the kernels read them.

    Attributes:
        sims: simulations for a position.
        plays_out: whether random play from a leaf to the end gives its value; without a network.
        temperature: the number that divides a network's logits before they become priors.
        c_puct: the exploration constant of PUCT; only with a network.
        exact_endings: whether leaves after an end trigger have exact results, and actions too
            (`endings`).
        stops_early: whether a search ends once it is decided (`selection.is_decided`).
    """

    sims: int
    plays_out: bool = False
    temperature: float = TEMPERATURE
    c_puct: float = C_PUCT
    exact_endings: bool = False
    stops_early: bool = False


def network_search_config(
    sims: int,
    temperature: float = TEMPERATURE,
    c_puct: float = C_PUCT,
    endings: str = EXACT,
) -> SearchConfig:
    """Return the settings of a search with a network, from arguments of `PolicySearchAgent`.

    Raises:
        AgentError: if a setting is out of range.
        ValueError: for unknown `endings`.
    """
    if not 0.0 < temperature < np.inf:
        raise AgentError(f"search: temperature: expected a number above 0, got {temperature}")
    if not 0.0 < c_puct < np.inf:
        raise AgentError(f"search: c_puct: expected a number above 0, got {c_puct}")
    check_choice("search: endings", endings, (EXACT, NETWORK))
    return SearchConfig(
        sims,
        temperature=float(temperature),
        c_puct=float(c_puct),
        exact_endings=endings == EXACT,
    )


def config_to_spec(config: SearchConfig) -> str:
    """Return the settings of a network search as in a spec, such as "sims=400,c_puct=2".

    Settings at their default are left out, but not `sims`.
    """
    temperature, c_puct = (str(x).removesuffix(".0") for x in (config.temperature, config.c_puct))
    parts = [f"sims={config.sims}"]
    parts += [f"temperature={temperature}"] * (config.temperature != TEMPERATURE)
    parts += [f"c_puct={c_puct}"] * (config.c_puct != C_PUCT)
    return ",".join(parts + [f"endings={NETWORK}"] * (not config.exact_endings))
