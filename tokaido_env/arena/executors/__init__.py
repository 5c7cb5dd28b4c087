"""Run work in this process, in worker processes or on a Ray cluster: the same results from each.

    with open_executor("processes:4") as executor:
        match = play_match(a, b, 1000, seed=0, executor=executor)

Processes, and a cluster of this machine alone, end with their executor.
"""

from __future__ import annotations

from importlib.util import find_spec

from tokaido_env.arena.executors.base import (
    AgentCache,
    AgentFactory,
    CallTask,
    Executor,
    SerialExecutor,
    Task,
    agent_spec_of,
    chunked,
    gather,
    policy_sha256,
    split_work,
)
from tokaido_env.arena.executors.processes import ProcessExecutor
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.optional_deps import extra_error

__all__ = [
    "EXECUTORS",
    "AgentCache",
    "AgentFactory",
    "CallTask",
    "Executor",
    "ProcessExecutor",
    "SerialExecutor",
    "Task",
    "agent_spec_of",
    "check_executor",
    "chunked",
    "gather",
    "open_executor",
    "policy_sha256",
    "split_work",
]

EXECUTORS = "serial, processes[:N] or ray[:ADDRESS]"


def open_executor(text: str) -> Executor:
    """Return the executor that a text names, as `--executor` of the commands that play games.

    Args:
        text: "serial"; "processes", one for each processor, or "processes:4"; "ray", a cluster of
            this machine alone or the one of the variable RAY_ADDRESS, or "ray:ADDRESS", as
            "ray:auto" or "ray:10.0.0.1:6379".

    Raises:
        ValueError: if it names none, or Ray is not installed.
        ClusterError: if there is no such cluster, or it cannot be worked with.
    """
    check_executor(text)
    kind, _, rest = text.partition(":")
    if kind == "serial":
        return SerialExecutor()
    if kind == "processes":
        return ProcessExecutor(int(rest) if rest else None)
    from tokaido_env.arena.executors.ray import RayExecutor

    return RayExecutor(rest)


def check_executor(text: str | None) -> None:
    """Raise `ValueError` unless a text, if there is one, names an executor; nothing begins."""
    if text is None:
        return
    kind, colon, rest = text.partition(":")
    number = rest.isascii() and rest.isdigit() and len(rest) < 6 and 0 < int(rest) <= 10_000
    known = {"serial": not colon, "processes": number or not colon, "ray": bool(rest) or not colon}
    if not known.get(kind, False):
        raise ValueError(f"executor: expected {EXECUTORS}, got {repr_short(text)}")
    if kind == "ray" and find_spec("ray") is None:
        raise ValueError(str(extra_error("executor: a cluster needs", "ray", "ray")))
