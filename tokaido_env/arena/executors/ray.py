"""Executor of a Ray cluster (Moritz et al. 2018), with nodes that may join and leave.

Ray gives each task to a free node, and runs a task again if its worker or node was lost. Tasks and
messages travel as pickle bytes: arrays from Ray's store are read-only, a type for which Numba would
compile every kernel again.
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

from tokaido_env.arena.executors.base import Message, RemoteExecutor, Task, run_task
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.rules import RULES_VERSION

RETRIES = 5  # runs of a task after it lost its worker or node, before the task fails
CONNECT_TIMEOUT = 5.0  # seconds
WAIT_TIMEOUT = 10.0  # seconds for a result, then the size of the cluster is read again
ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class ClusterError(ConnectionError):
    """A cluster does not answer or cannot run tasks: the message gives the reason."""


class RayExecutor(RemoteExecutor):
    """Runs tasks on all processors that a Ray cluster has at any time.

    Args:
        address: of a cluster, as `ray.init` takes it; "" starts one on this machine, unless the
            variable RAY_ADDRESS names one.

    Raises:
        ClusterError: if nothing answers at the address.
    """

    tasks_per_worker = 2  # a worker need not wait for its next task

    def __init__(self, address: str = "") -> None:
        address = address or os.environ.get("RAY_ADDRESS", "")
        _check_answers(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends no usage reports
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
        """The number of tasks that run at once: the processors of the cluster."""
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(int(resources.get("CPU", 0)), 1)

    def shutdown(self) -> None:
        """Disconnect from the cluster; a cluster that this executor started ends."""
        ray.shutdown()

    def _submit(self, task: Task) -> Any:
        return self._run.remote(pickle.dumps(task), versions(), str(Path.cwd()))

    def _ready(self, handles: Sequence[Any], *, wait: bool) -> Sequence[Any]:
        if not handles:
            return []
        count, seconds = (1, WAIT_TIMEOUT) if wait else (len(handles), 0.0)
        ready: list[Any] = ray.wait(list(handles), num_returns=count, timeout=seconds)[0]
        return ready

    def _receive(self, handle: Any, task: Task) -> Message:
        error: Exception
        try:
            message: Message = pickle.loads(ray.get(handle))
            return message
        except (exceptions.WorkerCrashedError, exceptions.NodeDiedError) as lost:
            error = AgentFailed(
                f"the workers that played {task} ended {RETRIES + 1} times: the agent ended them, "
                f"or memory ran out ({type(lost).__name__})"
            )
        except exceptions.RayError as lost:
            error = ClusterError(f"{task}: {type(lost).__name__}: {_first_line(lost)}")
        return Message([], error=error)

    def _cancel(self, handles: Sequence[Any]) -> None:
        for reference in handles:
            ray.cancel(reference, force=True)


def _run(task: bytes, expected: dict[str, str], folder: str) -> bytes:
    """Run a task on a worker of the cluster."""
    if (own := versions()) != expected:
        node: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        other = ClusterError(
            f"node {node}: expected {_joined(expected)}, as in the process that sends the tasks, "
            f"got {_joined(own)}: install the same versions on all nodes"
        )
        return pickle.dumps(Message([], error=other))
    with suppress(OSError):  # a node without this folder keeps its own
        os.chdir(folder)
    results: list[Any] = []
    error = run_task(pickle.loads(task), results.append)
    return pickle.dumps(Message(results, error=error))


def versions() -> dict[str, str]:
    """Return the versions that must be equal on all nodes."""
    return {
        "tokaido-env": version("tokaido-env"),
        "rules": str(RULES_VERSION),
        "actions": str(ACTION_TABLE_VERSION),
    }


def _joined(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _check_answers(address: str) -> None:
    """Raise `ClusterError` unless something answers: Ray itself retries for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in host:
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"{_cluster(address)}: nothing answers: {error}: start a cluster with ray start --head"
        ) from None


def _cluster(address: str) -> str:
    return f"cluster {repr_short(address)}" if address else "a cluster on this machine"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
