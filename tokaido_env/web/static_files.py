"""Static files of the pages and the widget: their scripts and one style sheet."""

from __future__ import annotations

import json
import re
from importlib import resources

from tokaido_env.render.elements import glyph_at
from tokaido_env.render.icons import GLYPHS
from tokaido_env.render.style import style

# Each imports earlier ones.
_FRAMES = ("dom.js", "frames.js")
_LIVE = ("help.js", "start.js", "live_game.js")
_PAGE = """body, #connection { margin: 0; }
@media (prefers-color-scheme: dark) { body { background: #12161c; } }
@media (max-width: 899px) { html:has(.turn) { scroll-padding-bottom: 46vh; } }"""


def static_text(name: str) -> str:
    """Return the text of a file in `web/static`, by its name."""
    return resources.files("tokaido_env.web").joinpath("static", name).read_text(encoding="utf-8")


def module_text() -> str:
    """Return the JavaScript module of a live game in one piece, as notebooks need it."""
    return _script_of(*_FRAMES, *_LIVE)


def page_script() -> str:
    """Return the JavaScript of a page of recorded games in one piece."""
    return _script_of(*_FRAMES, "recorded.js")


def _script_of(*names: str) -> str:
    """Return modules in one piece, after the icons as markup by name."""
    glyphs = {name: glyph_at(glyph, 24) for name, glyph in GLYPHS.items()}
    text = "\n".join(map(static_text, names))
    text = re.sub(r"^import .* from .*;$\n|^export (?!default)", "", text, flags=re.MULTILINE)
    return f"const GLYPHS = {json.dumps(glyphs)};\n{text}"


def page_style() -> str:
    """Return the CSS of a whole page, with that of `css_text`."""
    return f"{_PAGE}\n{css_text()}"


def css_text() -> str:
    """Return the CSS of games' frames and pictures, scoped to `.tokaido-app`."""
    rules = static_text("page.css") + static_text("play.css")
    return f"{style('auto')}@scope (.tokaido-app) {{\n{rules}}}\n"
