"""Run tasks on a Ray cluster (Moritz et al. 2018): any number of machines that come and go.

Ray gives the tasks to whichever node is free, and runs those again whose worker or node was lost.
Tasks and messages travel as bytes of pickle: arrays out of Ray's own store are read-only, which
Numba takes for another type and compiles everything again for.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from tokaido_env.arena.executors.base import AgentCache, Message, RemoteExecutor, Task, run_task
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.rules import RULES_VERSION

RETRIES = 5
"""How often a task runs again whose worker or node was lost, before it is given up."""

ANSWER_SECONDS = 5.0  # to wait for an address
LOOK_SECONDS = 10.0  # between two looks at how large the cluster is
ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class ClusterError(ConnectionError):
    """A cluster that does not answer, or that cannot run tasks: the message says why."""


class RayExecutor(RemoteExecutor):
    """Runs tasks on all processors of a Ray cluster, as many as there are at any time.

    Args:
        address: of a cluster, as `ray.init` takes it; "" begins one on this machine, unless the
            variable RAY_ADDRESS names one.

    Raises:
        ClusterError: if nothing answers there.
    """

    ahead = 2  # the next task lies there already

    def __init__(self, address: str = "") -> None:
        address = address or os.environ.get("RAY_ADDRESS", "")
        _check_answers(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
        try:
            ray.init(
                address or None,
                runtime_env={"env_vars": ONE_THREAD},
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=None if address else False,
            )
        except (ConnectionError, RuntimeError, ValueError, exceptions.RayError) as error:
            raise ClusterError(f"{_cluster(address)}: {error}") from None
        self._run = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)

    @property
    def workers(self) -> int:
        """How many tasks run at once: the processors of the cluster."""
        there = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(int(there.get("CPU", 0)), 1)

    def shutdown(self) -> None:
        """Leave the cluster; one that was begun here ends."""
        ray.shutdown()

    def _submit(self, task: Task) -> Any:
        return self._run.remote(pickle.dumps(task), versions(), str(Path.cwd()))

    def _ready(self, handles: Sequence[Any], *, wait: bool) -> Sequence[Any]:
        if not handles:
            return []
        most, seconds = (1, LOOK_SECONDS) if wait else (len(handles), 0.0)
        ready: list[Any] = ray.wait(list(handles), num_returns=most, timeout=seconds)[0]
        return ready

    def _receive(self, handle: Any, task: Task) -> Message:
        error: Exception
        try:
            message: Message = pickle.loads(ray.get(handle))
            return message
        except (exceptions.WorkerCrashedError, exceptions.NodeDiedError) as lost:
            error = AgentFailed(
                f"the workers that played {task} ended {RETRIES + 1} times: the agent ended them, "
                f"or there is too little memory ({type(lost).__name__})"
            )
        except exceptions.RayError as lost:
            error = ClusterError(f"{task}: {type(lost).__name__}: {_first_line(lost)}")
        return Message([], error=error)

    def _cancel(self, handles: Sequence[Any]) -> None:
        for reference in handles:
            ray.cancel(reference, force=True)


_agents: AgentCache | None = None  # of a worker, from task to task


def _run(task: bytes, expected: dict[str, str], folder: str) -> bytes:
    """Run a task: what runs on a node."""
    global _agents
    if (own := versions()) != expected:
        node: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        other = ClusterError(
            f"node {node}: expected {_joined(expected)}, as where the tasks come from; it has "
            f"{_joined(own)}: install the same on all nodes"
        )
        return pickle.dumps(Message([], error=other))
    with suppress(OSError):  # where paths are the same: on this machine, in a shared folder
        os.chdir(folder)
    _agents = _agents or AgentCache()
    results: list[Any] = []
    error = run_task(pickle.loads(task), _agents, results.append)
    return pickle.dumps(Message(results, error=error))


def versions() -> dict[str, str]:
    """Return what has to be the same wherever tasks run."""
    return {
        "tokaido-env": version("tokaido-env"),
        "rules": str(RULES_VERSION),
        "actions": str(ACTION_TABLE_VERSION),
    }


def _joined(known: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in known.items())


def _check_answers(address: str) -> None:
    """Raise `ClusterError` unless something answers: Ray itself asks for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in host:
        return
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"{_cluster(address)}: nothing answers: {error}: begin one by ray start --head"
        ) from None


def _cluster(address: str) -> str:
    return f"cluster {repr_short(address)}" if address else "a cluster on this machine"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
