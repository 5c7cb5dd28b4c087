"""`tokaido regret`: measure the loss of decisions in rolled-out or solved positions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from tokaido_env.agents import make
from tokaido_env.agents.content import files_of_agents
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena.result import Measure, Result
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import (
    check_run,
    chosen_executor,
    measuring_command,
    print_result,
    save_result,
)
from tokaido_env.files import write_text
from tokaido_env.report.result_tables import tables_of
from tokaido_env.report.tables import markdown_page
from tokaido_env.study.regret import (
    AgentChoices,
    choose_actions,
    regret_difference,
    regret_measures,
    seconds_measure,
    set_entry,
)
from tokaido_env.study.regret_set import SHIPPED, RegretSet


@cli.options
class Regret:
    """Options of `tokaido regret`; the docstring of each field is its help."""

    agents: list[cli.AgentSpec] = field(kw_only=False)
    """agents to measure; tokaido agents lists all"""
    set: cli.Positions = SHIPPED
    positions: int | None = None
    """measure in a random sample of at most this many positions, from 64 [default: all]"""
    timed: bool = False
    """include core-seconds in the files, which then differ from run to run"""
    executor: Annotated[cli.ExecutorSpec | None, Parameter(show_default="serial")] = None
    json: cli.Json = None
    markdown: cli.Markdown = None


@cli.command("regret")
def main(options: Regret) -> int:
    """Measure the loss per decision of agents, in positions with rolled-out or solved actions.

    It takes seconds for an agent that does not search, and minutes for one that does.

    Examples:
        tokaido regret champion heuristic
        tokaido regret champion heuristic --set solved
    """
    policies = map(policy_path_of, options.agents)
    check_run(options, options.json, options.markdown, read=[options.set, *policies])
    regret_set = RegretSet.load(options.set)
    if options.positions is not None:
        regret_set = regret_set.sample(options.positions, seed=0)
    chosen: list[AgentChoices] = []
    measures: list[Measure] = []
    agents = [make(spec) for spec in options.agents]
    with chosen_executor(options.executor) as executor:
        for agent in agents:
            chosen.append(choose_actions(agent, regret_set, executor))
            measures += regret_measures(regret_set, chosen[-1])
    result = Result.made(
        *("regret", measuring_command()),
        agents=tuple(one.agent for one in chosen),
        files=files_of_agents(agents),
        boards=(set_entry(regret_set),),
        seed=None,
        estimates=(*measures, *_differences(regret_set, chosen, measures)),
    )
    here = [one for one in chosen if not one.agent.startswith("exec:")]  # not other processes
    timed = (*result.estimates, *map(seconds_measure, here))
    shown = replace(result, estimates=timed)
    kept = shown if options.timed else result
    save_result(kept, options)
    if options.markdown is not None:
        write_text(options.markdown, markdown_page(tables_of(kept)))
    print_result(shown)
    return 0


def _differences(
    regret_set: RegretSet, chosen: Sequence[AgentChoices], measures: Sequence[Measure]
) -> list[Measure]:
    """Return the regret of each agent less that of the next better one."""
    whole = {x.agent: x.value for x in measures if x.measure == "regret" and not x.group}
    order = sorted(chosen, key=lambda one: whole[one.agent])
    return [
        regret_difference(regret_set, worse, better) for better, worse in itertools.pairwise(order)
    ]
