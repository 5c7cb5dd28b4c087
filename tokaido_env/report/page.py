"""A result as one self-contained HTML page: tables, figures, links to games, and the command.

The same result gives the same bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path

from tokaido_env.arena.result import Result
from tokaido_env.core.arguments import escape_text
from tokaido_env.files import write_text
from tokaido_env.report.figures import figures
from tokaido_env.report.result_tables import tables_of
from tokaido_env.report.style import as_svg, drawing
from tokaido_env.report.tables import html

_CSS = Path(__file__).with_name("page.css")

MOST = 2000  # characters of a command or the title
MOST_NAMED = 4  # agents in the title of a page

# Browsers must run no script and load nothing.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<h1>{title}</h1>
{note}
<dl>
{facts}
</dl>
<main>
{sections}
</main>
</body>
</html>
"""

Links = Sequence[tuple[str, str]]
"""Text and address of games."""


def write_page(
    result: Result, path: str | Path, *, note: str | None = None, games: Sequence[Links] = ()
) -> None:
    """Write a result as one HTML file, whole or not at all.

    Args:
        result: of any protocol.
        path: the file.
        note: sentence at the top.
        games: links to games of each score.

    Raises:
        ModuleNotFoundError: if matplotlib is missing.
    """
    with drawing():
        drawn = [
            f'<figure class="wide" tabindex="0"><img alt="{caption}" '
            f'src="{_data_address(as_svg(figure, name))}"></figure>'
            for name, caption, figure in figures(result)
        ]
    sections = {
        "Tables": "\n".join(
            f'<div class="wide">{html(table)}</div>' for table in tables_of(result)
        ),
        "Figures": "\n".join(drawn),
        "Games": _games(result, games),
        "Command": f"<pre><code>{text(result.command)}</code></pre>" if result.command else "",
    }
    many = len(result.agents) > MOST_NAMED
    title = f"{len(result.agents)} agents" if many else " – ".join(result.agents)
    page = _PAGE.format(
        policy=_POLICY,
        css=_CSS.read_text(encoding="utf-8"),
        title=text(title),
        note="" if note is None else f"<p><strong>{text(note)}</strong></p>",
        facts=_facts(result),
        sections="\n".join(
            f"<section>\n<h2>{name}</h2>\n{content}\n</section>"
            for name, content in sections.items()
            if content
        ),
    )
    write_text(Path(path), page)


def text(given: str) -> str:
    """Escape untrusted text for HTML, with unprintable characters as in `repr`, and shorten it."""
    return escape(escape_text(given, MOST))


def _facts(result: Result) -> str:
    known = {
        "protocol": result.protocol,
        "boards": ", ".join(boards.name for boards in result.boards),
        "seed": "" if result.seed is None else str(result.seed),
        "games": f"{sum(score.n for score in result.scores):,}",
        "tokaido_env": result.package,
        "hash": result.hash,
    }
    return "\n".join(
        f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>"
        for name, value in known.items()
        if value
    )


def _games(result: Result, games: Sequence[Links]) -> str:
    """Return the links to games by match; player_0 is named first."""
    parts = []
    for score, links in zip(result.scores, games, strict=False):
        items = "".join(f'<li><a href="{escape(to)}">{text(name)}</a></li>' for name, to in links)
        if items:
            parts.append(f"<h3>{text(score.a)} – {text(score.b)}</h3>\n<ul>{items}</ul>")
    return "\n".join(parts)


def _data_address(svg: str) -> str:
    return "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()
