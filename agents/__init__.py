"""Agents: players to train against and to measure with, made from spec strings.

>>> from tokaido_env import agents
>>> agents.make("greedy").spec
'greedy'
"""

if __name__ != "tokaido_env.agents":
    raise ImportError(
        "import this package as tokaido_env.agents: a widely used package already installs a "
        "top-level module called agents, and the two would overwrite each other"
    )

from tokaido_env.agents.base import Agent, AgentError, describe, make
from tokaido_env.agents.policy import Policy, PolicyError
from tokaido_env.agents.simple import GreedyAgent, RandomAgent

__all__ = [
    "Agent",
    "AgentError",
    "GreedyAgent",
    "Policy",
    "PolicyError",
    "RandomAgent",
    "describe",
    "make",
]
