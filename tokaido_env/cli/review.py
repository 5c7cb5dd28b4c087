"""`tokaido review`: the loss of each decision, and the luck of each roll and draw."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.agents import make
from tokaido_env.arena.executors import check_executor, open_executor
from tokaido_env.arena.intervals import Estimate
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli import command as cli
from tokaido_env.cli.cli_options import note_equal_games
from tokaido_env.cli.tabular_io import WORD, check_format, table_file
from tokaido_env.core.actions import LABELS, NO_ACTION
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.state import NO_PLAYER, Phase
from tokaido_env.files import atomic_write, check_outputs, write_text
from tokaido_env.record import Record, RecordError, game_key, read_verified
from tokaido_env.render.narration import display_names
from tokaido_env.report.progress import match_bar
from tokaido_env.report.result_tables import NO_VALUE
from tokaido_env.report.tables import MOST, Table, print_table
from tokaido_env.study.batch_review import ReviewConfig, ReviewTotals, review_games
from tokaido_env.study.review import CHANCE_SAMPLES, MARKS, Review, check_chance_samples
from tokaido_env.trajectory import Trajectory

FORMAT = "tokaido-duo-review"
VERSION = 1  # of both files
COLUMNS = {
    "game": "int64",
    "seed": "int64",
    "board": WORD,
    "board_hash": WORD,
    "event": "int32",
    "round": "int16",
    "phase": WORD,
    "player": "int8",
    "name": WORD,
    "opponent": WORD,
    "label": WORD,
    "best": WORD,
    "loss": "float64",
    "error": "float64",
    "mark": WORD,
    "wins": "float64",
    "luck": "float64",
    "result": "float64",
}
"""The columns of `--data` in order, with their kinds.

A row is a decision with a choice, or a chance event.
"""

MANY = 10  # games above which totals are printed instead of each game
MOST_NAMES = 30  # players in the totals
_LISTED = 10  # decisions listed for a game
_PHASES = [phase.name for phase in Phase]

OnReview = Callable[[int, Record, Review], None]
"""Takes the line of a game, from 1, its record and its review."""


@cli.options
class Reviewing(cli.Recorded):
    """Options of `tokaido review`."""

    game: int | None = None
    """review only the game on this line, from 1 [default: all]"""
    judge: cli.AgentSpec = "champion:sims=400"
    """agent that judges decisions"""
    value_agent: cli.AgentSpec = "champion"
    """agent that values positions before and after rolls and draws"""
    chance_samples: int = CHANCE_SAMPLES
    """sampled chance outcomes after each action"""
    seed: cli.Seed = 0
    """random seed of these samples, an integer from 0"""
    executor: cli.ExecutorSpec = "serial"
    json: cli.Output | None = None
    """write the reviews to this file as JSON"""
    data: cli.Output | None = None
    """write a row per event to this .parquet file"""
    html: cli.Output | None = None
    """write a page to step through"""


@cli.command("review")
def main(options: Reviewing) -> int:
    """Review recorded games: the loss of each decision, and the luck of each roll and draw.

    With the default judge a game takes several seconds.

    Examples:
        tokaido review games.jsonl
        tokaido review games.jsonl --game 3 --html review.html
        tokaido review games.jsonl --judge mcts:sims=4000 --json review.json
        tokaido review games.jsonl --data review.parquet --executor processes
    """
    outputs = options.html, options.json, options.data
    check_outputs(*outputs, read=[options.file, options.board])
    if options.data is not None:
        check_format(options.data)
    check_executor(options.executor)
    check_chance_samples(options.chance_samples)
    agents = make(options.judge), make(options.value_agent)
    config = ReviewConfig(*agents, options.chance_samples, options.seed)
    board = None if options.board is None else BoardPool.load(options.board)
    _review(config, options, board, _count(options, board))
    return 0


def _count(options: Reviewing, board: BoardPool | None) -> int:
    """Verify all games of the file; return the number of games to review."""
    keys = [game_key(record) for _, record, _ in read_verified(options.file, board)]
    lines, games = len(keys), len(set(keys))
    if options.html is not None and options.game is None:
        from tokaido_env.web.replay_page import check_number_of_games

        check_number_of_games(games)
    if options.game is None:
        note_equal_games(lines - games)
        return games
    if not 1 <= options.game <= lines:
        raise RecordError(f"--game: expected 1 to {lines}, got {options.game}")
    return 1


# Reviewing


def _review(config: ReviewConfig, options: Reviewing, board: BoardPool | None, number: int) -> None:
    """Review games, print the results, and write files as the reviews arrive."""
    tally, many = ReviewTotals(), number > MANY
    on_page: list[tuple[Record, Review]] = []
    with ExitStack() as stack:
        on_review: list[OnReview] = [] if many else [lambda _, record, found: _print(record, found)]
        on_review.append(lambda _, record, found: tally.add(record.players, found))
        if options.json is not None:
            on_review.append(stack.enter_context(_json_file(options.json)))
        if options.data is not None:
            on_review.append(stack.enter_context(review_file(options.data, config)))
        if options.html is not None:
            on_review.append(lambda _, record, found: on_page.append((record, found)))
        if many:
            finished = stack.enter_context(match_bar("review", number, 0))
            on_review.append(lambda *_: finished(1))
        _review_all(config, options, board, on_review)
        if tally.games != number:
            raise ValueError(
                f"{options.file}: expected {number} games, got {tally.games}: it changed meanwhile"
            )
    if many:
        for table in _totals_tables(tally):
            print_table(table)
    if options.html is not None:
        from tokaido_env.web.replay_page import replay_page

        records, reviews = zip(*on_page, strict=True)
        write_text(options.html, replay_page(records, board, reviews=reviews))


def _review_all(
    config: ReviewConfig,
    options: Reviewing,
    board: BoardPool | None,
    on_review: Sequence[OnReview],
) -> None:
    """Review the chosen games, and call functions with the line, record and review of each."""
    started: deque[tuple[int, Record]] = deque()

    def each() -> Iterator[Trajectory]:
        every = options.game is not None
        for line, record, played in read_verified(options.file, board, distinct=not every):
            if options.game in (None, line):
                started.append((line, record))
                yield played

    def take(found: Review) -> None:
        line, record = started.popleft()
        if record.forfeit is not None:
            found = found.with_forfeit(record.forfeit.seat)
        for function in on_review:
            function(line, record, found)

    with open_executor(options.executor) as reviewers:
        review_games(each(), config, take, reviewers)


# Tables


def _print(record: Record, found: Review) -> None:
    from tokaido_env.web.review_section import totals_rows, worst_of

    first, second = display_names(record.players, MOST)
    title = f"{first} against {second}, {escape_text(record.board)}"
    print_table(Table(title, ("", first, second), totals_rows(found)))
    labels, worst = found.trajectory.labels(), worst_of(found, _LISTED)
    rows = [
        (
            *(str(row + 1), (first, second)[found.trajectory.movers[row]], labels[row]),
            *(LABELS[found.best[row]], str(found.mark(row))),
            f"{found.loss[row]:.1%} ± {found.error[row]:.1%}",
        )
        for row in worst
    ]
    if rows:
        headers = ("move", "player", "played", "better", "", "loss")
        print_table(Table("The worst decisions", headers, rows))


def _totals_tables(tally: ReviewTotals) -> Iterator[Table]:
    """Yield tables of totals per player; with many players, of those with most games."""
    figures = sorted(tally.summary().items(), key=lambda one: -one[1]["games"])
    title = f"{tally.games:,} games"
    if len(figures) > MOST_NAMES:
        title += f", the {MOST_NAMES} of {len(figures):,} players with most games"
    named = [(name.strip() or "?", of) for name, of in figures[:MOST_NAMES]]
    headers = ("player", "choices", "loss per choice", "both could win", "agreement")
    decisions = [
        (
            *(name, f"{of['choices']:,}", _with_error(of["loss"], ".2%")),
            *(_with_error(of["open_loss"], ".2%"), _with_error(of["agreed"], ".0%")),
        )
        for name, of in named
    ]
    yield Table(title, headers, decisions)
    marks = [(name, *(f"{of[mark]:,}" for mark in MARKS)) for name, of in named]
    yield Table("Marks", ("player", "blunders", "mistakes", "inaccuracies"), marks)
    keys = {"luck": "+.1%", "result": ".1%", "result_less_luck": ".1%"}
    chance = [
        (name, f"{of['games']:,}", *(_with_error(of[key], form) for key, form in keys.items()))
        for name, of in named
    ]
    yield Table("Per game", ("player", "games", "luck", "result", "luck-adjusted"), chance)


def _with_error(figure: Estimate | None, form: str) -> str:
    """Return a mean with half of its 95 % interval, which is symmetric."""
    if figure is None:
        return NO_VALUE
    mean, half = format(figure.value, form), (figure.high - figure.low) / 2
    return f"{mean} ± {format(half, form.lstrip('+'))}" if half else mean


# Files


@contextmanager
def _json_file(path: Path) -> Iterator[OnReview]:
    """Yield a function that adds a review to a JSON file, which is written whole or not at all."""
    with atomic_write(path) as file:
        file.write(f'{{"version": {VERSION}, "games": ['.encode())
        between = ""

        def take(line: int, record: Record, found: Review) -> None:
            nonlocal between
            data = {"names": record.players, "board": record.board, **found.to_dict()}
            file.write((between + json.dumps(data, ensure_ascii=False)).encode())
            between = ", "

        yield take
        file.write(b"]}\n")


@contextmanager
def review_file(path: Path, asked: ReviewConfig) -> Iterator[OnReview]:
    """Yield a function that takes the line of a game, from 1, its record and its review.

    Args:
        path: as for `table_file`.
        asked: the settings of the reviews.

    Raises:
        OSError: if the file cannot be written.
    """
    about = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION}
    about |= {"judge": asked.judge.spec, "values_by": asked.value_agent.spec}
    with table_file(
        path, COLUMNS, about | {"draws": asked.chance_samples, "seed": asked.seed}
    ) as add:
        yield lambda number, record, found: add(rows_of(number, record, found))


def rows_of(number: int, record: Record, found: Review) -> dict[str, Any]:
    """Return the rows of one game by column: arrays, and lists of words.

    Args:
        number: line of the game, from 1.
        record: of the game.
        found: its review.
    """
    played = found.trajectory
    chance = (played.movers == NO_PLAYER) & (played.events != NO_ACTION)
    rows = np.flatnonzero(chance | (found.best >= 0))
    movers, labels = played.movers[rows], played.labels()
    seats = np.maximum(movers, 0).tolist()  # luck is that of player_0
    length, seed = len(rows), -1 if record.seed is None else record.seed
    return {
        "game": np.full(length, number),
        "seed": np.full(length, seed),
        "board": [played.board.name] * length,
        "board_hash": [played.board.hash] * length,
        "event": rows + 1,
        "round": played.states["round"][rows],
        "phase": [_PHASES[phase] for phase in played.states["phase"][rows].tolist()],
        "player": movers,
        "name": [record.players[seat] for seat in seats],
        "opponent": [record.players[1 - seat] for seat in seats],
        "label": [labels[row] for row in rows.tolist()],
        "best": [LABELS[action] if action >= 0 else "" for action in found.best[rows].tolist()],
        "loss": found.loss[rows],
        "error": found.error[rows],
        "mark": [found.mark(row) or "" for row in rows.tolist()],
        "wins": found.values[rows],
        "luck": found.luck[rows],
        "result": np.full(length, found.values[-1]),
    }
