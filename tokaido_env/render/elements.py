"""Building blocks of SVG pictures, as markup text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from tokaido_env.render.icons import Glyph
from tokaido_env.render.map_layout import Point

Parts = dict[str, str]  # markup by name, in drawing order

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return text as XML markup, with U+FFFD for control characters that XML forbids."""
    return escape(_NOT_XML.sub("\ufffd", text))


def text_at(x: float, y: float, text: object, classes: str = "") -> str:
    """Return SVG of a line of text, escaped, that starts at a point; lengths in user units."""
    return f'<text x="{x:g}" y="{y:g}" class="{classes}">{escaped(str(text))}</text>'


def titled_group(title: str, *inside: str, at: Point = (0, 0), classes: str = "") -> str:
    """Return SVG of markup `inside` a group at a point, titled for screen readers and tooltips."""
    return (
        f'<g role="img" transform="translate({at[0]:g} {at[1]:g})" class="{classes}">'
        f"<title>{escaped(title)}</title>{''.join(inside)}</g>"
    )


def faint(markup: str) -> str:
    """Return SVG of markup drawn faint, for an absent object."""
    return f'<g class="faint">{markup}</g>'


def counted(glyph: Glyph, size: float, count: int, x: float, y: float, gap: float) -> str:
    """Return SVG of an icon and, `gap` units to its right, a count; faint if the count is 0."""
    drawn = glyph_at(glyph, size, x, y) + text_at(x + gap, y + 5, count, "bold")
    return drawn if count else faint(drawn)


def glyph_at(glyph: Glyph, size: float, x: float = 0, y: float = 0) -> str:
    """Return SVG of an icon, `size` units wide, centred at a point."""
    fill = f'<path d="{glyph.fill}" class="sign"/>' if glyph.fill else ""
    line = f'<path d="{glyph.line}" class="line"/>' if glyph.line else ""
    return f'<g transform="translate({x:g} {y:g}) scale({size / 24:.3g})">{fill}{line}</g>'


def box(x: float, y: float, width: float, height: float, classes: str, corner: float = 3) -> str:
    """Return SVG of a rectangle by its top left, with corners of radius `corner`."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:g}" '
        f'class="{classes}"/>'
    )


def disc(x: float, y: float, radius: float, classes: str) -> str:
    """Return SVG of a disc centred at a point; `classes` are those of CSS."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{classes}"/>'


def path(points: Iterable[Point], classes: str, *, closed: bool = True) -> str:
    """Return SVG of straight lines through points, and back to the first one if `closed`."""
    line = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="M{line}{"Z" * closed}" class="{classes}"/>'


def pawn(seat: int, radius: float) -> str:
    """Return SVG, around the origin, of a disc for player_0 or a square for player_1."""
    if seat == 0:
        return disc(0, 0, radius, "p0 pawn")
    side = 1.8 * radius
    return box(-side / 2, -side / 2, side, side, "p1 pawn")
