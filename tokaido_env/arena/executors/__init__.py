"""Executors: run tasks in this process, in worker processes or on a Ray cluster.

    with open_executor("processes:4") as executor:
        match = play_match(a, b, 1000, seed=0, executor=executor)

All executors give the same results. Worker processes, and a cluster that was started on this
machine, end with their executor.
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from tokaido_env.arena.executors.base import Executor, ProcessExecutor, SerialExecutor
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.optional_deps import extra_error

EXECUTORS = "serial, processes[:N] or ray[:ADDRESS]"


def open_executor(text: str) -> Executor:
    """Return the executor that the text of `--executor` names.

    Args:
        text: "serial"; "processes", one for each processor; "processes:4"; "ray"; or
            "ray:ADDRESS", such as "ray:auto" or "ray:10.0.0.1:6379". "ray" starts a cluster on
            this machine, unless the variable RAY_ADDRESS names one.

    Raises:
        ValueError: if the text names no executor, or Ray is not installed.
        ClusterError: if the cluster does not answer or cannot run tasks.
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
    """Raise `ValueError` if a text is given that names no executor; start nothing."""
    if text is None:
        return
    if not re.fullmatch(r"serial|processes(:[1-9][0-9]{0,3})?|ray(:.+)?", text):
        raise ValueError(f"executor: expected {EXECUTORS}, got {repr_short(text)}")
    if text.startswith("ray") and find_spec("ray") is None:
        raise ValueError(str(extra_error("executor: a cluster needs", "ray", "ray")))
