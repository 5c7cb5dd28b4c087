"""Tables of results for terminals and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from tokaido_env.arena.match import SCORE_KEYS, Match
from tokaido_env.arena.match_series import MatchResult
from tokaido_env.arena.placement import LadderRating
from tokaido_env.arena.rating_model import PROBIT
from tokaido_env.arena.ratings import GoodnessOfFit, Rating, RatingDifferences
from tokaido_env.core.arguments import escape_text
from tokaido_env.report.standings import Standing, has_forfeits, has_ratings

MOST = 300  # printed characters of a title or a cell


class Table(NamedTuple):
    """A table of text.

    Attributes:
        title: above the table.
        headers: of the columns.
        rows: cells of each row.
        group: number of rows before each separating line; 0: no lines.
        left: the left-aligned column, which may wrap; the others are right-aligned.
    """

    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    group: int = 0
    left: int = 0


def print_table(table: Table) -> None:
    """Print a table with rich, or in plain columns if rich is not installed.

    Specs and board names may be foreign: control characters are printed as escapes.
    """
    table = _printable(table)
    if find_spec("rich") is None:
        print(plain_table(table))
        return
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    rich_table = RichTable(
        title=escape(table.title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column, header in enumerate(table.headers):
        if column == table.left:
            rich_table.add_column(header, overflow="fold")
        else:
            rich_table.add_column(header, justify="right", no_wrap=True)
    for number, row in enumerate(table.rows, start=1):
        rich_table.add_row(
            *map(escape, row), end_section=bool(table.group) and not number % table.group
        )
    console = Console()
    # Piped output needs no narrow columns.
    console = console if console.is_terminal else Console(width=max(console.width, 120))
    with console.capture() as text:  # rich would end the process at a closed pipe
        console.print(rich_table)
    print(text.get(), end="")


def _printable(table: Table) -> Table:
    """Return a table with short, escaped texts of one line."""
    rows = [tuple(escape_text(cell, MOST) for cell in row) for row in table.rows]
    return table._replace(title=escape_text(table.title, MOST), rows=rows)


def plain_table(table: Table) -> str:
    """Return a table as lines of text."""
    lines = [table.headers, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [table.title, ""]
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        cells[table.left] = line[table.left].ljust(widths[table.left])
        text.append("  ".join(cells).rstrip())
    return "\n".join([*text, ""])


def standings_table(rows: Sequence[Standing], title: str) -> Table:
    """Return standings, with ratings and forfeits where there are any."""
    rated, forfeits = has_ratings(rows), has_forfeits(rows)
    headers = ["rank", "agent", "games", "score", *(["Elo", "95 % interval"] if rated else [])]
    headers += ["points", "as player_0", "as player_1", *(["forfeits"] if forfeits else [])]
    cells = []
    for row in rows:
        line = [str(row.rank), row.agent, f"{row.games:,}", f"{row.score:.1%}"]
        if rated:
            line += (
                ("–", "–") if row.rating is None else _elo_cells(row.rating.elo, row.rating.ci95)
            )
        line += [f"{row.points:.1f}", *(f"{score:.1%}" for score in row.seats)]
        line += [f"{row.forfeits:,}"] if forfeits else []
        cells.append(tuple(line))
    return Table(title, tuple(headers), cells, left=1)


def relative(anchor: str) -> str:
    """Return a sentence about the meaning of ratings from some matches."""
    return f"Elo is relative, from these matches only ({scale_of(anchor)}); it is not the ladder's."


def matches_table(matches: Sequence[Match], title: str) -> Table:
    """Return games, score and points of both agents of each match."""
    headers = ("agent", "games", "wins", "score", "95 % interval", *SCORE_KEYS)
    return Table(title, headers, [row for match in matches for row in _match_rows(match)], 2)


def luck_table(matches: Sequence[Match]) -> Table:
    """Return luck-adjusted scores, of matches with recorded luck."""
    headers = ("agent", "score", "95 % interval", "equivalent games")
    rows = []
    for match in matches:
        adjusted = match.adjusted
        if adjusted is not None:
            games = f"{adjusted.factor * match.results.size:,.0f}"
            interval = _percentages(*adjusted.interval)
            rows.append((f"{match.a} against {match.b}", f"{adjusted.score:.1%}", interval, games))
    return Table("Luck-adjusted scores", headers, rows)


def ratings_table(ratings: Sequence[Rating], scale: str = "") -> Table:
    """Return ratings with their intervals, in the order given.

    Args:
        ratings: of the agents.
        scale: as from `scale_of`.
    """
    rows = [(r.agent, *_elo_cells(r.elo, r.ci95), str(r.games)) for r in ratings]
    title = f"Ratings: {scale}" if scale else "Ratings"
    return Table(title, ("agent", "Elo", "95 % interval", "games"), rows)


def placement_tables(placed: LadderRating) -> list[Table]:
    """Return the matches of an agent on a ladder, and its rating."""
    ladder = placed.ladder
    title = f"seed {placed.seed}, board {ladder.pool.name}"
    scale = scale_of(ladder.anchor)
    return [matches_table(placed.matches, title), ratings_table([placed.rating], scale)]


def scale_of(anchor: str) -> str:
    """Return the rating model and the agent rated 0 in words."""
    return f"{PROBIT}, {anchor} = 0"


def fit_line(fit: GoodnessOfFit) -> str:
    """Return the goodness of fit of the rating model in a line."""
    if fit.p is None:
        return "Goodness of fit unknown: there are no more matches than ratings."
    each = f"{fit.chi2 / fit.df:.2f} each"
    chance = "< 0.0001" if fit.p < 1e-4 else f"= {fit.p:.2g}"
    return f"χ² {fit.chi2:.1f} on {fit.df} degrees of freedom ({each}), p {chance}"


def steps_table(title: str, ratings: Sequence[Rating], differences: RatingDifferences) -> Table:
    """Return ratings with the difference of each agent to the next.

    Args:
        title: of the table.
        ratings: of the agents in the table, best first.
        differences: of the agents, perhaps among others.
    """
    above = differences.adjacent()
    headers = ("agent", "Elo", "95 % interval", "above the next", "95 % interval", "games")
    rows = []
    for rating in ratings:
        step = None if rating is ratings[-1] else above.get(rating.agent)
        step_cells = ("", "") if step is None else _elo_cells(step.value, step.ci95)
        cells = [*_elo_cells(rating.elo, rating.ci95), *step_cells]
        rows.append((rating.agent, *cells, str(rating.games)))
    return Table(title, headers, rows)


def differences_tables(differences: RatingDifferences) -> list[Table]:
    """Return two matrices of agents: rating differences, and their probabilities.

    A cell of the first is the difference of row and column in Elo with its 95 % interval; of the
    second, the share of resamples in which the row is above the column. Rows and columns have the
    same numbers.
    """
    agents = differences.agents
    cells: dict[str, list[tuple[str, ...]]] = {"Elo": [], "above": []}
    for i, agent in enumerate(agents):
        name, others = f"{i + 1} {agent}", range(len(agents))
        value, low, high = differences[1:4]
        elo = [with_interval(value[i, j], (low[i, j], high[i, j]), "+.0f") for j in others]
        above = [_share(float(differences.above[i, j])) for j in others]
        for key, row in (("Elo", elo), ("above", above)):
            row[i] = ""
            cells[key].append((name, *row))
    headers = ("agent", *(str(i + 1) for i in range(len(agents))))
    titles = {
        "Elo": "Row above column, Elo with 95 % interval",
        "above": "P(row above column): the share of resamples",
    }
    return [Table(titles[key], headers, rows) for key, rows in cells.items()]


def _share(share: float) -> str:
    """Return a share of a thousand resamples, of which none or all proves no certainty."""
    ends = {0.0: "< 0.1 %", 1.0: "> 99.9 %"}
    return ends.get(share, f"{100 * share:.1f} %")


def markdown(table: Table, *, code: bool = False) -> str:
    """Return a table in Markdown without its title.

    Args:
        table: its cells may contain foreign text.
        code: format the first column as code.
    """
    cells = [[_markdown_cell(cell) for cell in row] for row in table.rows]
    if code:
        cells = [[f"`{first}`", *others] for first, *others in cells]
    lines = [table.headers, ["---"] * len(table.headers), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown_cell(text: str) -> str:
    return escape_text(text).translate({ord("|"): "/", ord("`"): "'"})


def with_interval(
    value: float, ci95: Sequence[float], form: str, scale: float = 1.0, unit: str = ""
) -> str:
    """Return a value with its interval, in a format, times `scale`."""
    value_text, low, high = (f"{scale * x:{form}}" for x in (value, *ci95))
    return _minus(f"{value_text}{unit} ({low} to {high})")


def curve_table(curve: Sequence[tuple[int, Match]], chosen: int | None, title: str) -> Table:
    """Return the scores of a learner by steps, with the chosen one marked."""
    rows = []
    for steps, match in curve:
        mark = "chosen" if steps == chosen else ""
        cells = (str(match.results.size), f"{match.score:.1%}", _percentages(*match.interval), mark)
        rows.append((f"{steps:,}", *cells))
    return Table(title, ("steps", "games", "score", "95 % interval", ""), rows)


def verdict(result: MatchResult, error: float) -> str:
    """Return a sentence that names the better agent of a match.

    Args:
        result: of a match played until decided.
        error: the maximum error probability.
    """
    match = result.match
    a, b = escape_text(match.a, MOST), escape_text(match.b, MOST)
    if result.decided is None:
        return f"{a} and {b}: undecided after {match.results.size:,} games"
    first, second = (a, b) if result.decided == "a" else (b, a)
    after = f"decided after {match.results.size:,} games, error at most {error:.3g}"
    return f"{first} is better than {second}: {after}"


def verdicts(results: Sequence[MatchResult], error: float) -> str:
    """Return the number of decided matches in a sentence; arguments as for `verdict`."""
    decided = sum(result.decided is not None for result in results)
    return f"{decided} of {len(results)} matches are decided, error at most {error:.3g} each"


def _match_rows(match: Match) -> list[tuple[str, ...]]:
    low, high = match.interval
    sides = (
        (match.a, 1.0, match.score, low, high),
        (match.b, 0.0, 1 - match.score, 1 - high, 1 - low),
    )
    rows = []
    for i, (agent, won, score, lowest, highest) in enumerate(sides):
        games, wins = str(match.results.size), str(int((match.results == won).sum()))
        points = [f"{value:.1f}" for value in match.mean_points(i).values()]
        rows.append((agent, games, wins, f"{score:.1%}", _percentages(lowest, highest), *points))
    return rows


def _percentages(low: float, high: float) -> str:
    return f"{low:.1%} – {high:.1%}"


def _elo_cells(elo: float, ci95: tuple[float, float]) -> tuple[str, str]:
    low, high = ci95
    return whole(elo), f"{whole(low)} – {whole(high)}"


def whole(value: float) -> str:
    """Return a rounded number with a true minus sign."""
    return _minus(f"{value:.0f}".replace("inf", "∞"))


def _minus(text: str) -> str:
    """Return numbers with true minus signs, and no rounded zero below 0."""
    return re.sub(r"-0(?![.\d])", "0", text).replace("-", "−")
