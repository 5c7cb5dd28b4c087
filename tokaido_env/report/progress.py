"""Progress of matches and training runs on standard error: a bar on a terminal, else lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from tokaido_env.arena.intervals import Estimate
from tokaido_env.arena.tournament import OnProgress
from tokaido_env.core.arguments import escape_text

if TYPE_CHECKING:
    from rich.progress import Progress

SECONDS_A_LINE = 10.0


class ProgressLines:
    """Print lines on standard error, at most one in ten seconds.

    Args:
        delay: seconds until the first line.
    """

    def __init__(self, delay: float = SECONDS_A_LINE) -> None:
        self._next = time.monotonic() + delay

    def print(self, compose: Callable[[], str]) -> None:
        """Print the line that a function returns, if the last one is ten seconds old."""
        now = time.monotonic()
        if now >= self._next:
            print(compose(), file=sys.stderr, flush=True)
            self._next = now + SECONDS_A_LINE


@contextmanager
def match_bar(title: str, games: int, finished: int) -> Iterator[OnProgress]:
    """Show the progress of a match: a bar on a terminal, else lines; yield its update.

    The update is a function that takes each number of newly finished games.

    Args:
        title: stands before the bar.
        games: number of games in the match.
        finished: number of games that are finished already.
    """
    name, lines, done = escape_text(title), ProgressLines(), finished

    def text() -> str:
        return f"{name}: {done:,} of {games:,} games"

    with _bar(transient=True) as bar:
        task = bar.add_task(text(), total=games, completed=finished)

        def advance(more: int) -> None:
            nonlocal done
            done += more
            bar.advance(task, more)
            speed = bar.tasks[0].speed
            bar.update(task, description=text() + (f", {speed:.3g} games/s" if speed else ""))
            if bar.disable:
                lines.print(lambda: text() + _time_left(bar))

        yield advance


def _time_left(bar: Progress) -> str:
    """Return the time until a display of one task ends as text, empty while it is unknown."""
    seconds = bar.tasks[0].time_remaining
    return f", {timedelta(seconds=round(seconds))} left" if seconds else ""


def _bar(*, transient: bool = False) -> Progress:
    """Return a display on standard error: a text with a bar."""
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    folding = Column(overflow="fold")
    text = progress.TextColumn("{task.description}", markup=False, table_column=folding)
    columns = text, progress.BarColumn(bar_width=20), progress.TimeRemainingColumn()
    console = Console(stderr=True)
    return progress.Progress(
        *columns, console=console, transient=transient, disable=not console.is_terminal
    )


class RunBar(NamedTuple):
    """Functions that update the progress of a training run.

    Attributes:
        update: takes the length that is done, the newest figures as text, and the newest rating,
            None before the first.
        add_rating: takes the length that is done, a new rating, and whether its policy is `best`.
        add_line: takes a line to print above the bar.
    """

    update: Callable[[int, str, Estimate | None], None]
    add_rating: Callable[[int, Estimate, bool], None]
    add_line: Callable[[str], None]


@contextmanager
def run_bar(total: int, unit: str) -> Iterator[RunBar]:
    """Show the progress of a training run, with ratings as lines above the bar; yield functions.

    Where standard error is no terminal, it prints lines, at most one in ten seconds.

    Args:
        total: length of the whole run.
        unit: of the length, in the plural.
    """
    lines = ProgressLines(delay=0)
    with _bar() as bar:
        task = bar.add_task(f"0 of {total:,} {unit}", total=total)

        def update(done: int, state: str, rating: Estimate | None) -> None:
            parts = [state] * bool(state) + ([] if rating is None else [_elo(rating)])
            speed = bar.tasks[0].speed
            text = f"{done:,} of {total:,} {unit}, {speed or 0:,.3g}/s\n{' · '.join(parts)}"
            bar.update(task, completed=done, description=text)
            if bar.disable:
                count = f"{done:>13,} of {total:,} {unit}{_time_left(bar)}"
                lines.print(lambda: " · ".join([count, *parts]))

        def add_rating(done: int, rating: Estimate, is_best: bool) -> None:
            best = ", now best" if is_best else ""
            add_line(f"{done:>13,} {unit}  {_elo(rating)}{best}")

        def add_line(line: str) -> None:
            bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

        yield RunBar(update, add_rating, add_line)


def _elo(rating: Estimate) -> str:
    return f"Elo {rating.value:.0f} ({rating.low:.0f} – {rating.high:.0f})"
