"""Measure the speeds of the environments and agents on this machine, next to their targets.

Each run measures all rows in turn, so that a slower moment of the machine affects all of them. The
first run is discarded; the table has the median of the others and their range. With the defaults it
takes about two minutes with warm caches.

    python benchmarks/bench.py --only random step
    python benchmarks/bench.py --runs 3 --json speeds.json
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numba
from bench_games import GAMES, Throughput, gpu_name
from bench_rows import RATIOS, ROWS, Ratio, Row

import tokaido_env
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report.progress import ProgressLines

PACKAGES = (
    *("numpy", "numba", "gymnasium", "pettingzoo", "stable_baselines3", "sb3_contrib", "torch"),
    *("open_spiel", "pgx"),
)


@dataclass(frozen=True)
class Result:
    """The figures of a row or ratio, one per run."""

    row: Row | Ratio
    figures: list[float]

    @property
    def median(self) -> float:
        """The median figure."""
        return statistics.median(self.figures)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None without one."""
        budget = self.row.budget
        if budget is None:
            return None
        return self.median <= budget if self.row.at_most else self.median >= budget

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types."""
        names = ("key", "what", "unit", "threads", "budget", "at_most")
        row = {name: getattr(self.row, name) for name in names}
        return row | {"median": self.median, "figures": self.figures, "met": self.met}


def main(
    arguments: Sequence[str] | None = None,
    rows: Sequence[Row] = ROWS,
    ratios: Sequence[Ratio] = RATIOS,
) -> int:
    """Print and write the speeds; return 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="number of measured runs (default: 5)")
    only = "measure only rows with a key that starts with one of these (default: all)"
    parser.add_argument("--only", nargs="+", metavar="ROW", help=only)
    figures = "also write the figures to this file as JSON (default: none)"
    parser.add_argument("--json", metavar="FILE", type=Path, help=figures)
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error(f"--runs: expected 1 or more, got {options.runs}")
    chosen = [row for row in rows if _can_measure(row, options.only)]
    if not chosen:
        known = ", ".join(row.key for row in rows if _can_measure(row, None))
        asked = " ".join(options.only)
        parser.error(f"--only: expected one of {known}, got {asked}")
    check_outputs(options.json)
    machine, date = machine_info(), datetime.now(UTC).date().isoformat()
    results = run(chosen, ratios, options.runs)
    print(section(date, machine, options.runs, results))
    data: dict[str, Any] = {"version": 1, "date": date, "runs": options.runs, "machine": machine}
    data["rows"] = [result.to_dict() for result in results]
    if options.json is not None:
        write_text(options.json, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    return 0


def run(rows: Sequence[Row], ratios: Sequence[Ratio], runs: int) -> list[Result]:
    """Measure rows in turn, once to discard and then `runs` times, and compute the ratios."""
    figures: dict[str, list[float]] = {row.key: [] for row in rows}
    most, lines = numba.config.NUMBA_NUM_THREADS, ProgressLines()
    for turn in range(runs + 1):
        for row in rows:
            lines.print(partial("run {} of {}: {}".format, turn, runs, row.key))
            numba.set_num_threads(min(row.threads, most))
            # Objects of other rows must not slow down the garbage collections of this one.
            gc.collect()
            gc.freeze()
            done = row.measure()
            if turn > 0:
                figures[row.key].append(done.rate if isinstance(done, Throughput) else done)
    gc.unfreeze()
    numba.set_num_threads(most)
    results = [Result(row, figures[row.key]) for row in rows]
    for ratio in ratios:
        if {ratio.over, ratio.under} <= figures.keys():
            pairs = zip(figures[ratio.over], figures[ratio.under], strict=True)
            results.append(Result(ratio, [over / under for over, under in pairs]))
    return results


def _can_measure(row: Row, only: Sequence[str] | None) -> bool:
    """Return whether a row is chosen and this machine can measure it."""
    asked = only is None or any(row.key.startswith(key) for key in only)
    available = all(importlib.util.find_spec(module) for module in row.needs)
    available = available and (not row.gpu or gpu_name() != "")
    return asked and available and row.threads <= numba.config.NUMBA_NUM_THREADS


def machine_info() -> dict[str, Any]:
    """Return processor, cores, system and versions."""
    versions = {"python": platform.python_version(), "tokaido_env": tokaido_env.__version__}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "gpu": gpu_name(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "games": GAMES,
        "versions": versions,
    }


def _processor() -> str:
    """Return the processor's name, which Python itself does not report on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def section(date: str, machine: dict[str, Any], runs: int, results: Sequence[Result]) -> str:
    """Return results as a section in Markdown, with machine and versions."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    gpu = f"{machine['gpu']}; " if machine["gpu"] else ""
    return (
        f"## {date}\n\n"
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; {gpu}{versions}; "
        f"batches of {GAMES:,} games; median and range of {runs} runs after a discarded one.\n\n"
        f"{table(results)}"
    )


def table(results: Sequence[Result]) -> str:
    """Return results as a Markdown table."""
    lines = [
        "| what | threads | median | range | unit | target | |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        row = result.row
        low, high = _figure(min(result.figures)), _figure(max(result.figures))
        bound = "≤ " if row.at_most else "≥ "
        budget = "" if row.budget is None else bound + _figure(row.budget)
        met = {None: "", True: "met", False: "missed"}[result.met]
        cells = (row.what, row.threads, _figure(result.median), f"{low} – {high}", row.unit)
        lines.append("| " + " | ".join(map(str, (*cells, budget, met))) + " |")
    return "\n".join(lines)


def _figure(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
