"""Render modes of the environments.

| mode | `render()` |
|---|---|
| `"ansi"` | returns text of 80 columns, with colours if the output is a terminal that has them |
| `"rgb_array"` | returns pixels, uint8 (668, 1000, 3) |

`gymnasium.make(…, render_mode="human")` shows the pixels in a window of Gymnasium's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import gymnasium

from tokaido_env.core.arguments import check_choice

if TYPE_CHECKING:
    from tokaido_env.render.raster import Pixels
    from tokaido_env.render.scene import Scene

RENDER_MODES = ("ansi", "rgb_array")
RENDER_FPS = 2


def check_render_mode(mode: str | None) -> None:
    """Raise `ValueError` for anything else than a render mode or None."""
    check_choice("render_mode", mode, (None, *RENDER_MODES))


def render(mode: str | None, current_scene: Callable[[], Scene]) -> str | Pixels | None:
    """Return text or pixels, depending on the mode; pixels are uint8.

    Args:
        mode: a render mode, or None for an environment that does not render.
        current_scene: returns the scene; called only if the mode needs it.

    Raises:
        ModuleNotFoundError: if a package of the extra `[render]` is missing.
    """
    if mode is None:
        modes = " or ".join(map(repr, RENDER_MODES))
        gymnasium.logger.warn(f"render() does nothing without a render_mode: {modes}")
        return None
    if mode == "ansi":
        from tokaido_env.render.ansi import draw, has_colors

        return draw(current_scene(), color=has_colors(sys.stdout))
    from tokaido_env.render.raster import rasterise
    from tokaido_env.render.svg import WIDTH, draw as picture_of

    return rasterise(picture_of(current_scene(), "light"), WIDTH)
