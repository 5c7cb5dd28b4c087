"""`tokaido evaluate`: measure agents against each other in paired games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import numpy as np
from cyclopts import Parameter
from msgspec.structs import replace

from tokaido_env.agents import Agent, make
from tokaido_env.agents.content import files_of
from tokaido_env.agents.exec_agent import ProgramAgent
from tokaido_env.agents.registry import check_names, parse_named_agent, policy_path_of
from tokaido_env.arena.game_runner import Numbers
from tokaido_env.arena.match import Match
from tokaido_env.arena.match_series import play_series
from tokaido_env.arena.records import merge_records, records_of
from tokaido_env.arena.sequential_test import check_error_rate
from tokaido_env.arena.tournament import MatchState, files_of_matches
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import (
    check_run,
    chosen_executor,
    match_state_bar,
    matches_result,
    measuring_command,
    note_equal_games,
    opened_records,
    print_forfeits,
    print_result,
    print_stopped,
    save_result,
)
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report.figures import write_figures
from tokaido_env.report.page import Links, write_page
from tokaido_env.report.progress import match_bar
from tokaido_env.report.result_tables import verdicts

ERROR = 0.05  # error probability of --until-decided

FOLDER = "-games"  # suffix of the folder of pages, after the report's name


@cli.options
class Evaluate(cli.Matches):
    """Options of `tokaido evaluate`; the docstring of each field is its help."""

    agents: list[cli.AgentSpec] = field(default_factory=list, kw_only=False)
    """agents to measure, as SPEC or NAME=SPEC; tokaido agents lists all"""
    until_decided: bool = False
    """stop a match when the better agent is known; --games is then the maximum"""
    error: float | None = None
    """maximum error probability of --until-decided [default: 0.05]"""
    luck_adjusted: bool = False
    """also report luck-adjusted scores, which have lower variance"""
    from_records: Annotated[list[cli.Input], cli.Several] = field(default_factory=list)
    """report the games of these record files instead of playing"""
    records: cli.Records = None
    plots: cli.Plots = None
    report: cli.Replaced | None = None
    """write the results to this file as a page of HTML, which links games of each match"""
    move_seconds: Annotated[float | None, Parameter(metavar="SECONDS")] = None
    """maximum seconds per decision of a program (exec:), which forfeits the game after them
    [default: no limit]"""
    names: list[str] = field(init=False, default_factory=list)


@cli.command("evaluate")
def main(options: Evaluate) -> int:
    """Measure agents against each other in paired games.

    Each pair of agents plays each seed twice, with seats swapped. Scores have 95 % intervals. With
    --records, the same command resumes. Matches take seconds for agents that do not search, and up
    to hours for agents that do.

    Examples:
        tokaido evaluate greedy random --games 1000 --seed 0
        tokaido evaluate policy:runs/mine greedy --json all.json --records games.jsonl
        tokaido evaluate python:my_bots:Careful greedy --until-decided --games 10000
        tokaido evaluate --from-records seed-0.jsonl seed-1.jsonl --report page.html
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
    names, every = options.names, combinations(range(len(agents)), 2)
    # An agent that is given twice meets each other one once: its games would be equal.
    numbers = list({frozenset((names[i], names[j])): (i, j) for i, j in every}.values())
    specs = [spec + _limit_of(spec, options) for spec in options.agents]
    each = zip(names, specs, agents, strict=True)
    files = [files_of(name, spec, agent.sha256) for name, spec, agent in each]
    states = []
    for i, j in numbers:
        states.append(MatchState(names[i], names[j], options.games, options.seed, board))
        states[-1].with_luck, states[-1].files = options.luck_adjusted, files[i] | files[j]
    records = opened_records(options.records, states)
    with chosen_executor(options.executor) as executor:
        matches, stopped = play_series(
            *([(agents[i], agents[j]) for i, j in numbers], states),
            error=options.error if options.until_decided else None,
            records=records,
            monitor=lambda state, number: match_state_bar(state, f"{number}/{len(states)}"),
            executor=executor,
        )
    if matches:
        _show(matches, states, options, complete=stopped is None)
    else:
        print_forfeits(states)
    return 0 if stopped is None else print_stopped(stopped, states, options.records)


def _make(spec: str, options: Evaluate) -> Agent:
    agent = make(spec)
    if isinstance(agent, ProgramAgent):
        agent.wrapped.seconds = options.move_seconds
    return agent


def _limit_of(spec: str, options: Evaluate) -> str:
    """Return the time limit of an agent as a part of its name: records hold games of one limit."""
    limited = options.move_seconds is not None and spec.startswith("exec:")
    return f" --move-seconds {options.move_seconds:g}" if limited else ""


def _merge(options: Evaluate) -> int:
    """Print the results of the games of record files."""
    playing = options.agents, options.records, options.until_decided, options.executor
    counts = (options.games, options.seed) != (Evaluate.games, Evaluate.seed)
    if any(playing) or options.error or options.move_seconds or counts:
        raise ValueError("--from-records: expected only files, got what plays games too")
    check_outputs(options.json, options.report, folder=options.plots, read=options.from_records)
    if options.report is not None:
        check_outputs(folder=folder_of(options.report))
    given = None if options.board == "shikoku" else options.board
    found = merge_records(options.from_records, given, luck=options.luck_adjusted)
    whole = [state for state in found.match_states if len(state.to_match().games)]
    note_equal_games(found.equal)
    if found.unpaired:
        cli.note(
            f"left out {found.unpaired:,} of {found.games:,} games: the records lack their games "
            "with swapped seats. If a match was stopped, resume it first: short games end first, "
            "so that its score is of these"
        )
    if not whole:
        raise ValueError("--from-records: expected pairs of games with swapped seats, got none")
    _show([state.to_match() for state in whole], whole, options, complete=True)
    return 0


def _check(options: Evaluate) -> None:
    """Refuse wrong options before a game is played."""
    if options.move_seconds is not None and not 0 < options.move_seconds < inf:
        raise ValueError(f"--move-seconds: expected more than 0, got {options.move_seconds:g}")
    if options.move_seconds and not any(spec.startswith("exec:") for spec in options.agents):
        raise ValueError("--move-seconds: expected with a program (exec:), which it limits")
    if options.error is not None and not options.until_decided:
        raise ValueError("--error: expected together with --until-decided")
    options.error = check_error_rate(ERROR if options.error is None else options.error)
    # The file that a symbolic link names is appended to, so that the link stays.
    records = None if options.records is None else options.records.resolve()
    read = [options.board, *map(policy_path_of, options.agents)]
    check_run(options, options.json, options.report, records, read=read, folder=options.plots)
    if options.report is not None:
        check_outputs(folder=folder_of(options.report))
        require_extra("figures need", "plots", "matplotlib")


def _show(
    matches: Sequence[Match], states: list[MatchState], options: Evaluate, *, complete: bool
) -> None:
    """Write and print the result of matches, and the figures and the page of complete ones."""
    merged = bool(options.from_records)
    result = matches_result(
        *(matches, states[0].pool, None if merged else options.seed, measuring_command()),
        luck=options.luck_adjusted,
        whole=complete and not merged,
    )
    result = replace(result, files=files_of_matches(states), complete=complete)
    save_result(result, options)
    print_result(result)
    print_forfeits(states)
    without = len(result.scores) - len(result.estimates_of("luck-adjusted score"))
    if options.luck_adjusted and without:
        cli.note(f"luck-adjusted scores need ten pairs, not all alike; matches without: {without}")
    notes = []
    if options.move_seconds:
        limit = f"Programs (exec:) had at most {options.move_seconds:g} s per decision"
        notes.append(f"{limit}: these results depend on the machine and are not reproducible")
    if options.until_decided:
        notes += verdicts(result, options.error or ERROR)
    if notes:
        print("\n".join(notes))
    if options.plots is not None and complete:
        write_figures(result, options.plots)
    if options.report is not None and complete:
        games = write_games(matches, states, options.report)
        write_page(result, options.report, note="; ".join(notes) or None, games=games)
        linked = sum(map(len, games))
        print(f"{escape_text(str(options.report))}: a page with {linked} games to replay")


# Pages to step through games, in a folder next to the report that links them


def folder_of(report: Path) -> Path:
    """Return the folder, next to a report, of the pages of its games."""
    return report.with_name(report.stem + FOLDER)


def write_games(
    matches: Sequence[Match], match_states: Sequence[MatchState], report: Path
) -> list[Links]:
    """Write two games of each match as pages: see `choose_games`.

    Args:
        matches: the finished matches.
        match_states: of the matches, which may hold more games.
        report: page that links the games; they are written to a folder next to it.

    Returns:
        For each match, text and address of the written games.
    """
    # Imported here: other commands need no drawings.
    from tokaido_env.web.replay_page import replay_page

    folder = folder_of(report)
    folder.mkdir(exist_ok=True)
    links: list[Links] = []
    with match_bar("pages", 2 * len(matches), 0) as progress:
        for number, (match, match_state) in enumerate(
            zip(matches, match_states, strict=True), start=1
        ):
            chosen = choose_games(match)
            path = folder / f"match-{number}.html"
            records = records_of(match_state, _game_numbers(match, match_state)[chosen])
            write_text(path, replay_page(records, match_state.pool))
            href = quote(f"{folder.name}/{path.name}")
            links.append(
                [(_game_text(match, game), f"{href}#game={i}") for i, game in enumerate(chosen, 1)]
            )
            progress(len(chosen))
    return links


def _game_text(match: Match, place: int) -> str:
    """Return players, points and rounds of a game, player_0 first."""
    game = match.games.reshape(-1)[place]
    points = game["points"].sum(axis=1, dtype=np.int64)
    order = (1, 0) if game["seat_of_a"] else (0, 1)
    one, other = (f"{(match.a, match.b)[side]} {points[side]}" for side in order)
    end = (f"{match.b} won", "shared victory", f"{match.a} won")[round(2 * game["result"])]
    forfeit = ", forfeit" * bool(game["forfeit"])
    return f"{one} – {other}, {end}, {int(game['rounds'])} rounds{forfeit}"


def choose_games(match: Match) -> list[int]:
    """Return the closest game of a match and its clearest win, of games without a forfeit if any.

    Returns:
        Indices into the flattened `match.games`.
    """
    points = match.games["points"].reshape(-1, 2, 3).sum(axis=2, dtype=np.int64)
    order = np.argsort(np.abs(points[:, 0] - points[:, 1]), kind="stable")
    played = order[match.games["forfeit"].reshape(-1)[order] == 0]
    order = played if len(played) else order
    return [int(order[0]), int(order[-1])]


def _game_numbers(match: Match, match_state: MatchState) -> Numbers:
    """Return the numbers of the match's games in its state."""
    pairs = match_state.finished.reshape(-1, 2).all(axis=1)
    return np.flatnonzero(np.repeat(pairs, 2))[: match.results.size]
