"""Cost of executors: positions of self-play per second of processor time.

    python benchmarks/executors.py                          serial and one, two and three processes
    python benchmarks/executors.py serial ray --repeats 3   others

Executors take turns, and all run the same self-play tasks of a policy search. Processor time
includes this process and all processes below it, also Ray's. The column "start" is the processor
time to start the workers: imports, kernels from the cache, the policy. Takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numba

from tokaido_env.agents.champion import CHAMPION
from tokaido_env.arena.executors import open_executor
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.learn.selfplay_games import SelfPlayGames

EXECUTORS = ("serial", "processes:1", "processes:2", "processes:3")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add(
        "executors",
        nargs="*",
        default=EXECUTORS,
        metavar="EXECUTOR",
        help=f"executors to compare (default: {' '.join(EXECUTORS)})",
    )
    add("--tasks", type=int, default=6, help="tasks of self-play games (default: 6)")
    add("--games", type=int, default=32, help="games of a task (default: 32)")
    add("--sims", type=int, default=50, help="simulations a decision (default: 50)")
    add("--repeats", type=int, default=5, help="runs of each executor (default: 5)")
    threads = numba.get_num_threads()
    text = f"threads of this process; workers have one (default: {threads})"
    add("--threads", type=int, default=threads, help=text)
    options = parser.parse_args(arguments)
    numba.set_num_threads(options.threads)
    spec = f"policy_search:{CHAMPION},sims={options.sims}"
    speeds: dict[str, list[float]] = {name: [] for name in options.executors}
    starts: dict[str, list[float]] = {name: [] for name in options.executors}
    for _ in range(options.repeats):
        for name in options.executors:
            _, start = measure(name, [task(spec, 1, k) for k in range(8)])
            tasks = [task(spec, options.games, k) for k in range(options.tasks)]
            positions, cpu = measure(name, tasks)
            starts[name].append(start)
            speeds[name].append(positions / (cpu - start))
    first = statistics.median(speeds[options.executors[0]])
    print(f"{'executor':14} {'positions/CPU-s':>16} {'spread':>15} {'ratio':>6} {'start':>9}")
    for name in speeds:
        median, start = statistics.median(speeds[name]), statistics.median(starts[name])
        spread = f"{min(speeds[name]):,.0f} – {max(speeds[name]):,.0f}"
        print(f"{name:14} {median:16,.0f} {spread:>15} {median / first:6.2f} {start:8.1f}s")
    return 0


def task(spec: str, games: int, number: int) -> SelfPlayGames:
    """Return one of the tasks that all executors run."""
    return SelfPlayGames(spec, "", BoardPool.load(), games, 1000 * number, 0.26, 0.04)


def measure(name: str, tasks: Sequence[SelfPlayGames]) -> tuple[int, float]:
    """Run tasks on a new executor; return their positions and the processor time in seconds."""
    began = _cpu()
    with open_executor(name) as executor:
        positions = sum(len(part.legal) for _, part in executor.map(tasks))
        return positions, _cpu() - began


def _cpu() -> float:
    """Return the processor time of this process and of its ended and running children."""
    own, others = (resource.getrusage(who) for who in (0, resource.RUSAGE_CHILDREN))
    waited = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return waited + _cpu_below(os.getpid())


def _cpu_below(pid: int) -> float:
    """Return the processor time of the running descendants of a process, from Linux's /proc."""
    times, parents = dict[int, float](), dict[int, int]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended meanwhile
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
