"""Regret as tables and a picture: what decisions of agents lose, in thousandths of a result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokaido_env.core.checks import plain
from tokaido_env.report.canvas import new_axes, new_figure, save_figure
from tokaido_env.report.style import FAINT, PALETTE, WIDTH, drawing
from tokaido_env.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Figures = dict[str, Any]

MAIN = ("agent", "regret", "at most", "errors", "blunders")
_DASH = "–"
_HEIGHT = 6.0  # inches
_BUDGETS = ("sims", "depth", "epsilon")
_TICKS = (0, 5, 10, 20, 50, 100, 200)


# Tables


def title_of(told: Figures) -> str:
    """Return what a set is, in a line.

    Args:
        told: {"name", "hash", "positions", "rollouts"}.
    """
    return f"{told['name']}, hash {told['hash']}, {told['positions']:,} positions"


def main_table(title: str, found: Sequence[Figures]) -> Table:
    """Return the regret of agents, in thousandths of a result, least first."""
    timed = any("core_seconds" in one for one in found)
    headers = (*MAIN, "core seconds") if timed else MAIN
    rows = []
    for one in in_order(found):
        shares = [f"{100 * one[key]['mean']:.1f} %" for key in ("errors", "blunders")]
        row = (one["agent"], with_interval(one["regret"]), _thousandths(one["at_most"]["mean"]))
        clock = (seconds(one.get("core_seconds")),) if timed else ()
        rows.append((*row, *shares, *clock))
    return Table(f"{title}: regret a choice, in 1/1000 of a result", headers, rows)


def policies_table(policies: Sequence[str], found: Sequence[Figures]) -> Table:
    """Return the regret of agents by the rollouts of each policy alone."""
    rows = [
        (one["agent"], *(with_interval(one[f"by_{policy}"]) for policy in policies))
        for one in in_order(found)
    ]
    return Table("by whose rollouts", ("agent", *policies), rows)


def groups_table(key: str, found: Sequence[Figures]) -> Table:
    """Return the regret of agents by boards, phase or rounds."""
    names = list(found[0][key])
    rows = [
        (one["agent"], *(with_interval(one[key][name]) for name in names))
        for one in in_order(found)
    ]
    return Table(f"by {key}", ("agent", *names), rows)


def differences_table(differences: Sequence[Figures]) -> Table:
    """Return how much more regret agents have than others in the same positions."""
    rows = [(one["a"], one["b"], with_interval(one, sign=True)) for one in differences]
    return Table("paired, in 1/1000 of a result", ("agent", "than", "more"), rows)


def in_order(found: Sequence[Figures]) -> list[Figures]:
    """Return agents, the one with the least regret first."""
    return sorted(found, key=lambda one: float(one["regret"]["mean"]))


def markdown_of(table: Table) -> str:
    """Return a table in Markdown; the first column is code."""
    rows = [table.headers, ("---",) * len(table.headers)]
    rows += [(f"`{_cell(first)}`", *map(_cell, others)) for first, *others in table.rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_interval(estimate: Figures, *, sign: bool = False) -> str:
    """Return a mean with its interval, in thousandths."""
    low, high = (_thousandths(bound, sign=sign) for bound in estimate["ci95"])
    return f"{_thousandths(estimate['mean'], sign=sign)} ({low} to {high})"


def seconds(value: float | None) -> str:
    """Return core seconds a decision to two figures, a dash if they were not measured."""
    return _DASH if value is None else f"{value:.2g}"


def _thousandths(value: float, *, sign: bool = False) -> str:
    return f"{1000 * value:{'+' if sign else ''}.1f}".replace("-", "−")


def _cell(text: str) -> str:
    """Return a text that a stranger may have written as a cell of a table."""
    return plain(text).translate({ord("|"): "/", ord("`"): "'"})


# The picture


def write_plot(title: str, found: Sequence[Figures], folder: Path) -> list[Path]:
    """Draw regret against core seconds a decision, of agents that were timed; return the files."""
    with drawing():
        return save_figure(_draw(title, found), folder, "regret")


def _series(spec: str) -> str:
    """Return what agents have in common that differ by how long they think, or by their errors."""
    kind, _, rest = spec.partition(":")
    kept = [one for one in rest.split(",") if one and one.partition("=")[0] not in _BUDGETS]
    return " ".join([kind, *kept])


def _draw(title: str, found: Sequence[Figures]) -> Figure:
    figure = new_figure(_HEIGHT, "What a decision loses, and what it takes", "")
    axes = new_axes(figure, 0.95, 0.95, 0.3, 0.2)
    kinds: dict[str, list[Figures]] = {}
    for one in found:
        kinds.setdefault(_series(one["agent"]), []).append(one)
    for number, (kind, several) in enumerate(kinds.items()):
        colour = PALETTE[number % len(PALETTE)]
        x = [one["core_seconds"] for one in several]
        y = [1000 * one["regret"]["mean"] for one in several]
        axes.plot(x, y, "o-", color=colour, linewidth=1.0, ms=6, label=plain(kind, 30))
        for place, one in zip(x, several, strict=True):
            low, high = (1000 * end for end in one["regret"]["ci95"])
            axes.plot([place, place], [low, high], color=colour, linewidth=1.5, alpha=0.6)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_yticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_formatter(lambda place, _: f"{place:g}")
    axes.grid(axis="y", color=FAINT)
    axes.set_xlabel("core seconds a decision")
    axes.set_ylabel("regret a choice, in 1/1000 of a result")
    axes.legend(frameon=False, fontsize=10, loc="best")
    figure.text(0.95 / WIDTH, 0.2 / _HEIGHT, plain(title, 100), fontsize=10)
    return figure
