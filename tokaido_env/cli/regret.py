"""`tokaido regret`: measure the loss of decisions in rolled-out positions."""

from __future__ import annotations

import itertools
from dataclasses import field
from typing import Annotated

from cyclopts import Parameter

from tokaido_env.agents import make
from tokaido_env.agents.registry import policy_path_of
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import check_run, chosen_executor
from tokaido_env.cli.command import write_json
from tokaido_env.files import write_text
from tokaido_env.report import regret as report
from tokaido_env.report.tables import markdown, print_table
from tokaido_env.study.agent_values import has_values
from tokaido_env.study.regret import choose_actions, regret_difference, summarize
from tokaido_env.study.regret_set import SHIPPED, RegretSet
from tokaido_env.study.value_error import afterstate_values, summarize_values

VERSION = 1
GROUPS = ("boards", "phase", "rounds")


@cli.options
class Regret:
    """Options of `tokaido regret`."""

    agents: list[cli.AgentSpec] = field(kw_only=False)
    """agents to measure; tokaido agents lists all"""
    set: cli.Positions = SHIPPED
    timed: bool = False
    """include core-seconds in the files, which then differ from run to run"""
    executor: Annotated[cli.ExecutorSpec | None, Parameter(show_default="serial")] = None
    json: cli.Json = None
    markdown: cli.Markdown = None


@cli.command("regret", AgentFailed)
def main(options: Regret) -> int:
    """Measure the loss per decision of agents, in positions with rolled-out actions.

    For agents that give values, the errors of the values follow. It takes seconds for an agent that
    does not search, and minutes for one that does.

    Examples:
        tokaido regret champion heuristic
    """
    policies = map(policy_path_of, options.agents)
    check_run(options, options.json, options.markdown, read=[options.set, *policies])
    agents = [make(spec) for spec in options.agents]
    regret_set = RegretSet.load(options.set)
    with chosen_executor(options.executor) as executor:
        measured = [choose_actions(agent, regret_set, executor) for agent in agents]
        values = [
            summarize_values(regret_set, afterstate_values(agent, regret_set, executor))
            if has_values(agent, regret_set.boards[0])
            else None
            for agent in agents
        ]
    found = [
        summarize(regret_set, one, timed=True) | ({"values": value} if value else {})
        for one, value in zip(measured, values, strict=True)
    ]
    order = sorted(range(len(found)), key=lambda i: float(found[i]["regret"]["mean"]))
    differences = [
        regret_difference(regret_set, measured[worse], measured[better])
        for better, worse in itertools.pairwise(order)
    ]
    card = {"name": regret_set.card["name"], "hash": regret_set.hash, "positions": len(regret_set)}
    title = report.title_of(card)
    kept = [
        {key: value for key, value in one.items() if options.timed or key != "core_seconds"}
        for one in found
    ]
    write_json(
        options.json, {"version": VERSION, "set": card, "agents": kept, "differences": differences}
    )
    if options.markdown is not None:
        write_text(options.markdown, markdown(report.main_table(title, kept), code=True))
    print_table(report.main_table(title, found))
    for key in GROUPS:
        print_table(report.groups_table(key, found))
    for table in report.value_tables(found):
        print_table(table)
    if differences:
        print_table(report.differences_table(differences))
    return 0
