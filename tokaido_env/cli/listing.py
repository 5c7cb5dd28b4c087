"""`tokaido agents` and `tokaido boards`: list the agents and the boards."""

from __future__ import annotations

from tokaido_env.agents import describe
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.procedural import PREFIX, SPLITS
from tokaido_env.cli import command as cli


@cli.command("agents")
def agents(options: cli.NoOptions) -> int:
    """List the agents, with the parameters of their specs."""
    for usage, meaning in describe():
        print(f"{usage}\n    {meaning}")
    return 0


@cli.command("boards")
def boards(options: cli.NoOptions) -> int:
    """List the built-in boards with their hashes, and the procedural boards.

    A board file of your own is a board too.
    """
    for name in built_in_boards():
        print(f"{name:<20} {Board.load(name).hash}")
    print(f"{f'{PREFIX}NUMBER':<20} one procedural board")
    for split, numbers in SPLITS.items():
        print(f"{f'{PREFIX}{split}':<20} {len(numbers):,} procedural boards")
    print(f"{f'{PREFIX}SPLIT/COUNT':<20} the first boards of a split")
    return 0
