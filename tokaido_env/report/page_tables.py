"""Tables of the report page: standings, a matrix of all pairs, and each match folded.

Text that users or files provide goes through `text`, or is a short name, escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from tokaido_env.arena.intervals import score_interval
from tokaido_env.arena.match import Match
from tokaido_env.core.arguments import escape_text
from tokaido_env.report import tables
from tokaido_env.report.results import Results, results_between
from tokaido_env.report.standings import forfeits_of, has_forfeits

MOST = 2000  # characters of a spec, a command or the title
DETAILED_AGENTS = 8  # up to so many the matrix is open and has intervals
OPEN_MATCHES = 3  # up to so many are open

Links = Mapping[int, str]
"""Addresses of games by their index in the flattened `match.games`."""


def text(given: str) -> str:
    """Return foreign text as HTML: short, without control characters that reorder it."""
    return escape(escape_text(given, MOST))


# Standings


_CLASSES = {"Elo": "elo", "95 % interval": "interval"} | {
    f"as player_{seat}": "seat" for seat in range(2)
}


def standings_table(results: Results) -> str:
    """Return the standings as a table, which the style sheet turns into a list on phones."""
    table = tables.standings_table(results.standings, "")
    classes = [_CLASSES.get(header, header) for header in table.headers]
    columns = list(zip(classes, table.headers, strict=True))
    top = "".join(f'<th scope="col" class="{name}">{header}</th>' for name, header in columns)
    rows = []
    for row, cells in zip(results.standings, table.rows, strict=True):
        line = ""
        for (name, header), cell in zip(columns, cells, strict=True):
            if name == "agent":
                agent = _agent(results, row.agent)
                line += f'<th role="rowheader" scope="row" class="agent">{agent}</th>'
            else:
                label = "" if name == "rank" else f' data-name="{header}"'
                line += f'<td role="cell" class="{name}"{label}>{cell}</td>'
        rows.append(f'<tr role="row">{line}</tr>')
    body = "\n".join(rows)
    return (
        f'<table class="standings" role="table">\n<thead role="rowgroup">'
        f'<tr role="row">{top}</tr></thead>\n<tbody role="rowgroup">\n{body}\n</tbody>\n</table>'
    )


def _agent(results: Results, spec: str) -> str:
    """Return an agent's colour and spec, and its short name if that differs."""
    name = results.names[spec]
    called = "" if name == spec else f" <small>{escape(name)}</small>"
    return f"{_dot(results, spec)}{text(spec)}{called}"


def _dot(results: Results, spec: str) -> str:
    return f'<i style="background:{results.colours[spec]}"></i>'


# The matrix


def matrix(results: Results) -> str:
    """Return the scores of all pairs, row against column, folded if there are many."""
    agents = results.agents
    heads = "".join(
        f'<th scope="col" title="{_name(results, spec)}">{place}</th>'
        for place, spec in enumerate(agents, start=1)
    )
    rows = "\n".join(_matrix_row(results, place) for place in range(len(agents)))
    opened = " open" if len(agents) <= DETAILED_AGENTS else ""
    return (
        f"<details{opened}><summary>Scores of {len(agents)} agents against each other</summary>\n"
        "<p>% of games won by the row against the column, half of the draws included. "
        "A cell links to its match.</p>\n"
        '<div class="matrix" tabindex="0" role="region" aria-label="Scores of all pairs">'
        f'<table>\n<thead><tr><th scope="col">agent</th>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>\n</details>"
    )


def _matrix_row(results: Results, place: int) -> str:
    spec = results.agents[place]
    cells = "".join(_matrix_cell(results, spec, other) for other in results.agents)
    name = _name(results, spec)
    head = f'<th scope="row" title="{name}"><span>{place + 1} {name}</span></th>'
    return f"<tr>{head}{cells}</tr>"


def _matrix_cell(results: Results, a: str, b: str) -> str:
    played = results_between(results.matches, a, b)
    if played is None:
        return '<td class="none"></td>'
    score, (low, high) = float(played.mean()), score_interval(played)
    number = next(i for i, m in enumerate(results.matches, start=1) if {m.a, m.b} == {a, b})
    detailed = len(results.agents) <= DETAILED_AGENTS
    percent = f"{100 * score:.1f}" if detailed else f"{100 * score:.0f}"
    below = f"<small>{100 * low:.0f}–{100 * high:.0f}</small>" if detailed else ""
    tooltip = (
        f"{_name(results, a)} {score:.1%} ({low:.1%} to {high:.1%}) against {_name(results, b)}, "
        f"{played.size:,} games"
    )
    kind, much = ("won" if score >= 0.5 else "lost"), round(2 * abs(score - 0.5), 2)
    return (
        f'<td class="{kind}" style="--much:{much}">'
        f'<a href="#match-{number}" title="{tooltip}">{percent}{below}</a></td>'
    )


def _name(results: Results, spec: str) -> str:
    """Return the short name of an agent, escaped."""
    return escape(results.names[spec])


# Matches


def match_list(results: Results, games: Sequence[Links]) -> str:
    """Return all matches, folded, those of the best agents first.

    Args:
        results: of the matches.
        games: links to games of each match.
    """
    places = {spec: place for place, spec in enumerate(results.agents)}
    order = sorted(
        range(len(results.matches)),
        key=lambda i: sorted(places[s] for s in (results.matches[i].a, results.matches[i].b)),
    )
    opened = len(order) <= OPEN_MATCHES
    each = [_match(results, i, games[i] if games else {}, opened) for i in order]
    return "\n".join(each)


def _match(results: Results, i: int, games: Links, opened: bool) -> str:
    match = results.matches[i]
    behind = results.agents.index(match.a) > results.agents.index(match.b)
    sides = (1, 0) if behind else (0, 1)
    names = [_name(results, (match.a, match.b)[side]) for side in sides]
    score = 1 - match.score if behind else match.score
    linked = "".join(
        f'<li><a href="{escape(href)}">{_game(results, match, place)}</a></li>'
        for place, href in games.items()
    )
    listed = f"<p>Games to replay, player_0 first:</p>\n<ul>{linked}</ul>" if linked else ""
    return (
        f'<details class="match"{" open" if opened else ""}><summary>{names[0]} <b>{score:.1%}</b> '
        f"against {names[1]}, {match.results.size:,} games</summary>\n"
        f'<div id="match-{i + 1}">{_match_table(results, match, sides)}{listed}</div></details>'
    )


def _match_table(results: Results, match: Match, sides: Sequence[int]) -> str:
    specs = (match.a, match.b)
    heads = "".join(
        f'<th scope="col">{_dot(results, spec)} <span title="{text(spec)}">{_name(results, spec)}'
        "</span></th>"
        for spec in (specs[side] for side in sides)
    )
    columns = [_side(results, match, side) for side in sides]
    rows = "\n".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{c[name]}</td>" for c in columns)}</tr>'
        for name in columns[0]
    )
    return (
        f'<div class="wide"><table>\n<thead><tr><td></td>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>\n"
    )


def _side(results: Results, match: Match, side: int) -> dict[str, str]:
    """Return the figures of one agent of a match by name."""
    own = 1 - match.results if side else match.results
    low, high = score_interval(own)
    forfeits = has_forfeits(results.standings)
    return {
        "score": f"{own.mean():.1%}",
        "95 % interval": f"{low:.1%} to {high:.1%}",
        "wins": f"{int((own == 1.0).sum()):,}",
        "draws": f"{int((own == 0.5).sum()):,}",
        **({"lost by forfeit": f"{forfeits_of(match, side):,}"} if forfeits else {}),
        **{f"points, {name}": f"{mean:.1f}" for name, mean in match.mean_points(side).items()},
    }


def _game(results: Results, match: Match, place: int) -> str:
    """Return players, points and rounds of a game."""
    game = match.games.reshape(-1)[place]
    specs, points = (match.a, match.b), game["points"].sum(axis=1, dtype=np.int64)
    order = (1, 0) if game["seat_of_a"] else (0, 1)
    one, other = (f"{_name(results, specs[s])} {points[s]}" for s in order)
    return f"{one} – {other}, {int(game['rounds'])} rounds"
