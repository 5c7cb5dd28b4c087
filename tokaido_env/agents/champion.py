"""The agents of the shipped networks: `champion` and `generalist`.

The champion is for the default board, the generalist for any board.

`docs/benchmarks/champion.md` and `docs/benchmarks/generalist.md` are their model cards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.ending_actions import EXACT
from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.agents.search_config import config_to_spec, network_search_config

_FOLDER = Path(__file__).resolve().parent

CHAMPION = _FOLDER / "champion.safetensors"
GENERALIST = _FOLDER / "generalist.safetensors"


def make_champion(sims: int | None = None, **options: Any) -> Agent:
    """Make the agent `champion`: the best afterstate or, with `sims`, a tree search.

    Args:
        sims: simulations for a decision.
        options: `endings`, "exact" or "network"; with `sims` also `temperature` and `c_puct` of
            `PolicySearchAgent`.

    Raises:
        AgentError: if there are other options without `sims`.
    """
    return _make("champion", CHAMPION, sims, options)


def make_generalist(sims: int | None = None, **options: Any) -> Agent:
    """Make the agent `generalist`, trained on many boards; otherwise as `make_champion`."""
    return _make("generalist", GENERALIST, sims, options)


def _make(name: str, path: Path, sims: int | None, options: dict[str, Any]) -> Agent:
    if sims is not None:
        config = network_search_config(sims, **options)
        return PolicySearchAgent.from_policy(
            Policy.load(path), f"{name}:{config_to_spec(config)}", config
        )
    endings = options.pop("endings", EXACT)
    if options:
        raise AgentError(f"{name}: {' and '.join(options)}: expected together with sims=N")
    spec = name if endings == EXACT else f"{name}:endings={endings}"
    return PolicyAgent.from_policy(Policy.load(path), spec, endings=endings)
