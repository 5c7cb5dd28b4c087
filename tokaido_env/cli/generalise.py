"""`tokaido generalise`: measure an agent on unseen boards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from cyclopts import Group, Parameter
from msgspec.structs import replace

from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena.match_series import play_series
from tokaido_env.arena.result import RecordsEntry, Result
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import (
    check_run,
    chosen_executor,
    match_state_bar,
    measuring_command,
    opened_records,
    print_forfeits,
    print_stopped,
    resolved_records,
    show_result,
)
from tokaido_env.files import write_text
from tokaido_env.report.comparison import comparison_table, methods_of
from tokaido_env.report.figures import write_figures
from tokaido_env.report.tables import markdown_page, print_table
from tokaido_env.study.generalise import (
    OPPONENT,
    OPPONENTS,
    PAIRS,
    SPLIT,
    also_trained_on,
    generalisation_test,
)

COMPARE = Group("Comparison of results", sort_key=4)


@cli.options
class Generalise:
    """Options of `tokaido generalise`; the docstring of each field is its help."""

    agent: cli.AgentSpec | None = field(default=None, kw_only=False)
    """agent to measure; tokaido agents lists all"""
    opponent: cli.AgentSpec = OPPONENT
    """agent to play against"""
    opponents: Annotated[list[cli.AgentSpec] | None, cli.Several] = None
    """also play these on the unseen boards; without AGENT, the others of five styles"""
    split: str = SPLIT
    """boards to play on: test, far, handmade (six boards), valid or train"""
    boards: int | None = None
    """boards, from 2 [default: 100, or all of a smaller split]"""
    pairs: int = PAIRS
    """pairs of games on each board"""
    train: int | None = None
    """boards of train that the agent was trained on [default: unknown]"""
    no_gap: bool = False
    """play only on the unseen boards: half the games, and no gap"""
    seed: cli.SeedOption = 0
    executor: cli.MatchExecutor = None
    json: cli.Json = None
    records: cli.Records = None
    plots: cli.Plots = None
    compare: Annotated[list[cli.Input], cli.Several, Parameter(group=COMPARE)] = field(
        default_factory=list
    )
    """compare these result files of --json instead of measuring an agent"""
    markdown: Annotated[cli.Markdown, Parameter(group=COMPARE)] = None
    runs: Annotated[int, Parameter(group=COMPARE)] = 1
    """training seeds of each method, files of one method in a row"""


@cli.command("generalise")
def main(options: Generalise) -> int:
    """Measure an agent on procedural boards that it has not trained on: Tokaido-100 by default.

    It takes minutes for an agent that does not search, and hours for one that does.

    Examples:
        tokaido generalise champion
        tokaido generalise policy:runs/first --json first.json --records first.jsonl
        tokaido generalise --compare first.json second.json --markdown table.md
    """
    more = OPPONENTS if options.opponents == [] else options.opponents or ()
    opponents = tuple(dict.fromkeys((options.opponent, *more)))
    _check(options, opponents)
    if options.compare:
        _compare(options)
        return 0
    if options.agent is None:
        raise cli.UsageError("AGENT: expected an agent, or --compare with files, got none")
    return _measure(make(options.agent), opponents, options)


def _check(options: Generalise, opponents: Sequence[str]) -> None:
    """Refuse options that contradict each other, and outputs that cannot be written."""
    records = resolved_records(options)
    agents = [spec for spec in (options.agent, *opponents) if spec is not None]
    check_run(
        *(options, options.json, records, options.markdown),
        read=[*map(policy_path_of, agents), *options.compare],
        folder=options.plots,
    )
    if (options.markdown is not None or options.runs != 1) and not options.compare:
        raise ValueError("--markdown, --runs: expected together with --compare")
    compared = Generalise(compare=options.compare, markdown=options.markdown, runs=options.runs)
    if options.compare and options != compared:
        raise ValueError("--compare: expected only --markdown and --runs with it")


def _compare(options: Generalise) -> None:
    """Print and write the comparison of several result files."""
    results = {str(path): Result.load(path) for path in options.compare}
    table = comparison_table(methods_of(results, options.runs))
    print_table(table)
    if options.markdown is not None:
        write_text(options.markdown, markdown_page([table]))


def _measure(agent: Agent, opponents: Sequence[str], options: Generalise) -> int:
    by_spec = {opponent.spec: opponent for opponent in map(make, opponents)}
    if len(by_spec) > 1:
        by_spec.pop(agent.spec, None)
    planned = generalisation_test(
        *(agent, [*by_spec]),
        split=options.split,
        boards=options.boards,
        pairs=options.pairs,
        train=options.train,
        gap=not options.no_gap,
        seed=options.seed,
    )
    _note_training(agent, planned.test)
    states, path = planned.matches(), options.records
    records = opened_records(path, states)
    with chosen_executor(options.executor) as executor:
        _, stopped = play_series(
            *([(agent, by_spec[state.b]) for state in states], states),
            records=records,
            monitor=lambda state, number: match_state_bar(
                state, f"{number}/{len(states)}", state.pool.name
            ),
            executor=executor,
        )
    print_forfeits(states)
    if stopped is not None:
        return print_stopped(stopped, states, path)
    entry = None if path is None else RecordsEntry.of(path, sum(map(len, states)))
    command = measuring_command()
    result = replace(planned.result(states), command=command, records=entry)
    show_result(result, options)
    if options.plots is not None:
        write_figures(result, options.plots)
    return 0


def _note_training(agent: Agent, boards: BoardPool) -> None:
    """Say that some boards are not unseen, if the header of a policy does."""
    if seen := also_trained_on(agent, boards):
        cli.note(
            f"{agent.spec} was also trained on {seen} of the {len(boards)} boards of "
            f"{boards.name} (extra_boards): the score there does not measure generalisation"
        )
