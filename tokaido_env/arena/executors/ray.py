"""Executor of a Ray cluster (Moritz et al. 2018), with nodes that may join and leave.

Ray gives each task to a free node, and runs a task again if its worker or node was lost. Tasks and
outcomes travel as pickle bytes: arrays from Ray's store are read-only, a type for which Numba would
compile every kernel again.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from tokaido_env.arena.executors.base import PoolExecutor, run_task
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.rules import RULES_VERSION

RETRIES = 5  # runs of a task after it lost its worker or node, before the task fails
CONNECT_TIMEOUT = 5.0  # seconds
ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class ClusterError(ConnectionError):
    """A cluster does not answer or cannot run tasks: the message gives the reason."""


class RayExecutor(PoolExecutor):
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
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends no usage reports
        try:
            host, _, port = address.rpartition(":")
            if host and port.isdecimal() and "://" not in host:  # Ray itself retries for minutes
                socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()
            ray.init(
                address or None,
                runtime_env={"env_vars": ONE_THREAD},
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=None if address else False,
            )
        except (OSError, RuntimeError, ValueError, exceptions.RayError) as error:
            cluster = f"cluster {address!r}" if address else "a cluster on this machine"
            raise ClusterError(f"{cluster}: {error}: start one with ray start --head") from None
        self._run = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)

    @property
    def workers(self) -> int:
        """The number of tasks that run at once: the processors of the cluster."""
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(int(resources.get("CPU", 0)), 1)

    def shutdown(self) -> None:
        """Disconnect from the cluster; a cluster that this executor started ends."""
        ray.shutdown()

    def _submit(self, task: bytes) -> Future[bytes]:
        future: Future[bytes] = self._run.remote(task, versions(), str(Path.cwd())).future()
        return future

    def _cancel(self, futures: Iterable[Any]) -> None:
        for future in futures:
            ray.cancel(future.object_ref, force=True)


def _run(task: bytes, expected: dict[str, str], folder: str) -> bytes:
    """Run a task on a worker of the cluster."""
    if (own := versions()) != expected:
        node: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        text = f"node {node}: expected the versions {expected} of this process, got {own}"
        return pickle.dumps(([], ClusterError(text)))
    with suppress(OSError):  # a node without this folder keeps its own
        os.chdir(folder)
    return run_task(task)


def versions() -> dict[str, str]:
    """Return the versions, by name, that must be equal on all nodes of a cluster."""
    numbers = {"rules": str(RULES_VERSION), "actions": str(ACTION_TABLE_VERSION)}
    return {"tokaido-env": version("tokaido-env")} | numbers
