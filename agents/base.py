"""What an agent is, and how a spec string becomes one."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol

from tokaido_env.batch import Decider


class Agent(Decider, Protocol):
    """Chooses actions for many games at once; `Decider.act` tells how.

    An agent whose play is a kernel has an attribute `bot`, its number in `tokaido_env.bots`, so
    that games may ask the kernel instead.
    """

    spec: str
    """The string that `make` makes this agent from."""


class AgentError(ValueError):
    """A spec string that makes no agent: the message says what would."""


@dataclass(frozen=True)
class Kind:
    """A kind of agent: where its class is and how its spec string reads."""

    module: str
    name: str
    usage: str
    meaning: str
    parameters: dict[str, type]  # by name; the first may be given without its name
    required: tuple[str, ...] = ()


KINDS = {
    "random": Kind(
        "simple", "RandomAgent", "random", "each legal action with equal probability", {}
    ),
    "greedy": Kind(
        "simple",
        "GreedyAgent",
        "greedy",
        "the best immediate change in score margin, looking through a move to its effects",
        {},
    ),
    "policy": Kind(
        "policy",
        "PolicyAgent",
        "policy:PATH[,temperature=T]",
        "a trained network: a policy file, or a run folder for its best; T=0 takes the likeliest "
        "action (default), T=1 samples",
        {"path": str, "temperature": float},
        required=("path",),
    ),
}


def make(spec: str) -> Agent:
    """Make an agent from a spec string, as `random` or `policy:runs/a/best,temperature=1`.

    Raises:
        AgentError: if there is no such kind or parameter, or a value is out of range.
    """
    kind_name, _, text = spec.partition(":")
    if kind_name not in KINDS:
        usages = ", ".join(kind.usage for kind in KINDS.values())
        raise AgentError(f"unknown agent {spec!r}: expected one of {usages}")
    kind = KINDS[kind_name]
    module = importlib.import_module(f"tokaido_env.agents.{kind.module}")
    agent: Agent = getattr(module, kind.name)(**_parameters(spec, kind, text))
    return agent


def describe() -> list[tuple[str, str]]:
    """Return (usage, meaning) of every kind of agent."""
    return [(kind.usage, kind.meaning) for kind in KINDS.values()]


def _parameters(spec: str, kind: Kind, text: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for i, part in enumerate(text.split(",") if text else []):
        name, equals, value = part.partition("=")
        if not equals and i == 0 and kind.parameters:
            name, value = next(iter(kind.parameters)), part
        if name not in kind.parameters or name in parameters:
            raise AgentError(f"agent {spec!r}: cannot read {part!r}: expected {kind.usage}")
        try:
            parameters[name] = kind.parameters[name](value)
        except ValueError:
            raise AgentError(f"agent {spec!r}: {name}: not a number: {value!r}") from None
    if not all(parameters.get(name) for name in kind.required):
        raise AgentError(f"agent {spec!r}: expected {kind.usage}")
    return parameters
