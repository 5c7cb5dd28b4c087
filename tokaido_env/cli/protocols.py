"""`tokaido evaluate suite`, `generalise` and `verify`: measure an agent by a fixed protocol.

The two protocols share their options, records and tables; each adds its boards and its result.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena import records as match_records
from tokaido_env.arena.generalisation import Generalisation
from tokaido_env.arena.suite import RecordsEntry, Submission, SubmissionError, Suite
from tokaido_env.arena.tournament import MatchState
from tokaido_env.arena.verification import (
    REPEATS,
    SHARE,
    Claim,
    RepeatedDecisions,
    repeat_decisions,
    verify,
)
from tokaido_env.cli.cli_options import (
    add_agents,
    add_executor,
    add_shared,
    check_run,
    evaluate_parser,
    match_state_bar,
    play_matches,
    print_stopped,
)
from tokaido_env.cli.command import CommandParser, program, write_json
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.threads import single_thread
from tokaido_env.decoding import Number, Source, Struct
from tokaido_env.files import write_text
from tokaido_env.report import protocols as report
from tokaido_env.report.tables import Table, markdown, print_table
from tokaido_env.study.generalise import (
    BOARDS,
    OPPONENT,
    OPPONENTS,
    PAIRS,
    SPLIT,
    generalisation_test,
    submitted_test,
)

TIMED = 4  # games of each match on the default board in which the agent is timed


# Options and matches of both protocols


def _parser(name: str, run: Callable[..., int]) -> CommandParser:
    parser = evaluate_parser(name, run)
    add_agents(parser, nargs="?")
    add_shared(parser, "--json", "--records")
    add_executor(parser)
    compare = "compare these result files of --json instead of measuring an agent"
    parser.add_argument(
        "--compare", nargs="+", type="input", default=[], metavar="FILE", help=compare
    )
    written = "write the table of --compare to this file as Markdown (default: none)"
    parser.add_argument("--markdown", type="output", metavar="FILE", help=written)
    return parser


def _check(
    options: argparse.Namespace,
    outputs: Sequence[Path | None] = (),
    *,
    read: Sequence[str | Path | None] = (),
    folder: Path | None = None,
) -> None:
    """Refuse options that contradict each other, and outputs that cannot be written.

    Args:
        options: of the command.
        outputs: files that this protocol writes besides those of both.
        read: files that this protocol reads.
        folder: of figures.
    """
    # The file that a symbolic link names is appended to, so that the link stays.
    records = None if options.records is None else options.records.resolve()
    policy = None if options.agent is None else policy_path_of(options.agent)
    check_run(
        *(options, options.json, records, options.markdown, *outputs),
        read=[policy, *read, *options.compare],
        folder=folder,
    )
    if options.markdown is not None and not options.compare:
        raise ValueError("--markdown: expected together with --compare")
    if options.json and records and options.json.resolve().parent != records.parent:
        expected = f"expected a file in the folder of {options.json}"
        raise ValueError(f"--records: {expected}, got {options.records}")
    measured = options.agent, options.json, records, *outputs
    if options.compare and any(one is not None for one in measured):
        raise ValueError("--compare: expected only result files, got an agent or its outputs too")


def _play(
    agents: Sequence[tuple[Agent, Agent]],
    states: Sequence[MatchState],
    options: argparse.Namespace,
    note: Callable[[MatchState], str],
) -> int:
    """Play or resume the matches of a protocol; return 0, or the exit status of a stop."""
    path, count = options.records, len(states)
    _, stopped = play_matches(
        *(agents, states, None if path is None else match_records.RecordFile(path, states)),
        executor=options.executor,
        monitor=lambda state, number: match_state_bar(
            state, f"{number}/{count}", state.pool.name, lambda: note(state)
        ),
    )
    return 0 if stopped is None else print_stopped(stopped, states, options.records)


def _records(states: Sequence[MatchState], options: argparse.Namespace) -> RecordsEntry | None:
    """Return the entry of the record file, for a submission."""
    path = options.records
    return None if path is None else RecordsEntry.of(path, sum(map(len, states)))


def _print_compared(table: Table, printed: Table, options: argparse.Namespace) -> None:
    print_table(printed)
    if options.markdown is not None:
        write_text(options.markdown, markdown(table))


# Suites


def suite(arguments: Sequence[str]) -> int:
    """Measure an agent by a suite of fixed opponents, boards and seeds: tokaido-bench-1.

    It takes minutes for an agent that does not search, and hours for one that does.
    """
    parser = _parser("suite", suite)
    add = parser.add_argument
    timing = "write the agent's time per move to this file (default: none)"
    add("--timing", type="output", metavar="FILE", help=timing)
    add("--suite", type="input", metavar="FILE", help="suite file (default: tokaido-bench-1)")
    options = parser.parse_args(arguments)
    _check(options, [options.timing], read=[options.suite])
    chosen = Suite.load(options.suite)
    if options.compare:
        measured = [
            report.Measured(Submission.load(path, chosen), _seconds(path, chosen))
            for path in options.compare
        ]
        table = report.compared_suite(measured)
        _print_compared(table, table, options)
        return 0
    if options.agent is None:
        parser.error(f"expected an agent, as: {program('evaluate')} suite greedy")
    return _measure_by_suite(make(options.agent), chosen, options)


def _measure_by_suite(agent: Agent, chosen: Suite, options: argparse.Namespace) -> int:
    states = chosen.match_states(agent.spec)
    agents = [(agent, make(state.b)) for state in states]
    status = _play(agents, states, options, lambda state: f" against {state.b}")
    if status:
        return status
    result = chosen.result(states)
    write_json(options.json, Submission.of(result, _records(states, options)).to_dict())
    for table in report.suite_tables(result):
        print_table(table)
    moves, runs = _time_moves(agent, states[: len(chosen.opponents)])
    low, middle, high = min(runs), statistics.median(runs), max(runs)
    print(
        f"{middle:.2g} core-seconds per move ({low:.2g} to {high:.2g}), on one thread: "
        f"the median of {len(runs)} runs of {moves:,} moves"
    )
    write_json(options.timing, Timing(1, chosen.hash, agent.spec, moves, middle).to_dict())
    return 0


class Timing(Struct, frozen=True):
    """An agent's time per move in a suite: a file next to its submission."""

    version: int
    suite: str
    agent: str
    moves: int
    seconds_a_move: Number


def _time_moves(agent: Agent, states: Sequence[MatchState]) -> tuple[int, list[float]]:
    """Return the number of decisions an agent repeats, and the processor time of one in each run.

    A first run, which fills caches and compiles kernels, is not counted.
    """

    def again() -> list[RepeatedDecisions]:
        return [
            repeat_decisions(state, np.arange(min(TIMED, len(state))), agent, 0) for state in states
        ]

    with single_thread():
        again()
        runs = [again() for _ in range(REPEATS)]
    moves = sum(one.decisions for one in runs[0])
    return moves, [sum(one.seconds for one in run) / moves for run in runs]


def _seconds(path: Path, chosen: Suite) -> float | None:
    """Return the processor time per move in the timing file of a submission, if it has one."""
    timing = path.with_suffix(".timing.json")
    if not timing.is_file():
        return None
    source = Source.json(timing, "times", SubmissionError)
    source.check_versions("expected a file of --timing", version=1, suite=chosen.hash)
    return source.decode(Timing).seconds_a_move


def verify_submission(arguments: Sequence[str]) -> int:
    """Verify a submission: replay its games, repeat decisions, and compute its numbers again.

    It takes minutes, or hours with --agent for an agent that searches.
    """
    parser = evaluate_parser("verify", verify_submission)
    add = parser.add_argument
    submission = "file that suite or generalise --json wrote, with its records in the same folder"
    add("file", type="path", metavar="FILE", help=submission)
    share = "share of games in which decisions are repeated"
    add("--share", type=float, default=SHARE, help=share)
    add_shared(parser, "--seed")
    agent = "repeat the decisions of this agent too (default: only of its opponents)"
    add("--agent", metavar="AGENT", help=agent)
    add("--suite", type="input", metavar="FILE", help="suite file (default: tokaido-bench-1)")
    options = parser.parse_args(arguments)
    found = verify(
        *(_claim(options.file, options.suite), make),
        share=options.share,
        seed=options.seed,
        agent=None if options.agent is None else make(options.agent),
        progress=lambda what: print(f"evaluate: {escape_text(what)}", file=sys.stderr),
    )
    if isinstance(found.result, Generalisation):
        tables = report.generalisation_tables(found.result)
    else:
        tables = report.suite_tables(found.result)
    for table in tables:
        print_table(table)
    who = "opponents and agent" if options.agent is not None else "opponents"
    print(
        f"verified: {found.games:,} games replayed, {found.repeated:,} decisions of {who} repeated"
    )
    return 0


def _claim(path: Path, suite: Path | None) -> Claim:
    """Read a submission to a suite or, without one, a result of `generalise`."""
    data = Source.json(path, "submission", SubmissionError).data
    if suite is None and isinstance(data, dict) and "opponent" in data:
        return submitted_test(path)
    return Claim.of_suite(path, Suite.load(suite))


# Generalisation


def generalise(arguments: Sequence[str]) -> int:
    """Measure an agent on procedural boards that it has not trained on: Tokaido-100 by default.

    It takes minutes for an agent that does not search, and hours for one that does.
    """
    parser = _parser("generalise", generalise)
    add = parser.add_argument
    add("--opponent", default=OPPONENT, metavar="SPEC", help="agent to play against")
    several = "also play these on the unseen boards; without SPEC, the others of five styles"
    add("--opponents", nargs="*", metavar="SPEC", help=f"{several} (default: none)")
    splits = "boards to play on: test, far, handmade (six boards), valid or train"
    add("--split", default=SPLIT, help=splits)
    boards = f"number of boards, from 2 (default: {BOARDS}, or all of a smaller split)"
    add("--boards", type=int, metavar="N", help=boards)
    add("--pairs", type=int, default=PAIRS, help="number of pairs of games on each board")
    train = "number of boards of train that the agent was trained on (default: unknown)"
    add("--train", type=int, metavar="N", help=train)
    no_gap = "play only on the unseen boards: half the games, and no gap"
    add("--no-gap", dest="gap", action="store_false", help=no_gap)
    runs = "number of training seeds of each method in --compare, files of one method in a row"
    add("--runs", type=int, default=1, metavar="N", help=runs)
    add_shared(parser, "--seed", "--plots")
    options = parser.parse_args(arguments)
    others = [spec for spec in OPPONENTS if spec != options.agent]
    more = others if options.opponents == [] else options.opponents or ()
    opponents = tuple(dict.fromkeys((options.opponent, *more)))
    _check(options, read=[*map(policy_path_of, opponents)], folder=options.plots)
    if options.compare:
        results = {str(path): Generalisation.load(path) for path in options.compare}
        report.check_comparable(results)
        methods = report.methods_of(list(results.values()), options.runs)
        table = report.compared_generalisation(methods)
        _print_compared(table, report.narrow(table), options)
        if options.plots is not None:
            report.write_comparison_plots(methods, options.plots)
        return 0
    if options.agent is None:
        parser.error(f"expected an agent, as: {program('evaluate')} generalise greedy")
    return _measure_generalisation(make(options.agent), [*map(make, opponents)], options)


def _measure_generalisation(
    agent: Agent, opponents: Sequence[Agent], options: argparse.Namespace
) -> int:
    names = "split", "boards", "pairs", "train", "gap"
    numbers = {name: getattr(options, name) for name in names}
    by_spec = {opponent.spec: opponent for opponent in opponents}
    planned = generalisation_test(agent, [*by_spec], **numbers, seed=options.seed)
    states = planned.matches()
    agents = [(agent, by_spec[state.b]) for state in states]
    status = _play(agents, states, options, _finished_boards)
    if status:
        return status
    result = planned.result(states)
    write_json(options.json, replace(result, records=_records(states, options)).to_dict())
    for table in report.generalisation_tables(result):
        print_table(table)
    print(escape_text(report.meaning(result), 500))
    if options.plots is not None:
        report.write_result_plots(result, options.plots)
    return 0


def _finished_boards(state: MatchState) -> str:
    """Return the number of boards on which all games are finished, as text."""
    done = int(state.finished.reshape(len(state.pool), -1).all(axis=1).sum())
    return f", {done} of {len(state.pool)} boards"
