"""`tokaido evaluate suite` and `verify`: an agent measured by a fixed suite, and what that is."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_of
from tokaido_env.arena.again import REPEATS, Again, decide_again
from tokaido_env.arena.executors import check_executor
from tokaido_env.arena.suite import Suite
from tokaido_env.arena.suite_file import (
    SubmissionError,
    load_submission,
    load_suite,
    submission_to_dict,
)
from tokaido_env.arena.tournament import Sheet
from tokaido_env.arena.verifying import SHARE, verify
from tokaido_env.cli.matches import add_executor, play_kept, tell_stopped
from tokaido_env.cli.program import program
from tokaido_env.core.checks import MOST_PATH, brief, check_seed, plain
from tokaido_env.core.threads import one_thread
from tokaido_env.files import check_outputs, read_json, write_text
from tokaido_env.report import suites as report
from tokaido_env.report.tables import print_table

TIMED = 4  # games of each match on the default board, in which the agent is timed


def suite(arguments: Sequence[str]) -> int:
    """Measure an agent by a suite of fixed opponents, boards and luck: tokaido-bench-1."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check_outputs(options)
    chosen = load_suite(options.suite)
    if options.table:
        return _compare(chosen, options)
    if options.agent is None:
        parser.error(f"expected an agent, as: {program('evaluate')} suite greedy")
    return _measure(make(options.agent), chosen, options)


def _parser() -> argparse.ArgumentParser:
    name = f"{program('evaluate')} suite"
    parser = argparse.ArgumentParser(name, description=suite.__doc__)
    add = parser.add_argument
    add("agent", nargs="?", metavar="AGENT", help=f"a spec, see {program('evaluate')} --list")
    add("--json", type=Path, metavar="FILE", help="write the submission; --records go with it")
    add("--records", type=Path, metavar="FILE", help="append every game; go on from those in it")
    add("--timing", type=Path, metavar="FILE", help="write how long the agent took a move")
    add_executor(parser)
    add("--suite", type=Path, metavar="FILE", help="another suite (tokaido-bench-1)")
    add(
        "--table",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="instead: compare submissions X.json, with the times in X.timing.json",
    )
    add("--markdown", type=Path, metavar="FILE", help="with --table: write the table to a file")
    return parser


def _check_outputs(options: argparse.Namespace) -> None:
    check_executor(options.executor)
    # Records are appended: a link to them stays one.
    records = None if options.records is None else options.records.resolve()
    read = [options.suite, *options.table]
    read += [] if options.agent is None else [policy_of(options.agent)]
    check_outputs(options.json, options.timing, records, options.markdown, read=read)
    if options.markdown is not None and not options.table:
        raise ValueError("--markdown: expected together with --table")
    played = options.agent, options.json, options.records, options.timing
    if options.table and any(one is not None for one in played):
        raise ValueError("--table: expected submissions, and neither an agent nor its outputs")
    beside = options.json is None or records is None or records.parent == _folder(options.json)
    if not beside:
        raise ValueError(f"--records: expected a file beside {options.json}, got {options.records}")


def _folder(path: Path) -> Path:
    return path.resolve().parent


# One agent


def _measure(agent: Agent, chosen: Suite, options: argparse.Namespace) -> int:
    sheets = chosen.sheets(agent.spec)
    stopped = play_kept(
        [(agent, make(sheet.b)) for sheet in sheets],
        *(sheets, options.records),
        executor=options.executor,
        note=lambda sheet: f" against {sheet.b}",
    )
    if stopped is not None:
        return tell_stopped(stopped, sheets, options.records)
    result = chosen.result(sheets)
    if options.json is not None:
        games = sum(map(len, sheets))
        data = submission_to_dict(result, options.records, games)
        write_text(options.json, json.dumps(data, indent=1) + "\n")
    for table in report.result_tables(result):
        print_table(table)
    moves, each = _timed(agent, sheets[: len(chosen.opponents)])
    low, middle, high = min(each), statistics.median(each), max(each)
    print(
        f"{middle:.2g} core-seconds a move ({low:.2g} to {high:.2g}), on one thread, "
        f"the median of {len(each)} times {moves:,} moves"
    )
    if options.timing is not None:
        data = {"version": 1, "suite": chosen.hash, "agent": agent.spec}
        data |= {"moves": moves, "seconds_a_move": middle}
        write_text(options.timing, json.dumps(data, indent=1) + "\n")
    return 0


def _timed(agent: Agent, sheets: Sequence[Sheet]) -> tuple[int, list[float]]:
    """Return how many decisions an agent repeats, and the processor time of one, each time."""

    def again() -> list[Again]:
        return [
            decide_again(sheet, np.arange(min(TIMED, len(sheet))), agent, 0) for sheet in sheets
        ]

    with one_thread():
        again()  # what is compiled is compiled, what is kept is made
        times = [again() for _ in range(REPEATS)]
    moves = sum(one.decisions for one in times[0])
    return moves, [sum(one.seconds for one in each) / moves for each in times]


# Several submissions


def _compare(chosen: Suite, options: argparse.Namespace) -> int:
    measured = [
        report.Measured(load_submission(path, chosen).result, _seconds(path, chosen))
        for path in options.table
    ]
    print_table(report.compared_table(measured))
    if options.markdown is not None:
        write_text(options.markdown, report.markdown_table(measured))
    return 0


def _seconds(path: Path, chosen: Suite) -> float | None:
    """Return the processor time a move that stands in the file beside a submission, if any."""
    beside = path.with_suffix(".timing.json")
    if not beside.is_file():
        return None
    data = read_json(beside)
    data = data if isinstance(data, dict) else {}
    seconds: Any = data.get("seconds_a_move")
    if type(seconds) not in (int, float) or data.get("suite") != chosen.hash:
        raise SubmissionError(
            f"{brief(beside, MOST_PATH)}: expected the time of an agent on {chosen.hash}, as "
            "--timing writes it"
        )
    return float(seconds)


# Somebody else's


def verify_submission(arguments: Sequence[str]) -> int:
    """Replay all games of a submission, let opponents decide again, and make its numbers anew."""
    name = f"{program('evaluate')} verify"
    parser = argparse.ArgumentParser(name, description=verify_submission.__doc__)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="what suite --json wrote, beside its records")
    add("--share", type=float, default=SHARE, help=f"of games that are decided again ({SHARE})")
    add("--seed", type=int, default=0, help="draws them, 0 to 2**53 - 1 (0)")
    add("--agent", metavar="AGENT", help="let the agent itself decide again too")
    add("--suite", type=Path, metavar="FILE", help="another suite (tokaido-bench-1)")
    options = parser.parse_args(arguments)
    check_seed(options.seed)
    found = verify(
        *(options.file, load_suite(options.suite), make),
        share=options.share,
        seed=options.seed,
        agent=None if options.agent is None else make(options.agent),
        progress=lambda what: print(f"evaluate: {plain(what)}", file=sys.stderr),
    )
    for table in report.result_tables(found.result):
        print_table(table)
    who = "opponents and agent" if options.agent is not None else "opponents"
    print(
        f"verified: {found.games:,} games replayed, {found.repeated:,} decisions of {who} repeated"
    )
    return 0
