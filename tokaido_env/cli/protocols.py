"""`tokaido evaluate suite`, `generalise` and `verify`: an agent measured by a fixed protocol.

Both protocols are played, kept in records, written and compared by the same code; each says what it
plays and what follows from it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_of
from tokaido_env.arena import records as match_records
from tokaido_env.arena.executors import check_executor
from tokaido_env.arena.generalisation import Generalisation
from tokaido_env.arena.suite import RecordsEntry, Submission, SubmissionError, Suite
from tokaido_env.arena.tournament import MatchState
from tokaido_env.arena.verification import (
    REPEATS,
    SHARE,
    RepeatedDecisions,
    repeat_decisions,
    verify,
)
from tokaido_env.cli.cli_options import add_executor, bar, play_kept, tell_stopped
from tokaido_env.cli.command import program
from tokaido_env.core.arguments import check_seed, escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.core.threads import single_thread
from tokaido_env.decoding import Number, Source, Struct
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report import protocols as report
from tokaido_env.report.tables import Table, markdown, print_table
from tokaido_env.study.generalise import BOARDS, OPPONENT, PAIRS, SPLIT, plan

TIMED = 4  # games of each match on the default board, in which the agent is timed


# What both have in common


def _parser(name: str, meaning: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of both protocols."""
    parser = argparse.ArgumentParser(f"{program('evaluate')} {name}", description=meaning)
    add = parser.add_argument
    add("agent", nargs="?", metavar="AGENT", help=f"a spec, see {program('evaluate')} --list")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add("--records", type=Path, metavar="FILE", help="append every game; go on from those in it")
    add_executor(parser)
    table = "instead: compare results that --json wrote"
    add("--compare", nargs="+", type=Path, default=[], metavar="FILE", help=table)
    add("--markdown", type=Path, metavar="FILE", help="with --compare: write the table to a file")
    return parser


def _check(
    options: argparse.Namespace,
    played: Sequence[Path | None] = (),
    *,
    read: Sequence[str | Path | None] = (),
    folder: Path | None = None,
) -> None:
    """Refuse options that contradict each other, and outputs that cannot be written.

    Args:
        options: of the command.
        played: outputs of its own, of an agent that is measured.
        read: files of its own that are read.
        folder: of pictures.
    """
    check_executor(options.executor)
    # Records are appended: a link to them stays one.
    records = None if options.records is None else options.records.resolve()
    policy = None if options.agent is None else policy_of(options.agent)
    outputs = options.json, records, options.markdown, *played
    check_outputs(*outputs, folder=folder, read=[policy, *read, *options.compare])
    if options.markdown is not None and not options.compare:
        raise ValueError("--markdown: expected together with --compare")
    measured = options.agent, options.json, records, *played
    if options.compare and any(one is not None for one in measured):
        raise ValueError("--compare: expected only result files, got an agent or its outputs too")
    if folder is not None:
        require_extra("figures need", "plots", "matplotlib")


def _play(
    agents: Sequence[tuple[Agent, Agent]],
    match_states: Sequence[MatchState],
    options: argparse.Namespace,
    note: Callable[[MatchState], str],
) -> int:
    """Play the matches of a protocol, or go on with them; return 0, or the status of a stop."""
    path, count = options.records, len(match_states)
    _, stopped = play_kept(
        *(
            agents,
            match_states,
            None if path is None else match_records.RecordFile(path, match_states),
        ),
        executor=options.executor,
        monitor=lambda match_state, number: bar(
            match_state, f"{number}/{count}", match_state.pool.name, lambda: note(match_state)
        ),
    )
    return 0 if stopped is None else tell_stopped(stopped, match_states, options.records)


def _write(path: Path | None, data: dict[str, Any]) -> None:
    if path is not None:
        write_text(path, json.dumps(data, indent=1) + "\n")


def _show_compared(table: Table, shown: Table, options: argparse.Namespace) -> None:
    print_table(shown)
    if options.markdown is not None:
        write_text(options.markdown, markdown(table))


# Suites


def suite(arguments: Sequence[str]) -> int:
    """Measure an agent by a suite of fixed opponents, boards and luck: tokaido-bench-1."""
    parser = _parser("suite", suite.__doc__)
    add = parser.add_argument
    add("--timing", type=Path, metavar="FILE", help="write how long the agent took a move")
    add("--suite", type=Path, metavar="FILE", help="another suite (tokaido-bench-1)")
    options = parser.parse_args(arguments)
    _check(options, [options.timing], read=[options.suite])
    if options.json is not None and options.records is not None:
        folders = [path.resolve().parent for path in (options.json, options.records)]
        if folders[0] != folders[1]:
            beside = f"expected a file beside {options.json}, got {options.records}"
            raise ValueError(f"--records: {beside}")
    chosen = Suite.load(options.suite)
    if options.compare:
        measured = [
            report.Measured(Submission.load(path, chosen), _seconds(path, chosen))
            for path in options.compare
        ]
        table = report.compared_suite(measured)
        _show_compared(table, table, options)
        return 0
    if options.agent is None:
        parser.error(f"expected an agent, as: {program('evaluate')} suite greedy")
    return _measure_by_suite(make(options.agent), chosen, options)


def _measure_by_suite(agent: Agent, chosen: Suite, options: argparse.Namespace) -> int:
    match_states = chosen.match_states(agent.spec)
    agents = [(agent, make(match_state.b)) for match_state in match_states]
    status = _play(agents, match_states, options, lambda match_state: f" against {match_state.b}")
    if status:
        return status
    result, games = chosen.result(match_states), sum(map(len, match_states))
    records = None if options.records is None else RecordsEntry.of(options.records, games)
    _write(options.json, Submission.of(result, records).to_dict())
    for table in report.suite_tables(result):
        print_table(table)
    moves, each = _timed(agent, match_states[: len(chosen.opponents)])
    low, middle, high = min(each), statistics.median(each), max(each)
    print(
        f"{middle:.2g} core-seconds a move ({low:.2g} to {high:.2g}), on one thread, "
        f"the median of {len(each)} times {moves:,} moves"
    )
    _write(options.timing, Timing(1, chosen.hash, agent.spec, moves, middle).to_dict())
    return 0


class Timing(Struct, frozen=True):
    """How long an agent took a move in a suite: a file beside its submission."""

    version: int
    suite: str
    agent: str
    moves: int
    seconds_a_move: Number


def _timed(agent: Agent, match_states: Sequence[MatchState]) -> tuple[int, list[float]]:
    """Return how many decisions an agent repeats, and the processor time of one, each time."""

    def again() -> list[RepeatedDecisions]:
        return [
            repeat_decisions(match_state, np.arange(min(TIMED, len(match_state))), agent, 0)
            for match_state in match_states
        ]

    with single_thread():
        again()  # what is compiled is compiled, what is kept is made
        times = [again() for _ in range(REPEATS)]
    moves = sum(one.decisions for one in times[0])
    return moves, [sum(one.seconds for one in each) / moves for each in times]


def _seconds(path: Path, chosen: Suite) -> float | None:
    """Return the processor time a move that stands in the file beside a submission, if any."""
    beside = path.with_suffix(".timing.json")
    if not beside.is_file():
        return None
    source = Source.json(beside, "times", SubmissionError)
    source.check_known("expected what --timing wrote", version=1, suite=chosen.hash)
    return source.decode(Timing).seconds_a_move


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
        *(options.file, Suite.load(options.suite), make),
        share=options.share,
        seed=options.seed,
        agent=None if options.agent is None else make(options.agent),
        progress=lambda what: print(f"evaluate: {escape_text(what)}", file=sys.stderr),
    )
    for table in report.suite_tables(found.result):
        print_table(table)
    who = "opponents and agent" if options.agent is not None else "opponents"
    print(
        f"verified: {found.games:,} games replayed, {found.repeated:,} decisions of {who} repeated"
    )
    return 0


# Generalisation


def generalise(arguments: Sequence[str]) -> int:
    """Measure an agent on boards of the family that it has not seen: Tokaido-100 by default."""
    parser = _parser("generalise", generalise.__doc__)
    add = parser.add_argument
    add("--opponent", default=OPPONENT, metavar="SPEC", help=f"({OPPONENT})")
    add("--split", default=SPLIT, help=f"boards it has not seen: test, valid or train ({SPLIT})")
    add("--boards", type=int, default=BOARDS, help=f"how many of them, from 2 ({BOARDS})")
    add("--pairs", type=int, default=PAIRS, help=f"of games, on each board ({PAIRS})")
    add("--train", type=int, metavar="N", help="it was trained on the first N boards of train")
    add("--seed", type=int, default=0, help="of the luck, 0 to 2**53 - 1 (0)")
    add("--plots", type=Path, metavar="DIR", help="write the figure to a folder")
    options = parser.parse_args(arguments)
    _check(options, read=[policy_of(options.opponent)], folder=options.plots)
    if options.compare:
        results = {str(path): Generalisation.load(path) for path in options.compare}
        report.check_comparable(results)
        table = report.compared_generalisation(list(results.values()))
        _show_compared(table, report.narrow(table), options)
        if options.plots is not None:
            report.write_curve_plots(list(results.values()), options.plots)
        return 0
    if options.agent is None:
        parser.error(f"expected an agent, as: {program('evaluate')} generalise greedy")
    return _measure_generalisation(make(options.agent), make(options.opponent), options)


def _measure_generalisation(agent: Agent, opponent: Agent, options: argparse.Namespace) -> int:
    numbers = {name: getattr(options, name) for name in ("split", "boards", "pairs", "train")}
    planned = plan(agent, opponent.spec, **numbers, seed=options.seed)
    match_states = planned.match_states()
    agents = [(agent, opponent)] * len(match_states)
    status = _play(agents, match_states, options, _boards_done)
    if status:
        return status
    result = planned.result(match_states)
    _write(options.json, result.to_dict())
    print_table(report.generalisation_table(result))
    print(escape_text(report.meaning(result), 500))
    if options.plots is not None:
        report.write_result_plots(result, options.plots)
    return 0


def _boards_done(match_state: MatchState) -> str:
    """Return on how many boards all games are finished: as many on each, board after board."""
    done = int(match_state.finished.reshape(len(match_state.pool), -1).all(axis=1).sum())
    return f", {done} of {len(match_state.pool)} boards"
