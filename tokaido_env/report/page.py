"""Report of matches, ratings and figures as one self-contained HTML page.

The same matches give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from tokaido_env.arena.match import Match
from tokaido_env.arena.ratings import Rating
from tokaido_env.files import write_text
from tokaido_env.report.figures import figures
from tokaido_env.report.page_tables import (
    Links,
    match_list,
    matrix,
    standings_table,
    text,
)
from tokaido_env.report.results import Results
from tokaido_env.report.style import FAINT, INK, PAPER, as_svg, drawing

_CSS = Path(__file__).with_name("page.css")

MOST_UNFOLDED = 10  # matches; more are folded together

# The page and its figures contain styles; browsers must run no script and load nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_FIGURE = """<figure class="wide" tabindex="0">{svg}</figure>"""

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
<nav aria-label="Sections">{parts}</nav>
<main>
{sections}
</main>
</body>
</html>
"""


def write_report(
    matches: Sequence[Match],
    ratings: Sequence[Rating],
    path: str | Path,
    *,
    title: str,
    command: str | None = None,
    seed: int | None = None,
    board: str | None = None,
    note: str | None = None,
    scale: str | None = None,
    games: Sequence[Links] = (),
) -> None:
    """Write standings, figures and matches as one HTML file, whole or not at all.

    Args:
        matches: as for `write_plots`.
        ratings: as for `write_plots`.
        path: the file.
        title: of the page.
        command: the command line that played the games.
        seed: of the games.
        board: its name.
        note: sentence at the top.
        scale: of the ratings, as from `tables.scale_of`.
        games: links to games of each match.

    Raises:
        ModuleNotFoundError: if matplotlib is missing.
        ValueError: if there is no match.
    """
    results = Results.of(matches, ratings)
    with drawing():
        drawn = {
            name: _FIGURE.format(svg=_inline(as_svg(figure, name), name, caption))
            for name, caption, figure in figures(results)
            if name != "scores"  # the matrix replaces it
        }
    elo = drawn.pop("ratings", "")
    sections = {
        "Standings": _standings(results, scale, elo),
        "Figures": "\n".join(drawn.values()),
        "All pairs": matrix(results),
        "Matches": _matches(results, games),
        "Command": "" if command is None else f"<pre><code>{text(command)}</code></pre>",
    }
    page = _PAGE.format(
        policy=_POLICY,
        css=_CSS.read_text(encoding="utf-8"),
        title=text(title),
        note="" if note is None else f"<p><strong>{text(note)}</strong></p>",
        facts=_facts({"seed": seed, "board": board}, results),
        **_parts({title: html for title, html in sections.items() if html}),
    )
    write_text(Path(path), page)


def _parts(sections: Mapping[str, str]) -> dict[str, str]:
    """Return the sections of the page, and links to them; the titles contain no foreign text."""
    names = {title: title.lower().replace(" ", "-") for title in sections}
    return {
        "parts": " ".join(f'<a href="#{name}">{title}</a>' for title, name in names.items()),
        "sections": "\n".join(
            f'<section id="{names[title]}">\n<h2>{title}</h2>\n{html}\n</section>'
            for title, html in sections.items()
        ),
    }


def _facts(facts: Mapping[str, object], results: Results) -> str:
    games = sum(match.results.size for match in results.matches)
    counts = {"agents": results.agents, "matches": results.matches}
    known = {name: f"{len(some):,}" for name, some in counts.items()} | {"games": f"{games:,}"}
    known |= {name: text(str(value)) for name, value in facts.items() if value is not None}
    return "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in known.items())


def _standings(results: Results, scale: str | None, figure: str) -> str:
    if not results.standings:
        return ""
    note = "Best first, by score in all games."
    if results.ratings:
        on = "" if scale is None else f" ({text(scale)})"
        note = f"Elo is relative, from these matches only{on}; it is not the ladder's."
    return f"<p>{note}</p>\n{standings_table(results)}\n{figure}"


def _matches(results: Results, games: Sequence[Links]) -> str:
    listed = match_list(results, games)
    if len(results.matches) <= MOST_UNFOLDED:
        return listed
    return f"<details><summary>{len(results.matches):,} matches</summary>\n{listed}\n</details>"


def _inline(svg: str, name: str, caption: str) -> str:
    """Return an SVG to embed: with unique ids and the page's colours, and nothing to load."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href")
    used = set(re.findall(r"#([\w.-]+)[\")]", svg))
    keep: Callable[[re.Match[str]], str] = lambda m: (  # noqa: E731
        f' id="{name}-{m[1]}"' if m[1] in used else ""
    )
    svg = re.sub(r' id="([^"]*)"', keep, svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    svg = svg.replace(f"fill: {PAPER}", "fill: none", 1)  # the background
    for colour, variable in ((INK, "ink"), (FAINT, "faint")):
        svg = svg.replace(colour, f"var(--{variable}, {colour})")
    label = escape(caption)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()
