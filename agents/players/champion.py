"""The champion: the network that ships with the package, made and measured as its card tells.

The card is `docs/champion.md`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.players.plan import in_spec, led_plan
from tokaido_env.agents.players.policy import Policy, PolicyAgent
from tokaido_env.agents.players.search import PolicySearchAgent

CHAMPION = Path(__file__).resolve().parent / "champion.safetensors"


def make_champion(sims: int | None = None, **options: Any) -> Agent:
    """Return the champion: one forward pass a decision, or so many simulations led by it.

    Args:
        sims: simulations for a decision.
        options: of the search, `temperature`, `dice` and `chance` as of `PolicySearchAgent`.

    Raises:
        AgentError: if there are options, but no search.
    """
    policy = Policy.load(CHAMPION)
    if sims is not None:
        plan = led_plan(sims, **options)
        return PolicySearchAgent.of(policy, f"champion:{in_spec(plan)}", plan)
    if options:
        raise AgentError(f"champion: {' and '.join(options)}: expected together with sims=N")
    return PolicyAgent.of(policy, "champion")
