"""Agents: players to train against and to measure with, made from spec strings.

>>> from tokaido_env import agents
>>> agents.make("greedy").spec
'greedy'
"""

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.policy import Policy, PolicyError
from tokaido_env.agents.registry import describe, make
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
