"""Tables and figure of calibration: an agent's expected and actual results.

The input is the data of the JSON file of `tokaido evaluate calibrate`. The same data give the same
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from tokaido_env.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

JsonDict = Mapping[str, Any]

MOST = 60  # characters of a spec in a title
ALLOWED = 0.02  # bias up to which an agent counts as calibrated, not tuned

_HEIGHT = 5.2  # inches


# Tables


def rounds_table(result: JsonDict) -> Table:
    """Return expected and actual results by group of rounds."""
    title = f"{result['agent']} against itself, seed {result['seed']}, board {result['board']}: "
    title += f"{result['games']:,} games"
    headers = ("rounds", "positions", "expected", "result", "bias", "95 % interval")
    rows = [_row(_rounds(row), row) for row in result["by_round"]]
    return Table(
        title, headers, [*rows, ("all", f"{result['positions']:,}", "", "", *_bias(result))]
    )


def reliability_table(result: JsonDict) -> Table:
    """Return actual results by bins of expected ones."""
    title = f"By expected result; expected calibration error {result['calibration_error']:.4f}"
    headers = ("expected from – to", "positions", "expected", "result", "bias", "95 % interval")
    rows = []
    for row in result["reliability"]:
        low, high = row["values"]
        rows.append(_row(f"{_signed(low, 1)} – {_signed(high, 1)}", row))
    return Table(title, headers, rows)


def errors_table(result: JsonDict) -> Table:
    """Return the errors of the expected results against results and rollouts."""
    rows = [("squared error against results", *_value(result["squared_error"], "mean"))]
    rolled, luck = result["rollouts"], result["luck"]
    if rolled is not None:
        each = f"{rolled['positions']:,} positions, {rolled['each']:,} rollouts each"
        rows.append(
            (
                f"RMS error against rollouts, without their noise: {each}",
                *_value(rolled["rms"], "value"),
            )
        )
        rows.append(("bias against rollouts", *_bias(rolled)))
    label = f"share of (result − first value) explained by luck: {luck['games']:,} games"
    rows.append((label, *_value(luck["explained"], "value")))
    return Table("Errors, of results from −1 to 1", ("", "value", "95 % interval"), rows)


def meaning(result: JsonDict) -> str:
    """Return a sentence on the groups of rounds in which the agent is calibrated."""
    off = [row for row in result["by_round"] if abs(row["bias"]["mean"]) > ALLOWED]
    who = escape_text(result["agent"], MOST)
    if not off:
        return f"{who} is calibrated: its bias is at most {ALLOWED} in every group of rounds."
    where = ", ".join(f"{_rounds(row)} ({_signed(row['bias']['mean'])})" for row in off)
    return f"{who} has a bias above {ALLOWED} in rounds {where}."


def _row(name: str, row: JsonDict) -> tuple[str, ...]:
    means = [_signed(row[key]["mean"]) for key in ("value", "result")]
    return (name, f"{row['bias']['n']:,}", *means, *_bias(row))


def _bias(row: JsonDict) -> tuple[str, str]:
    value, interval = row["bias"]["mean"], row["bias"]["ci95"]
    return _signed(value), "" if interval is None else " – ".join(map(_signed, interval))


def _value(estimate: JsonDict, key: str) -> tuple[str, str]:
    interval = estimate["ci95"]
    between = "" if interval is None else " – ".join(f"{bound:.3f}" for bound in interval)
    return f"{estimate[key]:.4f}", between


def _rounds(row: JsonDict) -> str:
    first, last = row["rounds"]
    return f"{first} and later" if last is None else f"{first} – {last}"


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


# Figures


def write_plots(result: JsonDict, folder: str | Path) -> list[Path]:
    """Draw reliability and bias as PNG and SVG; return the files."""
    with drawing():
        return save_figure(_draw(result), Path(folder), "calibration")


def _draw(result: JsonDict) -> Figure:
    title = f"{escape_text(result['agent'], MOST)}: expected and actual results"
    figure = new_figure(_HEIGHT, title, f"{result['games']:,} games")
    left = new_axes(figure, 0.85, 0.95, WIDTH / 2 + 0.25, 0.35)
    right = new_axes(figure, WIDTH / 2 + 0.75, 0.95, 0.25, 0.35)
    _draw_reliability(left, result["reliability"])
    _draw_rounds(right, result["by_round"])
    note = f"lines: 95 % intervals over games; band: a bias up to {ALLOWED}"
    figure.text(0.85 / WIDTH, 0.2 / _HEIGHT, note, fontsize=10)
    return figure


def _draw_reliability(axes: Axes, rows: Sequence[JsonDict]) -> None:
    axes.plot([-1, 1], [-1, 1], color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    for row in rows:
        _draw_point(axes, row["value"]["mean"], row["result"])
    axes.set_xlim(-1.02, 1.02)
    axes.set_ylim(-1.02, 1.02)
    axes.set_title("reliability", fontsize=11, loc="left")
    axes.set_xlabel("expected result, −1 to 1")
    axes.set_ylabel("mean actual result")


def _draw_rounds(axes: Axes, rows: Sequence[JsonDict]) -> None:
    axes.axhspan(-ALLOWED, ALLOWED, color=FAINT, alpha=0.4, linewidth=0)
    axes.axhline(0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    for place, row in enumerate(rows):
        _draw_point(axes, place, row["bias"])
    names = [_rounds(row).replace(" and later", "+") for row in rows]
    axes.set_xticks(range(len(rows)), names, fontsize=9)
    axes.set_title("bias: expected − actual result", fontsize=11, loc="left")
    axes.set_xlabel("round")


def _draw_point(axes: Axes, x: float, estimate: JsonDict) -> None:
    if estimate["ci95"] is not None:
        axes.plot([x, x], estimate["ci95"], color=PALETTE[0], linewidth=1.5, alpha=0.6)
    axes.plot(x, estimate["mean"], "o", color=PALETTE[0], ms=5)
