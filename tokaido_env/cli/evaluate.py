"""Measure agents against each other in paired games.

tokaido evaluate greedy random --games 1000 --seed 0
tokaido evaluate policy:runs/first greedy random --json results.json --records games.jsonl
tokaido evaluate python:my_bots:Careful greedy --until-decided --games 10000
tokaido evaluate greedy heuristic --shard 2/8 --records part-2.jsonl
tokaido evaluate --from-records part-1.jsonl part-2.jsonl --report page.html
tokaido evaluate rate policy:runs/first
tokaido evaluate ladder random greedy heuristic --ladder my_ladder.json
tokaido evaluate exploit champion
tokaido evaluate generalise champion
tokaido evaluate calibrate champion
tokaido evaluate suite champion --json champion.json --records champion.jsonl
tokaido evaluate verify champion.json
tokaido evaluate regret champion heuristic
tokaido evaluate --list

Every two agents meet: the same luck twice, with seats swapped. Scores come with a 95 % interval.
With --records, the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agents import Agent, describe, make
from tokaido_env.agents.registry import check_names, entrant, policy_of
from tokaido_env.arena.executors import check_executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.match import Match
from tokaido_env.arena.match_series import MatchResult
from tokaido_env.arena.rating_models import RatingError
from tokaido_env.arena.ratings import Rating, anchor_of, goodness_of_fit, rate_matches
from tokaido_env.arena.records import RecordFile, merge_records, parse_shard, shard
from tokaido_env.arena.sandbox import CAN_FORK, DEFAULT_MEMORY, Limits, check_limits, make_sandboxed
from tokaido_env.arena.sequential_test import check_error_rate
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.calibrate import calibrate_agent
from tokaido_env.cli.cli_options import (
    Scale,
    add_common,
    add_link,
    bar,
    play_kept,
    save_results,
    tell_forfeits,
    tell_stopped,
)
from tokaido_env.cli.command import CommandParser, program, reports_errors
from tokaido_env.cli.exploit import exploit_agent
from tokaido_env.cli.game_pages import FOLDER, check_replays, write_games
from tokaido_env.cli.ladders import build_ladder, place_agent
from tokaido_env.cli.protocols import generalise, suite, verify_submission
from tokaido_env.cli.regret import regret
from tokaido_env.core.arguments import check_seed, escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs
from tokaido_env.report import tables
from tokaido_env.report.standings import Standing, standings

MOST_MATCHES = 10  # that are printed unasked: those of five agents
MOST_NAMED = 4  # agents in the title of a page
ERROR = 0.05  # how often a match that is decided may name the wrong agent


@reports_errors("evaluate", AgentFailed)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    command = COMMANDS.get(arguments[0]) if arguments else None
    return command(arguments[1:]) if command else _matches(arguments)


# Matches


def _matches(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    options.command = f"{program('evaluate')} {shlex.join(arguments)}"
    if options.list:
        for usage, meaning in describe():
            print(f"{usage}\n    {meaning}")
        return 0
    if options.from_records:
        return _merge(options)
    if len(options.agents) < 2:
        parser.error(f"expected two or more agents, as: {program('evaluate')} greedy random")
    entrants = [entrant(text) for text in options.agents]
    check_names(entrants)
    options.names, options.agents = map(list, zip(*entrants, strict=True))
    return _evaluate(options)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser("evaluate", __doc__)
    add = parser.add_argument
    add("agents", nargs="*", metavar="AGENT", help="spec strings, see --list, or NAME=SPEC")
    add_common(parser, games=1000)
    add("--records", type=Path, metavar="FILE", help="append every game; go on from those in it")
    add("--plots", type=Path, metavar="DIR", help="write figures to a folder")
    add("--report", type=Path, metavar="FILE", help="write a page of HTML")
    add(
        "--replays",
        type=int,
        metavar="N",
        help=f"games of each match that it links, as pages in FILE{FOLDER} beside it (2; 0: none)",
    )
    add("--all-matches", action="store_true", help=f"print more than {MOST_MATCHES} matches too")
    add(
        "--until-decided",
        action="store_true",
        help="stop a match when it tells who is better; --games is then the most",
    )
    add("--error", type=float, help=f"how often that may be wrong ({ERROR})")
    add_link(parser)
    add(
        "--luck-adjusted",
        action="store_true",
        help="also report luck-adjusted scores, which have lower variance (default: off)",
    )
    _add_own(parser)
    add("--shard", metavar="I/N", help="play only part I of N of each match; see --from-records")
    add(
        "--from-records",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="instead: tell of the games in these files, of shards or of several seeds",
    )
    add("--list", action="store_true", help="list the agents there are")
    return parser


def _add_own(parser: argparse.ArgumentParser) -> None:
    """Add the options of agents that are not of this package."""
    add = parser.add_argument
    add(
        "--on-failure",
        choices=("forfeit", "stop"),
        default="forfeit" if CAN_FORK else "stop",
        help="what an agent of yours (python:...) that fails loses: the game (forfeit), for which "
        "it plays in a process of its own; or all stops there (forfeit, if there can be one)",
    )
    add("--move-seconds", type=float, metavar="S", help="a decision of such an agent, at most")
    add("--memory", type=int, metavar="MIB", help=f"of its process, at most ({DEFAULT_MEMORY})")


def _evaluate(options: argparse.Namespace) -> int:
    _check(options)
    board = BoardPool.load(options.board)
    agents = [_make(spec, options) for spec in options.agents]
    names, met = options.names, list(combinations(range(len(agents)), 2))
    pairs = [(agents[i], agents[j]) for i, j in met]
    match_states = [
        MatchState(names[i], names[j], options.games, options.seed, board) for i, j in met
    ]
    if options.shard is not None:
        match_states = [
            shard(match_state, *parse_shard(options.shard)) for match_state in match_states
        ]
    for match_state in match_states:
        match_state.with_luck = options.luck_adjusted
    results, stopped = play_kept(
        *(pairs, match_states),
        None if options.records is None else RecordFile(options.records, match_states, names),
        executor=options.executor,
        monitor=lambda match_state, number: bar(match_state, f"{number}/{len(pairs)}"),
        error=options.error if options.until_decided else None,
    )
    rated = _rate(results, options, complete=stopped is None)
    _tell(rated, options, board, _title(options, board))
    tell_forfeits(match_states)
    if timed := _timed(options):
        print(timed)
    if stopped is not None:
        return tell_stopped(stopped, match_states, options.records)
    _draw(rated, options, board, match_states)
    return 0


def _more(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the results say of these agents alone: whom names stand for, their time."""
    named = {n: s for n, s in zip(options.names, options.agents, strict=True) if n != s}
    more: dict[str, Any] = {"specs": named} if named else {}
    return more | ({"move_seconds": options.move_seconds} if options.move_seconds else {})


def _timed(options: argparse.Namespace) -> str | None:
    """Return what there is to say of results under a clock."""
    if not options.move_seconds:
        return None
    return (
        f"Agents of one's own had at most {options.move_seconds:g} s a decision: these results "
        "depend on the machine and do not repeat."
    )


def _make(spec: str, options: argparse.Namespace) -> Agent:
    if options.on_failure == "stop":
        return make(spec)
    memory = DEFAULT_MEMORY if options.memory is None else options.memory
    return make_sandboxed(spec, Limits(options.move_seconds, memory))


def _merge(options: argparse.Namespace) -> int:
    """Print the results of the games of record files."""
    if options.agents or options.records or options.shard or options.until_decided:
        raise ValueError("--from-records: expected files alone, and no agents or games to play")
    check_outputs(options.json, options.report, folder=options.plots, read=options.from_records)
    check_replays(options.replays, options.report)
    given = None if options.board == "shikoku" else options.board
    found = merge_records(options.from_records, given, luck=options.luck_adjusted)
    whole = [match_state for match_state in found.match_states if len(match_state.to_match().games)]
    if found.unpaired:
        print(
            f"evaluate: {found.unpaired:,} of {found.games:,} games have none with swapped seats "
            "beside them: left out",
            file=sys.stderr,
        )
    if not whole:
        raise ValueError("--from-records: expected pairs of games with swapped seats, got none")
    board = whole[0].pool
    rated = _rate(
        [MatchResult(match_state.to_match(), None) for match_state in whole],
        options,
        complete=False,
    )
    options.names = list(dict.fromkeys(name for m, _ in rated.results for name in (m.a, m.b)))
    files = "1 file" if len(options.from_records) == 1 else f"{len(options.from_records)} files"
    _tell(rated, options, board, f"{found.games:,} games of {files}, board {board.name}")
    _draw(rated, options, board, whole)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what can be refused before a game is played."""
    check_seed(options.seed)
    if options.shard is not None and options.until_decided:
        raise ValueError("--shard: expected without --until-decided, which looks at whole matches")
    check_limits(options.move_seconds, options.memory)
    if options.on_failure == "stop" and (options.move_seconds or options.memory):
        raise ValueError("--move-seconds, --memory: expected with --on-failure forfeit")
    if options.error is not None and not options.until_decided:
        raise ValueError("--error: expected together with --until-decided")
    options.error = check_error_rate(ERROR if options.error is None else options.error)
    check_executor(options.executor)
    # Records are appended: a link to them stays one.
    records = None if options.records is None else options.records.resolve()
    read = [options.board, *map(policy_of, options.agents)]
    check_outputs(options.json, options.report, records, folder=options.plots, read=read)
    check_replays(options.replays, options.report)
    if options.plots is not None or options.report is not None:
        require_extra("figures need", "plots", "matplotlib")


class _Rated(NamedTuple):
    """The results of matches, and what follows from all of them.

    Attributes:
        results: of all matches.
        different: the matches to rate by.
        ratings: best first; none where matches say too little.
        scale: of the ratings.
        ranked: the standings.
    """

    results: list[MatchResult]
    different: list[Match]
    ratings: list[Rating]
    scale: Scale
    ranked: list[Standing]


def _rate(results: list[MatchResult], options: argparse.Namespace, *, complete: bool) -> _Rated:
    """Rate the agents; what was stopped may say too little for that."""
    matches = [result.match for result in results]
    # An agent may meet itself, or be named twice: the same games would count twice.
    different = list({frozenset((m.a, m.b)): m for m in matches if m.a != m.b}.values())
    ratings: list[Rating] = []
    try:
        if different:
            ratings = rate_matches(different, model=options.rating_model, seed=options.seed)
    except RatingError:
        if complete:
            raise
    scale = Scale(options.rating_model, anchor_of(different) if ratings else None)
    return _Rated(results, different, ratings, scale, standings(matches, ratings))


def _title(options: argparse.Namespace, board: BoardPool) -> str:
    most = "at most " if options.until_decided else ""
    part = "" if options.shard is None else f", shard {options.shard}"
    told = f"{most}{options.games} games a pair, seats swapped{part}"
    return f"{told}, seed {options.seed}, board {board.name}"


def _tell(rated: _Rated, options: argparse.Namespace, board: BoardPool, title: str) -> None:
    """Write the results, if asked for, and print standings and matches, unless they are many."""
    results, different, ratings, scale, ranked = rated
    if options.json is not None:
        more = {} if options.from_records else _more(options)
        save_results(options, board, options.names, results, ratings, scale, ranked, more)
    if not results:
        return
    if ranked:
        tables.print_table(tables.standings_table(ranked, title))
        title = "Matches"
    if scale.anchor is not None:
        print(tables.relative(scale.link, scale.anchor))
        found = goodness_of_fit(different, model=scale.link)
        if found.df:
            print(tables.fit_line(found))
        print()
    if len(results) <= MOST_MATCHES or options.all_matches:
        _show_matches(results, options, title)
        return
    if options.until_decided:
        print(tables.verdicts(results, options.error))
    print(f"{len(results)} matches: --all-matches prints them, --report and --json hold them")


def _show_matches(results: list[MatchResult], options: argparse.Namespace, title: str) -> None:
    matches = [result.match for result in results]
    tables.print_table(tables.matches_table(matches, title))
    if options.luck_adjusted:
        tables.print_table(tables.luck_table(matches))
    if options.until_decided:
        for result in results:
            print(tables.verdict(result, options.error))


def _draw(
    rated: _Rated, options: argparse.Namespace, board: BoardPool, match_states: list[MatchState]
) -> None:
    """Write figures and the page, if asked for."""
    from tokaido_env.report.figures import write_plots
    from tokaido_env.report.page import write_report

    matches, scale = [result.match for result in rated.results], rated.scale
    if options.plots is not None:
        options.plots.mkdir(exist_ok=True)
        write_plots(matches, rated.ratings, options.plots)
    if options.report is not None:
        games = write_games(matches, match_states, options.report, options.replays)
        write_report(
            *(matches, rated.ratings, options.report),
            title=_heading(options.names),
            note=_timed(options),
            command=options.command,
            seed=None if options.from_records else options.seed,
            board=board.name,
            scale=None if scale.anchor is None else tables.scale_of(scale.link, scale.anchor),
            games=games,
        )
        linked = sum(map(len, games))
        print(f"{escape_text(str(options.report))}: {linked} games to step through")


def _heading(agents: list[str]) -> str:
    """Return what a page is called."""
    different = list(dict.fromkeys(agents))
    if len(different) > MOST_NAMED:
        return f"{len(different)} agents"
    return " – ".join(different)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "matches": _matches,
    "rate": place_agent,
    "ladder": build_ladder,
    "exploit": exploit_agent,
    "generalise": generalise,
    "calibrate": calibrate_agent,
    "suite": suite,
    "verify": verify_submission,
    "regret": regret,
}
