"""Static files of the pages and the widget: one JavaScript module and one style sheet."""

from __future__ import annotations

import json
import re
from importlib import resources

from tokaido_env.render.elements import glyph_at
from tokaido_env.render.icons import GLYPHS
from tokaido_env.render.style import style

# Each imports earlier ones.
_MODULES = ("motion.js", "form.js", "editors.js", "start.js", "exercises.js", "live_game.js")


def static_text(name: str) -> str:
    """Return the text of a static file."""
    return resources.files("tokaido_env.web").joinpath("static", name).read_text(encoding="utf-8")


def module_text() -> str:
    """Return the ES module of a live game in one piece, as notebooks need it."""
    return script_of(*_MODULES)


def script_of(*names: str) -> str:
    """Return modules in one piece, after the icons as markup by name."""
    glyphs = {name: glyph_at(glyph, 24) for name, glyph in GLYPHS.items()}
    text = "\n".join(map(static_text, names))
    text = re.sub(r"^import .* from .*;$\n|^export (?!default)", "", text, flags=re.MULTILINE)
    return f"const GLYPHS = {json.dumps(glyphs)};\n{text}"


def css_text() -> str:
    """Return the style sheet of live games, scoped to their element."""
    rules = static_text("page.css") + static_text("play.css")
    return f"{style('light')}{style('dark')}@scope (.tokaido-app) {{\n{rules}}}\n"
