"""The files that pages and notebooks show tables with, as one module and one style sheet."""

from __future__ import annotations

import re
from importlib import resources

from tokaido_env.render.style import style

_MODULES = ("form.js", "editors.js", "table.js")  # each imports those before it


def static_text(name: str) -> str:
    """Return a file as it stands."""
    return resources.files("tokaido_env.web").joinpath("static", name).read_text(encoding="utf-8")


def module_text() -> str:
    """Return the ES module that shows a table, whole: a notebook can import no part of it."""
    parts = "\n".join(static_text(name) for name in _MODULES)
    return re.sub(r"^import .* from .*;$\n|^export (?!default)", "", parts, flags=re.MULTILINE)


def sheet_text() -> str:
    """Return the style sheet of tables, which touches nothing outside of them."""
    own = static_text("page.css") + static_text("play.css")
    return f"{style('light')}{style('dark')}@scope (.tokaido-app) {{\n{own}}}\n"
