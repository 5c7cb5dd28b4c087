"""Static files of the pages and the widget: one JavaScript module and one style sheet."""

from __future__ import annotations

import re
from importlib import resources

from tokaido_env.render.style import style

_MODULES = ("form.js", "editors.js", "live_game.js")  # each imports earlier ones


def static_text(name: str) -> str:
    """Return the text of a static file."""
    return resources.files("tokaido_env.web").joinpath("static", name).read_text(encoding="utf-8")


def module_text() -> str:
    """Return the ES module of a live game in one piece, as notebooks need it."""
    parts = "\n".join(static_text(name) for name in _MODULES)
    return re.sub(r"^import .* from .*;$\n|^export (?!default)", "", parts, flags=re.MULTILINE)


def css_text() -> str:
    """Return the style sheet of live games, scoped to their element."""
    rules = static_text("page.css") + static_text("play.css")
    return f"{style('light')}{style('dark')}@scope (.tokaido-app) {{\n{rules}}}\n"
