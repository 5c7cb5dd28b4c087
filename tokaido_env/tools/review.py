"""Review recorded games: what each decision lost, and what chance gave.

tokaido review games.jsonl
tokaido review games.jsonl --game 3 --html review.html
tokaido review games.jsonl --judge mcts:sims=4000 --json review.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokaido_env.agents import make
from tokaido_env.agents.arena.playing import AgentFailed
from tokaido_env.agents.report.tables import Table, print_table
from tokaido_env.agents.study.review import DRAWS, Review, review
from tokaido_env.core.actions import LABELS
from tokaido_env.core.checks import plain
from tokaido_env.files import check_outputs, write_text
from tokaido_env.record import Record, RecordError, load, replay
from tokaido_env.render.words import shown_names
from tokaido_env.tools.program import described, program

VERSION = 1
_LISTED = 10  # decisions of a game


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        check_outputs(options.html, options.json, read=[options.file, options.board])
        records = _chosen(load(options.file, options.board), options.game)
        judge, values_by = make(options.judge), make(options.values_by)
        reviews = []
        for record in records:
            played = replay(record, options.board)
            reviews.append(review(played, judge, values_by, options.draws, options.seed))
            _print(record, reviews[-1])
        _write(records, reviews, options)
    except (ValueError, OSError, ModuleNotFoundError, AgentFailed) as error:
        print(f"review: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        program("review"),
        description=described(__doc__, "review"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="a record file, JSON Lines")
    add("--game", type=int, help="only the game on this line, from 1")
    add("--board", help="the board file of the games, if neither built in nor of the family")
    add("--judge", default="champion:sims=400", metavar="SPEC", help="(champion:sims=400)")
    add("--values-by", default="champion", metavar="SPEC", help="who judges chance (champion)")
    add("--draws", type=int, default=DRAWS, help=f"of chance behind each action ({DRAWS})")
    add("--seed", type=int, default=0, help="of these draws (0)")
    add("--json", metavar="OUT", help="write what was found")
    add("--html", metavar="OUT", help="write a page to step through")
    return parser


def _chosen(records: list[Record], number: int | None) -> list[Record]:
    if number is None:
        return records
    if not 1 <= number <= len(records):
        raise RecordError(f"--game: expected 1 to {len(records)}, got {number}")
    return [records[number - 1]]


def _print(record: Record, found: Review) -> None:
    from tokaido_env.web.review_section import totals_rows, worst_of

    first, second = shown_names(record.players)
    title = f"{first} against {second}, {plain(record.board)}"
    print_table(Table(title, ("", first, second), totals_rows(found)))
    labels, worst = found.played.labels(), worst_of(found, _LISTED)
    rows = [
        (
            *(str(row + 1), (first, second)[found.played.movers[row]], labels[row]),
            *(LABELS[found.best[row]], str(found.mark(row))),
            f"{found.loss[row]:.1%} ± {found.error[row]:.1%}",
        )
        for row in worst
    ]
    if rows:
        headers = ("move", "player", "played", "better", "", "loss")
        print_table(Table("The worst decisions", headers, rows))


def _write(records: list[Record], reviews: list[Review], options: argparse.Namespace) -> None:
    from tokaido_env.web.replay_page import replay_page

    if options.json is not None:
        games: list[dict[str, Any]] = [
            {"names": record.players, "board": record.board, **found.to_dict()}
            for record, found in zip(records, reviews, strict=True)
        ]
        text = json.dumps({"version": VERSION, "games": games}, ensure_ascii=False)
        write_text(Path(options.json), text + "\n")
    if options.html is not None:
        write_text(Path(options.html), replay_page(records, options.board, reviews=reviews))
