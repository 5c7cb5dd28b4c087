"""`tokaido evaluate verify`: check a result of `rate` or `generalise` by its records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tokaido_env.agents import make
from tokaido_env.arena.placement import submitted_rating
from tokaido_env.arena.result import Result
from tokaido_env.arena.verification import SHARE, Claim, verify
from tokaido_env.cli.cli_options import add_shared, evaluate_parser, print_result
from tokaido_env.core.arguments import escape_text
from tokaido_env.study.generalise import submitted_test


def verify_submission(arguments: Sequence[str]) -> int:
    """Verify a submission: replay its games, repeat decisions, and compute its numbers again.

    It takes minutes, or hours with --agent for an agent that searches.
    """
    parser = evaluate_parser("verify", verify_submission)
    add = parser.add_argument
    submission = "file that rate or generalise --json wrote, with its records in the same folder"
    add("file", type="path", metavar="FILE", help=submission)
    share = "share of games in which decisions are repeated"
    add("--share", type=float, default=SHARE, help=share)
    add_shared(parser, "--seed")
    agent = "repeat the decisions of this agent too (default: only of its opponents)"
    add("--agent", metavar="AGENT", help=agent)
    add_shared(parser, "--ladder", "--allow-agents")
    board = "board file of the ladder (default: a built-in board or boards of the family)"
    add("--board", type="board", help=board)
    options = parser.parse_args(arguments)
    found = verify(
        *(_claim(options), make),
        share=options.share,
        seed=options.seed,
        agent=None if options.agent is None else make(options.agent),
        progress=lambda what: print(f"evaluate: {escape_text(what)}", file=sys.stderr),
    )
    print_result(found.result)
    who = "opponents and agent" if options.agent is not None else "opponents"
    print(
        f"verified: {found.games:,} games replayed, {found.repeated:,} decisions of {who} repeated"
    )
    return 0


def _claim(options: argparse.Namespace) -> Claim:
    """Read a result of `rate` or `generalise`."""
    result = Result.load(options.file)
    if result.protocol == "rate":
        named = options.allow_agents
        return submitted_rating(options.file, options.ladder, options.board, named)
    return submitted_test(options.file)
