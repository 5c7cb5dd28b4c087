"""`tokaido evaluate calibrate`: whether the results that an agent expects are those that come."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_of
from tokaido_env.arena.executors import check_executor
from tokaido_env.boards.board import Board
from tokaido_env.cli.cli_options import add_executor, chosen_executor
from tokaido_env.cli.command import program
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report import calibration as report
from tokaido_env.report.progress import match_bar
from tokaido_env.report.tables import print_table
from tokaido_env.study.calibration import GAMES, POSITIONS, ROLLOUTS, Plan, calibrate


def calibrate_agent(arguments: Sequence[str]) -> int:
    """Compare what an agent expects in games against itself with what comes: bias, error, luck."""
    options = _parser().parse_args(arguments)
    check_outputs(
        options.json, folder=options.plots, read=[options.board, policy_of(options.agent)]
    )
    if options.plots is not None:
        require_extra("figures need", "plots", "matplotlib")
    check_executor(options.executor)
    plan = Plan(options.games, options.positions, options.rollouts, options.seed)
    agent, board = make(options.agent), Board.load(options.board)
    with (
        chosen_executor(options.executor) as executor,
        match_bar(agent.spec, plan.total, 0) as progress,
    ):
        result = calibrate(agent, board, plan, progress, executor)
    if options.json is not None:
        write_text(options.json, json.dumps(result, indent=1) + "\n")
    for table in (report.rounds_table, report.reliability_table, report.errors_table):
        print_table(table(result))
    print(report.meaning(result))
    if options.plots is not None:
        report.write_plots(result, options.plots)
    return 0


def _parser() -> argparse.ArgumentParser:
    name = f"{program('evaluate')} calibrate"
    parser = argparse.ArgumentParser(name, description=calibrate_agent.__doc__)
    add = parser.add_argument
    add("agent", metavar="AGENT", help=f"a spec, see {program('evaluate')} --list")
    add("--games", type=int, default=GAMES, help=f"against itself ({GAMES})")
    add("--positions", type=int, default=POSITIONS, help=f"of them to roll out ({POSITIONS})")
    add("--rollouts", type=int, default=ROLLOUTS, help=f"of each of these ({ROLLOUTS})")
    add("--seed", type=int, default=0, help="of the luck, 0 to 2**53 - 1 (0)")
    add("--board", default="shikoku", help="a built-in board or a file (shikoku)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add("--plots", type=Path, metavar="DIR", help="write the figure to a folder")
    add_executor(parser, "serial")
    return parser
