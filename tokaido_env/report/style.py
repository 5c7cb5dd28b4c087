"""How figures and pages look: colours, sizes, and Matplotlib's settings.

Colours are told apart with any colour vision: for agents Okabe and Ito's (2008), then four of
Tol's muted scheme (2021).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tokaido_env.core.extras import missing

PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#D6C700"),
    *("#332288", "#882255", "#999933", "#44AA99"),
)
CHARACTER_COLOURS = ("#0072B2", "#E69F00", "#009E73")  # faith, commerce, culture
ALL_GAMES = "#6b7280"
INK, FAINT, PAPER = "#1b1e24", "#c9ccd3", "#ffffff"
ON_COLOUR, ON_DARK = "#1a1d23", "#fefefe"  # text on a colour, the same in the dark
WIDTH, DPI = 10.0, 120  # inches, dots per inch: pictures of 1200 pixels

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


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the style of the reports, whatever a user's settings are."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise missing("figures need", error.name, "plots") from None
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        # A name may be in any script.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield
