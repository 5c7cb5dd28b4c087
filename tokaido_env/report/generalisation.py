"""Tables and figures of generalisation.

The same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.generalisation import (
    THRESHOLDS,
    BoardScores,
    Generalisation,
    improvement,
    over_seeds,
)
from tokaido_env.arena.intervals import Estimate, mean_over_seeds
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


def generalisation_tables(result: Generalisation) -> list[Table]:
    """Return an agent's scores on unseen boards and on training boards, and by opponent."""
    title = f"{result.agent} against {result.opponent}, seed {result.seed}"
    sides = [scores for scores in (result.test, result.train) if scores is not None]
    cells = [
        (f"{scores.boards:,}", f"{scores.games:,}", *map(_share, _figures(scores)))
        for scores in sides
    ]
    names = "boards", "games", *_FIGURES
    rows = [*zip(names, *cells, strict=True)]
    tables = [Table(title, ("", *(scores.pool for scores in sides)), rows)]
    if result.worst is not None and result.opponents_mean is not None:
        rows = [(one.opponent, _share(one)) for one in result.opponents]
        rows.append(("mean", _share(result.opponents_mean)))
        rows.append((f"worst: {result.worst.opponent}", _share(result.worst)))
        tables.append(Table(f"On {result.test.pool}", ("against", "mean score"), rows))
    return tables


_FIGURES = "mean score", "interquartile mean", "better than even", "worst tenth"


def _figures(scores: BoardScores) -> tuple[Estimate, ...]:
    return scores.mean, scores.iqm, scores.above_even, scores.worst_tenth


def meaning(result: Generalisation) -> str:
    """Return the generalisation gap in a sentence."""
    if result.train is None or result.gap is None:
        return "No gap: there is no second match."
    known = "its training boards"
    if result.boards_trained_on is None:
        known = "unseen boards of train, as far as is known"
    return f"Gap, {result.test.pool} less {result.train.pool} ({known}): {_gap(result.gap)}"


Methods = Sequence[Sequence[Generalisation]]
"""The results of the training seeds of each method."""


def methods_of(results: Sequence[Generalisation], seeds: int) -> Methods:
    """Return the results by method.

    Raises:
        ValueError: if the number of results is no multiple of the number of seeds.
    """
    if seeds < 1 or len(results) % seeds:
        raise ValueError(
            f"--runs: expected a divisor of {len(results)}, the number of files, got {seeds}"
        )
    return [results[first : first + seeds] for first in range(0, len(results), seeds)]


def compared_generalisation(methods: Methods) -> Table:
    """Return the results of methods side by side, in the order given.

    The last columns are the worst opponent's score, if all have several, and the probability that
    the method scores higher than the first one on a board.
    """
    first = methods[0][0]
    pairs = f"{first.test.boards} boards, {first.test.pairs} pairs on each"
    headers = ["agent", "trained on", "score on test", "interquartile mean", "better than even"]
    headers += ["worst tenth", "score on train", "gap"]
    worst = [[one.worst for one in runs if one.worst is not None] for runs in methods]
    headers += ["worst opponent"] * all(worst)
    headers += [f"better than {first.agent}"] * (len(methods) > 1)
    rows = []
    for runs, lowest in zip(methods, worst, strict=True):
        figures = zip(*(_figures(result.test) for result in runs), strict=True)
        cells = [_share(over_seeds(each)) for each in figures]
        if len(runs) > 1:
            cells[0] = _share(mean_over_seeds(_each(runs))[0])
        train = [result.train.mean for result in runs if result.train is not None]
        gaps = [result.gap for result in runs if result.gap is not None]
        cells.append(_share(over_seeds(train)) if train else "")
        cells.append(_gap(over_seeds(gaps, -1)) if gaps else "")
        if all(worst):
            cells.append(_share(over_seeds(lowest)))
        if len(methods) > 1:
            better = improvement(_each(runs), _each(methods[0]))
            cells.append("" if runs is methods[0] else _share(better))
        rows.append((_method_name(runs), runs[0].trained_on or "", *cells))
    return Table(f"Against {first.opponent} on {first.test.pool}: {pairs}", tuple(headers), rows)


def _method_name(runs: Sequence[Generalisation]) -> str:
    return runs[0].agent if len(runs) == 1 else f"{runs[0].agent}, {len(runs)} seeds"


def _each(runs: Sequence[Generalisation]) -> npt.NDArray[np.float64]:
    """Return the scores on each board, (runs, boards)."""
    return np.array([[one.value for one in result.test.each] for result in runs])


def narrow(table: Table) -> Table:
    """Return the comparison without some columns, to fit a terminal."""
    kept = [i for i in range(len(table.headers)) if i not in (3, 5, 6)]
    rows = [tuple(row[i].replace(" %", "") for i in kept) for row in table.rows]
    headers = tuple(table.headers[i] for i in kept)
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


# Figures


def write_result_plots(result: Generalisation, folder: str | Path) -> list[Path]:
    """Draw an agent's scores per board as PNG and SVG; return the files."""
    with drawing():
        return save_figure(_draw_boards(result), Path(folder), "boards")


def write_comparison_plots(methods: Methods, folder: str | Path) -> list[Path]:
    """Draw performance profiles, and scores by number of training boards; return the files.

    The second figure needs an agent of which this number is known.
    """
    results = [result for runs in methods for result in runs]
    trained = [(result.boards_trained_on, result) for result in results]
    known = [(boards, result) for boards, result in trained if boards is not None]
    with drawing():
        files = save_figure(_draw_profiles(methods), Path(folder), "profiles")
        return files + (save_figure(_draw_curve(known), Path(folder), "curve") if known else [])


def _draw_profiles(methods: Methods) -> Figure:
    """Draw the share of boards with a higher score, with its intervals."""
    first = methods[0][0]
    title = f"Performance profiles on {escape_text(first.test.pool, MOST)}"
    figure = new_figure(_HEIGHT, title, f"against {escape_text(first.opponent, 30)}")
    axes = new_axes(figure, 0.95, 0.8, 0.3, 0.45)
    levels = 100 * np.array(THRESHOLDS)
    for i, runs in enumerate(methods):
        each = zip(*(result.test.profile for result in runs), strict=True)
        points = [over_seeds(estimates) for estimates in each]
        lows, highs = (100 * np.array([one.ci95[end] for one in points]) for end in (0, 1))
        colour, name = PALETTE[i % len(PALETTE)], escape_text(_method_name(runs), 30)
        axes.fill_between(levels, lows, highs, color=colour, alpha=0.18, linewidth=0)
        axes.plot(levels, [100 * one.value for one in points], color=colour, label=name)
    axes.set_xlabel("score in %")
    axes.set_ylabel("% of boards with a higher score")
    axes.legend(frameon=False, fontsize=10, loc="best")
    return figure


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
