"""`tokaido evaluate calibrate`: compare an agent's expected results with its actual ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.boards.board import Board
from tokaido_env.cli.cli_options import (
    add_agents,
    add_executor,
    add_shared,
    check_run,
    chosen_executor,
    evaluate_parser,
)
from tokaido_env.cli.command import write_json
from tokaido_env.report import calibration as report
from tokaido_env.report.progress import match_bar
from tokaido_env.report.tables import print_table
from tokaido_env.study.calibration import GAMES, POSITIONS, ROLLOUTS, CalibrationConfig, calibrate


def calibrate_agent(arguments: Sequence[str]) -> int:
    """Compare an agent's expected results in self-play with the actual results.

    It reports bias, error, and the share of luck. With the defaults it takes some minutes for
    `champion`, longer for an agent that searches.
    """
    options = _parser().parse_args(arguments)
    read = [options.board, policy_path_of(options.agent)]
    check_run(options, options.json, read=read, folder=options.plots)
    plan = CalibrationConfig(options.games, options.positions, options.rollouts, options.seed)
    agent, board = make(options.agent), Board.load(options.board)
    with (
        chosen_executor(options.executor) as executor,
        match_bar(agent.spec, plan.total, 0) as progress,
    ):
        result = calibrate(agent, board, plan, progress, executor)
    write_json(options.json, result)
    for table in (report.rounds_table, report.reliability_table, report.errors_table):
        print_table(table(result))
    print(report.meaning(result))
    if options.plots is not None:
        report.write_plots(result, options.plots)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = evaluate_parser("calibrate", calibrate_agent)
    add_agents(parser)
    add = parser.add_argument
    add("--games", type=int, default=GAMES, help="number of games of self-play")
    add("--positions", type=int, default=POSITIONS, help="number of positions to roll out")
    add("--rollouts", type=int, default=ROLLOUTS, help="number of rollouts of each position")
    add_shared(parser, "--seed", "--board", "--json", "--plots")
    add_executor(parser, "serial")
    return parser
