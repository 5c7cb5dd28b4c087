"""Matches, ratings and figures as one HTML page that needs nothing beside it.

Same matches, same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from tokaido_env.agents.arena.match import Match
from tokaido_env.agents.arena.ratings import Rating
from tokaido_env.agents.report.canvas import as_svg
from tokaido_env.agents.report.figures import figures, whole
from tokaido_env.agents.report.results import Results
from tokaido_env.agents.report.style import FAINT, INK, PAPER, drawing
from tokaido_env.core.checks import plain
from tokaido_env.files import write_text

MOST = 2000  # characters of a spec, a command or the title that are shown

# Styles stand in the page and in its figures; no script and nothing from elsewhere ever runs here.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_FIGURE = """<figure class="wide">{svg}</figure>"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1b1e24; --soft: #5b616c; --faint: #c9ccd3;
  --paper: #ffffff; --stripe: #f4f5f7; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e8eaee; --soft: #a4abb8; --faint: #434955; --paper: #14161a;
    --stripe: #1d2026; }}
}}
body {{ max-width: 75rem; margin: 0 auto; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.2rem; margin-top: 2rem; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }}
dt {{ color: var(--soft); }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.3rem 0.6rem; text-align: right; white-space: nowrap; }}
th {{ border-bottom: 2px solid var(--faint); font-weight: 600; }}
tbody tr:nth-child(even) {{ background: var(--stripe); }}
.agent, .name {{ text-align: left; padding-left: 1.9rem; }}
td.agent, td.name {{ position: relative; }}
.agent {{ white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }}
td i {{ position: absolute; left: 0.7rem; top: 0.75rem; width: 0.7rem; height: 0.7rem;
  border-radius: 50%; }}
figure {{ margin: 1.5rem 0; padding: 0.5rem; border: 1px solid var(--faint);
  border-radius: 0.5rem; }}
figure svg {{ display: block; width: 100%; min-width: 40rem; height: auto; }}
p {{ color: var(--soft); font-size: 0.9rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
<dl>
{facts}
</dl>
{agents}
{matches}
<h2>Figures</h2>
{figures}
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
) -> None:
    """Write tables and figures as one HTML file that loads nothing: whole or not at all.

    Args:
        matches: as for `write_plots`.
        ratings: as for `write_plots`.
        path: the file.
        title: of the page.
        command: the command line that played the games.
        seed: of the games.
        board: its name.

    Raises:
        ModuleNotFoundError: if matplotlib is missing.
        ValueError: if there is no match.
    """
    results = Results.of(matches, ratings)
    facts = {"command": command, "seed": seed, "board": board}
    with drawing():
        drawn = [
            _FIGURE.format(svg=_inline(as_svg(figure, name), name, caption))
            for name, caption, figure in figures(results)
        ]
    page = _PAGE.format(
        policy=_POLICY,
        title=_text(title),
        facts=_facts(facts, results),
        agents=_agents_table(results),
        matches=_matches_table(results),
        figures="\n".join(drawn),
    )
    write_text(Path(path), page)


def _text(text: str) -> str:
    """Return text that a stranger may have written as HTML: short, in the order it was written."""
    return escape(plain(text, MOST))


def _facts(facts: Mapping[str, object], results: Results) -> str:
    games = sum(match.results.size for match in results.matches)
    known = {name: value for name, value in facts.items() if value is not None}
    known |= {"agents": len(results.agents), "games": f"{games:,}"}
    shown = {name: _text(str(value)) for name, value in known.items()}
    if "command" in shown:
        shown["command"] = f"<code>{shown['command']}</code>"
    return "\n".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in shown.items())


def _table(title: str, note: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its cells are HTML, the heads are text."""
    top = "".join(f'<th scope="col"{_kind(head)}>{escape(head)}</th>' for head in heads)
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{_kind(h)}>{c}</td>" for h, c in zip(heads, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f"<h2>{escape(title)}</h2>\n<p>{escape(note)}</p>\n"
        f'<div class="wide"><table>\n<thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _kind(head: str) -> str:
    kinds = {"agent": "agent", "in the figures": "name", "a": "name", "b": "name"}
    return f' class="{kinds[head]}"' if head in kinds else ""


def _dot(results: Results, spec: str) -> str:
    return f'<i style="background:{results.colours[spec]}"></i>'


def _name(results: Results, spec: str) -> str:
    """Return what the figures call an agent, with its colour and its spec to point at."""
    name = f'<span title="{_text(spec)}">{escape(results.names[spec])}</span>'
    return _dot(results, spec) + name


def _agents_table(results: Results) -> str:
    rated = {rating.agent: rating for rating in results.ratings}
    rows = []
    for spec in results.agents:
        rating = rated.get(spec)
        games = len(results.games_of(spec)) if rating is None else rating.games
        row = [_dot(results, spec) + _text(spec), *(_rating_cells(rating) if rated else [])]
        rows.append([*row, f"{games:,}", escape(results.names[spec])])
    heads = ["agent", *(["Elo", "95 % interval"] if rated else []), "games", "in the figures"]
    note = "Elo in points, best first." if rated else "Best first, by score in all games."
    return _table("Ratings" if rated else "Agents", note, heads, rows)


def _rating_cells(rating: Rating | None) -> list[str]:
    if rating is None:
        return ["–", "–"]
    return [whole(rating.elo), f"{whole(rating.ci95[0])} to {whole(rating.ci95[1])}"]


def _matches_table(results: Results) -> str:
    heads = ["a", "b", "games", "wins", "draws", "losses", "score", "95 % interval"]
    heads += ["points of a", "points of b"]
    note = "Wins, score and interval are a's; a draw is half a win. Points are means in a game."
    rows = [_match_row(results, match) for match in results.matches]
    return _table("Matches", note, heads, rows)


def _match_row(results: Results, match: Match) -> list[str]:
    data = match.to_dict()
    low, high = data["ci95"]
    return [
        _name(results, match.a),
        _name(results, match.b),
        *(f"{data[key]:,}" for key in ("games", "wins", "draws", "losses")),
        f"{data['score']:.1%}",
        f"{low:.1%} to {high:.1%}",
        *(f"{data['mean'][side]['total']:.1f}" for side in "ab"),
    ]


def _inline(svg: str, name: str, caption: str) -> str:
    """Return an SVG as part of a page: its own ids, the page's colours, nothing to load."""
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
    svg = svg.replace(f"fill: {PAPER}", "fill: none", 1)  # the figure's own ground
    for colour, variable in ((INK, "ink"), (FAINT, "faint")):
        svg = svg.replace(colour, f"var(--{variable}, {colour})")
    label = escape(caption)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()
