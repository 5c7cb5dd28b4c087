"""Matches and ratings as pictures, and as one page that needs nothing beside it.

`write_plots` draws each figure as PNG and SVG; `write_report` puts them and the tables into one
HTML file. Same matches, same bytes. Colours are told apart with any colour vision: for agents
Okabe and Ito's (2008), then four of Tol's muted scheme (2021).
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.arena.intervals import score_interval
from tokaido_env.agents.arena.match import POINTS, TRIGGERS, Match
from tokaido_env.core.state import END_CAP
from tokaido_env.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#D6C700"),
    *("#332288", "#882255", "#999933", "#44AA99"),
)
CHARACTER_COLOURS = ("#0072B2", "#E69F00", "#009E73")  # faith, commerce, culture
ALL_GAMES = "#6b7280"
INK, FAINT, PAPER = "#1b1e24", "#c9ccd3", "#ffffff"
ON_COLOUR, ON_DARK = "#1a1d23", "#fefefe"  # text on a colour, the same in the dark
NAME_LENGTH = 22
WIDTH, DPI = 10.0, 120  # inches, dots per inch: pictures of 1200 pixels
_LEFT = 2.45  # inches for the names of the agents
_BELOW_TITLE = 0.55  # inches between the title's baseline and the top of what it is about

STYLE: Any = {  # matplotlib's rcParams
    "font.size": 11,
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a spec is a dollar
    "axes.facecolor": "none",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "figure.facecolor": PAPER,
    "savefig.dpi": DPI,
    "svg.fonttype": "none",
}


class Rating(Protocol):
    """An agent's strength: its Elo, the 95 % interval and the number of games behind it."""

    @property
    def agent(self) -> str:
        """The spec."""

    @property
    def elo(self) -> float:
        """The rating."""

    @property
    def ci95(self) -> tuple[float, float]:
        """The interval, low and high."""

    @property
    def games(self) -> int:
        """How many games the agent played."""


@dataclass(frozen=True)
class Results:
    """What the figures are drawn from.

    Attributes:
        matches: all of them.
        ratings: best first; empty if there are none.
        agents: specs, the best first.
        names: a short name for each spec, no two alike.
        colours: of each spec.
    """

    matches: Sequence[Match]
    ratings: Sequence[Rating]
    agents: list[str]
    names: Mapping[str, str]
    colours: Mapping[str, str]

    @classmethod
    def of(cls, matches: Sequence[Match], ratings: Sequence[Rating]) -> Results:
        """Put matches and ratings in order.

        Raises:
            ValueError: if there is no match.
        """
        if not matches:
            raise ValueError("report: expected one match or more, got none")
        best_first = sorted(ratings, key=lambda rating: (-rating.elo, rating.agent))
        agents = dict.fromkeys(rating.agent for rating in best_first)
        rest = {spec for match in matches for spec in (match.a, match.b)} - agents.keys()
        means = {spec: float(results_of(matches, spec).mean()) for spec in rest}
        agents |= dict.fromkeys(sorted(rest, key=lambda spec: (-means[spec], spec)))
        specs = list(agents)
        colours = {spec: PALETTE[i % len(PALETTE)] for i, spec in enumerate(specs)}
        return cls(matches, best_first, specs, short_names(specs), colours)

    def games_of(self, spec: str) -> npt.NDArray[np.void]:
        """Return the games of an agent, `GAME` (n,); those against itself once."""
        played = [m.games.reshape(-1) for m in self.matches if spec in (m.a, m.b)]
        return np.concatenate(played) if played else self.matches[0].games[:0].reshape(-1)


def write_plots(
    matches: Sequence[Match], ratings: Sequence[Rating], folder: str | Path
) -> list[Path]:
    """Draw all figures into a folder, each as PNG (1200 pixels wide) and as SVG.

    Args:
        matches: of two or more agents, several of the same two count as one.
        ratings: of the same agents; without any there is no figure of ratings.
        folder: made if it is not there.

    Returns:
        The files.

    Raises:
        ModuleNotFoundError: if matplotlib is missing.
        ValueError: if there is no match.
    """
    results = Results.of(matches, ratings)
    paths = []
    with _drawing():
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, _, figure in _figures(results):
            for suffix, content in ((".png", _png(figure)), (".svg", _svg(figure, name).encode())):
                path = Path(folder) / (name + suffix)
                unfinished = path.with_name(path.name + ".tmp")
                unfinished.write_bytes(content)
                unfinished.replace(path)
                paths.append(path)
    return paths


def write_report(
    matches: Sequence[Match],
    ratings: Sequence[Rating],
    path: str | Path,
    *,
    title: str,
    command: str | None = None,
    seed: int | None = None,
    board: str | None = None,
) -> None:
    """Write tables and figures as one HTML file that loads nothing: whole or not at all.

    Args:
        matches: as for `write_plots`.
        ratings: as for `write_plots`.
        path: the file.
        title: of the page.
        command: the command line that played the games.
        seed: of the games.
        board: its name.

    Raises:
        ModuleNotFoundError: if matplotlib is missing.
        ValueError: if there is no match.
    """
    results = Results.of(matches, ratings)
    facts = {"command": command, "seed": seed, "board": board}
    with _drawing():
        drawn = [
            _FIGURE.format(svg=_inline(_svg(figure, name), name, caption))
            for name, caption, figure in _figures(results)
        ]
    page = _PAGE.format(
        title=escape(title),
        facts=_facts(facts, results),
        agents=_agents_table(results),
        matches=_matches_table(results),
        figures="\n".join(drawn),
    )
    write_text(Path(path), page)


def short_names(specs: Sequence[str], length: int = NAME_LENGTH) -> dict[str, str]:
    """Return a name of at most `length` characters for each spec, no two alike.

    A long spec loses first what all of its kind share (`mcts:sims=400,…`), then its middle; where
    two would still look the same, a number follows.
    """
    names: dict[str, str] = {}
    for spec in dict.fromkeys(specs):
        kind = [other for other in dict.fromkeys(specs) if _parts(other)[0] == _parts(spec)[0]]
        printable = "".join(char if char.isprintable() else "·" for char in spec) or "·"
        if len(printable) > length and len(kind) > 1:
            printable = _without_shared(printable, kind)
        name, count = _shortened(printable, length), 1
        while name in names.values():
            count += 1
            mark = f" #{count}"
            name = _shortened(printable, length - len(mark)) + mark
        names[spec] = name
    return names


def _parts(spec: str) -> list[str]:
    """Return the parts of a spec and, in between, what separates them."""
    return re.split(r"([:,/])", spec)


def _without_shared(spec: str, kind: Sequence[str]) -> str:
    first, *rest = _parts(spec)
    shared = set.intersection(*(set(_parts(other)[2::2]) for other in kind))
    short = "".join("…" if part in shared else part for part in rest)
    return first + re.sub("…([,/]…)+", "…", short)


def results_of(matches: Sequence[Match], spec: str) -> npt.NDArray[np.float64]:
    """Return the results of an agent in all its games, in pairs: (pairs, 2)."""
    parts = [match.results for match in matches if match.a == spec]
    parts += [1 - match.results for match in matches if match.b == spec]
    return np.concatenate(parts)


def results_between(matches: Sequence[Match], a: str, b: str) -> npt.NDArray[np.float64] | None:
    """Return the results of `a` against `b` in all their games, (pairs, 2); None if none."""
    parts = [match.results for match in matches if (match.a, match.b) == (a, b)]
    if a != b:
        parts += [1 - match.results for match in matches if (match.a, match.b) == (b, a)]
    return np.concatenate(parts) if parts else None


def _shortened(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    head = length // 2
    return text[:head] + "…" + text[head + 1 - length :]


# Figures


def _figures(results: Results) -> Iterator[tuple[str, str, Figure]]:
    """Yield each figure with its file name and what it shows."""
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


def _figure(height: float, title: str, games: str) -> Figure:
    """Return an empty figure with its title and how many games it is about."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.2 / WIDTH, 1 - 0.36 / height, title, fontsize=15, fontweight="bold")
    figure.text(1 - 0.2 / WIDTH, 1 - 0.36 / height, games, ha="right")
    return figure


def _axes(figure: Figure, left: float, bottom: float, right: float, top: float) -> Axes:
    """Return axes with margins in inches, `top` from below the title."""
    width, height = figure.get_size_inches()
    rect = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - bottom - top - _BELOW_TITLE) / height,
    )
    return figure.add_axes(rect)


def _rows(axes: Axes, results: Results, agents: Sequence[str]) -> None:
    """Label the rows of an axis with agents, the first on top."""
    axes.set_ylim(len(agents) - 0.4, -0.6)
    axes.set_yticks(range(len(agents)), [results.names[spec] for spec in agents])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _number_of_games(counts: Sequence[int], each: str) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,} games {each}" if low == high else f"{low:,} to {high:,} games {each}"


def _draw_ratings(results: Results) -> Figure:
    ratings = results.ratings
    games = _number_of_games([rating.games for rating in ratings], "an agent")
    figure = _figure(1.5 + 0.42 * len(ratings), "Elo with 95 % intervals", games)
    axes = _axes(figure, _LEFT, 0.65, 2.05, 0.05)
    _rows(axes, results, [rating.agent for rating in ratings])
    known = [x for r in ratings for x in (r.elo, *r.ci95) if isfinite(x)] or [0.0]
    room = max(0.06 * (max(known) - min(known)), 10.0)
    low, high = min(known) - room, max(known) + room
    axes.set_xlim(low, high)
    axes.grid(axis="x")
    axes.set_xlabel("Elo (points)")
    for row, rating in enumerate(ratings):
        colour = results.colours[rating.agent]
        ends = [min(max(end, low + room / 2), high - room / 2) for end in rating.ci95]
        axes.plot(ends, [row, row], color=colour, linewidth=2.5, solid_capstyle="butt")
        for end, given, mark in zip(ends, rating.ci95, "<>", strict=True):
            mark = "|" if isfinite(given) else mark
            axes.plot(end, row, marker=mark, ms=9, mew=2, color=colour)
        axes.plot(rating.elo, row, marker="o", ms=9, color=colour)
        text = f"{_whole(rating.elo)}  ({_whole(rating.ci95[0])} to {_whole(rating.ci95[1])})"
        place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center_baseline"}
        axes.text(1.03, row, text, fontsize=10, **place)
    return figure


def _whole(value: float) -> str:
    """Return a number without its decimals, with a true minus sign."""
    text = str(round(value)) if isfinite(value) else str(value).replace("inf", "∞")
    return text.replace("-", "−")


def _draw_scores(results: Results) -> Figure:
    agents, n = results.agents, len(results.agents)
    width = (WIDTH - _LEFT - 0.2) / n
    height = min(max(0.62 * width, 0.5), 1.1)
    counts = [match.results.size for match in results.matches]
    games = _number_of_games(counts, "a match")
    figure = _figure(_BELOW_TITLE + n * height + 0.9, "Score of row against column", games)
    axes = _axes(figure, _LEFT, 0.5, 0.2, 0.4)
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(n - 0.5, -0.5)
    # As in a tournament's cross-table: many columns have the number of their agent.
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
    note = "% of games won, half of the draws included; below it the 95 % interval"
    figure.text(_LEFT / WIDTH, below, note, fontsize=10)
    return figure


def _cell(
    axes: Axes, x: int, y: int, results: npt.NDArray[np.float64] | None, width: float
) -> None:
    """Draw a score with its interval in a cell `width` inches wide, grey if there is none."""
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
    size = min(15.0, 18 * width)
    axes.text(x, y + 0.03, f"{100 * score:.1f}", va="bottom", weight="bold", size=size, **texts)
    interval = f"{100 * low:.1f}–{100 * high:.1f}"
    axes.text(x, y + 0.12, interval, va="top", size=min(11.0, 12.5 * width), **texts)


def _draw_points(results: Results) -> Figure:
    agents, kinds = results.agents, POINTS[:3]
    counts = [len(results.games_of(spec)) for spec in agents]
    games = _number_of_games(counts, "an agent")
    figure = _figure(1.85 + 0.42 * len(agents), "Points by character", games)
    axes = _axes(figure, _LEFT, 0.65, 0.9, 0.4)
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
    """Return the mean faith, commerce and culture of an agent in all its games: (3,)."""
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
    games = _number_of_games(counts, "an agent")
    figure = _figure(1.9 + 0.38 * len(agents), "End triggers", games)
    shares = np.array([_trigger_shares(results, spec) for spec in agents])  # (agents, 5)
    most = min(max(20 * int(np.ceil(shares.max() / 20)), 20), 100)
    heads = [f"pulled {trigger}" for trigger in TRIGGERS] + ["cap of rounds"]
    room = (WIDTH - _LEFT - 0.2) / len(heads)
    for i, head in enumerate(heads):
        left = _LEFT + i * room
        axes = _axes(figure, left, 0.65, WIDTH - left - room + 0.25, 0.4)
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
    note = "% of the agent's games in which it had pulled the trigger when they ended"
    figure.text(_LEFT / WIDTH, 0.18 / figure.get_size_inches()[1], note)
    return figure


def _trigger_shares(results: Results, spec: str) -> npt.NDArray[np.float64]:
    """Return in how many of an agent's games it had pulled each trigger, and the cap: % (5,)."""
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
        # The few longest games stand in the last bin.
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
    matches = results.matches
    counts = [match.results.size for match in matches]
    games = _number_of_games(counts, "a match")
    figure, all_axes = _panels(len(matches), "Score margins", games, "points ahead")
    margins = [_margins(match) for match in matches]
    bins = _whole_bins(max(int(np.abs(np.concatenate(margins)).max()), 1), 20)
    for axes, match, margin in zip(all_axes, matches, margins, strict=True):
        left, right = results.colours[match.b], results.colours[match.a]
        axes.stairs(_shares(margin, bins), bins, fill=True, color=right)
        axes.stairs(_shares(-margin, bins)[::-1], -bins[::-1], fill=True, color=left)
        axes.axvline(0, color=INK, linewidth=1)
        behind, ahead = 100 * (margin < 0).mean(), 100 * (margin > 0).mean()
        _name_above(axes, 1, f"{results.names[match.a]} {ahead:.0f} %", right, at_right=True)
        _name_above(axes, 0, f"{behind:.0f} % {results.names[match.b]}", left)
    _share_axes(all_axes, (-int(bins[-1]), int(bins[-1])))
    return figure


def _whole_bins(last: int, most: int) -> npt.NDArray[np.int64]:
    """Return the edges of at most `most` bins of whole numbers from 0, so that none holds more."""
    step = -(-last // most)
    return np.arange(0, last + step + 1, step)


def _shares(margins: npt.NDArray[np.int64], bins: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the share of games with a margin in each bin from 0, in %; level ones count half."""
    weights = np.where(margins > 0, 1.0, 0.5)[margins >= 0]
    counts, _ = np.histogram(margins[margins >= 0], bins, weights=weights)
    return 100 * counts / len(margins)


def _margins(match: Match) -> npt.NDArray[np.int64]:
    """Return by how many points `a` was ahead in each game."""
    totals = match.games["points"].sum(axis=-1, dtype=np.int64).reshape(-1, 2)
    margins: npt.NDArray[np.int64] = totals[:, 0] - totals[:, 1]
    return margins


def _panels(n: int, title: str, games: str, label: str) -> tuple[Figure, list[Axes]]:
    """Return a figure of n axes side by side and below each other."""
    columns = min(n, 3)
    rows = -(-n // columns)
    height = 3.4 if n == 1 else 1.95
    figure = _figure(_BELOW_TITLE + rows * height + 0.25, title, games)
    width = (WIDTH - 0.4) / columns
    all_axes = []
    for i in range(n):
        row, column = divmod(i, columns)
        left, bottom = 0.4 + column * width, (rows - 1 - row) * height + 0.6
        right = WIDTH - left - width
        axes = _axes(figure, left + 0.35, bottom, right + 0.2, row * height + 0.5)
        axes.tick_params(labelsize=9)
        if i + columns >= n:
            axes.set_xlabel(label, fontsize=10)
        if column == 0:
            axes.set_ylabel("% of games", fontsize=10)
        all_axes.append(axes)
    return figure, all_axes


def _share_axes(all_axes: Sequence[Axes], limits: tuple[int, int]) -> None:
    """Give all panels the same scales, so that they can be compared."""
    top = max(axes.get_ylim()[1] for axes in all_axes)
    for axes in all_axes:
        axes.set_xlim(*limits)
        axes.set_ylim(0, top)


_OFFSET: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}


def _name_above(
    axes: Axes, line: int, text: str, colour: str, *, shift: int = 0, at_right: bool = False
) -> None:
    """Write a name above some axes, beside a square of its colour: some are too pale for text.

    Args:
        axes: where.
        line: 0 for the one next to the axes.
        text: the name.
        colour: of the square.
        shift: points to the right.
        at_right: end with the axes instead of beginning with them.
    """
    side, x, away = ("right", 1, -12) if at_right else ("left", 0, shift + 12)
    y = 6 + 14 * line
    axes.annotate("■", (x, 1), (shift, y), ha=side, color=colour, fontsize=9.5, **_OFFSET)
    axes.annotate(text, (x, 1), (away, y), ha=side, fontsize=9.5, weight="bold", **_OFFSET)


# Files


@contextmanager
def _drawing() -> Iterator[None]:
    """Draw in the style of the reports, whatever a user's settings are."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        message = "plots need matplotlib: pip install 'tokaido-env[plots]'"
        raise ModuleNotFoundError(message) from None
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        # A name may be in any script.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def _png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _svg(figure: Figure, name: str) -> str:
    import matplotlib

    out = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata=nothing)
    return out.getvalue()


# The page

_FIGURE = """<figure class="wide">{svg}</figure>"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1b1e24; --soft: #5b616c; --faint: #c9ccd3;
  --paper: #ffffff; --stripe: #f4f5f7; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e8eaee; --soft: #a4abb8; --faint: #434955; --paper: #14161a;
    --stripe: #1d2026; }}
}}
body {{ max-width: 75rem; margin: 0 auto; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.2rem; margin-top: 2rem; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }}
dt {{ color: var(--soft); }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.3rem 0.6rem; text-align: right; white-space: nowrap; }}
th {{ border-bottom: 2px solid var(--faint); font-weight: 600; }}
tbody tr:nth-child(even) {{ background: var(--stripe); }}
.agent, .name {{ text-align: left; padding-left: 1.9rem; }}
td.agent, td.name {{ position: relative; }}
.agent {{ white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }}
td i {{ position: absolute; left: 0.7rem; top: 0.75rem; width: 0.7rem; height: 0.7rem;
  border-radius: 50%; }}
figure {{ margin: 1.5rem 0; padding: 0.5rem; border: 1px solid var(--faint);
  border-radius: 0.5rem; }}
figure svg {{ display: block; width: 100%; min-width: 40rem; height: auto; }}
p {{ color: var(--soft); font-size: 0.9rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
<dl>
{facts}
</dl>
{agents}
{matches}
<h2>Figures</h2>
{figures}
</body>
</html>
"""


def _facts(facts: Mapping[str, object], results: Results) -> str:
    games = sum(match.results.size for match in results.matches)
    known = {name: value for name, value in facts.items() if value is not None}
    known |= {"agents": len(results.agents), "games": f"{games:,}"}
    shown = {name: escape(str(value)) for name, value in known.items()}
    if "command" in shown:
        shown["command"] = f"<code>{shown['command']}</code>"
    return "\n".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in shown.items())


def _table(title: str, note: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its cells are HTML, the heads are text."""
    top = "".join(f'<th scope="col"{_kind(head)}>{escape(head)}</th>' for head in heads)
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{_kind(h)}>{c}</td>" for h, c in zip(heads, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f"<h2>{escape(title)}</h2>\n<p>{escape(note)}</p>\n"
        f'<div class="wide"><table>\n<thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _kind(head: str) -> str:
    kinds = {"agent": "agent", "in the figures": "name", "a": "name", "b": "name"}
    return f' class="{kinds[head]}"' if head in kinds else ""


def _dot(results: Results, spec: str) -> str:
    return f'<i style="background:{results.colours[spec]}"></i>'


def _name(results: Results, spec: str) -> str:
    """Return what the figures call an agent, with its colour and its spec to point at."""
    name = f'<span title="{escape(spec)}">{escape(results.names[spec])}</span>'
    return _dot(results, spec) + name


def _agents_table(results: Results) -> str:
    rated = {rating.agent: rating for rating in results.ratings}
    rows = []
    for spec in results.agents:
        rating = rated.get(spec)
        games = len(results.games_of(spec)) if rating is None else rating.games
        row = [_dot(results, spec) + escape(spec), *(_rating_cells(rating) if rated else [])]
        rows.append([*row, f"{games:,}", escape(results.names[spec])])
    heads = ["agent", *(["Elo", "95 % interval"] if rated else []), "games", "in the figures"]
    note = "Elo in points, best first." if rated else "Best first, by score in all games."
    return _table("Ratings" if rated else "Agents", note, heads, rows)


def _rating_cells(rating: Rating | None) -> list[str]:
    if rating is None:
        return ["–", "–"]
    return [_whole(rating.elo), f"{_whole(rating.ci95[0])} to {_whole(rating.ci95[1])}"]


def _matches_table(results: Results) -> str:
    heads = ["a", "b", "games", "wins", "draws", "losses", "score", "95 % interval"]
    heads += ["points of a", "points of b"]
    note = "Wins, score and interval are a's; a draw is half a win. Points are means in a game."
    rows = [_match_row(results, match) for match in results.matches]
    return _table("Matches", note, heads, rows)


def _match_row(results: Results, match: Match) -> list[str]:
    data = match.to_dict()
    low, high = data["ci95"]
    return [
        _name(results, match.a),
        _name(results, match.b),
        *(f"{data[key]:,}" for key in ("games", "wins", "draws", "losses")),
        f"{data['score']:.1%}",
        f"{low:.1%} to {high:.1%}",
        *(f"{data['mean'][side]['total']:.1f}" for side in "ab"),
    ]


def _inline(svg: str, name: str, caption: str) -> str:
    """Return an SVG as part of a page: its own ids, the page's colours, nothing to load."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href")
    used = set(re.findall(r"#([\w.-]+)[\")]", svg))
    keep: Callable[[re.Match[str]], str] = lambda m: (  # noqa: E731
        f' id="{name}-{m[1]}"' if m[1] in used else ""
    )
    svg = re.sub(r' id="([^"]*)"', keep, svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    svg = svg.replace(f"fill: {PAPER}", "fill: none", 1)  # the figure's own ground
    for colour, variable in ((INK, "ink"), (FAINT, "faint")):
        svg = svg.replace(colour, f"var(--{variable}, {colour})")
    label = escape(caption)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()
