"""Tables and figures of suites and generalisation.

The same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokaido_env.arena.generalisation import BoardScores, Generalisation
from tokaido_env.arena.intervals import Estimate
from tokaido_env.arena.suite import SuiteResult
from tokaido_env.core.arguments import escape_text
from tokaido_env.report.style import (
    FAINT,
    INK,
    PALETTE,
    WIDTH,
    drawing,
    new_axes,
    new_figure,
    save_figure,
)
from tokaido_env.report.tables import Table, with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 60  # characters of a spec in a title
TEST_COLOUR, TRAIN_COLOUR = PALETTE[0], PALETTE[5]

_HEIGHT = 5.4  # inches
_JITTER = 1.08  # factor between runs with equally many boards


# Suites


class Measured(NamedTuple):
    """A result of a suite with the agent's processor time per move, None if unknown."""

    result: SuiteResult
    seconds: float | None


def suite_tables(result: SuiteResult) -> list[Table]:
    """Return an agent's ratings by a suite, and its scores against each opponent."""
    title = f"{result.agent} on {result.suite}, {result.hash}: Elo points, mcts:sims=400 = 0"
    numbers = [
        ("TB-1, the default board", _elo(result.tb_1)),
        ("TB-G, the test boards", _elo(result.tb_g)),
        (f"the worst test board, {result.worst.board}", _elo(result.worst)),
    ]
    scores = [(one.opponent, f"{one.default:.1%}", f"{one.test:.1%}") for one in result.scores]
    return [
        Table(title, ("", "rating"), numbers),
        Table("Scores", ("against", "default board", "test boards"), scores),
    ]


def compared_suite(measured: Sequence[Measured]) -> Table:
    """Return several results of a suite, the best on the default board first."""
    first = measured[0].result
    title = f"{first.suite}, {first.hash}: Elo points, mcts:sims=400 = 0"
    rows = [
        (
            *(result.agent, _elo(result.tb_1), _elo(result.tb_g)),
            f"{_elo(result.worst)}, {result.worst.board}",
            "" if seconds is None else f"{seconds:.2g}",
        )
        for result, seconds in sorted(measured, key=lambda one: -one.result.tb_1.value)
    ]
    return Table(title, ("agent", "TB-1", "TB-G", "worst board", "core-seconds per move"), rows)


def _elo(rating: Estimate) -> str:
    return with_interval(rating.value, rating.ci95, "+.0f")


# Generalisation


def generalisation_table(result: Generalisation) -> Table:
    """Return an agent's scores on unseen boards, and on training boards."""
    title = f"{result.agent} against {result.opponent}, seed {result.seed}"
    headers = ("boards", "", "games", "mean score", "interquartile mean", "better than even")
    rows = []
    for scores in (result.test, result.train):
        if scores is not None:
            cells = [_share(x) for x in (scores.mean, scores.iqm, scores.above_even)]
            rows.append((scores.pool, f"{scores.boards:,}", f"{scores.games:,}", *cells))
    return Table(title, headers, rows)


def meaning(result: Generalisation) -> str:
    """Return the generalisation gap in a sentence."""
    if result.train is None or result.gap is None:
        return "No gap: there is no second match."
    known = "its training boards"
    if result.boards_trained_on is None:
        known = "unseen boards of train, as far as is known"
    return f"Gap, {result.test.pool} less {result.train.pool} ({known}): {_gap(result.gap)}"


def compared_generalisation(results: Sequence[Generalisation]) -> Table:
    """Return several results side by side, in the order given."""
    first = results[0].test
    pairs = f"{first.boards} boards, {first.pairs} pairs on each"
    headers = ("agent", "trained on", "score on test", "interquartile mean", "better than even")
    rows = []
    for result in results:
        test, train = result.test, result.train
        cells = [_share(x) for x in (test.mean, test.iqm, test.above_even)]
        cells.append("" if train is None else _share(train.mean))
        cells.append("" if result.gap is None else _gap(result.gap))
        rows.append((result.agent, result.trained_on or "", *cells))
    title = f"Against {results[0].opponent} on {first.pool}: {pairs}"
    return Table(title, (*headers, "score on train", "gap"), rows)


def narrow(table: Table) -> Table:
    """Return the comparison without one column, to fit a terminal."""
    rows = [tuple(cell.replace(" %", "") for cell in (*row[:3], *row[4:])) for row in table.rows]
    headers = (*table.headers[:3], *table.headers[4:])
    return table._replace(title=f"In %. {table.title}", headers=headers, rows=rows)


def _share(estimate: Estimate) -> str:
    return with_interval(estimate.value, estimate.ci95, ".1f", 100, " %")


def _gap(estimate: Estimate) -> str:
    return with_interval(estimate.value, estimate.ci95, "+.1f", 100, " %")


def check_comparable(results: Mapping[str, Generalisation]) -> None:
    """Check that results by name share opponent, boards, pairs and seed.

    Raises:
        ValueError: for the first that differs.
    """
    names, each = list(results), [_protocol(result) for result in results.values()]
    for name, protocol in zip(names, each, strict=True):
        if protocol != each[0]:
            theirs, ours = (
                ", ".join(map(escape_text, each_text)) for each_text in (protocol, each[0])
            )
            raise ValueError(f"{name}: expected the protocol of {names[0]}, {ours}; got {theirs}")


def _protocol(result: Generalisation) -> tuple[str, ...]:
    test = result.test
    pairs = f"{test.boards} boards of hash {test.hash}", f"{test.pairs} pairs on each"
    return f"against {result.opponent}", *pairs, f"seed {result.seed}"


# Figures of generalisation


def write_result_plots(result: Generalisation, folder: str | Path) -> list[Path]:
    """Draw an agent's scores per board as PNG and SVG; return the files."""
    with drawing():
        return save_figure(_draw_boards(result), Path(folder), "boards")


def write_curve_plots(results: Sequence[Generalisation], folder: str | Path) -> list[Path]:
    """Draw scores and gaps by number of training boards; return the files.

    Raises:
        ValueError: if this number is unknown for all agents.
    """
    trained = [(result.boards_trained_on, result) for result in results]
    known = [(boards, result) for boards, result in trained if boards is not None]
    if not known:
        raise ValueError(
            "--plots: expected an agent with a known number of training boards, got none: measure "
            "with --train N"
        )
    with drawing():
        return save_figure(_draw_curve(known), Path(folder), "curve")


def _draw_boards(result: Generalisation) -> Figure:
    sides = [(result.test, "unseen boards", TEST_COLOUR)]
    if result.train is not None:
        new = result.boards_trained_on is None
        what = "other boards" if new else "training boards"
        sides.append((result.train, what, TRAIN_COLOUR))
    games = sum(scores.games for scores, _, _ in sides)
    title = f"{escape_text(result.agent, MOST)}, board by board"
    figure = new_figure(_HEIGHT, title, f"{games:,} games")
    width = (WIDTH - 0.85) / len(sides)
    for i, (scores, what, colour) in enumerate(sides):
        left = 0.85 + i * width
        axes = new_axes(figure, left, 1.0, WIDTH - left - width + 0.25, 0.35)
        _draw_scores(axes, scores, colour)
        axes.set_title(f"{what}: {escape_text(scores.pool, MOST)}", fontsize=11, loc="left")
        if i == 0:
            axes.set_ylabel(f"% of points won against {escape_text(result.opponent, 30)}")
        else:
            axes.tick_params(labelleft=False)
    note = "dots: boards with 95 % intervals; band: 95 % interval of the mean of all boards"
    figure.text(0.85 / WIDTH, 0.2 / _HEIGHT, note, fontsize=10)
    return figure


def _draw_scores(axes: Axes, scores: BoardScores, colour: str) -> None:
    """Draw the scores per board, lowest first."""
    order = np.argsort([one.value for one in scores.each], kind="stable")
    each = [scores.each[i] for i in order]
    places = np.arange(1, len(each) + 1)
    lows, highs = (100 * np.array([score.ci95[end] for score in each]) for end in (0, 1))
    axes.vlines(places, lows, highs, color=colour, alpha=0.35, linewidth=max(1.0, 60 / len(each)))
    values = [100 * score.value for score in each]
    axes.plot(places, values, "o", color=colour, ms=max(3.0, 7 - len(each) / 20), clip_on=False)
    low, high = (100 * end for end in scores.mean.ci95)
    axes.axhspan(low, high, color=colour, alpha=0.18, linewidth=0)
    axes.axhline(100 * scores.mean.value, color=colour, linewidth=1.2)
    _even(axes)
    axes.set_ylim(0, 100)
    axes.set_xlim(0, len(each) + 1)
    text = f"mean {_share(scores.mean)}"
    place: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 10}
    axes.text(0.98, 0.04, text, weight="bold", ha="right", **place)
    axes.set_xlabel("boards, lowest score first")
    axes.locator_params(axis="x", integer=True)


def _even(axes: Axes) -> None:
    axes.axhline(50, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))


def _draw_curve(known: Sequence[tuple[int, Generalisation]]) -> Figure:
    opponent = escape_text(known[0][1].opponent, 30)
    runs = "1 agent" if len(known) == 1 else f"{len(known)} agents"
    figure = new_figure(2 * _HEIGHT - 2.6, "Scores by number of training boards", runs)
    height = float(figure.get_size_inches()[1])
    above = new_axes(figure, 0.95, height / 2 + 0.1, 0.3, 0.45)
    below = new_axes(figure, 0.95, 0.95, 0.3, height / 2 - 0.3)
    kinds: list[tuple[Axes, str, Callable[[Generalisation], Estimate | None], str]] = [
        (above, "on unseen boards", lambda one: one.test.mean, TEST_COLOUR),
        (
            above,
            "on training boards",
            _train_mean,
            TRAIN_COLOUR,
        ),
        (below, "gap", lambda one: one.gap, INK),
    ]
    for axes, label, value, colour in kinds:
        _draw_runs(axes, [(x, value(one)) for x, one in known], label, colour)
    _even(above)
    below.axhline(0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    above.set_ylabel(f"% of points won\nagainst {opponent}")
    below.set_ylabel("gap in points:\nunseen − training")
    above.legend(frameon=False, fontsize=10, loc="best")
    for axes in (above, below):
        _number_axis(axes, sorted({x for x, _ in known}))
    below.set_xlabel("number of training boards")
    note = "dots: agents with 95 % intervals; line: means of agents with equally many boards"
    figure.text(0.95 / WIDTH, 0.2 / height, note, fontsize=10)
    return figure


def _train_mean(result: Generalisation) -> Estimate | None:
    return None if result.train is None else result.train.mean


def _draw_runs(
    axes: Axes, points: Sequence[tuple[int, Estimate | None]], label: str, colour: str
) -> None:
    """Draw each run's value with its interval, and a line through the means."""
    runs: dict[int, list[Estimate]] = {}
    for boards, estimate in points:
        if estimate is not None:
            runs.setdefault(boards, []).append(estimate)
    for boards, estimates in runs.items():
        for i, estimate in enumerate(estimates):
            x = boards * _JITTER ** (i - (len(estimates) - 1) / 2)
            low, high = (100 * end for end in estimate.ci95)
            axes.plot([x, x], [low, high], color=colour, linewidth=1.5, alpha=0.6)
            axes.plot(x, 100 * estimate.value, "o", color=colour, ms=6)
    means = [(x, 100 * float(np.mean([one.value for one in runs[x]]))) for x in sorted(runs)]
    axes.plot(*zip(*means, strict=True), color=colour, linewidth=1.0, label=label)


def _number_axis(axes: Axes, numbers: Sequence[int]) -> None:
    """Set a logarithmic axis with the given numbers of boards."""
    axes.set_xscale("log")
    axes.set_xlim(numbers[0] / 1.6, numbers[-1] * 1.6)
    axes.set_xticks(numbers, [f"{number:,}" for number in numbers])
    axes.set_xticks([], minor=True)
    axes.grid(axis="y", color=FAINT)
