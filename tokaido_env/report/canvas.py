"""Empty figures with their title, and figures as files: same figure, same bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from tokaido_env.files import whole_file
from tokaido_env.report.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BELOW_TITLE = 0.55  # inches between the title's baseline and the top of what it is about


def new_figure(height: float, title: str, games: str) -> Figure:
    """Return an empty figure with its title and how many games it is about."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.2 / WIDTH, 1 - 0.36 / height, title, fontsize=15, fontweight="bold")
    figure.text(1 - 0.2 / WIDTH, 1 - 0.36 / height, games, ha="right")
    return figure


def new_axes(figure: Figure, left: float, bottom: float, right: float, top: float) -> Axes:
    """Return axes with margins in inches, `top` from below the title."""
    width, height = figure.get_size_inches()
    rect = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - bottom - top - BELOW_TITLE) / height,
    )
    return figure.add_axes(rect)


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure to a folder, as PNG and as SVG: each whole or not at all; return the files."""
    contents = {".png": _as_png(figure), ".svg": as_svg(figure, name).encode()}
    paths = []
    for suffix, content in contents.items():
        paths.append(folder / (name + suffix))
        with whole_file(paths[-1]) as file:
            file.write(content)
    return paths


def as_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG; the name keeps its ids apart from those of others."""
    import matplotlib

    out = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata=nothing)
    return out.getvalue()


def _as_png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()
