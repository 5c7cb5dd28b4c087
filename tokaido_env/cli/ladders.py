"""`tokaido evaluate rate` and `ladder`: agents placed on a ladder, and one made and told of."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_of
from tokaido_env.arena import placement
from tokaido_env.arena.executors import check_executor
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
from tokaido_env.arena.ratings import (
    ANCHORS,
    goodness_of_fit,
    rate_adjacent,
    rate_differences,
    rate_matches,
)
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.cli_options import (
    Scale,
    add_common,
    add_link,
    bar,
    chosen_executor,
    save_results,
)
from tokaido_env.cli.command import program
from tokaido_env.core.arguments import check_choice, check_seed
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report import tables

VERSION = 1


def tell(ladder: Ladder, as_json: Path | None, as_markdown: Path | None) -> None:
    """Print the tables of a finished ladder, and write them where that is asked for."""
    link, seed = ladder.link, ladder.seed
    apart = _rated_apart(ladder)
    rated = [r for r in ladder.agents if apart is None or not is_epsilon_baseline(r.agent)]
    fitted = goodness_of_fit(ladder.matches, model=link)
    differences = rate_differences(ladder.matches, model=link, seed=seed)
    differences = differences.among([rating.agent for rating in rated])
    title = f"Ladder {ladder.hash}, board {ladder.board}, {tables.scale_of(link, ladder.anchor)}"
    steps = rate_adjacent(ladder.matches, model=link, seed=seed)
    shown = [
        (tables.steps_table(title, rated, steps), f"All matches: {tables.fit_line(fitted)}"),
        *([] if apart is None else [apart.shown]),
        *((table, "") for table in tables.differences_tables(differences)),
    ]
    for table, below in shown:
        tables.print_table(table)
        if below:
            print(below)
    if as_json is not None:
        data = {"version": VERSION, "ladder": ladder.hash, "board": ladder.board, "link": link}
        data |= {"anchor": ladder.anchor, "fit": fitted.to_dict()}
        data |= {"differences": differences.to_dict()}
        data |= {"rungs": None if apart is None else apart.data}
        write_text(as_json, json.dumps(data, indent=1) + "\n")
    if as_markdown is not None:
        parts = [
            f"{table.title}\n\n{tables.markdown(table)}" + f"\n{below}\n" * (below != "")
            for table, below in shown
        ]
        write_text(as_markdown, "\n".join(parts))


class _Apart(NamedTuple):
    """Agents that err at random on a scale of their own: a table, the line below it, and JSON."""

    shown: tuple[tables.Table, str]
    data: dict[str, object]


def _rated_apart(ladder: Ladder) -> _Apart | None:
    """Rate the agents that err at random by the matches between them, None if there are none."""
    found = epsilon_baselines(ladder)
    if found is None:
        return None
    (matches, anchor), link, seed = found, ladder.link, ladder.seed
    ratings = rate_matches(matches, anchor=anchor, model=link, seed=seed)
    fitted = goodness_of_fit(matches, model=link)
    title = f"A share of moves at random, a scale of its own: {tables.scale_of(link, anchor)}"
    table = tables.steps_table(title, ratings, rate_adjacent(matches, model=link, seed=seed))
    agents = [rating.to_dict() for rating in ratings]
    return _Apart(
        (table, f"Their matches: {tables.fit_line(fitted)}"),
        {"anchor": anchor, "fit": fitted.to_dict(), "agents": agents},
    )


def place_agent(arguments: list[str]) -> int:
    """Place an agent on a ladder."""
    parser = argparse.ArgumentParser(f"{program('evaluate')} rate", description=place_agent.__doc__)
    add = parser.add_argument
    add("agent", metavar="AGENT", help=f"a spec string, see {program('evaluate')} --list")
    add("--ladder", type=Path, metavar="FILE", help="(ours for the board)")
    add("--opponents", type=int, default=placement.OPPONENTS, help="how many to meet")
    add("--include-slow", action="store_true", help="meet slow agents too")
    add(
        "--allow-python-agents",
        nargs="+",
        default=[],
        metavar="AGENT",
        help="agents on the ladder that run your own code, or policies outside its folder",
    )
    options, board = _ladder_options(parser, arguments)
    options.ladder = options.ladder or ladder_for(board)
    policy = policy_of(options.agent)
    check_outputs(options.json, read=[options.ladder, options.board, policy])
    spec = make(options.agent).spec
    trusted = [spec, options.agent, *options.allow_python_agents]
    loaded = Ladder.load(options.ladder, board, trusted)
    with _player(options, loaded.pool) as play_two:
        rated = placement.rate_on_ladder(
            *(spec, loaded),
            play=play_two,
            seed=options.seed,
            opponents=options.opponents,
            include_slow=options.include_slow,
        )
    if options.json is not None:
        results = [MatchResult(match, None) for match in rated.matches]
        scale = Scale(loaded.link, loaded.anchor)
        save_results(options, loaded.pool, [spec], results, [rated.rating], scale)
    title = f"seed {options.seed}, board {loaded.pool.name}"
    tables.print_table(tables.matches_table(rated.matches, title))
    scale_of = tables.scale_of(loaded.link, loaded.anchor)
    tables.print_table(tables.ratings_table([rated.rating], scale_of))
    print(f"on ladder {rated.ladder}, {options.ladder}")
    return 0


def build_ladder(arguments: list[str]) -> int:
    """Make a ladder of agents, weakest first, and write their matches and ratings to a file."""
    parser = argparse.ArgumentParser(
        f"{program('evaluate')} ladder", description=build_ladder.__doc__
    )
    add = parser.add_argument
    add("agents", nargs="+", metavar="AGENT", help=f"see {program('evaluate')} --list")
    add("--ladder", type=Path, required=True, metavar="FILE")
    add("--max-distance", type=int, default=1000, help="meet only so many places away")
    add("--anchor", metavar="AGENT", help=f"the one at 0 ({' or '.join(ANCHORS)})")
    add("--markdown", type=Path, metavar="FILE", help="write the tables to a file")
    add_link(parser)
    options, board = _ladder_options(parser, arguments)
    policies = map(policy_of, options.agents)
    outputs = options.json, options.markdown, options.ladder
    check_outputs(*outputs, read=[options.board, *policies])
    specs = [make(spec).spec for spec in options.agents]
    if options.anchor is not None:
        check_choice("--anchor", options.anchor, specs)
    games = ladder_schedule(specs, options.games, options.max_distance)
    with _player(options, board) as play_two:
        made = make_ladder(
            *(specs, games, options.seed, board, play_two, options.ladder),
            model=options.rating_model,
            anchor=options.anchor,
        )
    tell(made, options.json, options.markdown)
    return 0


def _ladder_options(
    parser: argparse.ArgumentParser, arguments: list[str]
) -> tuple[argparse.Namespace, BoardPool]:
    add_common(parser, games=1000)
    options = parser.parse_args(arguments)
    check_seed(options.seed)
    check_executor(options.executor)
    return options, BoardPool.load(options.board)


@contextmanager
def _player(options: argparse.Namespace, board: BoardPool) -> Iterator[PlayMatch]:
    """Give what plays a match of two specs: at most so many games, with a seed."""

    def play_two(a: str, b: str, games: int, seed: int) -> Match:
        agents = make(a), make(b)
        match_state = MatchState(a, b, min(games, options.games), seed, board)
        with bar(match_state, "") as progress:
            play_remaining(match_state, *agents, progress=progress, executor=executor)
        return match_state.to_match()

    with chosen_executor(options.executor) as executor:
        yield play_two
