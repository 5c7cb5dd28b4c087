"""The networks that ship with the package, made and measured as their cards tell.

The champion is of the default board, the generalist of any: `docs/champion.md`,
`docs/generalist.md`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.agents.search_config import in_spec, led_plan

_FOLDER = Path(__file__).resolve().parent

CHAMPION = _FOLDER / "champion.safetensors"
GENERALIST = _FOLDER / "generalist.safetensors"


def make_champion(sims: int | None = None, **options: Any) -> Agent:
    """Return the champion: one forward pass a decision, or so many simulations led by it.

    Args:
        sims: simulations for a decision.
        options: of the search, `temperature`, `dice` and `chance` as of `PolicySearchAgent`.

    Raises:
        AgentError: if there are options, but no search.
    """
    return _made("champion", CHAMPION, sims, options)


def make_generalist(sims: int | None = None, **options: Any) -> Agent:
    """Return the generalist, as `make_champion`."""
    return _made("generalist", GENERALIST, sims, options)


def _made(name: str, path: Path, sims: int | None, options: dict[str, Any]) -> Agent:
    if sims is not None:
        plan = led_plan(sims, **options)
        return PolicySearchAgent.of(Policy.load(path), f"{name}:{in_spec(plan)}", plan)
    if options:
        raise AgentError(f"{name}: {' and '.join(options)}: expected together with sims=N")
    return PolicyAgent.of(Policy.load(path), name)
