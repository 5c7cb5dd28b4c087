"""Render modes of the environments.

| mode | `render()` |
|---|---|
| `"ansi"` | returns text of 80 columns, with colours if the output is a terminal that has them |
| `"rgb_array"` | returns pixels, uint8 (668, 1000, 3) |
| `"human"` | shows the pixels in a window; resets and steps then show them automatically |

PettingZoo's environment has all three. `gymnasium.make` adds `"human"` by a wrapper of Gymnasium's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import gymnasium

if TYPE_CHECKING:
    from tokaido_env.render.raster import Pixels
    from tokaido_env.render.scene import Scene

RENDER_MODES = ("ansi", "rgb_array")
RENDER_FPS = 2


def render(mode: str | None, current_scene: Callable[[], Scene]) -> str | Pixels | None:
    """Return text or pixels, uint8 (height, width, 3), depending on the mode.

    Args:
        mode: "ansi" for text, "rgb_array" for pixels, "human" for a window, None for nothing.
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

    pixels = rasterise(picture_of(current_scene(), "light"), WIDTH)
    if mode == "rgb_array":
        return pixels
    _show(pixels)
    return None


def _show(pixels: Pixels) -> None:
    """Show pixels in the window of this process, for one frame's time."""
    from tokaido_env.render.raster import import_extra

    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")
    pygame = import_extra("pygame")
    pygame.display.init()
    height, width, _ = pixels.shape
    surface = pygame.display.get_surface() or pygame.display.set_mode((width, height))
    surface.blit(pygame.image.frombuffer(pixels.tobytes(), (width, height), "RGB"), (0, 0))
    pygame.display.flip()
    pygame.event.pump()  # else the desktop reports a hanging window
    pygame.time.wait(round(1000 / RENDER_FPS))


def close_window() -> None:
    """Close the window of this process, which mode "human" opened, if there is one."""
    if (pygame := sys.modules.get("pygame")) is not None:
        pygame.display.quit()
