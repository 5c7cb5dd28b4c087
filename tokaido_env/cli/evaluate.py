"""`tokaido evaluate`: measure agents against each other in paired games."""

from __future__ import annotations

from dataclasses import field
from itertools import combinations
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Group, Parameter

from tokaido_env.agents import Agent, make
from tokaido_env.agents.registry import check_names, parse_named_agent, policy_path_of
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.match_series import MatchResult
from tokaido_env.arena.paired_games import PairedMatch
from tokaido_env.arena.rating_model import RatingError
from tokaido_env.arena.ratings import Rating, anchor_of, goodness_of_fit, in_order, rate_matches
from tokaido_env.arena.records import RecordFile, merge_records, parse_shard, shard
from tokaido_env.arena.sandbox import CAN_FORK, DEFAULT_MEMORY, Limits, check_limits, make_sandboxed
from tokaido_env.arena.sequential_test import check_error_rate
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import (
    check_run,
    match_state_bar,
    play_matches,
    print_forfeits,
    print_stopped,
    save_results,
)
from tokaido_env.cli.game_pages import check_replays, write_games
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs
from tokaido_env.report import tables
from tokaido_env.report.standings import Standing, standings

MOST_MATCHES = 10  # of five agents; more are printed only with --all-matches
MOST_NAMED = 4  # agents in the title of a page
ERROR = 0.05  # error probability of --until-decided

CUSTOM = Group("Custom agents (python:..., exec:...)", sort_key=2)


@cli.options
class Evaluate(cli.Matches):
    """Options of `tokaido evaluate`."""

    agents: list[cli.AgentSpec] = field(default_factory=list, kw_only=False)
    """agents to measure, as SPEC or NAME=SPEC; tokaido agents lists all"""
    all_matches: Annotated[bool, Parameter(help=f"print more than {MOST_MATCHES} matches too")] = (
        False
    )
    until_decided: bool = False
    """stop a match when the better agent is known; --games is then the maximum"""
    error: float | None = None
    """maximum error probability of --until-decided [default: 0.05]"""
    luck_adjusted: bool = False
    """also report luck-adjusted scores, which have lower variance"""
    shard: Annotated[str | None, Parameter(metavar="I/N")] = None
    """play only part I of N of each match, for --from-records [default: all]"""
    from_records: Annotated[list[cli.Input], cli.Several] = field(default_factory=list)
    """report the games of these record files, of shards or seeds, instead of playing"""
    records: cli.Records = None
    plots: cli.Plots = None
    report: cli.File | None = None
    """write the results to this file as a page of HTML"""
    replays: Annotated[int | None, Parameter(group=cli.FILES)] = None
    """number of games of each match that --report links, as pages in a folder with its name and
    .games [default: 2]"""
    on_failure: Annotated[Literal["forfeit", "stop"], Parameter(group=CUSTOM)] = (
        "forfeit" if CAN_FORK else "stop"
    )
    """what to do when a custom agent fails: forfeit the game, for which each custom agent runs in
    its own process; or stop the command"""
    move_seconds: Annotated[float | None, Parameter(metavar="SECONDS", group=CUSTOM)] = None
    """maximum seconds per decision of a custom agent"""
    memory: Annotated[int | None, Parameter(metavar="MIB", group=CUSTOM)] = None
    """maximum memory of a custom agent's process [default: 2048]"""
    names: list[str] = field(init=False, default_factory=list)


@cli.command("evaluate", AgentFailed)
def main(options: Evaluate) -> int:
    """Measure agents against each other in paired games.

    Every two agents play pairs of games: the same seed twice, with seats swapped. Scores have 95 %
    intervals. With --records, the same command resumes where it stopped. Matches take seconds for
    agents that do not search, and up to hours for agents that do.

    Examples:
        tokaido evaluate greedy random --games 1000 --seed 0
        tokaido evaluate policy:runs/first greedy random --json results.json --records games.jsonl
        tokaido evaluate python:my_bots:Careful greedy --until-decided --games 10000
        tokaido evaluate greedy heuristic --shard 2/8 --records part-2.jsonl
        tokaido evaluate --from-records part-1.jsonl part-2.jsonl --report page.html
    """
    if options.from_records:
        return _merge(options)
    if len(options.agents) < 2:
        raise cli.UsageError(f"AGENTS: expected two or more, got {len(options.agents)}")
    entrants = [parse_named_agent(text) for text in options.agents]
    check_names(entrants)
    options.names, options.agents = map(list, zip(*entrants, strict=True))
    return _play(options)


def _play(options: Evaluate) -> int:
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
    rated = _rate(results, options, complete=stopped is None)
    _print_results(rated, options, board, _title(options, board))
    print_forfeits(states)
    if warning := _time_limit_note(options):
        print(warning)
    if stopped is not None:
        return print_stopped(stopped, states, options.records)
    _write_pictures(rated, options, board, states)
    return 0


def _time_limit_note(options: Evaluate) -> str | None:
    """Return the warning of results under a time limit, None without one."""
    if not options.move_seconds:
        return None
    return (
        f"Custom agents had at most {options.move_seconds:g} s per decision: these results "
        "depend on the machine and are not reproducible."
    )


def _make(spec: str, options: Evaluate) -> Agent:
    if options.on_failure == "stop":
        return make(spec)
    memory = DEFAULT_MEMORY if options.memory is None else options.memory
    return make_sandboxed(spec, Limits(options.move_seconds, memory))


def _merge(options: Evaluate) -> int:
    """Print the results of the games of record files."""
    if options.agents or options.records or options.shard or options.until_decided:
        raise ValueError("--from-records: expected only files, got agents or games to play too")
    check_outputs(options.json, options.report, folder=options.plots, read=options.from_records)
    check_replays(options.replays, options.report)
    given = None if options.board == "shikoku" else options.board
    found = merge_records(options.from_records, given, luck=options.luck_adjusted)
    whole = [state for state in found.match_states if len(state.to_match().games)]
    if found.unpaired:
        cli.note(
            f"left out {found.unpaired:,} of {found.games:,} games: the records lack "
            "their games with swapped seats"
        )
    if not whole:
        raise ValueError("--from-records: expected pairs of games with swapped seats, got none")
    board = whole[0].pool
    rated = _rate([MatchResult(state.to_match(), None) for state in whole], options, complete=False)
    options.names = list(dict.fromkeys(name for m, _ in rated.results for name in (m.a, m.b)))
    files = "1 file" if len(options.from_records) == 1 else f"{len(options.from_records)} files"
    title = f"{found.games:,} games of {files}, board {board.name}"
    _print_results(rated, options, board, title)
    _write_pictures(rated, options, board, whole)
    return 0


def _check(options: Evaluate) -> None:
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


class _Rated(NamedTuple):
    """The results of matches with ratings and standings.

    Attributes:
        results: of all matches.
        different: the matches that ratings are fitted to.
        ratings: best first; empty if the matches are too few.
        anchor: the agent rated 0, None without ratings.
        ranked: the standings.
    """

    results: list[MatchResult]
    different: list[PairedMatch]
    ratings: list[Rating]
    anchor: str | None
    ranked: list[Standing]


def _rate(results: list[MatchResult], options: Evaluate, *, complete: bool) -> _Rated:
    """Rate the agents; matches that are not complete may be too few for ratings."""
    matches = [result.match for result in results]
    # A match of an agent with itself, or of the same two agents again, would count games twice.
    once = {frozenset((m.a, m.b)): m for m in matches if m.a != m.b}
    different = in_order(once.values())
    # The first agent given has rating 0, where no standard anchor plays; lines have no order.
    first = None if options.from_records or not once else anchor_of([*once.values()])
    ratings: list[Rating] = []
    try:
        if different:
            ratings = rate_matches(different, anchor=first, seed=options.seed)
    except RatingError:
        if complete:
            raise
    anchor = anchor_of(different, first) if ratings else None
    return _Rated(results, different, ratings, anchor, standings(matches, ratings))


def _title(options: Evaluate, board: BoardPool) -> str:
    most = "at most " if options.until_decided else ""
    part = "" if options.shard is None else f", shard {options.shard}"
    games = f"{most}{options.games} games per pair of agents, seats swapped{part}"
    return f"{games}, seed {options.seed}, board {board.name}"


def _print_results(rated: _Rated, options: Evaluate, board: BoardPool, title: str) -> None:
    """Write the results as JSON if asked for; print standings, and matches unless they are many."""
    results, different, ratings, anchor, ranked = rated
    if options.json is not None:
        extra = {} if options.from_records else _agent_keys(options)
        save_results(options, board, options.names, results, ratings, anchor, ranked, extra)
    if not results:
        return
    if ranked:
        tables.print_table(tables.standings_table(ranked, title))
        title = "Matches"
    if anchor is not None:
        print(tables.relative(anchor))
        found = goodness_of_fit(different)
        if found.df:
            print(tables.fit_line(found))
        print()
    if len(results) <= MOST_MATCHES or options.all_matches:
        _print_matches(results, options, title)
        return
    if options.until_decided:
        print(tables.verdicts(results, options.error or ERROR))
    print(f"{len(results)} matches: --all-matches prints them, --report and --json contain them")


def _agent_keys(options: Evaluate) -> dict[str, Any]:
    """Return the keys of results with named agents or a time limit."""
    named = {n: s for n, s in zip(options.names, options.agents, strict=True) if n != s}
    keys: dict[str, Any] = {"specs": named} if named else {}
    return keys | ({"move_seconds": options.move_seconds} if options.move_seconds else {})


def _print_matches(results: list[MatchResult], options: Evaluate, title: str) -> None:
    matches = [result.match for result in results]
    tables.print_table(tables.matches_table(matches, title))
    if options.luck_adjusted:
        tables.print_table(tables.luck_table(matches))
    if options.until_decided:
        for result in results:
            print(tables.verdict(result, options.error or ERROR))


def _write_pictures(
    rated: _Rated, options: Evaluate, board: BoardPool, states: list[MatchState]
) -> None:
    """Write figures and the page, if asked for."""
    from tokaido_env.report.figures import write_plots
    from tokaido_env.report.page import write_report

    matches, anchor = [result.match for result in rated.results], rated.anchor
    if options.plots is not None:
        options.plots.mkdir(exist_ok=True)
        write_plots(matches, rated.ratings, options.plots)
    if options.report is not None:
        games = write_games(matches, states, options.report, options.replays)
        agents = list(dict.fromkeys(options.names))
        many = len(agents) > MOST_NAMED
        write_report(
            *(matches, rated.ratings, options.report),
            title=f"{len(agents)} agents" if many else " – ".join(agents),
            note=_time_limit_note(options),
            command=cli.command_line(),
            seed=None if options.from_records else options.seed,
            board=board.name,
            scale=None if anchor is None else tables.scale_of(anchor),
            games=games,
        )
        linked = sum(map(len, games))
        print(f"{escape_text(str(options.report))}: a page with {linked} games to replay")
