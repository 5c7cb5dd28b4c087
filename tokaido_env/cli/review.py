"""`tokaido review`: the loss of each decision, and the luck of each roll and draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tokaido_env.agents import Agent, make
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
from tokaido_env.files import check_outputs, write_text
from tokaido_env.record import Record, RecordError, game_key, read_verified
from tokaido_env.render.narration import display_names
from tokaido_env.report.progress import match_bar
from tokaido_env.report.result_tables import NO_VALUE
from tokaido_env.report.tables import MOST, Table, print_table
from tokaido_env.study.batch_review import review_games, totals_by_name
from tokaido_env.study.review import CHANCE_SAMPLES, MARKS, Review, check_chance_samples
from tokaido_env.trajectory import Trajectory

FORMAT = "tokaido-duo-review"
VERSION = 1
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

Reviewed = tuple[int, Record, Review]
"""The line of a game, from 1, its record and its review."""


@cli.options
class Reviewing(cli.Recorded):
    """Options of `tokaido review`; the docstring of each field is its help."""

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
    data: cli.Replaced | None = None
    """write a row per event to this .parquet file"""
    html: cli.Replaced | None = None
    """write a page to step through"""


@cli.command("review")
def main(options: Reviewing) -> int:
    """Review recorded games: the loss of each decision, and the luck of each roll and draw.

    With the default judge a game takes several seconds.

    Examples:
        tokaido review games.jsonl
        tokaido review games.jsonl --game 3 --html review.html
        tokaido review games.jsonl --judge mcts:sims=4000
        tokaido review games.jsonl --data review.parquet --executor processes
    """
    check_outputs(options.html, options.data, read=[options.file, options.board])
    if options.data is not None:
        check_format(options.data)
    check_executor(options.executor)
    check_chance_samples(options.chance_samples)
    judge, value_agent = make(options.judge), make(options.value_agent)
    board = None if options.board is None else BoardPool.load(options.board)
    games = _chosen_games(options, board)
    trajectories = [played for _, _, played in games]
    asked = judge, value_agent, options.chance_samples, options.seed
    reviewed: list[Reviewed] = []
    many = len(games) > MANY
    bar = match_bar("review", len(games), 0) if many else nullcontext(lambda _: None)
    with open_executor(options.executor) as executor, bar as progress:
        reviews = review_games(trajectories, *asked, executor)
        for (line, record, _), found in zip(games, reviews, strict=True):
            if record.forfeit is not None:
                found = found.with_forfeit(record.forfeit.seat)
            reviewed.append((line, record, found))
            if not many:
                _print(record, found)
            progress(1)
    for table in _totals_tables(reviewed) if many else ():
        print_table(table)
    _write_files(reviewed, options, board, judge, value_agent)
    return 0


def _chosen_games(
    options: Reviewing, board: BoardPool | None
) -> list[tuple[int, Record, Trajectory]]:
    """Verify all games of the file; return line, record and trajectory of those to review."""
    games = list(read_verified(options.file, board))
    if options.game is not None:
        chosen = [game for game in games if game[0] == options.game]
        if not chosen:
            last = max((line for line, *_ in games), default=0)
            raise RecordError(f"--game: expected 1 to {last}, got {options.game}")
        return chosen
    distinct = {game_key(game[1]): game for game in reversed(games)}
    chosen = sorted(distinct.values(), key=lambda game: game[0])
    note_equal_games(len(games) - len(chosen))
    if options.html is not None:
        from tokaido_env.web.replay_page import check_number_of_games

        check_number_of_games(len(chosen))
    return chosen


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


def _totals_tables(reviewed: Sequence[Reviewed]) -> Iterator[Table]:
    """Yield tables of totals per player; with many players, of those with most games."""
    totals = totals_by_name((record.players, found) for _, record, found in reviewed)
    figures = sorted(totals.items(), key=lambda one: -one[1]["games"])
    title = f"{len(reviewed):,} games"
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
    keys = {"luck": "+z.1%", "result": ".1%", "result_less_luck": "z.1%"}
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
    return f"{mean} ± {format(half, form.lstrip('+z'))}" if half else mean


# Files


def _write_files(
    reviewed: Sequence[Reviewed],
    options: Reviewing,
    board: BoardPool | None,
    judge: Agent,
    value_agent: Agent,
) -> None:
    """Write the files of the options, each whole or not at all."""
    if options.data is not None:
        about = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION}
        about |= {"judge": judge.spec, "values_by": value_agent.spec}
        about |= {"draws": options.chance_samples, "seed": options.seed}
        with table_file(options.data, COLUMNS, about) as add:
            for one in reviewed:
                add(rows_of(*one))
    if options.html is not None:
        from tokaido_env.web.replay_page import replay_page

        _, records, reviews = zip(*reviewed, strict=True)
        write_text(options.html, replay_page(records, board, reviews=reviews))


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
