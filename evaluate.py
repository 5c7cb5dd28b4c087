"""Measure agents against each other in paired games.

python evaluate.py greedy random --games 1000 --seed 0
python evaluate.py policy:runs/first greedy random --json results.json
python evaluate.py --list

Every two agents meet: the same luck twice, with seats swapped. Scores come with a 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokaido_env.agents import Agent, describe, make
from tokaido_env.agents.arena import play_match, round_robin
from tokaido_env.agents.match import POINTS, Match
from tokaido_env.board import Board
from tokaido_env.luck import check_seed

if TYPE_CHECKING:
    from rich.table import Table

VERSION = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        for usage, meaning in describe():
            print(f"{usage}\n    {meaning}")
        return 0
    if len(options.agents) < 2:
        parser.error("expected two or more agents, as: evaluate.py greedy random")
    try:
        return _evaluate(options)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="spec strings, see --list")
    parser.add_argument("--games", type=int, default=1000, help="for each two agents, even (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the luck, 0 to 2**53 - 1 (0)")
    parser.add_argument("--board", default="shikoku", help="a built-in board or a file (shikoku)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to a file")
    parser.add_argument("--list", action="store_true", help="list the agents there are")
    return parser


def _evaluate(options: argparse.Namespace) -> int:
    from rich.console import Console

    check_seed(options.seed)
    board = Board.load(options.board)
    agents = [make(spec) for spec in options.agents]
    matches = _play(agents, options, board)
    Console().print(_table(matches, options.seed, board))
    if options.json is not None:
        _save(options.json, matches, options, board)
    return 0


def _play(agents: list[Agent], options: argparse.Namespace, board: Board) -> list[Match]:
    from rich import progress as bars

    pairs = round_robin(len(agents))
    with bars.Progress(transient=True) as bar:
        task = bar.add_task("playing", total=options.games * len(pairs))
        report: Callable[[int], None] = lambda games: bar.advance(task, games)  # noqa: E731
        return [
            play_match(agents[i], agents[j], options.games, options.seed, board, progress=report)
            for i, j in pairs
        ]


def _table(matches: list[Match], seed: int, board: Board) -> Table:
    from rich import box
    from rich.table import Table

    games = matches[0].results.size
    title = f"{games} games a pair, seats swapped, seed {seed}, board {board.name}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("agent", overflow="fold")
    for header in ("wins", "score", "95 % interval", *POINTS):
        table.add_column(header, justify="right", no_wrap=True)
    for match in matches:
        for row in _rows(match):
            table.add_row(*row)
        table.add_section()
    return table


def _rows(match: Match) -> list[list[str]]:
    """Return the match as each of the two agents sees it."""
    low, high = match.interval
    sides = (
        (match.a, 1.0, match.score, low, high),
        (match.b, 0.0, 1 - match.score, 1 - high, 1 - low),
    )
    rows = []
    for i, (agent, won, score, lowest, highest) in enumerate(sides):
        wins = str(int((match.results == won).sum()))
        points = [f"{value:.1f}" for value in match.mean_points(i).values()]
        rows.append([agent, wins, f"{score:.1%}", f"{lowest:.1%} – {highest:.1%}", *points])
    return rows


def _save(path: Path, matches: list[Match], options: argparse.Namespace, board: Board) -> None:
    """Write the results, with no clock and no machine in them: whole or not at all."""
    results: dict[str, Any] = {
        "version": VERSION,
        "seed": options.seed,
        "board": board.name,
        "agents": options.agents,
        "matches": [match.to_dict() for match in matches],
        "ratings": [],
    }
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


if __name__ == "__main__":
    sys.exit(main())
