"""`tokaido evaluate regret`: what the decisions of agents lose, by rolled-out positions."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_of
from tokaido_env.arena.executors import check_executor
from tokaido_env.cli.cli_options import add_executor, chosen_executor
from tokaido_env.cli.command import program
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report import regret as report
from tokaido_env.report.tables import markdown, print_table
from tokaido_env.study.regret import difference, figures, measure
from tokaido_env.study.regret_set import SHIPPED, RegretSet

VERSION = 1
GROUPS = ("boards", "phase", "rounds")


def regret(arguments: Sequence[str]) -> int:
    """Tell what agents lose a decision, in positions whose actions were rolled out."""
    options = _options(arguments)
    agents = [make(spec) for spec in options.agents]
    told = RegretSet.load(options.set)
    with chosen_executor(options.executor) as executor:
        measured = [measure(agent, told, executor) for agent in agents]
    found = [figures(told, one, timed=True) for one in measured]
    order = sorted(range(len(found)), key=lambda i: float(found[i]["regret"]["mean"]))
    apart = [
        difference(told, measured[worse], measured[better])
        for better, worse in itertools.pairwise(order)
    ]
    _tell(
        {"name": told.card["name"], "hash": told.hash, "positions": len(told)},
        found,
        apart,
        options,
    )
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(f"{program('evaluate')} regret", description=regret.__doc__)
    add = parser.add_argument
    add("agents", nargs="+", metavar="AGENT", help=f"specs, see {program('evaluate')} --list")
    add("--set", type=Path, default=SHIPPED, metavar="FILE", help="a regret set (the one shipped)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add("--markdown", type=Path, metavar="FILE", help="write the table to a file")
    add("--timed", action="store_true", help="core seconds in the files too: other bytes each time")
    add_executor(parser, "serial")
    options = parser.parse_args(arguments)
    check_executor(options.executor)
    policies = map(policy_of, options.agents)
    check_outputs(options.json, options.markdown, read=[options.set, *policies])
    return options


def _tell(
    told: dict[str, Any],
    found: list[dict[str, Any]],
    apart: list[dict[str, Any]],
    options: argparse.Namespace,
) -> None:
    title = report.title_of(told)
    kept = [
        {key: value for key, value in one.items() if options.timed or key != "core_seconds"}
        for one in found
    ]
    if options.json is not None:
        data = {"version": VERSION, "set": told, "agents": kept, "differences": apart}
        write_text(options.json, json.dumps(data, indent=1) + "\n")
    if options.markdown is not None:
        write_text(options.markdown, markdown(report.main_table(title, kept), code=True))
    print_table(report.main_table(title, found))
    for key in GROUPS:
        print_table(report.groups_table(key, found))
    if apart:
        print_table(report.differences_table(apart))
