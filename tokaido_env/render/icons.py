"""Icons of the pictures, drawn for this project: SVG paths around the origin, 24 units wide.

Icons differ in shape, so that readers do not depend on colours.
"""

from __future__ import annotations

from typing import NamedTuple


class Glyph(NamedTuple):
    """An icon of 24 by 24 units, as SVG path data.

    Attributes:
        fill: path data to fill.
        line: path data to stroke.
    """

    fill: str = ""
    line: str = ""


STATIONS = {
    "coastal town": Glyph("M-10 0 0 -9 10 0 7 0 7 9 2 9 2 3 -2 3 -2 9 -7 9 -7 0Z"),
    # Two curved roofs, one above the other, on posts.
    "temple": Glyph(
        "M-7 -4Q-2 -5 0 -11Q2 -5 7 -4L7 -2 -7 -2ZM-11 4Q-5 3 -4 -2L4 -2Q5 3 11 4L11 6 -11 6Z",
        "M-6 6V11M6 6V11M0 6V11",
    ),
    # A blossom of five petals.
    "garden": Glyph(
        "M0 -3A4 4 0 1 1 2.9 -.9A4 4 0 1 1 1.8 2.4A4 4 0 1 1 -1.8 2.4A4 4 0 1 1 -2.9 -.9"
        "A4 4 0 1 1 0 -3Z"
    ),
    # Steam over a basin.
    "hot spring": Glyph(
        "", "M-5 3Q-8 0 -5 -3T-5 -9M0 3Q-3 0 0 -3T0 -10M5 3Q2 0 5 -3T5 -9M-10 3Q-9 10 0 10T10 3"
    ),
    "seashore": Glyph(
        "",
        "M-11 -4Q-8 -9 -4 -5T4 -5 11 -5M-11 2Q-8 -3 -4 1T4 1 11 1M-11 8Q-8 3 -4 7T4 7 11 7",
    ),
}

ICONS = {
    "moon": Glyph("M4 -10A10 10 0 1 0 10 4A8 8 0 1 1 4 -10Z"),
    # Falling water between two cliffs, into a pool.
    "waterfall": Glyph(
        "M-11 -9H-5V5H-11ZM5 -9H11V5H5Z", "M-2 -9V4M2 -9V4M-11 9Q-7 6 -4 9T3 9 11 8"
    ),
    "mountain": Glyph("M-12 9 -3 -9 2 0 5 -5 12 9Z"),
    # Two stems with their joints, and leaves.
    "bamboo": Glyph(
        "M5 -3Q9 -9 12 -8 10 -3 5 -3ZM-4 1Q-8 -6 -11 -5 -10 1 -4 1ZM5 6Q9 1 12 2 10 7 5 6Z",
        "M-3 -11V11M4 -11V11M-5 -4H-1M-5 4H-1M2 -6H6M2 2H6",
    ),
}

WARES = {
    "kimono": Glyph("M-4 -10H4L12 -6 10 2 6 0V11H-6V0L-10 2 -12 -6ZM-1 -9 0 -4 1 -9Z"),
    "pottery": Glyph("M-4 -11H4V-8Q3 -6 6 -4 12 3 5 10H-5Q-12 3 -6 -4 -3 -6 -4 -8Z"),
    "doll": Glyph("M0 -11A5 5 0 1 1 0 -1 5 5 0 1 1 0 -11ZM-6 11Q-7 1 -3 0H3Q7 1 6 11Z"),
    "fan": Glyph(
        "M0 10 -12 -3A15 15 0 0 1 12 -3ZM-2 5 -6 -4M2 5 6 -4", "M0 9V-6M-1 9-6 -5M1 9 6 -5"
    ),
}

# One breaking wave: a tile looks different from a seashore.
WAVE = Glyph(
    "M-11 9Q-9 -8 3 -9 10 -8 10 -2 7 -6 3 -4 -1 -1 3 4 6 8 11 9Z",
)
# A tick.
GIVEN = Glyph("", "M-7 1 -2 6 7 -6")
SPRING = STATIONS["hot spring"]

GLYPHS = {**STATIONS, **ICONS, **WARES, "wave": WAVE, "given": GIVEN}  # of pages, by name
GLYPHS |= {
    "coin": Glyph("M0 -10A10 10 0 1 1 0 10A10 10 0 1 1 0 -10ZM-3 -3V3H3V-3Z"),
    "bag": Glyph("M-4 -8H4L9 2Q12 11 0 11 -12 11 -9 2ZM-5 -11H5V-9H-5Z"),
    "painting": Glyph("M-8 -11H8V11H-8ZM-5 -8V8H5V-8Z"),
}
