"""Style sheets of pictures: the look of each class of the SVG, in light and dark."""

from __future__ import annotations

import functools
from typing import Literal

from tokaido_env.core.constants import ICONS

Theme = Literal["light", "dark", "auto"]
THEMES = ("light", "dark", "auto")

# By class: light, dark. Seats differ in lightness and shape as well as in hue.
_COLOURS = {
    "paper": ("#ffffff", "#12161c"),
    "card": ("#f4f5f7", "#1c222b"),
    "ink": ("#1d2229", "#e9ebee"),
    "dim": ("#5a6472", "#a3adba"),
    "edge": ("#c3c9d2", "#3d4754"),
    "sea": ("#cfe4ef", "#14303f"),
    "land": ("#efe2bf", "#4a432f"),
    "route": ("#8b6b3d", "#c9a86a"),
    "spot": ("#fffdf6", "#20262f"),
    "moon": ("#ece3ad", "#57512f"),
    "waterfall": ("#b0d4c8", "#2c4751"),
    "mountain": ("#dccfbd", "#4d443b"),
    "bamboo": ("#cfe0b8", "#3a4b31"),
    "mark": ("#d55e00", "#ff9248"),
    "p0": ("#5b2a86", "#8f5cc4"),
    "p1": ("#8fce5a", "#9ddb6a"),
    "gold": ("#e0a800", "#f0bf2c"),
}
_ON_SEAT = ("#ffffff", "#14240a")  # letters on pawns
_FONT = "system-ui,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif"
_RULES = {  # {name} is a colour
    "": "font:13px {font}",
    "text": "fill:{ink}",
    ".dim": "fill:{dim}",
    ".small": "font-size:12.8px",
    ".big": "font-size:16px",
    ".huge": "font-size:20px",
    ".bold": "font-weight:700",
    ".mid": "text-anchor:middle",
    ".end": "text-anchor:end",
    ".paper": "fill:{paper}",
    ".card": "fill:{card};stroke:{edge}",
    ".sea": "fill:{sea}",
    ".land": "fill:{land};stroke:{route};stroke-opacity:.5",
    ".ring": "fill:none;stroke:{route};stroke-width:5;stroke-opacity:.35",
    ".road": "stroke:{route};stroke-width:4;stroke-linecap:round",
    ".spot": "fill:{spot};stroke:{ink};stroke-opacity:.55",
    ".town": "fill:{spot};stroke:{ink};stroke-width:2",
    ".sign": "fill:{ink}",
    ".line": "fill:none;stroke:{ink};stroke-width:2;stroke-linecap:round",
    ".faint": "opacity:.38",
    ".slot": "fill:{spot};stroke:{edge}",
    ".back": "fill:{edge}",
    ".gold": "fill:{gold};stroke:{ink};stroke-opacity:.5",
    ".mark": "fill:none;stroke:{mark};stroke-width:3.5;stroke-dasharray:7 3",
    ".percent": "fill:{mark};font-weight:700;paint-order:stroke;stroke:{paper};stroke-width:3px",
    ".halo": "paint-order:stroke;stroke:{spot};stroke-width:3px;stroke-opacity:.7",
    ".p0": "fill:{p0}",
    ".p1": "fill:{p1}",
    ".way0": "stroke:{p0};stroke-width:5;stroke-opacity:.55;fill:none;stroke-linecap:round",
    ".way1": "stroke:{p1};stroke-width:5;stroke-opacity:.8;fill:none;stroke-linecap:round",
    ".pawn": "stroke:{paper};stroke-width:2",
    ".on0": f"fill:{_ON_SEAT[0]};font-weight:700",
    ".on1": f"fill:{_ON_SEAT[1]};font-weight:700",
    **{f".{icon}": f"fill:{{{icon}}}" for icon in ICONS},
}


@functools.cache
def style(theme: Theme) -> str:
    """Return the CSS of a theme, "light", "dark" or "auto", for pictures of that theme only."""
    light, dark = _sheet(f".tokaido-{theme}", 0), _sheet(f".tokaido-{theme}", 1)
    if theme == "auto":
        return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
    return light if theme == "light" else dark


def _sheet(root: str, tone: int) -> str:
    colours = {name: tones[tone] for name, tones in _COLOURS.items()}
    return "".join(
        f"{root} {selector}{{{rule.format(font=_FONT, **colours)}}}".replace(" {", "{")
        for selector, rule in _RULES.items()
    )
