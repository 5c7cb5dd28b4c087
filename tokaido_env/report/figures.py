"""Figures of matches and ratings, as PNG and SVG files.

The same matches give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import score_interval
from tokaido_env.arena.match import SCORE_KEYS, TRIGGERS, Match
from tokaido_env.arena.ratings import Rating
from tokaido_env.core.state import END_CAP
from tokaido_env.report.results import Results, results_between
from tokaido_env.report.style import (
    ALL_GAMES,
    BELOW_TITLE,
    CHARACTER_COLOURS,
    FAINT,
    INK,
    ON_COLOUR,
    ON_DARK,
    WIDTH,
    drawing,
    new_axes,
    new_figure,
    save_figure,
)
from tokaido_env.report.tables import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 15  # matches of six agents
INTERVAL_WIDTH = 0.55  # inches; narrower cells have no interval
_LEFT = 2.45  # inches for the names of agents


def write_plots(
    matches: Sequence[Match], ratings: Sequence[Rating], folder: str | Path
) -> list[Path]:
    """Draw all figures to a folder, as PNG (1200 pixels wide) and SVG.

    Args:
        matches: of two or more agents; several of the same two count as one.
        ratings: of the same agents; without ratings their figure is left out.
        folder: this creates it if needed.

    Returns:
        The files.

    Raises:
        ModuleNotFoundError: if matplotlib is missing.
        ValueError: if there is no match.
    """
    results = Results.of(matches, ratings)
    paths = []
    with drawing():
        for name, _, figure in figures(results):
            paths += save_figure(figure, Path(folder), name)
    return paths


def figures(results: Results) -> Iterator[tuple[str, str, Figure]]:
    """Yield file name, caption and figure of each figure."""
    kinds: list[tuple[str, str, Callable[[Results], Figure]]] = [
        ("ratings", "Ratings with 95 % intervals", _draw_ratings),
        ("scores", "Score of each agent against each other", _draw_scores),
        ("points", "Mean points by character", _draw_points),
        ("triggers", "What ended the games", _draw_triggers),
        ("rounds", "Length of the games", _draw_rounds),
        ("margins", "Score margins", _draw_margins),
    ]
    for name, caption, draw in kinds:
        if name != "ratings" or results.ratings:
            yield name, caption, draw(results)


def _rows(axes: Axes, results: Results, agents: Sequence[str]) -> None:
    """Label the rows of the axes with agents, the first on top."""
    axes.set_ylim(len(agents) - 0.4, -0.6)
    axes.set_yticks(range(len(agents)), [results.names[spec] for spec in agents])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _games_text(counts: Sequence[int], each: str) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,} games {each}" if low == high else f"{low:,} to {high:,} games {each}"


def _draw_ratings(results: Results) -> Figure:
    ratings = results.ratings
    games = _games_text([rating.games for rating in ratings], "an agent")
    figure = new_figure(1.5 + 0.42 * len(ratings), "Elo with 95 % intervals", games)
    axes = new_axes(figure, _LEFT, 0.65, 2.05, 0.05)
    _rows(axes, results, [rating.agent for rating in ratings])
    known = [x for r in ratings for x in (r.elo, *r.ci95) if isfinite(x)] or [0.0]
    margin = max(0.06 * (max(known) - min(known)), 10.0)
    low, high = min(known) - margin, max(known) + margin
    axes.set_xlim(low, high)
    axes.grid(axis="x")
    axes.set_xlabel("Elo (points)")
    for row, rating in enumerate(ratings):
        colour = results.colours[rating.agent]
        ends = [min(max(end, low + margin / 2), high - margin / 2) for end in rating.ci95]
        axes.plot(ends, [row, row], color=colour, linewidth=2.5, solid_capstyle="butt")
        for end, given, mark in zip(ends, rating.ci95, "<>", strict=True):
            mark = "|" if isfinite(given) else mark
            axes.plot(end, row, marker=mark, ms=9, mew=2, color=colour)
        axes.plot(rating.elo, row, marker="o", ms=9, color=colour)
        text = f"{whole(rating.elo)}  ({whole(rating.ci95[0])} to {whole(rating.ci95[1])})"
        place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center_baseline"}
        axes.text(1.03, row, text, fontsize=10, **place)
    return figure


def _draw_scores(results: Results) -> Figure:
    agents, n = results.agents, len(results.agents)
    width = (WIDTH - _LEFT - 0.2) / n
    height = min(max(0.62 * width, 0.5), 1.1)
    counts = [match.results.size for match in results.matches]
    games = _games_text(counts, "a match")
    figure = new_figure(BELOW_TITLE + n * height + 0.9, "Score of row against column", games)
    axes = new_axes(figure, _LEFT, 0.5, 0.2, 0.4)
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(n - 0.5, -0.5)
    # As in cross-tables of tournaments, many columns have numbers instead of names.
    numbered = n > 3
    marks = [f"{place}" if numbered else results.names[s] for place, s in enumerate(agents, 1)]
    names = [
        f"{results.names[s]}  {m}" if numbered else m for s, m in zip(agents, marks, strict=True)
    ]
    axes.set_yticks(range(n), names)
    axes.set_xticks(range(n), marks)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    for row, a in enumerate(agents):
        for column, b in enumerate(agents):
            _cell(axes, column, row, results_between(results.matches, a, b), width)
    below = 0.18 / figure.get_size_inches()[1]
    note = "% of games won, half of the draws included"
    note += "; below it the 95 % interval" if width >= INTERVAL_WIDTH else ""
    figure.text(_LEFT / WIDTH, below, note, fontsize=10)
    return figure


def _cell(
    axes: Axes, x: int, y: int, results: npt.NDArray[np.float64] | None, width: float
) -> None:
    """Draw a score with its interval in a cell `width` inches wide; grey without a score."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    box: dict[str, Any] = {"xy": (x - 0.48, y - 0.47), "width": 0.96, "height": 0.94}
    if results is None:
        axes.add_patch(Rectangle(**box, facecolor=FAINT, alpha=0.4))
        return
    ramp = LinearSegmentedColormap.from_list("score", ["#E69F00", "#FFFFFF", "#56B4E9"])
    score, low, high = (float(results.mean()), *score_interval(results))
    axes.add_patch(Rectangle(**box, facecolor=ramp(score), edgecolor=FAINT, linewidth=0.6))
    texts: dict[str, Any] = {"ha": "center", "color": ON_COLOUR}
    if width < INTERVAL_WIDTH:
        size = min(11.0, 26 * width)
        axes.text(x, y, f"{100 * score:.0f}", va="center", weight="bold", size=size, **texts)
        return
    size = min(15.0, 18 * width)
    axes.text(x, y + 0.03, f"{100 * score:.1f}", va="bottom", weight="bold", size=size, **texts)
    interval = f"{100 * low:.1f}–{100 * high:.1f}"
    axes.text(x, y + 0.12, interval, va="top", size=min(11.0, 12.5 * width), **texts)


def _draw_points(results: Results) -> Figure:
    agents, kinds = results.agents, SCORE_KEYS[:3]
    counts = [len(results.games_of(spec)) for spec in agents]
    games = _games_text(counts, "an agent")
    figure = new_figure(1.85 + 0.42 * len(agents), "Points by character", games)
    axes = new_axes(figure, _LEFT, 0.65, 0.9, 0.4)
    _rows(axes, results, agents)
    means = np.array([_mean_points(results, spec) for spec in agents])  # (agents, 3)
    totals = means.sum(axis=1)
    axes.set_xlim(0, max(float(totals.max()), 1.0))
    axes.set_xlabel("mean points in a game")
    for i, (kind, colour) in enumerate(zip(kinds, CHARACTER_COLOURS, strict=True)):
        starts = means[:, :i].sum(axis=1)
        axes.barh(range(len(agents)), means[:, i], left=starts, color=colour, height=0.7)
        for row, (start, value) in enumerate(zip(starts, means[:, i], strict=True)):
            if value > 0.05 * float(totals.max()):
                ink = ON_DARK if i != 1 else ON_COLOUR
                axes.text(
                    start + value / 2,
                    row,
                    f"{value:.1f}",
                    ha="center",
                    va="center_baseline",
                    color=ink,
                )
        _name_above(axes, 0, kind, colour, shift=(0, 75, 180)[i])
    for row, value in enumerate(totals):
        place: dict[str, Any] = {"textcoords": "offset points", "va": "center_baseline"}
        axes.annotate(f"{value:.1f}", (value, row), (8, 0), fontweight="bold", **place)
    return figure


def _mean_points(results: Results, spec: str) -> npt.NDArray[np.float64]:
    """Return the mean faith, commerce and culture of an agent: (3,)."""
    parts = [
        match.games["points"][:, :, side].reshape(-1, 3)
        for match in results.matches
        for side, agent in enumerate((match.a, match.b))
        if agent == spec
    ]
    return np.concatenate(parts).mean(axis=0) if parts else np.zeros(3)


def _draw_triggers(results: Results) -> Figure:
    agents = results.agents
    counts = [len(results.games_of(spec)) for spec in agents]
    games = _games_text(counts, "an agent")
    figure = new_figure(1.9 + 0.38 * len(agents), "End triggers", games)
    shares = np.array([_trigger_shares(results, spec) for spec in agents])  # (agents, 5)
    most = min(max(20 * int(np.ceil(shares.max() / 20)), 20), 100)
    heads = [f"{trigger} trigger" for trigger in TRIGGERS] + ["cap of rounds"]
    column_width = (WIDTH - _LEFT - 0.2) / len(heads)
    for i, head in enumerate(heads):
        left = _LEFT + i * column_width
        axes = new_axes(figure, left, 0.65, WIDTH - left - column_width + 0.25, 0.4)
        _rows(axes, results, agents)
        if i:
            axes.set_yticks([])
        axes.set_title(head, fontsize=11, loc="left")
        axes.set_xlim(0, 1.35 * most)
        axes.set_xticks([0, most / 2, most])
        axes.spines["bottom"].set_bounds(0, most)
        axes.barh(
            range(len(agents)),
            shares[:, i],
            color=[results.colours[spec] for spec in agents],
            height=0.7,
        )
        for row, value in enumerate(shares[:, i]):
            axes.text(value + 0.04 * most, row, f"{value:.0f}", va="center_baseline", fontsize=10)
    note = "% of the agent's games in which it had met the end condition"
    figure.text(_LEFT / WIDTH, 0.18 / figure.get_size_inches()[1], note)
    return figure


def _trigger_shares(results: Results, spec: str) -> npt.NDArray[np.float64]:
    """Return the share of an agent's games with each of its triggers, and with the cap: % (5,)."""
    parts = []
    for match in results.matches:
        for side, agent in enumerate((match.a, match.b)):
            if agent == spec:
                games = match.games.reshape(-1)
                capped = games["end"][:, None] == END_CAP
                parts.append(np.hstack([games["triggers"][:, side] != 0, capped]))
    return 100 * np.concatenate(parts).mean(axis=0) if parts else np.zeros(len(TRIGGERS) + 1)


def _draw_rounds(results: Results) -> Figure:
    everything = np.concatenate([match.games.reshape(-1) for match in results.matches])
    panels = [("all games", ALL_GAMES, everything)]
    if len(results.agents) > 2:
        panels += [
            (results.names[s], results.colours[s], results.games_of(s)) for s in results.agents
        ]
    games = f"{len(everything):,} games in all"
    figure, all_axes = _panels(len(panels), "Length of the games", games, "rounds")
    last = int(np.quantile(everything["rounds"], 0.995)) + 1
    bins = _whole_bins(last, 40) - 0.5
    for axes, (name, colour, played) in zip(all_axes, panels, strict=True):
        if not len(played):
            continue
        # The last bin contains the few longest games.
        rounds = np.minimum(played["rounds"], last)
        axes.stairs(
            100 * np.histogram(rounds, bins)[0] / len(played), bins, fill=True, color=colour
        )
        median = float(np.median(played["rounds"]))
        axes.axvline(median, color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
        _name_above(axes, 1, name, colour)
        axes.annotate(f"median {median:.0f}", (0, 1), (0, 6), fontsize=9.5, **_OFFSET)
    _share_axes(all_axes, (0, int(bins[-1])))
    return figure


def _draw_margins(results: Results) -> Figure:
    sides = _margin_sides(results)
    games = _games_text([len(side.margins) for side in sides], "a panel")
    figure, all_axes = _panels(len(sides), "Score margins", games, "points ahead")
    bins = _whole_bins(max(int(np.abs(np.concatenate([s.margins for s in sides])).max()), 1), 20)
    for axes, side in zip(all_axes, sides, strict=True):
        axes.stairs(_shares(side.margins, bins), bins, fill=True, color=side.colour)
        behind = _shares(-side.margins, bins)[::-1]
        axes.stairs(behind, -bins[::-1], fill=True, color=side.other_colour)
        axes.axvline(0, color=INK, linewidth=1)
        lost, won = 100 * (side.margins < 0).mean(), 100 * (side.margins > 0).mean()
        _name_above(axes, 1, f"{side.name} {won:.0f} %", side.colour, at_right=True)
        _name_above(axes, 0, f"{lost:.0f} % {side.other}", side.other_colour)
    _share_axes(all_axes, (-int(bins[-1]), int(bins[-1])))
    return figure


class _Side(NamedTuple):
    """Two sides and the score margins of the first: int64 (games,)."""

    name: str
    colour: str
    other: str
    other_colour: str
    margins: npt.NDArray[np.int64]


def _margin_sides(results: Results) -> list[_Side]:
    """Return the margins of each match; with too many, of each agent against all others."""
    names, colours = results.names, results.colours
    if len(results.matches) <= MOST_PANELS:
        return [
            _Side(names[m.a], colours[m.a], names[m.b], colours[m.b], _margins(m))
            for m in results.matches
        ]
    sides = []
    for spec in results.agents:
        ahead = [_margins(m) for m in results.matches if m.a == spec]
        ahead += [-_margins(m) for m in results.matches if m.b == spec and m.a != spec]
        others = ("all others", ALL_GAMES)
        sides.append(_Side(names[spec], colours[spec], *others, np.concatenate(ahead)))
    return sides


def _whole_bins(last: int, most: int) -> npt.NDArray[np.int64]:
    """Return the edges of at most `most` bins of equally many integers from 0."""
    step = -(-last // most)
    return np.arange(0, last + step + 1, step)


def _shares(margins: npt.NDArray[np.int64], bins: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the share of games per bin of margins from 0, in %; a margin of 0 counts half."""
    weights = np.where(margins > 0, 1.0, 0.5)[margins >= 0]
    counts, _ = np.histogram(margins[margins >= 0], bins, weights=weights)
    return 100 * counts / len(margins)


def _margins(match: Match) -> npt.NDArray[np.int64]:
    """Return the score margin of `a` in each game."""
    totals = match.games["points"].sum(axis=-1, dtype=np.int64).reshape(-1, 2)
    margins: npt.NDArray[np.int64] = totals[:, 0] - totals[:, 1]
    return margins


def _panels(n: int, title: str, games: str, label: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of n axes."""
    columns = min(n, 3)
    rows = -(-n // columns)
    height = 3.4 if n == 1 else 1.95
    figure = new_figure(BELOW_TITLE + rows * height + 0.25, title, games)
    width = (WIDTH - 0.4) / columns
    all_axes = []
    for i in range(n):
        row, column = divmod(i, columns)
        left, bottom = 0.4 + column * width, (rows - 1 - row) * height + 0.6
        right = WIDTH - left - width
        axes = new_axes(figure, left + 0.35, bottom, right + 0.2, row * height + 0.5)
        axes.tick_params(labelsize=9)
        if i + columns >= n:
            axes.set_xlabel(label, fontsize=10)
        if column == 0:
            axes.set_ylabel("% of games", fontsize=10)
        all_axes.append(axes)
    return figure, all_axes


def _share_axes(all_axes: Sequence[Axes], limits: tuple[int, int]) -> None:
    """Give all panels the same scales."""
    top = max(axes.get_ylim()[1] for axes in all_axes)
    for axes in all_axes:
        axes.set_xlim(*limits)
        axes.set_ylim(0, top)


_OFFSET: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}


def _name_above(
    axes: Axes, line: int, text: str, colour: str, *, shift: int = 0, at_right: bool = False
) -> None:
    """Write a name above axes, next to a square of its colour: pale colours suit no text.

    Args:
        axes: below the name.
        line: 0 for the line next to the axes.
        text: the name.
        colour: of the square.
        shift: points to the right.
        at_right: align with the right end of the axes.
    """
    side, x, distance = ("right", 1, -12) if at_right else ("left", 0, shift + 12)
    y = 6 + 14 * line
    axes.annotate("■", (x, 1), (shift, y), ha=side, color=colour, fontsize=9.5, **_OFFSET)
    axes.annotate(text, (x, 1), (distance, y), ha=side, fontsize=9.5, weight="bold", **_OFFSET)
