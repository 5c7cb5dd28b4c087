"""`tokaido verify`: check a result of `rate` or `generalise` by its records."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated

from tokaido_env.agents import make
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.placement import submitted_rating
from tokaido_env.arena.result import Result
from tokaido_env.arena.verification import SHARE, Claim, verify
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import print_result
from tokaido_env.core.arguments import escape_text
from tokaido_env.study.generalise import submitted_test


@cli.options
class Verify:
    """Options of `tokaido verify`."""

    file: Annotated[Path, cli.text_option(cli.home_path, "FILE")] = field(kw_only=False)
    """file that rate or generalise --json wrote, with its records in the same folder"""
    share: float = SHARE
    """share of games in which decisions are repeated"""
    seed: cli.SeedOption = 0
    agent: cli.AgentSpec | None = None
    """repeat the decisions of this agent too [default: only of its opponents]"""
    ladder: cli.LadderFile = None
    allow_agents: cli.AllowedAgents = ()
    board: cli.Board | None = None
    """board file of the ladder [default: a built-in board or boards of the family]"""


@cli.command("verify", AgentFailed)
def main(options: Verify) -> int:
    """Verify a submission: replay its games, repeat decisions, and compute its numbers again.

    It takes minutes, or hours with --agent for an agent that searches.

    Examples:
        tokaido verify rating.json
    """
    claim = _claim(options)
    games, repeated = verify(
        *(claim, make),
        share=options.share,
        seed=options.seed,
        agent=None if options.agent is None else make(options.agent),
        progress=lambda what: cli.note(escape_text(what)),
    )
    print_result(claim.result)
    who = "opponents and agent" if options.agent is not None else "opponents"
    print(f"verified: {games:,} games replayed, {repeated:,} decisions of {who} repeated")
    return 0


def _claim(options: Verify) -> Claim:
    """Read a result of `rate` or `generalise`."""
    if Result.load(options.file).protocol == "rate":
        named = options.allow_agents
        return submitted_rating(options.file, options.ladder, options.board, named)
    return submitted_test(options.file)
