"""Measure the speeds of this machine, next to what they should be.

Rows that are compared run in turn within one run, so that what slows the machine slows all of them.
The first run is thrown away; shown are the median of the others and their spread.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

import numba

import tokaido_env
from tokaido_env.cli.bench_games import GAMES, Done, has_gpu
from tokaido_env.cli.bench_rows import RATIOS, ROWS, Ratio, Row
from tokaido_env.cli.command import CommandParser, reports_errors
from tokaido_env.files import check_outputs, write_text

PACKAGES = (
    *("numpy", "numba", "gymnasium", "pettingzoo", "stable_baselines3", "sb3_contrib", "torch"),
    *("open_spiel", "pgx"),
)


@dataclass(frozen=True)
class Result:
    """The figures of a row or ratio, one for each run."""

    row: Row | Ratio
    figures: list[float]

    @property
    def median(self) -> float:
        """The median figure."""
        return statistics.median(self.figures)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the budget; None without one."""
        budget = self.row.budget
        if budget is None:
            return None
        return self.median <= budget if self.row.at_most else self.median >= budget

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types."""
        names = ("key", "what", "unit", "threads", "budget", "at_most")
        row = {name: getattr(self.row, name) for name in names}
        return row | {"median": self.median, "figures": self.figures, "met": self.met}


@reports_errors("bench")
def main(
    arguments: Sequence[str] | None = None,
    rows: Sequence[Row] = ROWS,
    ratios: Sequence[Ratio] = RATIOS,
) -> int:
    """Measure, print the table, write the figures; return the exit status."""
    parser = CommandParser("bench", __doc__)
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each row")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="rows whose key starts so")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        raise ValueError(f"--runs: expected 1 or more, got {options.runs}")
    chosen = [row for row in rows if _wanted(row, options.only)]
    if not chosen:
        known, asked = ", ".join(row.key for row in rows), " ".join(options.only)
        raise ValueError(f"--only: expected one of {known}, got {asked}")
    check_outputs(options.json)
    here, date = machine(), datetime.now(UTC).date().isoformat()
    results = run(chosen, ratios, options.runs)
    print(page(date, here, options.runs, results))
    if options.json is not None:
        data: dict[str, Any] = {"version": 1, "date": date, "runs": options.runs, "machine": here}
        data["rows"] = [result.to_dict() for result in results]
        write_text(Path(options.json), json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    return 0


def run(rows: Sequence[Row], ratios: Sequence[Ratio], runs: int) -> list[Result]:
    """Measure rows in turn, once to throw away and then `runs` times; add the ratios."""
    figures: dict[str, list[float]] = {row.key: [] for row in rows}
    most = numba.config.NUMBA_NUM_THREADS
    for turn in range(runs + 1):
        for row in rows:
            step = f"run {turn} of {runs}: {row.key}"
            print(f"\r{step:<60}", end="", file=sys.stderr)
            numba.set_num_threads(min(row.threads, most))
            # What other rows have loaded is not for this one's garbage collections to look through.
            gc.collect()
            gc.freeze()
            done = row.measure()
            if turn > 0:
                figures[row.key].append(done.rate if isinstance(done, Done) else done)
    print(file=sys.stderr)
    gc.unfreeze()
    numba.set_num_threads(most)
    results = [Result(row, figures[row.key]) for row in rows]
    for ratio in ratios:
        if {ratio.over, ratio.under} <= figures.keys():
            pairs = zip(figures[ratio.over], figures[ratio.under], strict=True)
            results.append(Result(ratio, [over / under for over, under in pairs]))
    return results


def _wanted(row: Row, only: Sequence[str] | None) -> bool:
    """Return whether a row was asked for and can be measured here."""
    asked = only is None or any(row.key.startswith(key) for key in only)
    there = all(importlib.util.find_spec(module) for module in row.needs)
    there = there and (not row.gpu or has_gpu())
    return asked and there and row.threads <= numba.config.NUMBA_NUM_THREADS


def machine() -> dict[str, Any]:
    """Return what the figures depend on: processor, cores, versions."""
    versions = {"python": platform.python_version(), "tokaido_env": tokaido_env.__version__}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "games": GAMES,
        "versions": versions,
    }


def _processor() -> str:
    """Return the processor's name, which Python itself does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def page(date: str, here: dict[str, Any], runs: int, results: Sequence[Result]) -> str:
    """Return results as a section in Markdown, with all that they depend on."""
    versions = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
    return (
        f"## {date}\n\n"
        f"{here['processor']}, {here['cores']} cores, {here['system']}; {versions}; batches of "
        f"{GAMES:,} games; median and spread of {runs} runs after one thrown away.\n\n"
        f"{table(results)}"
    )


def table(results: Sequence[Result]) -> str:
    """Return results as a Markdown table."""
    lines = [
        "| what | threads | median | spread | unit | budget | |",
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
