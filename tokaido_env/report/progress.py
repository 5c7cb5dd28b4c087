"""Progress bars on a terminal: of a match, of a training run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from tokaido_env.arena.ratings import Rating
from tokaido_env.core.arguments import escape_text

if TYPE_CHECKING:
    from rich.console import Console

_SECONDS_A_LINE = 10.0

Finished = Callable[[int], None]
"""Called with the number of games that have just been finished."""


class RunBar(NamedTuple):
    """What moves the bar of a training run.

    Attributes:
        update: called with what is done, what else there is to say, and the newest rating, None
            before the first.
        rated: called with what is done and a rating that has just been found, and whether it is
            higher than all before it.
        told: called with a line to stand above the bar.
    """

    update: Callable[[int, str, Rating | None], None]
    rated: Callable[[int, Rating, bool], None]
    told: Callable[[str], None]


@contextmanager
def match_bar(
    title: str, games: int, finished: int, note: Callable[[], str] = str
) -> Iterator[Finished]:
    """Show a bar while a match is played, if the error output is a terminal and rich is there.

    Args:
        title: what stands before the bar.
        games: of the match.
        finished: how many of them are finished already.
        note: returns what else there is to say of what is finished.
    """
    if find_spec("rich") is None:
        yield lambda games: None
        return
    from rich import progress
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("games{task.fields[note]}, {task.fields[speed]} games/s,"),
        progress.TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(
            escape(escape_text(title)), total=games, completed=finished, speed="–", note=note()
        )

        def report(games: int) -> None:
            bar.advance(task, games)
            speed = bar.tasks[0].speed
            bar.update(task, speed="–" if speed is None else f"{speed:.3g}", note=note())

        yield report


@contextmanager
def run_bar(console: Console, total: int, unit: str) -> Iterator[RunBar]:
    """Show a bar while a run is trained, and above it lines such as one for each of its ratings.

    Where there is no terminal, lines tell how far it is, one in ten seconds at most.

    Args:
        console: where.
        total: of the whole run.
        unit: that it is counted in.
    """
    from rich import progress

    columns = (
        progress.TextColumn(
            "{task.completed:,.0f} of {task.total:,.0f} {task.description}, {task.fields[state]}"
        ),
        progress.BarColumn(bar_width=8),
        progress.TimeRemainingColumn(),
    )
    hidden, next_line = not console.is_terminal, 0.0
    with progress.Progress(*columns, console=console, disable=hidden) as bar:
        task = bar.add_task(unit, total=total, state="")

        def update(done: int, state: str, rating: Rating | None) -> None:
            nonlocal next_line
            parts = [state] * bool(state) + ([] if rating is None else [_elo(rating)])
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, state=f"{speed or 0:,.3g}/s\n{' · '.join(parts)}")
            if hidden and time.monotonic() >= next_line:
                told(" · ".join([f"{done:>13,} of {total:,} {unit}", *parts]))
                next_line = time.monotonic() + _SECONDS_A_LINE

        def rated(done: int, rating: Rating, is_best: bool) -> None:
            best = ", the best so far" if is_best else ""
            told(f"{done:>13,} {unit}  {_elo(rating)}{best}")

        def told(line: str) -> None:
            bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

        yield RunBar(update, rated, told)


def _elo(rating: Rating) -> str:
    low, high = rating.ci95
    return f"Elo {rating.elo:.0f} ({low:.0f} – {high:.0f})"
