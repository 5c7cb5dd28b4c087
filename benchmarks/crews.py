"""What a crew costs: positions of self-play a second of processor time, by who plays.

    python benchmarks/crews.py                          here and one, two and three processes
    python benchmarks/crews.py here ray --repeats 3     others

Crews take turns, and all play the same units, of a policy search. Processor time is that of this
process and of those that it has started; what begins a process (imports, kernels from the cache,
the policy) is in a row of its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from tokaido_env.agents.arena.crews import open_crew
from tokaido_env.agents.learn.self_play import SelfPlayUnit
from tokaido_env.agents.players.champion import CHAMPION
from tokaido_env.boards.pool import BoardPool

CREWS = ("here", "processes:1", "processes:2", "processes:3")


class Cost(NamedTuple):
    """What some units took.

    Attributes:
        positions: that they gave.
        cpu: seconds of processors.
        wall: seconds.
    """

    positions: int
    cpu: float
    wall: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("crews", nargs="*", default=CREWS, metavar="CREW", help=f"({' '.join(CREWS)})")
    add("--units", type=int, default=6, help="(6)")
    add("--games", type=int, default=32, help="of a unit (32)")
    add("--sims", type=int, default=50, help="simulations a decision (50)")
    add("--repeats", type=int, default=5, help="(5)")
    options = parser.parse_args(arguments)
    expert = f"policy_search:{CHAMPION},sims={options.sims}"
    found: dict[str, list[Cost]] = {name: [] for name in options.crews}
    begun: dict[str, list[float]] = {name: [] for name in options.crews}
    for _ in range(options.repeats):
        for name in options.crews:
            empty = measure(name, [unit(expert, 1, k) for k in range(8)])
            whole = measure(name, [unit(expert, options.games, k) for k in range(options.units)])
            begun[name].append(empty.cpu)
            found[name].append(whole._replace(cpu=whole.cpu - empty.cpu))
    first = statistics.median(one.positions / one.cpu for one in found[options.crews[0]])
    print(f"{'crew':14} {'positions/CPU-s':>16} {'spread':>15} {'ratio':>6} {'to begin':>9}")
    for name, costs in found.items():
        speeds = sorted(one.positions / one.cpu for one in costs)
        middle, start = statistics.median(speeds), statistics.median(begun[name])
        spread = f"{speeds[0]:,.0f} – {speeds[-1]:,.0f}"
        print(f"{name:14} {middle:16,.0f} {spread:>15} {middle / first:6.2f} {start:8.1f}s")
    return 0


def unit(expert: str, games: int, number: int) -> SelfPlayUnit:
    """Return one of the units that all crews play."""
    return SelfPlayUnit(expert, "", BoardPool.load(), games, 1000 * number, 0.26, 0.04)


def measure(name: str, units: Sequence[SelfPlayUnit]) -> Cost:
    """Let a crew of its own play units."""
    positions, began, cpu = 0, time.perf_counter(), _cpu()

    def take(number: int, part: object) -> None:
        nonlocal positions
        positions += len(part.legal)  # type: ignore[attr-defined]

    with open_crew(name) as crew:
        crew.run(units, take)
    return Cost(positions, _cpu() - cpu, time.perf_counter() - began)


def _cpu() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    own, others = (resource.getrusage(who) for who in (0, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


if __name__ == "__main__":
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    sys.exit(main())
