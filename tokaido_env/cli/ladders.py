"""`tokaido rate` and `ladder`: rate an agent on a ladder, or build a ladder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena import placement
from tokaido_env.arena.game_runner import AgentFailed
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
from tokaido_env.arena.ratings import goodness_of_fit, rate_differences, rate_matches
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.tournament import MatchState, games_as_completed, play_remaining
from tokaido_env.arena.verification import RecordsEntry
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import (
    check_run,
    chosen_executor,
    match_state_bar,
    print_resumed,
    resolved_records,
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


@cli.options
class Rate(cli.Matches):
    """Options of `tokaido rate`."""

    agent: cli.AgentSpec = field(kw_only=False)
    """agent to measure; tokaido agents lists all"""
    opponents: Annotated[int, Parameter("--opponent-count")] = placement.OPPONENTS
    """number of opponents to play against"""
    include_slow: bool = False
    """play against slow agents too"""
    ladder: cli.LadderFile = None
    allow_agents: cli.AllowedAgents = ()
    records: cli.Records = None


@cli.command("rate", AgentFailed)
def rate(options: Rate) -> int:
    """Rate an agent against the agents of a ladder.

    It takes seconds for an agent that does not search, and up to an hour for one that does.

    Examples:
        tokaido rate policy:runs/first --json rating.json --records rating.jsonl
    """
    board = BoardPool.load(options.board)
    options.ladder = options.ladder or ladder_for(board)
    read: list[str | Path | None] = [options.ladder, options.board, policy_path_of(options.agent)]
    check_run(options, options.json, resolved_records(options), read=read)
    spec = make(options.agent).spec
    allowed = [spec, options.agent, *options.allow_agents]
    loaded = Ladder.load(options.ladder, board, allowed)
    rated = _place(spec, loaded, options)
    write_json(options.json, rated.to_dict())
    for table in tables.placement_tables(rated):
        tables.print_table(table)
    print(f"on ladder {loaded.hash}, {options.ladder}")
    return 0


def _place(agent: str, ladder: Ladder, options: Rate) -> placement.LadderRating:
    """Play the matches of a placement on top of the games of records; return the rating."""
    seed, slow, path = options.seed, options.include_slow, options.records
    states = placement.possible_matches(
        agent, ladder, seed=seed, include_slow=slow, max_games=options.games
    )
    records = None if path is None or not states else RecordFile(path, [*states.values()])
    if records is not None:
        print_resumed(records)

    def play(a: str, b: str, games: int, seed: int) -> Match:
        state = states[b]
        with match_state_bar(state, "") as progress:
            for finished in games_as_completed(state, make(a), make(b), executor=executor):
                if records is not None:
                    records.append(state, finished)
                progress(len(finished.numbers))
        return state.to_match()

    with chosen_executor(options.executor) as executor:
        rated = placement.rate_on_ladder(
            *(agent, ladder), play=play, seed=seed, opponents=options.opponents, include_slow=slow
        )
    if records is None or path is None:
        return rated
    records.sort()
    met = [match.b for match in rated.matches]
    more = [b for b, state in states.items() if b not in met and state.finished.any()]
    if more:
        raise ValueError(
            f"--records: expected games against {', '.join(met)}, got some against {more[0]}: "
            "repeat --opponent-count, or name another file"
        )
    games = sum(int(match.results.size) for match in rated.matches)
    return replace(rated, records=RecordsEntry.of(path, games))


@cli.options
class BuildLadder(cli.Matches):
    """Options of `tokaido ladder`."""

    agents: list[cli.AgentSpec] = field(kw_only=False)
    """agents of the ladder, weakest first; tokaido agents lists all"""
    ladder: Annotated[cli.File, Parameter("--out")]
    """ladder file to write"""
    max_distance: int = 1000
    """play only agents up to this many places apart"""
    anchor: cli.AgentSpec | None = None
    """agent with the rating 0 [default: mcts:sims=400 or random]"""
    markdown: cli.Markdown = None


@cli.command("ladder", AgentFailed)
def ladder(options: BuildLadder) -> int:
    """Play the matches of a ladder, agents given weakest first, and write a ladder file.

    It takes as long as all of its matches: hours if agents search.

    Examples:
        tokaido ladder random greedy heuristic --out my_ladder.json
    """
    board = BoardPool.load(options.board)
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


@contextmanager
def _match_player(options: BuildLadder, board: BoardPool) -> Iterator[PlayMatch]:
    """Yield a function that plays a match of two specs, with at most `--games` games."""

    def play_two(a: str, b: str, games: int, seed: int) -> Match:
        agents = make(a), make(b)
        state = MatchState(a, b, min(games, options.games), seed, board)
        with match_state_bar(state, "") as progress:
            play_remaining(state, *agents, progress=progress, executor=executor)
        return state.to_match()

    with chosen_executor(options.executor) as executor:
        yield play_two
