"""Units of work, and the crews that do them: in this process, in others, on a cluster.

A unit is a pure function of its fields. It gives the same parts wherever it is done, and however
often: a crew does it again if whoever did it has died. So some parts may come twice, and the order
of units means nothing.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.registry import make, policy_of
from tokaido_env.arena.apart import Apart, Limits
from tokaido_env.arena.playing import AgentFailed, Numbers, interrupts_held
from tokaido_env.core.checks import IllegalMove, shown

Part = tuple[int, Any]
"""The number of a unit, in the order in which they were begun, and a part of what it gives."""

UNITS = 8
"""How many units work is cut into for each worker, to share it evenly."""

_KEPT = 8  # agents, by whoever does units


class Make(Protocol):
    """Makes agents."""

    def __call__(self, spec: str, mark: str = "", limits: Limits | None = None) -> Agent:
        """Return the agent of a spec, the same each time.

        Args:
            spec: of the agent.
            mark: of its policy file, see `mark_of`.
            limits: of its process; None: it plays in this one.

        Raises:
            AgentError: if there is no such agent.
            AgentFailed: if the file is another here, or is another now.
        """


class Unit(Protocol):
    """Work that can be done anywhere. It can be pickled, and `str` tells what it is."""

    def run(self, make: Make) -> Iterator[Any]:
        """Do it; yield each part of what comes out, which can be pickled.

        Args:
            make: see `Make`; returns the same agent for unit after unit.

        Raises:
            IllegalMove, AgentFailed: if an agent failed.
        """


class Crew(Protocol):
    """Who does units."""

    @property
    def workers(self) -> int:
        """How many units are done at once, now."""

    def run(self, units: Iterable[Unit], agents: Sequence[Agent] = ()) -> Iterator[Part]:
        """Do units; yield their parts as they come. Ctrl-C waits until a part is done with.

        Units are asked for one by one, when there is somebody to do them. Where one fails no more
        are begun, those that run are done to their end, and what they gave is yielded.

        Args:
            units: to be done.
            agents: that need not be made from their specs in this process.

        Raises:
            IllegalMove, AgentFailed: of the first unit, by number, that has failed.
            KeyboardInterrupt: after what had been done by then was yielded.
        """

    def close(self) -> None:
        """End what works for it."""


class Agents:
    """The agents of specs, each made once and kept for a while.

    Args:
        agents: that are there already.
    """

    def __init__(self, agents: Sequence[Agent] = ()) -> None:
        self._there = {agent.spec: agent for agent in agents}
        self._made: dict[tuple[str, str, Limits | None], Agent] = {}

    def __call__(self, spec: str, mark: str = "", limits: Limits | None = None) -> Agent:
        """Return the agent of a spec: see `Make`."""
        if spec in self._there:
            return self._there[spec]
        wanted = spec, mark, limits
        agent = self._made.pop(wanted, None) or _made(*wanted)
        self._made[wanted] = agent  # the newest is the last
        if len(self._made) > _KEPT:
            del self._made[next(iter(self._made))]
        return agent


def mark_of(spec: str) -> str:
    """Return the SHA-256 of the policy file that an agent plays from, "" if there is none."""
    try:
        path = policy_of(spec)
        return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
    except (AgentError, OSError):  # of an agent that no spec makes, or whose file is gone since
        return ""


def wanted_of(agent: Agent) -> tuple[str, str, Limits | None]:
    """Return what `Make` is to be asked for to get such an agent elsewhere."""
    return agent.spec, mark_of(agent.spec), agent.limits if isinstance(agent, Apart) else None


def _made(spec: str, mark: str, limits: Limits | None) -> Agent:
    agent = make(spec) if limits is None else Apart(spec, limits)
    if mark and mark_of(spec) != mark:
        raise AgentFailed(
            f"agent {shown(spec)}: its policy file has changed since the games were given out, or "
            f"is another one on {socket.gethostname()}: expected SHA-256 {mark[:16]}…"
        )
    return agent


class Here:
    """A crew of one: this process."""

    workers = 1

    def run(self, units: Iterable[Unit], agents: Sequence[Agent] = ()) -> Iterator[Part]:
        """Do units, one after the other: see `Crew.run`."""
        known = Agents(agents)
        for number, unit in enumerate(units):
            for part in unit.run(known):
                with interrupts_held():
                    yield number, part

    def close(self) -> None:
        """Do nothing: see `Crew.close`."""


def portions(numbers: Numbers, workers: int) -> list[Numbers]:
    """Cut numbered work into what each unit of it does: for one worker all at once."""
    each = len(numbers) if workers == 1 else -(-len(numbers) // (UNITS * workers))
    return cut(numbers, max(each, 1))


def cut(numbers: Numbers, size: int) -> list[Numbers]:
    """Cut numbers into so many at a time."""
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def fill_in(
    out: npt.NDArray[Any],
    crew: Crew,
    units: Iterable[Unit],
    agents: Sequence[Agent],
    progress: Callable[[int], None] = lambda rows: None,
) -> None:
    """Let a crew do units whose parts are rows of an array, int64 (k,), and what stands there.

    Args:
        out: (n, …), filled in.
        crew: who does them.
        units: to be done.
        agents: as for `Crew.run`.
        progress: called with the number of rows filled in now and then.
    """
    there = np.zeros(len(out), np.bool_)
    for _, (rows, found) in crew.run(units, agents):
        new = int((~there[rows]).sum())
        out[rows], there[rows] = found, True
        progress(new)


def done(unit: Unit, agents: Agents, give: Callable[[Any], None]) -> Exception | None:
    """Do a unit, give each of its parts; return what has stopped it, as an error to be sent."""
    try:
        for part in unit.run(agents):
            give(part)
    except (IllegalMove, AgentFailed) as failed:
        return type(failed)(str(failed))
    except Exception as failed:  # made anew: not every error can be sent
        return AgentFailed(f"{type(failed).__name__}: {failed}")
    return None
