"""Render modes of the environments.

| mode | `render()` |
|---|---|
| `"ansi"` | returns text of 80 columns, with colours if the output is a terminal that has them |
| `"rgb_array"` | returns pixels, uint8 (668, 1000, 3) |
| `"human"` | shows the picture in a window; resets and steps then show it automatically |

A window closed by its close button stays closed until the environment's `close()`; the game
continues without it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import gymnasium

from tokaido_env.core.arguments import check_choice

if TYPE_CHECKING:
    from tokaido_env.render.raster import Pixels
    from tokaido_env.render.scene import Scene

RENDER_MODES = ("ansi", "rgb_array", "human")
RENDER_FPS = 2

_INVISIBLE = ("offscreen", "dummy")  # drivers of SDL
_DRIVER_KEYS = ("SDL_VIDEODRIVER", "SDL_VIDEO_DRIVER")
_EVENT_INTERVAL = 0.02  # seconds between checks for window events


class Renderer:
    """Renderer of one environment; a copied or unpickled one opens another window.

    Args:
        mode: one of `modes`, or None for an environment that does not render. With "_list" at its
            end, the environment collects the frames.
        modes: the environment's render modes.
    """

    def __init__(self, mode: str | None, modes: tuple[str, ...] = RENDER_MODES) -> None:
        check_choice("render_mode", mode, (None, *modes))
        self.mode = mode
        self._modes = modes
        self._window: _Window | None = None
        self._shown = ""

    def render(self, current_scene: Callable[[], Scene], fps: float) -> str | Pixels | None:
        """Return text or pixels, or show the window, depending on the mode; pixels are uint8.

        Args:
            current_scene: returns the scene; called only if the mode needs it.
            fps: the maximum number of pictures per second in a window.

        Raises:
            ModuleNotFoundError: if a package of the extra `[render]` is missing.
            RuntimeError: if there is no display for a window.
        """
        if self.mode is None:
            modes = ", ".join(map(repr, self._modes))
            gymnasium.logger.warn(f"render() does nothing without a render_mode: one of {modes}")
            return None
        if self.mode.startswith("ansi"):
            from tokaido_env.render.ansi import draw, has_colors

            return draw(current_scene(), color=has_colors(sys.stdout))
        if self.mode.startswith("rgb_array"):
            return _pixels(_picture(current_scene()))
        self._show(current_scene, fps)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
        self._window, self._shown = None, ""

    def __reduce__(self) -> tuple[type[Renderer], tuple[str | None, tuple[str, ...]]]:
        return Renderer, (self.mode, self._modes)

    def _show(self, current_scene: Callable[[], Scene], fps: float) -> None:
        """Show the scene unless the window shows the same picture already."""
        if self._window is not None:
            self._window.handle_events()
            if not self._window.is_open:
                return
        picture = _picture(current_scene())
        if picture != self._shown:
            pixels = _pixels(picture)
            self._window = self._window or _Window(pixels.shape[1], pixels.shape[0])
            self._window.show(pixels, 1 / fps)
            self._shown = picture


class _Window:
    """A desktop window that shows a picture."""

    def __init__(self, width: int, height: int) -> None:
        from tokaido_env.render.raster import import_extra

        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")
        self._pygame = import_extra("pygame")
        try:
            self._pygame.display.init()
            self._check_driver()
            self._surface = self._pygame.display.set_mode((width, height))
        except self._pygame.error as error:
            self._pygame.display.quit()
            raise RuntimeError(
                f"render_mode: 'human' needs a display and found none ({error}); use "
                "'rgb_array' or 'ansi'"
            ) from None
        self._pygame.display.set_caption("Tokaido Duo")
        self.is_open = True
        self._next_change = 0.0  # earliest time of the next picture

    def _check_driver(self) -> None:
        """Raise `pygame.error` if SDL chose an invisible driver, as it does without a display."""
        driver = self._pygame.display.get_driver()
        if driver in _INVISIBLE and not any(key in os.environ for key in _DRIVER_KEYS):
            raise self._pygame.error(f"SDL would draw {driver}")

    def show(self, pixels: Pixels, seconds: float) -> None:
        """Show a picture for at least some seconds, once the previous one's time is over."""
        while self.is_open and (left := self._next_change - time.monotonic()) > 0:
            time.sleep(min(left, _EVENT_INTERVAL))
            self.handle_events()
        if not self.is_open:
            return
        height, width, _ = pixels.shape
        image = self._pygame.image.frombuffer(pixels.tobytes(), (width, height), "RGB")
        self._surface.blit(image, (0, 0))
        self._pygame.display.flip()
        self._next_change = time.monotonic() + seconds
        self.handle_events()

    def handle_events(self) -> None:
        """Handle window events, so that the desktop does not report a hanging window."""
        if self.is_open and any(
            event.type == self._pygame.QUIT for event in self._pygame.event.get()
        ):
            self.close()

    def close(self) -> None:
        """Close the window if it is open."""
        if self.is_open:
            self._pygame.display.quit()
        self.is_open = False


def _picture(scene: Scene) -> str:
    from tokaido_env.render.svg import draw

    return draw(scene, "light")


def _pixels(picture: str) -> Pixels:
    from tokaido_env.render.raster import rasterise
    from tokaido_env.render.svg import WIDTH

    return rasterise(picture, WIDTH)
