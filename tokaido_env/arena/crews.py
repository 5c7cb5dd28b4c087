"""The crew that a text stands for, as `--crew` of the commands that play games.

    with open_crew("processes:4") as crew:
        match = play_match(a, b, 1000, seed=0, crew=crew)

What begins with a crew ends with it: processes, and a cluster of this machine alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from tokaido_env.arena.crew import Crew, Here
from tokaido_env.arena.workers import Processes
from tokaido_env.core.checks import shown
from tokaido_env.core.extras import missing

KINDS = "here, processes[:N] or ray[:ADDRESS]"


@contextmanager
def open_crew(text: str) -> Iterator[Crew]:
    """Give the crew that a text stands for, and close it in the end.

    Args:
        text: "here"; "processes", one for each processor, or "processes:4"; "ray", a cluster of
            this machine alone or the one of the variable RAY_ADDRESS, or "ray:ADDRESS", as
            "ray:auto" or "ray:10.0.0.1:6379".

    Raises:
        ValueError: if it stands for none, or Ray is not installed.
        ClusterError: if there is no such cluster, or it cannot be worked with.
    """
    crew = _crew_of(text)
    try:
        yield crew
    finally:
        crew.close()


def _crew_of(text: str) -> Crew:
    check_crew(text)
    kind, _, rest = text.partition(":")
    if kind == "here":
        return Here()
    if kind == "processes":
        return Processes(int(rest) if rest else None)
    from tokaido_env.arena.cluster import Cluster

    return Cluster(rest)


def check_crew(text: str | None) -> None:
    """Raise `ValueError` unless a text, if there is one, stands for a crew; nothing is begun."""
    if text is None:
        return
    kind, colon, rest = text.partition(":")
    number = rest.isascii() and rest.isdigit() and len(rest) < 6 and 0 < int(rest) <= 10_000
    known = {"here": not colon, "processes": number or not colon, "ray": bool(rest) or not colon}
    if not known.get(kind, False):
        raise ValueError(f"crew: expected {KINDS}, got {shown(text)}")
    if kind == "ray" and find_spec("ray") is None:
        raise ValueError(str(missing("crew: a cluster needs", "ray", "ray")))
