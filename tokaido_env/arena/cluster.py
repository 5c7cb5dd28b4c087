"""A crew on a Ray cluster (Moritz et al. 2018): any number of machines that come and go.

Ray gives the units to whichever node is free, and does those again whose worker or node was lost.
Units and what they give travel as bytes of pickle: arrays out of Ray's own store are read-only,
which Numba takes for another type and compiles everything anew for.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray import exceptions

from tokaido_env.agent import Agent
from tokaido_env.arena.crew import Agents, Part, Unit, done
from tokaido_env.arena.playing import AgentFailed, interrupts_held
from tokaido_env.core.actions import ACTION_TABLE_VERSION
from tokaido_env.core.checks import shown
from tokaido_env.core.rules import RULES_VERSION

RETRIES = 5
"""How often a unit is done again whose worker or node was lost, before it is given up."""

AHEAD = 2  # units that are given to Ray for each processor: the next one lies there already
ANSWER_SECONDS = 5.0  # to wait for an address
LOOK_SECONDS = 10.0  # between two looks at how large the cluster is
ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class ClusterError(ConnectionError):
    """A cluster that does not answer, or that cannot do units: the message says why."""


class Cluster:
    """A crew of all processors of a Ray cluster, as many as there are at any time.

    Args:
        address: of a cluster, as `ray.init` takes it; "" begins one on this machine, unless the
            variable RAY_ADDRESS names one.

    Raises:
        ClusterError: if nothing answers there.
    """

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
        self._do = ray.remote(num_cpus=1, max_retries=RETRIES)(_do)

    @property
    def workers(self) -> int:
        """How many units are done at once: the processors of the cluster."""
        there = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(int(there.get("CPU", 0)), 1)

    def run(self, units: Iterable[Unit], agents: Sequence[Agent] = ()) -> Iterator[Part]:
        """Do units on any nodes, agents made anew there: see `Crew.run`."""
        waiting = enumerate(units)
        running: dict[Any, tuple[int, Unit]] = {}
        errors: dict[int, Exception] = {}
        try:
            while True:
                while not errors and len(running) < AHEAD * self.workers:
                    found = next(waiting, None)
                    if found is None:
                        break
                    unit = pickle.dumps(found[1])
                    running[self._do.remote(unit, versions(), str(Path.cwd()))] = found
                if not running:
                    break
                ready, _ = ray.wait(list(running), timeout=LOOK_SECONDS)
                for reference in ready:
                    yield from _parts_of(reference, running, errors)
        except (Exception, KeyboardInterrupt):
            there = list(running)
            ready, _ = ray.wait(there, num_returns=len(there), timeout=0) if there else ([], [])
            for reference in ready:
                yield from _parts_of(reference, running, errors)
            raise
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
        if errors:
            raise errors[min(errors)]

    def close(self) -> None:
        """Leave the cluster; one that was begun here ends."""
        ray.shutdown()


class _Done(NamedTuple):
    """What a worker says of a unit: all its parts, and what has stopped it, if anything."""

    parts: list[Any]
    error: Exception | None
    node: str


_agents: Agents | None = None  # of a worker, from unit to unit


def _do(unit: bytes, asked: dict[str, str], folder: str) -> bytes:
    """Do a unit: what runs on a node."""
    global _agents
    node: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    parts: list[Any] = []
    if (own := versions()) != asked:
        error: Exception | None = ClusterError(
            f"node {node}: expected {_told(asked)}, as where the units come from; it has "
            f"{_told(own)}: install the same on all nodes"
        )
        return pickle.dumps(_Done(parts, error, node))
    with suppress(OSError):  # where paths are the same: on this machine, in a shared folder
        os.chdir(folder)
    _agents = _agents or Agents()
    error = done(pickle.loads(unit), _agents, parts.append)
    return pickle.dumps(_Done(parts, error, node))


def versions() -> dict[str, str]:
    """Return what has to be the same wherever units are done."""
    return {
        "tokaido-env": version("tokaido-env"),
        "rules": str(RULES_VERSION),
        "actions": str(ACTION_TABLE_VERSION),
    }


def _told(known: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in known.items())


def _parts_of(
    reference: Any, running: dict[Any, tuple[int, Unit]], errors: dict[int, Exception]
) -> Iterator[Part]:
    """Yield the parts of a unit that is done, which runs no more; note what has stopped it."""
    number, unit = running[reference]
    found = _found(reference, unit)
    with interrupts_held():
        for part in found.parts:
            yield number, part
        del running[reference]
    if found.error is not None:
        errors[number] = found.error


def _found(reference: Any, unit: Unit) -> _Done:
    """Return what a worker says of a unit, or that it is lost."""
    error: Exception
    try:
        found: _Done = pickle.loads(ray.get(reference))
        return found
    except (exceptions.WorkerCrashedError, exceptions.NodeDiedError) as lost:
        error = AgentFailed(
            f"the workers that played {unit} ended {RETRIES + 1} times: the agent ended them, or "
            f"there is too little memory ({type(lost).__name__})"
        )
    except exceptions.RayError as lost:
        error = ClusterError(f"{unit}: {type(lost).__name__}: {_first_line(lost)}")
    return _Done([], error, "")


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
    return f"cluster {shown(address)}" if address else "a cluster on this machine"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
