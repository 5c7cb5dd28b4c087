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

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.players.policy import Policy, PolicyError
from tokaido_env.agents.players.simple import GreedyAgent, RandomAgent
from tokaido_env.agents.registry import describe, make

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
