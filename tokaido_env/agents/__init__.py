"""Agents made from spec strings: opponents for training and for measurements.

>>> from tokaido_env import agents
>>> agents.make("greedy").spec
'greedy'
"""

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.adapters import PerGameAdapter
from tokaido_env.agents.baselines import GreedyAgent, RandomAgent
from tokaido_env.agents.policy import Policy, PolicyError
from tokaido_env.agents.registry import as_agent, describe, make

__all__ = [
    "Agent",
    "AgentError",
    "GreedyAgent",
    "PerGameAdapter",
    "Policy",
    "PolicyError",
    "RandomAgent",
    "as_agent",
    "describe",
    "make",
]
