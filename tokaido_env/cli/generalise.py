"""`tokaido evaluate generalise`: measure an agent on unseen boards."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from msgspec.structs import replace

from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.result import RecordsEntry, Result
from tokaido_env.arena.tournament import MatchState
from tokaido_env.cli.cli_options import (
    add_agents,
    add_executor,
    add_shared,
    check_run,
    command_text,
    evaluate_parser,
    match_state_bar,
    play_matches,
    print_stopped,
    resolved_records,
    show_result,
)
from tokaido_env.cli.command import CommandParser, program
from tokaido_env.files import write_text
from tokaido_env.report.comparison import comparison_table, methods_of
from tokaido_env.report.figures import write_figures, write_profiles
from tokaido_env.report.tables import markdown, print_table
from tokaido_env.study.generalise import (
    BOARDS,
    OPPONENT,
    OPPONENTS,
    PAIRS,
    SPLIT,
    generalisation_test,
)


def generalise(arguments: Sequence[str]) -> int:
    """Measure an agent on procedural boards that it has not trained on: Tokaido-100 by default.

    It takes minutes for an agent that does not search, and hours for one that does.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    others = [spec for spec in OPPONENTS if spec != options.agent]
    more = others if options.opponents == [] else options.opponents or ()
    opponents = tuple(dict.fromkeys((options.opponent, *more)))
    _check(options, opponents)
    if options.compare:
        _compare(options)
        return 0
    if options.agent is None:
        parser.error(f"expected an agent, as: {program('evaluate')} generalise greedy")
    command = command_text("generalise", arguments)
    return _measure(make(options.agent), [*map(make, opponents)], options, command)


def _parser() -> CommandParser:
    parser = evaluate_parser("generalise", generalise)
    add = parser.add_argument
    add_agents(parser, nargs="?")
    add_shared(parser, "--json", "--records")
    add_executor(parser)
    compare = "compare these result files of --json instead of measuring an agent"
    add("--compare", nargs="+", type="input", default=[], metavar="FILE", help=compare)
    written = "write the table of --compare to this file as Markdown (default: none)"
    add("--markdown", type="output", metavar="FILE", help=written)
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
    return parser


def _check(options: argparse.Namespace, opponents: Sequence[str]) -> None:
    """Refuse options that contradict each other, and outputs that cannot be written."""
    records = resolved_records(options)
    agents = [spec for spec in (options.agent, *opponents) if spec is not None]
    check_run(
        *(options, options.json, records, options.markdown),
        read=[*map(policy_path_of, agents), *options.compare],
        folder=options.plots,
    )
    if options.markdown is not None and not options.compare:
        raise ValueError("--markdown: expected together with --compare")
    measured = options.agent, options.json, records
    if options.compare and any(one is not None for one in measured):
        raise ValueError("--compare: expected only result files, got an agent or its outputs too")


def _compare(options: argparse.Namespace) -> None:
    """Print and write the comparison of several result files."""
    methods = methods_of({str(path): Result.load(path) for path in options.compare}, options.runs)
    table = comparison_table(methods)
    print_table(table)
    if options.markdown is not None:
        write_text(options.markdown, markdown(table))
    if options.plots is not None:
        write_profiles(methods, options.plots)


def _measure(
    agent: Agent, opponents: Sequence[Agent], options: argparse.Namespace, command: str
) -> int:
    names = "split", "boards", "pairs", "train", "gap"
    numbers = {name: getattr(options, name) for name in names}
    by_spec = {opponent.spec: opponent for opponent in opponents}
    planned = generalisation_test(agent, [*by_spec], **numbers, seed=options.seed)
    states, path = planned.matches(), options.records
    _, stopped = play_matches(
        *([(agent, by_spec[state.b]) for state in states], states),
        None if path is None else RecordFile(path, states),
        executor=options.executor,
        monitor=lambda state, number: match_state_bar(
            *(state, f"{number}/{len(states)}", state.pool.name),
            lambda: _finished_boards(state),
        ),
    )
    if stopped is not None:
        return print_stopped(stopped, states, path)
    records = None if path is None else RecordsEntry.of(path, sum(map(len, states)))
    result = replace(planned.result(states), command=command, records=records)
    show_result(result, options)
    if options.plots is not None:
        write_figures(result, options.plots)
    return 0


def _finished_boards(state: MatchState) -> str:
    """Return the number of boards on which all games are finished, as text."""
    done = int(state.finished.reshape(len(state.pool), -1).all(axis=1).sum())
    return f", {done} of {len(state.pool)} boards"
