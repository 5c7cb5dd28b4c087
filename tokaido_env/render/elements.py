"""The elements that SVG pictures are made of: markup as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from tokaido_env.render.icons import Glyph
from tokaido_env.render.map_layout import Point

Parts = dict[str, str]  # markup by name, in the order in which it is drawn

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return text as markup; what XML does not allow, control characters, as U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", text))


def text_at(x: float, y: float, text: object, classes: str = "") -> str:
    """Write a line of text from a point on."""
    return f'<text x="{x:g}" y="{y:g}" class="{classes}">{escaped(str(text))}</text>'


def thing(title: str, *inside: str, at: Point = (0, 0), classes: str = "") -> str:
    """Return a group with its title, which readers and pointers find."""
    return (
        f'<g role="img" transform="translate({at[0]:g} {at[1]:g})" class="{classes}">'
        f"<title>{escaped(title)}</title>{''.join(inside)}</g>"
    )


def faint(markup: str) -> str:
    """Return markup drawn faintly, for a thing that is absent."""
    return f'<g class="faint">{markup}</g>'


def counted(glyph: Glyph, size: float, count: int, x: float, y: float, gap: float) -> str:
    """Draw a sign and a count, faintly if the count is 0."""
    drawn = glyph_at(glyph, size, x, y) + text_at(x + gap, y + 5, count, "bold")
    return drawn if count else faint(drawn)


def glyph_at(glyph: Glyph, size: float, x: float = 0, y: float = 0) -> str:
    """Draw a sign about a point, so many units wide."""
    fill = f'<path d="{glyph.fill}" class="sign"/>' if glyph.fill else ""
    line = f'<path d="{glyph.line}" class="line"/>' if glyph.line else ""
    return f'<g transform="translate({x:g} {y:g}) scale({size / 24:.3g})">{fill}{line}</g>'


def box(x: float, y: float, width: float, height: float, classes: str, corner: float = 3) -> str:
    """Draw a rectangle with round corners."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:g}" '
        f'class="{classes}"/>'
    )


def disc(x: float, y: float, radius: float, classes: str) -> str:
    """Draw a disc about a point."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{classes}"/>'


def path(points: Iterable[Point], classes: str, *, closed: bool = True) -> str:
    """Draw straight lines through points, and back to the first if `closed`."""
    line = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="M{line}{"Z" * closed}" class="{classes}"/>'


def pawn(seat: int, radius: float) -> str:
    """Draw a disc for player_0, a square for player_1."""
    if seat == 0:
        return disc(0, 0, radius, "p0 pawn")
    side = 1.8 * radius
    return box(-side / 2, -side / 2, side, side, "p1 pawn")
