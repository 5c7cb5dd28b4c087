"""Figures of results, as PNG and SVG files.

The same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokaido_env.arena.intervals import Estimate
from tokaido_env.arena.result import Measure, Result, Score
from tokaido_env.core.arguments import escape_text
from tokaido_env.report.comparison import test_scores
from tokaido_env.report.result_tables import agents_by_regret, share
from tokaido_env.report.standings import standings
from tokaido_env.report.style import (
    BELOW_TITLE,
    FAINT,
    INK,
    ON_COLOUR,
    PALETTE,
    PAPER,
    WIDTH,
    drawing,
    new_axes,
    new_figure,
    save_figure,
)
from tokaido_env.report.tables import true_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 100  # characters of a name or a title
INTERVAL_WIDTH = 0.55  # inches; narrower cells have no interval
_ROW = 0.62  # inches of a row: a name, and its mark below
_HEIGHT = 5.4  # inches of other figures

Named = list[tuple[str, Estimate]]


def write_figures(result: Result, folder: str | Path) -> list[Path]:
    """Draw the figures of a result to a folder, as PNG (1200 pixels wide) and SVG.

    Args:
        result: of any protocol.
        folder: this creates it if needed.

    Returns:
        The files.

    Raises:
        ModuleNotFoundError: if matplotlib is missing.
    """
    with drawing():
        drawn = [save_figure(figure, Path(folder), name) for name, _, figure in figures(result)]
    return [path for paths in drawn for path in paths]


def figures(result: Result) -> Iterator[tuple[str, str, Figure]]:
    """Yield the name for its file, the caption and each Matplotlib figure of a result."""
    kinds: list[tuple[str, str, Callable[[Result], Figure | None]]] = [
        ("ratings", "Ratings with 95 % intervals", _draw_ratings),
        ("scores", "Score of each agent against each other", _draw_scores),
        ("boards", "Scores on each board", _draw_boards),
        ("regret", "Regret with 95 % intervals", _draw_regret),
    ]
    for name, caption, draw in kinds:
        figure = draw(result)
        if figure is not None:
            yield name, caption, figure


# Values with intervals


def _draw_ratings(result: Result) -> Figure | None:
    rows: Named = [(one.agent, one) for one in result.estimates_of("Elo")]
    return _draw_intervals("Elo with 95 % intervals", rows, "Elo (points)", form=".0f")


def _draw_regret(result: Result) -> Figure | None:
    if result.protocol != "regret":
        return None
    agents = agents_by_regret(result)
    rows: Named = [(agent, result.estimate("regret", agent=agent)) for agent in agents]
    return _draw_intervals("Regret", rows, "regret a choice, in 1/1000 of a result", 1000)


def _draw_intervals(
    title: str, rows: Named, label: str, scale: float = 1.0, form: str = ".1f"
) -> Figure | None:
    """Draw a mark with its interval for each row, below its name; return None without rows."""
    if not rows:
        return None
    figure = new_figure(BELOW_TITLE + 0.7 + _ROW * len(rows), title, "")
    axes = new_axes(figure, 0.3, 0.65, 2.3, 0.05)
    axes.set_ylim(len(rows) - 0.5, -0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    ends = scale * np.array([[one.value, one.low, one.high] for _, one in rows])
    margin = max(0.06 * float(np.ptp(ends)), 0.01 * scale)
    axes.set_xlim(ends.min() - margin, ends.max() + margin)
    axes.grid(axis="x")
    axes.set_xlabel(label)
    place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center_baseline"}
    for row, ((name, _), (value, low, high)) in enumerate(zip(rows, ends, strict=True)):
        colour = PALETTE[row % len(PALETTE)]
        axes.plot([low, high], [row, row], color=colour, linewidth=2.5, marker="|", ms=9, mew=2)
        axes.plot(value, row, marker="o", ms=9, color=colour)
        axes.text(0, row - 0.45, escape_text(name, MOST), fontsize=10, **place)
        interval = f"({low:{form}} to {high:{form}})" if low < high or scale != 1 else "reference"
        text = f"{value:{form}}  {interval}"
        axes.text(1.02, row, true_minus(text), fontsize=10, **place)
    return figure


# Matches


def _draw_scores(result: Result) -> Figure | None:
    """Draw the scores of rows against columns; a pair without games has no colour."""
    from matplotlib.colors import LinearSegmentedColormap

    agents = [row.agent for row in standings(result)]
    n = len(agents)
    if result.protocol != "matches" or n < 3:
        return None
    width = (WIDTH - 0.9) / n
    height, names = min(max(0.62 * width, 0.5), 1.1), 0.22 * n
    below = 0.5 + names
    figure = new_figure(BELOW_TITLE + n * height + below + 0.4, "Score of row against column", "")
    axes = new_axes(figure, 0.7, below, 0.2, 0.4)
    axes.set_facecolor(FAINT)
    axes.set_xticks(range(n), map(str, range(1, n + 1)))
    axes.set_yticks(range(n), map(str, range(1, n + 1)))
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    scores = [[_score_between(result.scores, a, b) for b in agents] for a in agents]
    values = [[np.nan if one is None else one.value for one in row] for row in scores]
    ramp = LinearSegmentedColormap.from_list("score", ["#E69F00", "#FFFFFF", "#56B4E9"])
    grid = np.arange(n + 1) - 0.5
    axes.pcolormesh(grid, grid, values, cmap=ramp, vmin=0, vmax=1, edgecolors=PAPER, linewidth=3)
    axes.invert_yaxis()
    for (row, column), one in np.ndenumerate(np.array(scores, object)):
        if one is not None:
            _write_score(axes, column, row, one, width)
    total = float(figure.get_size_inches()[1])
    for place, agent in enumerate(agents):
        text, y = f"{place + 1}  {escape_text(agent, MOST)}", (names - 0.22 * place) / total
        figure.text(0.7 / WIDTH, y, text, fontsize=10)
    note = "% of games won, half of the draws included, with 95 % intervals where they fit"
    figure.text(0.7 / WIDTH, (names + 0.25) / total, note, fontsize=10)
    return figure


def _score_between(scores: Sequence[Score], a: str, b: str) -> Estimate | None:
    """Return the score of `a` against `b` in all their games, None without any."""
    pairs = [score.pairs for score in scores if (score.a, score.b) == (a, b)]
    if a != b:
        pairs += [score.pairs[::-1] for score in scores if (score.a, score.b) == (b, a)]
    if not pairs:
        return None
    total = Score.of_pairs(a, b, "", None, np.sum(pairs, axis=0))
    return Estimate(total.value, total.low, total.high)


def _write_score(axes: Axes, x: int, y: int, score: Estimate, width: float) -> None:
    """Write a score and its interval into a cell `width` inches wide."""
    texts: dict[str, Any] = {"ha": "center", "color": ON_COLOUR}
    if width < INTERVAL_WIDTH:
        size = min(11.0, 26 * width)
        axes.text(x, y, f"{100 * score.value:.0f}", va="center", weight="bold", size=size, **texts)
        return
    text, size = f"{100 * score.value:.1f}", min(15.0, 18 * width)
    axes.text(x, y + 0.03, text, va="bottom", weight="bold", size=size, **texts)
    interval = f"{100 * score.low:.1f}–{100 * score.high:.1f}"
    axes.text(x, y + 0.12, interval, va="top", size=min(11.0, 12.5 * width), **texts)


# Generalisation


def _draw_boards(result: Result) -> Figure | None:
    if result.protocol != "generalise":
        return None
    opponent = test_scores(result)[0].b
    figure = new_figure(_HEIGHT, f"{escape_text(result.agents[0], 60)}, board by board", "")
    width = (WIDTH - 0.85) / len(result.boards)
    for i, boards in enumerate(result.boards):
        left = 0.85 + i * width
        axes = new_axes(figure, left, 1.0, WIDTH - left - width + 0.25, 0.35)
        scores = [one for one in result.scores_of(boards.name) if one.b == opponent]
        mean = result.estimate("mean score", other=opponent, group=boards.name)
        _draw_scores_of_boards(axes, scores, mean, PALETTE[5 * i])
        axes.set_title(escape_text(boards.name, 60), fontsize=11, loc="left")
        if i == 0:
            axes.set_ylabel(f"score in % against {escape_text(opponent, 30)}")
        else:
            axes.tick_params(labelleft=False)
    note = "dots: boards with 95 % intervals; band: 95 % interval of the mean of all boards"
    figure.text(0.85 / WIDTH, 0.2 / _HEIGHT, note, fontsize=10)
    return figure


def _draw_scores_of_boards(axes: Axes, scores: Sequence[Score], mean: Measure, colour: str) -> None:
    """Draw the scores per board, lowest first."""
    each = sorted(scores, key=lambda score: score.value)
    places = np.arange(1, len(each) + 1)
    lows, highs = (100 * np.array([getattr(one, end) for one in each]) for end in ("low", "high"))
    axes.vlines(places, lows, highs, color=colour, alpha=0.35, linewidth=max(1.0, 60 / len(each)))
    values = [100 * score.value for score in each]
    axes.plot(places, values, "o", color=colour, ms=max(3.0, 7 - len(each) / 20), clip_on=False)
    axes.axhspan(100 * mean.low, 100 * mean.high, color=colour, alpha=0.18, linewidth=0)
    axes.axhline(100 * mean.value, color=colour, linewidth=1.2)
    axes.axhline(50, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(0, 100)
    axes.set_xlim(0, len(each) + 1)
    place: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 10}
    axes.text(0.98, 0.04, f"mean {share(mean)}", weight="bold", ha="right", **place)
    axes.set_xlabel("boards, lowest score first")
    axes.locator_params(axis="x", integer=True)
