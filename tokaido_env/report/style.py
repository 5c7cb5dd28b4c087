"""Style of figures, and reproducible PNG and SVG files.

The colours of agents suit all kinds of colour vision: the palette of Okabe and Ito (2008), then
four of Tol's muted scheme (2021).
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#D6C700"),
    *("#332288", "#882255", "#999933", "#44AA99"),
)
INK, FAINT, PAPER = "#1b1e24", "#c9ccd3", "#ffffff"
ON_COLOUR = "#1a1d23"  # text on colours, also in dark mode
WIDTH, DPI = 10.0, 120  # inches, dots per inch: pictures of 1200 pixels
BELOW_TITLE = 0.55  # inches from the title's baseline to the axes

STYLE: Any = {  # matplotlib's rcParams
    "font.size": 11,
    "text.color": INK,
    "text.parse_math": False,  # specs may contain dollar signs
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


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the style of the reports, independent of the user's settings.

    Raises:
        ExtraError: if matplotlib is missing.
    """
    require_extra("figures need", "plots", "matplotlib")
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        # A name may be in any script.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def new_figure(height: float, title: str, games: str) -> Figure:
    """Return an empty figure, `height` inches high, with its title and a text about its games."""
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
    """Write a figure as PNG and SVG to a folder, which this creates if needed; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {".png": _as_png(figure), ".svg": as_svg(figure, name).encode()}
    paths = []
    for suffix, content in contents.items():
        paths.append(folder / (name + suffix))
        with atomic_write(paths[-1]) as file:
            file.write(content)
    return paths


def as_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG text; its ids derive from the name, so a figure repeats exactly."""
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
