"""`tokaido rate` and `ladder`: rate an agent on a ladder, or build a ladder."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from tokaido_env.agents import Agent, make
from tokaido_env.agents.registry import parse_named_agent, policy_path_of
from tokaido_env.arena import placement
from tokaido_env.arena.ladder import (
    Ladder,
    epsilon_baselines,
    is_epsilon_baseline,
    ladder_for,
    ladder_schedule,
    make_ladder,
)
from tokaido_env.arena.match import Match
from tokaido_env.arena.ratings import goodness_of_fit, rate_differences, rate_matches
from tokaido_env.arena.result import RecordsEntry, Result
from tokaido_env.arena.tournament import MatchState, files_of_matches, games_as_completed
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import (
    check_run,
    chosen_executor,
    match_state_bar,
    measuring_command,
    opened_records,
    print_forfeits,
    print_result,
    resolved_records,
    save_result,
    show_result,
)
from tokaido_env.core.arguments import check_choice
from tokaido_env.files import write_text
from tokaido_env.report.result_tables import scale, tables_of
from tokaido_env.report.tables import markdown_page


def with_differences(ladder: Ladder) -> Result:
    """Return the result of a ladder with the differences between ratings.

    Epsilon baselines also have ratings on a scale of their own, by the matches between them.
    """
    baselines = epsilon_baselines(ladder)
    rated = {
        r.agent for r in ladder.agents if baselines is None or not is_epsilon_baseline(r.agent)
    }
    differences = rate_differences(ladder.result.scores, seed=ladder.seed)
    estimates = [*ladder.result.estimates]
    estimates += [one for one in differences if {one.agent, one.other} <= rated]
    if baselines is not None:
        matches, anchor = baselines
        group = f"Epsilon baselines, a separate scale: {scale(anchor)}"
        ratings = rate_matches(matches, anchor=anchor, seed=ladder.seed)
        own = [rating.rounded(4) for rating in ratings] + goodness_of_fit(matches)
        own += rate_differences(matches, seed=ladder.seed)
        estimates += [replace(one, group=group) for one in own]
    return replace(ladder.result, ladder=ladder.result.hash, estimates=tuple(estimates))


@cli.options
class Rate(cli.Matches):
    """Options of `tokaido rate`; the docstring of each field is its help."""

    agent: cli.AgentSpec = field(kw_only=False)
    """agent to measure, as SPEC or NAME=SPEC with a name to print; tokaido agents lists all"""
    board: cli.Board = "shikoku"
    """board of the ladder; any boards of the family are rated on family:valid"""
    opponents: Annotated[int, Parameter("--opponent-count")] = placement.OPPONENTS
    """opponents to play against"""
    include_slow: bool = False
    """play against slow agents too"""
    ladder: cli.LadderFile = None
    allow_agents: cli.AllowedAgents = ()
    records: cli.Records = None


@cli.command("rate")
def rate(options: Rate) -> int:
    """Rate an agent against the agents of a ladder.

    It takes seconds for an agent that does not search, and up to an hour for one that does, which
    plays fewer than `--games` games.

    Examples:
        tokaido rate policy:runs/first --json rating.json --records rating.jsonl
    """
    name, options.agent = parse_named_agent(options.agent)
    board = BoardPool.load(options.board)
    options.ladder = options.ladder or ladder_for(board)
    read: list[str | Path | None] = [options.ladder, options.board, policy_path_of(options.agent)]
    check_run(options, options.json, resolved_records(options), read=read)
    if options.games > placement.FAST_GAMES:
        raise ValueError(f"--games: expected at most {placement.FAST_GAMES}, got {options.games}")
    agent = make(options.agent)
    allowed = [agent.spec, options.agent, *options.allow_agents]
    loaded = Ladder.load(options.ladder, board, allowed)
    rated = replace(_place(agent, loaded, options), command=measuring_command())
    save_result(rated, options)  # with the spec, that others can run
    if name != options.agent:
        estimates = tuple(replace(one, agent=name) for one in rated.estimates)
        rated = replace(rated, agents=(name,), estimates=estimates)
    print_result(rated)
    return 0


def _place(agent: Agent, ladder: Ladder, options: Rate) -> Result:
    """Play the matches of a placement on top of the games of records; return the rating."""
    seed, slow, path, spec = options.seed, options.include_slow, options.records, agent.spec
    states = placement.possible_matches(
        spec, ladder, seed=seed, include_slow=slow, max_games=options.games
    )
    records = opened_records(path if states else None, [*states.values()])

    def play(a: str, b: str, games: int, seed: int) -> Match:
        state = states[b]
        with match_state_bar(state, "") as progress:
            for finished in games_as_completed(state, agent, make(b), executor=executor):
                if records is not None:
                    records.append(state, finished)
                progress(len(finished.numbers))
        return state.to_match()

    with chosen_executor(options.executor) as executor:
        rated = placement.rate_on_ladder(
            *(spec, ladder), play=play, seed=seed, opponents=options.opponents, include_slow=slow
        )
    print_forfeits([states[score.b] for score in rated.scores])
    rated = replace(rated, files=files_of_matches([states[score.b] for score in rated.scores]))
    if records is None or path is None:
        return rated
    records.sort()
    games = sum(int(state.finished.sum()) for state in states.values())
    if others := games - sum(score.n for score in rated.scores):
        cli.note(f"{others:,} recorded games are against other opponents, and do not count")
    return replace(rated, records=RecordsEntry.of(path, games))


@cli.options
class BuildLadder(cli.Matches):
    """Options of `tokaido ladder`; the docstring of each field is its help."""

    agents: list[cli.AgentSpec] = field(kw_only=False)
    """agents of the ladder, weakest first; tokaido agents lists all"""
    ladder: Annotated[cli.Output, Parameter("--out")]
    """ladder file to write"""
    max_distance: int = 1000
    """play only agents up to this many places apart"""
    anchor: cli.AgentSpec | None = None
    """agent with the rating 0 [default: mcts:sims=400 or random]"""
    markdown: cli.Markdown = None


@cli.command("ladder")
def ladder(options: BuildLadder) -> int:
    """Play the matches of a ladder, agents given weakest first, and write a ladder file.

    It takes as long as all of its matches: hours if agents search.

    Examples:
        tokaido ladder random greedy heuristic --out my_ladder.json
    """
    board = BoardPool.load(options.board)
    outputs = options.json, options.markdown, options.ladder
    check_run(options, *outputs, read=[options.board, *map(policy_path_of, options.agents)])
    agents = [make(spec) for spec in options.agents]
    specs = [agent.spec for agent in agents]
    if options.anchor is not None:
        options.anchor = make(options.anchor).spec
        check_choice("--anchor", options.anchor, specs)
    games = ladder_schedule(specs, options.games, options.max_distance)
    by_spec = dict(zip(specs, agents, strict=True))

    def play_two(a: str, b: str, games: int, seed: int) -> Match:
        state = MatchState(a, b, min(games, options.games), seed, board)
        with match_state_bar(state, "") as progress:
            for finished in games_as_completed(state, by_spec[a], by_spec[b], executor=executor):
                progress(len(finished.numbers))
        print_forfeits([state])
        return state.to_match()

    with chosen_executor(options.executor) as executor:
        made = make_ladder(
            *(specs, games, options.seed, board, play_two, options.ladder),
            anchor=options.anchor,
            command=measuring_command(),
        )
    result = with_differences(made)
    show_result(result, options)
    if options.markdown is not None:
        write_text(options.markdown, markdown_page(tables_of(result)))
    return 0
