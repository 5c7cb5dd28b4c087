"""`tokaido evaluate rate` and `ladder`: rate an agent on a ladder, or build a ladder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena import placement
from tokaido_env.arena.ladder import (
    Ladder,
    PlayMatch,
    epsilon_baselines,
    is_epsilon_baseline,
    ladder_for,
    ladder_schedule,
    make_ladder,
)
from tokaido_env.arena.match import Match
from tokaido_env.arena.match_series import MatchResult
from tokaido_env.arena.ratings import ANCHORS, goodness_of_fit, rate_differences, rate_matches
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.cli_options import (
    add_agents,
    add_match_options,
    add_shared,
    check_run,
    chosen_executor,
    evaluate_parser,
    match_state_bar,
    save_results,
)
from tokaido_env.cli.command import write_json
from tokaido_env.core.arguments import check_choice
from tokaido_env.files import write_text
from tokaido_env.report import tables

VERSION = 1


def print_ladder(ladder: Ladder, json_file: Path | None, markdown_file: Path | None) -> None:
    """Print the tables of a finished ladder, and write them to the files that are given."""
    baselines = _rate_baselines(ladder)
    rated = [r for r in ladder.agents if baselines is None or not is_epsilon_baseline(r.agent)]
    fitted = goodness_of_fit(ladder.matches)
    differences = rate_differences(ladder.matches, seed=ladder.seed)
    listed_differences = differences.among([rating.agent for rating in rated])
    title = f"Ladder {ladder.hash}, board {ladder.board}, {tables.scale_of(ladder.anchor)}"
    printed = [
        (tables.steps_table(title, rated, differences), f"All matches: {tables.fit_line(fitted)}"),
        *([] if baselines is None else [baselines.printed]),
        *((table, "") for table in tables.differences_tables(listed_differences)),
    ]
    for table, line in printed:
        tables.print_table(table)
        if line:
            print(line)
    data = {"version": VERSION, "ladder": ladder.hash, "board": ladder.board, "link": ladder.link}
    data |= {"anchor": ladder.anchor, "fit": fitted.to_dict()}
    data |= {"differences": listed_differences.to_dict()}
    data |= {"rungs": None if baselines is None else baselines.data}
    write_json(json_file, data)
    if markdown_file is not None:
        parts = [
            f"{table.title}\n\n{tables.markdown(table)}" + f"\n{line}\n" * (line != "")
            for table, line in printed
        ]
        write_text(markdown_file, "\n".join(parts))


class _Baselines(NamedTuple):
    """Epsilon baselines on a rating scale of their own.

    Attributes:
        printed: a table and the line below it.
        data: the same as plain JSON types.
    """

    printed: tuple[tables.Table, str]
    data: dict[str, object]


def _rate_baselines(ladder: Ladder) -> _Baselines | None:
    """Rate the epsilon baselines by the matches between them; return None if there are none."""
    found = epsilon_baselines(ladder)
    if found is None:
        return None
    matches, anchor = found
    ratings = rate_matches(matches, anchor=anchor, seed=ladder.seed)
    fitted = goodness_of_fit(matches)
    title = f"Epsilon baselines, a separate scale: {tables.scale_of(anchor)}"
    differences = rate_differences(matches, seed=ladder.seed)
    table = tables.steps_table(title, ratings, differences)
    agents = [rating.to_dict() for rating in ratings]
    return _Baselines(
        (table, f"Matches between baselines: {tables.fit_line(fitted)}"),
        {"anchor": anchor, "fit": fitted.to_dict(), "agents": agents},
    )


def place_agent(arguments: list[str]) -> int:
    """Rate an agent against the agents of a ladder.

    It takes seconds for an agent that does not search, and up to an hour for one that does.
    """
    parser = evaluate_parser("rate", place_agent)
    add_agents(parser)
    add = parser.add_argument
    ladder = "ladder file (default: the ladder of the package for the board)"
    add("--ladder", type="input", metavar="FILE", help=ladder)
    opponents = "number of opponents to play against"
    add("--opponents", type=int, default=placement.OPPONENTS, help=opponents)
    add("--include-slow", action="store_true", help="play against slow agents too")
    add(
        "--allow-agents",
        nargs="+",
        default=[],
        metavar="AGENT",
        help="agents of the ladder that may run code, or load policies outside its folder",
    )
    options, board = _parse(parser, arguments)
    options.ladder = options.ladder or ladder_for(board)
    read = [options.ladder, options.board, policy_path_of(options.agent)]
    check_run(options, options.json, read=read)
    spec = make(options.agent).spec
    allowed = [spec, options.agent, *options.allow_agents]
    loaded = Ladder.load(options.ladder, board, allowed)
    with _match_player(options, loaded.pool) as play_two:
        rated = placement.rate_on_ladder(
            *(spec, loaded),
            play=play_two,
            seed=options.seed,
            opponents=options.opponents,
            include_slow=options.include_slow,
        )
    if options.json is not None:
        results = [MatchResult(match, None) for match in rated.matches]
        save_results(options, loaded.pool, [spec], results, [rated.rating], loaded.anchor)
    title = f"seed {options.seed}, board {loaded.pool.name}"
    tables.print_table(tables.matches_table(rated.matches, title))
    scale = tables.scale_of(loaded.anchor)
    tables.print_table(tables.ratings_table([rated.rating], scale))
    print(f"on ladder {rated.ladder}, {options.ladder}")
    return 0


def build_ladder(arguments: list[str]) -> int:
    """Play the matches of a ladder, agents given weakest first, and write a ladder file.

    It takes as long as all of its matches: hours if agents search.
    """
    parser = evaluate_parser("ladder", build_ladder)
    add_agents(parser, "agents", nargs="+")
    add = parser.add_argument
    add("--ladder", type="file", required=True, metavar="FILE", help="ladder file to write")
    distance = "play only agents up to this many places apart"
    add("--max-distance", type=int, default=1000, metavar="N", help=distance)
    anchor = f"agent with the rating 0 (default: {' or '.join(ANCHORS)})"
    add("--anchor", metavar="AGENT", help=anchor)
    add_shared(parser, "--markdown")
    options, board = _parse(parser, arguments)
    outputs = options.json, options.markdown, options.ladder
    check_run(options, *outputs, read=[options.board, *map(policy_path_of, options.agents)])
    specs = [make(spec).spec for spec in options.agents]
    if options.anchor is not None:
        check_choice("--anchor", options.anchor, specs)
    games = ladder_schedule(specs, options.games, options.max_distance)
    with _match_player(options, board) as play_two:
        made = make_ladder(
            *(specs, games, options.seed, board, play_two, options.ladder),
            anchor=options.anchor,
        )
    print_ladder(made, options.json, options.markdown)
    return 0


def _parse(
    parser: argparse.ArgumentParser, arguments: list[str]
) -> tuple[argparse.Namespace, BoardPool]:
    add_match_options(parser)
    options = parser.parse_args(arguments)
    return options, BoardPool.load(options.board)


@contextmanager
def _match_player(options: argparse.Namespace, board: BoardPool) -> Iterator[PlayMatch]:
    """Yield a function that plays a match of two specs, with at most `--games` games."""

    def play_two(a: str, b: str, games: int, seed: int) -> Match:
        agents = make(a), make(b)
        state = MatchState(a, b, min(games, options.games), seed, board)
        with match_state_bar(state, "") as progress:
            play_remaining(state, *agents, progress=progress, executor=executor)
        return state.to_match()

    with chosen_executor(options.executor) as executor:
        yield play_two
