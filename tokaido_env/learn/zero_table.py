"""What a run of expert iteration tells as it goes: a table, and TensorBoard's logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokaido_env.learn.metrics import Events

Figures = dict[str, Any]

_COLUMNS: dict[str, Callable[[Figures], str]] = {
    "round": lambda one: f"{one['round']}",
    "units": lambda one: f"{one['units']}",
    "positions": lambda one: f"{one['positions']:,}",
    "positions/s": lambda one: f"{one['positions_a_second']:,}",
    "samples/position": lambda one: f"{one['samples_a_position']:g}",
    "lag": lambda one: f"{one['lag']:g}",
    "loss": lambda one: f"{one['loss']:.4f}",
    "gate": lambda one: f"{'passed' if one['passed'] else 'held'} {one['score']:.1%}",
    "games": lambda one: f"{one['games']:,}",
    "Elo": lambda one: f"{one['elo']:.0f} ({one['ci95'][0]:.0f} to {one['ci95'][1]:.0f})",
}
_WIDTHS = (5, 6, 11, 11, 16, 5, 7, 13, 6, 20)


def heading() -> str:
    """Return the line above the rows: positions are new ones, lag is in rounds."""
    return _line(list(_COLUMNS))


def row(figures: Figures) -> str:
    """Return a round as a line: what is not known of it is left empty."""
    return _line([_cell(cell, figures) for cell in _COLUMNS.values()])


def log(folder: Path, figures: Figures) -> None:
    """Write the numbers of a round for TensorBoard."""
    events = Events(folder / "tb")
    events.write(int(figures["round"]), figures)
    events.close()


def _cell(cell: Callable[[Figures], str], figures: Figures) -> str:
    try:
        return cell(figures)
    except KeyError:
        return ""


def _line(cells: list[str]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
