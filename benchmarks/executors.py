"""What an executor costs: positions of self-play a second of processor time, by who plays.

    python benchmarks/executors.py                          serial and one, two and three processes
    python benchmarks/executors.py serial ray --repeats 3     others

Executors take turns, and all run the same tasks, of a policy search. Processor time is that of
this process and of all below it, Ray's own too; the column "to begin" has what begins a process:
imports, kernels from the cache, the policy.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numba

from tokaido_env.agents.champion import CHAMPION
from tokaido_env.arena.executors import open_executor
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.learn.selfplay_games import SelfPlayGames

EXECUTORS = ("serial", "processes:1", "processes:2", "processes:3")


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
    add(
        "executors",
        nargs="*",
        default=EXECUTORS,
        metavar="EXECUTOR",
        help=f"({' '.join(EXECUTORS)})",
    )
    add("--units", type=int, default=6, help="(6)")
    add("--games", type=int, default=32, help="of a unit (32)")
    add("--sims", type=int, default=50, help="simulations a decision (50)")
    add("--repeats", type=int, default=5, help="(5)")
    threads = numba.get_num_threads()
    add("--threads", type=int, default=threads, help=f"of this process; players have 1 ({threads})")
    options = parser.parse_args(arguments)
    numba.set_num_threads(options.threads)
    expert = f"policy_search:{CHAMPION},sims={options.sims}"
    found: dict[str, list[Cost]] = {name: [] for name in options.executors}
    begun: dict[str, list[float]] = {name: [] for name in options.executors}
    for _ in range(options.repeats):
        for name in options.executors:
            empty = measure(name, [unit(expert, 1, k) for k in range(8)])
            whole = measure(name, [unit(expert, options.games, k) for k in range(options.units)])
            begun[name].append(empty.cpu)
            found[name].append(whole._replace(cpu=whole.cpu - empty.cpu))
    first = statistics.median(one.positions / one.cpu for one in found[options.executors[0]])
    print(f"{'executor':14} {'positions/CPU-s':>16} {'spread':>15} {'ratio':>6} {'to begin':>9}")
    for name, costs in found.items():
        speeds = sorted(one.positions / one.cpu for one in costs)
        middle, start = statistics.median(speeds), statistics.median(begun[name])
        spread = f"{speeds[0]:,.0f} – {speeds[-1]:,.0f}"
        print(f"{name:14} {middle:16,.0f} {spread:>15} {middle / first:6.2f} {start:8.1f}s")
    return 0


def unit(expert: str, games: int, number: int) -> SelfPlayGames:
    """Return one of the units that all executors play."""
    return SelfPlayGames(expert, "", BoardPool.load(), games, 1000 * number, 0.26, 0.04)


def measure(name: str, units: Sequence[SelfPlayGames]) -> Cost:
    """Let an executor of its own play units."""
    began, cpu = time.perf_counter(), _cpu()
    with open_executor(name) as executor:
        positions = sum(len(part.legal) for _, part in executor.map(units))
        return Cost(positions, _cpu() - cpu, time.perf_counter() - began)


def _cpu() -> float:
    """Return the processor time of this process, of those it has waited for, and of those alive."""
    own, others = (resource.getrusage(who) for who in (0, resource.RUSAGE_CHILDREN))
    waited = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return waited + _cpu_below(os.getpid())


def _cpu_below(pid: int) -> float:
    """Return the processor time of the processes that live below one, as Linux tells it."""
    times, parents = dict[int, float](), dict[int, int]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = file.read_text().rpartition(")")[2].split()
            number = int(file.parent.name)
            parents[number] = int(fields[1])
            times[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below, found = {pid}, 0.0
    while more := {one for one, parent in parents.items() if parent in below} - below:
        below |= more
        found += sum(times[one] for one in more)
    return found


if __name__ == "__main__":
    sys.exit(main())
