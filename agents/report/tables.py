"""Results as tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokaido_env.agents.arena.match import POINTS, Match
from tokaido_env.agents.arena.ratings import Rating
from tokaido_env.agents.arena.series import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tokaido_env.agents.arena.ladder import Ladder


def new_console() -> Console:
    """Return what prints tables: as wide as they are where no terminal sets a width."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, 120))


def matches_table(matches: Sequence[Match], title: str) -> Table:
    """Return games, score and points of matches, as each of the two agents sees them."""
    table = _new_table(title, ("games", "wins", "score", "95 % interval", *POINTS))
    for match in matches:
        for row in _match_rows(match):
            table.add_row(*row)
        table.add_section()
    return table


def luck_table(matches: Sequence[Match]) -> Table:
    """Return the scores with luck taken off, of matches whose luck is counted."""
    table = _new_table("With luck taken off", ("score", "95 % interval", "as if so many games"))
    for match in matches:
        adjusted = match.adjusted
        if adjusted is not None:
            games = f"{adjusted.factor * match.results.size:,.0f}"
            interval = _percentages(*adjusted.interval)
            table.add_row(f"{match.a} against {match.b}", f"{adjusted.score:.1%}", interval, games)
    return table


def ratings_table(ratings: Sequence[Rating]) -> Table:
    """Return ratings with their intervals, in the order given."""
    table = _new_table("Ratings", ("Elo", "95 % interval", "games"))
    for rating in ratings:
        table.add_row(rating.agent, *_elo_cells(rating), str(rating.games))
    return table


def ladder_table(ladder: Ladder, steps: Sequence[Rating]) -> Table:
    """Return the ratings of a ladder, and how far each agent is above the next.

    Args:
        ladder: a finished one.
        steps: as from `ratings.rate_steps`.
    """
    above = {step.agent: step for step in steps}
    columns = ("Elo", "95 % interval", "above the next", "95 % interval", "games")
    table = _new_table(f"Ladder {ladder.hash}, board {ladder.board}", columns)
    for rating in ladder.agents:
        step = above.get(rating.agent)
        cells = [*_elo_cells(rating), *(("", "") if step is None else _elo_cells(step))]
        table.add_row(rating.agent, *cells, str(rating.games))
    return table


def curve_table(curve: Sequence[tuple[int, Match]], chosen: int | None, title: str) -> Table:
    """Return what a learner scored after each number of steps, and which of them was chosen."""
    table = _new_table(title, ("games", "score", "95 % interval", ""), first="steps")
    for steps, match in curve:
        mark = "chosen" if steps == chosen else ""
        cells = (str(match.results.size), f"{match.score:.1%}", _percentages(*match.interval), mark)
        table.add_row(f"{steps:,}", *cells)
    return table


def verdict(result: Result, error: float) -> str:
    """Return which agent of a match is better, in a sentence.

    Args:
        result: of a match that was played until decided.
        error: the rate that it was decided with.
    """
    match = result.match
    if result.decided is None:
        return f"{match.a} and {match.b}: undecided after {match.results.size:,} games"
    first, second = (match.a, match.b) if result.decided == "a" else (match.b, match.a)
    after = f"decided after {match.results.size:,} games, error at most {error:.3g}"
    return f"{first} is better than {second}: {after}"


def _new_table(title: str, headers: Sequence[str], first: str = "agent") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold")
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _match_rows(match: Match) -> list[list[str]]:
    low, high = match.interval
    sides = (
        (match.a, 1.0, match.score, low, high),
        (match.b, 0.0, 1 - match.score, 1 - high, 1 - low),
    )
    rows = []
    for i, (agent, won, score, lowest, highest) in enumerate(sides):
        games, wins = str(match.results.size), str(int((match.results == won).sum()))
        points = [f"{value:.1f}" for value in match.mean_points(i).values()]
        rows.append([agent, games, wins, f"{score:.1%}", _percentages(lowest, highest), *points])
    return rows


def _percentages(low: float, high: float) -> str:
    return f"{low:.1%} – {high:.1%}"


def _elo_cells(rating: Rating) -> tuple[str, str]:
    low, high = rating.ci95
    return f"{rating.elo:.0f}", f"{low:.0f} – {high:.0f}"
