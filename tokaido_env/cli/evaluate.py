"""Measure agents against each other in paired games, on ladders and on unseen boards.

tokaido evaluate greedy random --games 1000 --seed 0
tokaido evaluate policy:runs/first greedy random --json results.json --records games.jsonl
tokaido evaluate python:my_bots:Careful greedy --until-decided --games 10000
tokaido evaluate greedy heuristic --shard 2/8 --records part-2.jsonl
tokaido evaluate --from-records part-1.jsonl part-2.jsonl --report page.html
tokaido evaluate rate policy:runs/first --json rating.json --records rating.jsonl
tokaido evaluate ladder random greedy heuristic --ladder my_ladder.json
tokaido evaluate exploit champion
tokaido evaluate generalise champion
tokaido evaluate verify rating.json
tokaido evaluate regret champion heuristic
tokaido evaluate --list

Every two agents play pairs of games: the same seed twice, with seats swapped. Scores have 95 %
intervals. With --records, the same command resumes where it stopped. Matches take seconds for
agents that do not search, and up to hours for agents that do. A subcommand (rate, ladder, exploit,
generalise, verify, regret) has its own --help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import combinations

from msgspec.structs import replace

from tokaido_env.agents import Agent, describe, make
from tokaido_env.agents.registry import KINDS, check_names, parse_named_agent, policy_path_of
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.match_series import MatchResult
from tokaido_env.arena.records import RecordFile, merge_records, parse_shard, shard
from tokaido_env.arena.result import Result
from tokaido_env.arena.sandbox import CAN_FORK, DEFAULT_MEMORY, Limits, check_limits, make_sandboxed
from tokaido_env.arena.sequential_test import check_error_rate
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.cli_options import (
    add_match_options,
    add_shared,
    check_run,
    command_text,
    match_state_bar,
    matches_result,
    play_matches,
    print_forfeits,
    print_stopped,
    save_result,
)
from tokaido_env.cli.command import CommandParser, program, reports_errors
from tokaido_env.cli.exploit import exploit_agent
from tokaido_env.cli.game_pages import FOLDER, check_replays, write_games
from tokaido_env.cli.generalise import generalise
from tokaido_env.cli.ladders import build_ladder, place_agent
from tokaido_env.cli.regret import regret
from tokaido_env.cli.verify import verify_submission
from tokaido_env.core.arguments import escape_text, unknown_name
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs
from tokaido_env.report.result_tables import MATCHES, tables_of, verdicts
from tokaido_env.report.tables import print_table

MOST_MATCHES = 10  # of five agents; more are printed only with --all-matches
ERROR = 0.05  # error probability of --until-decided

SUBCOMMANDS: dict[str, Callable[[list[str]], int]] = {
    "rate": place_agent,
    "ladder": build_ladder,
    "exploit": exploit_agent,
    "generalise": generalise,
    "verify": verify_submission,
    "regret": regret,
}


@reports_errors("evaluate", AgentFailed)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    subcommand = SUBCOMMANDS.get(arguments[0]) if arguments else None
    return subcommand(arguments[1:]) if subcommand else _evaluate(arguments)


def _evaluate(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    options.command = command_text("", arguments)
    if options.list:
        for usage, meaning in describe():
            print(f"{usage}\n    {meaning}")
        return 0
    if options.from_records:
        return _merge(options)
    if options.agents:
        _check_subcommand(options.agents[0])
    if len(options.agents) < 2:
        parser.error(f"expected two or more agents, as: {program('evaluate')} greedy random")
    entrants = [parse_named_agent(text) for text in options.agents]
    check_names(entrants)
    options.names, options.agents = map(list, zip(*entrants, strict=True))
    return _play(options)


def _check_subcommand(word: str) -> None:
    """Refuse a misspelled subcommand, before it is taken for an agent."""
    if word in KINDS or word in SUBCOMMANDS:
        return
    if get_close_matches(word, SUBCOMMANDS, n=1, cutoff=0.75):
        problem = unknown_name("subcommand", word, SUBCOMMANDS)
        raise ValueError(f"{problem}; {program('evaluate')} --help lists all")


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser("evaluate", __doc__)
    add = parser.add_argument
    agents = "agent to measure, as SPEC or NAME=SPEC; --list lists all"
    add("agents", nargs="*", metavar="AGENT", help=agents)
    add_match_options(parser)
    add_shared(parser, "--records", "--plots")
    report = "write the results to this file as a page of HTML (default: none)"
    add("--report", type="file", metavar="FILE", help=report)
    replays = (
        "number of games of each match that --report links, as pages in a folder with its "
        f"name and {FOLDER} (default: 2)"
    )
    add("--replays", type=int, metavar="N", help=replays)
    add("--all-matches", action="store_true", help=f"print more than {MOST_MATCHES} matches too")
    decided = "stop a match when the better agent is known; --games is then the maximum"
    add("--until-decided", action="store_true", help=decided)
    error = f"maximum error probability of --until-decided (default: {ERROR})"
    add("--error", type=float, help=error)
    adjusted = "also report luck-adjusted scores, which have lower variance"
    add("--luck-adjusted", action="store_true", help=adjusted)
    _add_sandbox_options(parser)
    part = "play only part I of N of each match, for --from-records (default: all)"
    add("--shard", metavar="I/N", help=part)
    files = "report the games of these record files, of shards or seeds, instead of playing"
    add("--from-records", nargs="+", type="input", default=[], metavar="FILE", help=files)
    add("--list", action="store_true", help="list all agents and exit")
    return parser


def _add_sandbox_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of custom agents (python:..., exec:...)."""
    add = parser.add_argument
    add(
        "--on-failure",
        choices=("forfeit", "stop"),
        default="forfeit" if CAN_FORK else "stop",
        help="what to do when a custom agent (python:..., exec:...) fails: forfeit the game, for "
        "which each custom agent runs in its own process; or stop the command",
    )
    seconds = "maximum seconds per decision of a custom agent (default: none)"
    add("--move-seconds", type=float, metavar="S", help=seconds)
    memory = f"maximum memory of a custom agent's process (default: {DEFAULT_MEMORY})"
    add("--memory", type=int, metavar="MIB", help=memory)


def _play(options: argparse.Namespace) -> int:
    _check(options)
    board = BoardPool.load(options.board)
    agents = [_make(spec, options) for spec in options.agents]
    names, numbers = options.names, list(combinations(range(len(agents)), 2))
    pairs = [(agents[i], agents[j]) for i, j in numbers]
    states = [
        MatchState(names[i], names[j], options.games, options.seed, board) for i, j in numbers
    ]
    if options.shard is not None:
        states = [shard(state, *parse_shard(options.shard)) for state in states]
    for state in states:
        state.with_luck = options.luck_adjusted
    results, stopped = play_matches(
        *(pairs, states),
        None if options.records is None else RecordFile(options.records, states),
        executor=options.executor,
        monitor=lambda state, number: match_state_bar(state, f"{number}/{len(pairs)}"),
        error=options.error if options.until_decided else None,
    )
    result = _result_of(results, options, board, complete=stopped is None)
    save_result(result, options)
    _print_results(result, options)
    print_forfeits(states)
    if note := _time_limit_note(options):
        print(note)
    if stopped is not None:
        return print_stopped(stopped, states, options.records)
    _write_pictures(result, results, options, states)
    return 0


def _time_limit_note(options: argparse.Namespace) -> str | None:
    """Return the warning of results under a time limit, None without one."""
    if not options.move_seconds:
        return None
    return (
        f"Custom agents had at most {options.move_seconds:g} s per decision: these results "
        "depend on the machine and are not reproducible."
    )


def _make(spec: str, options: argparse.Namespace) -> Agent:
    if options.on_failure == "stop":
        return make(spec)
    memory = DEFAULT_MEMORY if options.memory is None else options.memory
    return make_sandboxed(spec, Limits(options.move_seconds, memory))


def _merge(options: argparse.Namespace) -> int:
    """Print the results of the games of record files."""
    if options.agents or options.records or options.shard or options.until_decided:
        raise ValueError("--from-records: expected only files, got agents or games to play too")
    check_outputs(options.json, options.report, folder=options.plots, read=options.from_records)
    check_replays(options.replays, options.report)
    given = None if options.board == "shikoku" else options.board
    found = merge_records(options.from_records, given, luck=options.luck_adjusted)
    whole = [state for state in found.match_states if len(state.to_match().games)]
    if found.unpaired:
        print(
            f"evaluate: left out {found.unpaired:,} of {found.games:,} games: the records lack "
            "their games with swapped seats",
            file=sys.stderr,
        )
    if not whole:
        raise ValueError("--from-records: expected pairs of games with swapped seats, got none")
    results = [MatchResult(state.to_match(), None) for state in whole]
    result = _result_of(results, options, whole[0].pool, complete=True)
    save_result(result, options)
    _print_results(result, options)
    _write_pictures(result, results, options, whole)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse wrong options before a game is played."""
    if options.shard is not None and options.until_decided:
        raise ValueError("--shard: expected without --until-decided, which needs whole matches")
    check_limits(options.move_seconds, options.memory)
    if options.on_failure == "stop" and (options.move_seconds or options.memory):
        raise ValueError("--move-seconds, --memory: expected with --on-failure forfeit")
    if options.error is not None and not options.until_decided:
        raise ValueError("--error: expected together with --until-decided")
    options.error = check_error_rate(ERROR if options.error is None else options.error)
    # The file that a symbolic link names is appended to, so that the link stays.
    records = None if options.records is None else options.records.resolve()
    read = [options.board, *map(policy_path_of, options.agents)]
    check_run(options, options.json, options.report, records, read=read, folder=options.plots)
    check_replays(options.replays, options.report)
    if options.report is not None:
        require_extra("figures need", "plots", "matplotlib")


def _result_of(
    results: Sequence[MatchResult], options: argparse.Namespace, board: BoardPool, *, complete: bool
) -> Result:
    seed = None if options.from_records else options.seed
    luck, partial = options.luck_adjusted, bool(options.from_records)
    result = matches_result(
        results, board, seed, options.command, luck=luck, whole=complete and not partial
    )
    return replace(result, complete=complete)


def _print_results(result: Result, options: argparse.Namespace) -> None:
    """Print standings, and matches unless they are many."""
    count = len(result.scores)
    for table in tables_of(result):
        if table.title != MATCHES or count <= MOST_MATCHES or options.all_matches:
            print_table(table)
    if options.until_decided:
        for line in verdicts(result, options.error):
            print(line)
    if count > MOST_MATCHES and not options.all_matches:
        print(f"{count} matches: --all-matches prints them, --report and --json contain them")


def _write_pictures(
    result: Result,
    results: Sequence[MatchResult],
    options: argparse.Namespace,
    states: list[MatchState],
) -> None:
    """Write figures and the page, if asked for."""
    from tokaido_env.report.figures import write_figures
    from tokaido_env.report.page import write_page

    if options.plots is not None:
        options.plots.mkdir(exist_ok=True)
        write_figures(result, options.plots)
    if options.report is not None:
        matches = [match for match, _ in results]
        games = write_games(matches, states, options.report, options.replays)
        write_page(result, options.report, note=_time_limit_note(options), games=games)
        linked = sum(map(len, games))
        print(f"{escape_text(str(options.report))}: a page with {linked} games to replay")
