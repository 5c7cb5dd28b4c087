"""Progress bars on a terminal: of a match, of a training run, of a learner against one agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from tokaido_env.arena.ratings import Rating
from tokaido_env.core.checks import plain

if TYPE_CHECKING:
    from rich.console import Console

Finished = Callable[[int], None]
"""Called with the number of games that have just been finished."""


class LearnerBars(NamedTuple):
    """What moves the two bars of a learner that is trained and then measured.

    Attributes:
        trained: called with the steps done and the newest score, None before the first.
        played: called with the games of the final match that have just been finished.
    """

    trained: Callable[[int, float | None], None]
    played: Finished


class RunBar(NamedTuple):
    """What moves the bar of a training run.

    Attributes:
        update: called with the steps done, the shares of games won by kind of opponent, and the
            newest rating, None before the first.
        rated: called with the steps done and a rating that has just been found, and whether it is
            higher than all before it.
        told: called with a line to stand above the bar.
    """

    update: Callable[[int, Mapping[str, float], Rating | None], None]
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
            escape(plain(title)), total=games, completed=finished, speed="–", note=note()
        )

        def report(games: int) -> None:
            bar.advance(task, games)
            speed = bar.tasks[0].speed
            bar.update(task, speed="–" if speed is None else f"{speed:.3g}", note=note())

        yield report


@contextmanager
def learner_bars(agent: str, steps: int, games: int) -> Iterator[LearnerBars]:
    """Show bars while a learner is trained against an agent, then measured, on a terminal.

    Args:
        agent: its spec.
        steps: of the training.
        games: of the final match.
    """
    from rich import progress
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.fields[unit]}"),
        progress.TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        training = bar.add_task(escape(plain(f"learner – {agent}")), total=steps, unit="steps")

        def trained(steps: int, score: float | None) -> None:
            newest = "" if score is None else f", scored {score:.1%}"
            bar.update(training, completed=steps, unit=f"steps{newest}")

        final = bar.add_task("final match", total=games, unit="games")
        yield LearnerBars(trained, lambda finished: bar.advance(final, finished))


@contextmanager
def run_bar(console: Console, steps: int) -> Iterator[RunBar]:
    """Show a bar while a run is trained, and above it lines such as one for each of its ratings.

    Args:
        console: where.
        steps: of the whole run.
    """
    from rich import progress

    columns = (
        progress.TextColumn(
            "{task.completed:,.0f} of {task.total:,.0f} steps, {task.fields[state]}"
        ),
        progress.BarColumn(bar_width=8),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=steps, state="")

        def update(steps: int, win_rates: Mapping[str, float], rating: Rating | None) -> None:
            speed = bar.tasks[0].speed
            state = f"{speed or 0:,.0f}/s\n{_learner_state(win_rates, rating)}"
            bar.update(task, completed=steps, state=state)

        def rated(steps: int, rating: Rating, is_best: bool) -> None:
            best = ", the best so far" if is_best else ""
            told(f"{steps:>13,} steps  {_elo(rating)}{best}")

        def told(line: str) -> None:
            bar.console.print(line, highlight=False, markup=False)

        yield RunBar(update, rated, told)


def _learner_state(win_rates: Mapping[str, float], rating: Rating | None) -> str:
    """Return how a learner does, as far as it is known."""
    known = [group for group in ("latest", "past", "agents") if group in win_rates]
    parts = ["wins: " + ", ".join(f"{group} {win_rates[group]:.0%}" for group in known)]
    parts = parts * bool(known) + ([] if rating is None else [_elo(rating)])
    return " · ".join(parts)


def _elo(rating: Rating) -> str:
    low, high = rating.ci95
    return f"Elo {rating.elo:.0f} ({low:.0f} – {high:.0f})"
