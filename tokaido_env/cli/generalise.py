"""`tokaido evaluate generalise`: how an agent plays on boards that it has not seen."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tokaido_env.agents import Agent, make
from tokaido_env.agents.registry import policy_of
from tokaido_env.arena.executors import check_executor
from tokaido_env.arena.generalisation import Generalisation
from tokaido_env.arena.generalisation_file import load_generalisation
from tokaido_env.arena.tournament import Sheet
from tokaido_env.cli.matches import add_executor, play_kept, tell_stopped
from tokaido_env.cli.program import program
from tokaido_env.core.checks import plain
from tokaido_env.core.extras import require
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report import boards as report
from tokaido_env.report.tables import print_table
from tokaido_env.study.generalise import BOARDS, OPPONENT, PAIRS, SPLIT, Plan, plan


def generalise(arguments: Sequence[str]) -> int:
    """Measure an agent on boards of the family that it has not seen: Tokaido-100 by default."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check_outputs(options)
    if options.table:
        return _compare(options)
    if options.agent is None:
        parser.error(f"expected an agent, as: {program('evaluate')} generalise greedy")
    agents = make(options.agent), make(options.opponent)
    planned = plan(
        agents[0],
        agents[1].spec,
        split=options.split,
        boards=options.boards,
        pairs=options.pairs,
        train=options.train,
        seed=options.seed,
    )
    return _measure(agents, planned, options)


def _parser() -> argparse.ArgumentParser:
    name = f"{program('evaluate')} generalise"
    parser = argparse.ArgumentParser(name, description=generalise.__doc__)
    add = parser.add_argument
    add("agent", nargs="?", metavar="AGENT", help=f"a spec, see {program('evaluate')} --list")
    add("--opponent", default=OPPONENT, metavar="SPEC", help=f"({OPPONENT})")
    add("--split", default=SPLIT, help=f"boards it has not seen: test, valid or train ({SPLIT})")
    add("--boards", type=int, default=BOARDS, help=f"how many of them, from 2 ({BOARDS})")
    add("--pairs", type=int, default=PAIRS, help=f"of games, on each board ({PAIRS})")
    add("--train", type=int, metavar="N", help="it was trained on the first N boards of train")
    add("--seed", type=int, default=0, help="of the luck, 0 to 2**53 - 1 (0)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add("--plots", type=Path, metavar="DIR", help="write the figure to a folder")
    add("--records", type=Path, metavar="FILE", help="append every game; go on from those in it")
    add_executor(parser)
    add(
        "--table",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="instead: compare results that --json wrote; with --plots draw their curve",
    )
    add("--markdown", type=Path, metavar="FILE", help="with --table: write the table to a file")
    return parser


def _check_outputs(options: argparse.Namespace) -> None:
    check_executor(options.executor)
    # Records are appended: a link to them stays one.
    records = None if options.records is None else options.records.resolve()
    policies = [policy_of(spec) for spec in (options.agent, options.opponent) if spec is not None]
    outputs = options.json, records, options.markdown
    check_outputs(*outputs, folder=options.plots, read=[*policies, *options.table])
    if options.markdown is not None and not options.table:
        raise ValueError("--markdown: expected together with --table")
    if options.table and (options.agent or options.json or options.records):
        raise ValueError("--table: expected files of results, and neither an agent nor its outputs")
    if options.plots is not None:
        require("figures need", "plots", "matplotlib")


# One agent


def _measure(agents: tuple[Agent, Agent], planned: Plan, options: argparse.Namespace) -> int:
    sheets = planned.sheets()
    stopped = play_kept(
        *([agents] * len(sheets), sheets, options.records),
        executor=options.executor,
        note=lambda sheet: f", {_boards_done(sheet)} of {len(sheet.pool)} boards",
    )
    if stopped is not None:
        return tell_stopped(stopped, sheets, options.records)
    _tell(planned.result(sheets), options)
    return 0


def _boards_done(sheet: Sheet) -> int:
    """Return on how many boards all games are finished: as many on each, board after board."""
    return int(sheet.finished.reshape(len(sheet.pool), -1).all(axis=1).sum())


def _tell(result: Generalisation, options: argparse.Namespace) -> None:
    if options.json is not None:
        write_text(options.json, json.dumps(result.to_dict(), indent=1) + "\n")
    print_table(report.result_table(result))
    print(plain(report.meaning(result), 500))
    if options.plots is not None:
        report.write_result_plots(result, options.plots)


# Several results


def _compare(options: argparse.Namespace) -> int:
    results = {str(path): load_generalisation(path) for path in options.table}
    report.check_comparable(results)
    each = list(results.values())
    print_table(report.compared_table(each))
    if options.markdown is not None:
        write_text(options.markdown, report.markdown_table(each))
    if options.plots is not None:
        report.write_curve_plots(each, options.plots)
    return 0
