"""The champion: the network that ships with the package, made and measured as its card tells.

The card is `docs/champion.md`.
"""

from __future__ import annotations

from pathlib import Path

from tokaido_env.agent import Agent
from tokaido_env.agents.players.policy import Policy, PolicyAgent
from tokaido_env.agents.players.search import PolicySearchAgent

CHAMPION = Path(__file__).resolve().parent / "champion.safetensors"


def make_champion(sims: int | None = None) -> Agent:
    """Return the champion: one forward pass a decision, or so many simulations led by it."""
    policy = Policy.load(CHAMPION)
    if sims is None:
        return PolicyAgent.of(policy, "champion")
    return PolicySearchAgent.of(policy, f"champion:sims={sims}", sims)
