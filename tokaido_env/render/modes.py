"""What the `render_mode` of an environment does.

| mode | `render()` |
|---|---|
| `"ansi"` | returns text of 100 columns, with colours if the output is a terminal that has them |
| `"rgb_array"` | returns pixels, uint8 (668, 1000, 3) |
| `"human"` | shows the picture in a window, as resets and steps then do by themselves |

A window that its close button has closed stays closed until the environment's `close()`; the game
goes on unseen.
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

_UNSEEN = ("offscreen", "dummy")  # drivers of SDL
_DRIVER_KEYS = ("SDL_VIDEODRIVER", "SDL_VIDEO_DRIVER")
_GLANCE = 0.02  # seconds between looks at what the window is asked


class Renderer:
    """Renders for an environment; a copy, also a pickled one, has a window of its own.

    Args:
        mode: one of `RENDER_MODES`, or None for an environment that does not render.
    """

    def __init__(self, mode: str | None) -> None:
        check_choice("render_mode", mode, (None, *RENDER_MODES))
        self.mode = mode
        self._window: _Window | None = None
        self._shown = ""

    def render(self, scene_of_now: Callable[[], Scene], fps: float) -> str | Pixels | None:
        """Do what the mode says.

        Args:
            scene_of_now: gives what there is to see; called only if the mode needs it.
            fps: pictures a second of a window, at most.

        Raises:
            ModuleNotFoundError: if a package of the extra `[render]` is missing.
            RuntimeError: if there is no display for a window.
        """
        if self.mode is None:
            modes = ", ".join(map(repr, RENDER_MODES))
            gymnasium.logger.warn(f"render() does nothing without a render_mode: one of {modes}")
            return None
        if self.mode == "ansi":
            from tokaido_env.render.ansi import draw, has_colors

            return draw(scene_of_now(), color=has_colors(sys.stdout))
        if self.mode == "rgb_array":
            return _pixels(_picture(scene_of_now()))
        self._show(scene_of_now, fps)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
        self._window, self._shown = None, ""

    def __reduce__(self) -> tuple[type[Renderer], tuple[str | None]]:
        return Renderer, (self.mode,)

    def _show(self, scene_of_now: Callable[[], Scene], fps: float) -> None:
        """Show what there is to see; what is there already is left as it is."""
        if self._window is not None:
            self._window.answer()
            if not self._window.is_open:
                return
        picture = _picture(scene_of_now())
        if picture != self._shown:
            pixels = _pixels(picture)
            self._window = self._window or _Window(pixels.shape[1], pixels.shape[0])
            self._window.show(pixels, 1 / fps)
            self._shown = picture


class _Window:
    """A window of the desktop, with a picture in it."""

    def __init__(self, width: int, height: int) -> None:
        from tokaido_env.render.raster import needed

        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")
        self._pygame = needed("pygame")
        try:
            self._pygame.display.init()
            self._check_is_seen()
            self._surface = self._pygame.display.set_mode((width, height))
        except self._pygame.error as error:
            self._pygame.display.quit()
            raise RuntimeError(
                f"render_mode 'human' needs a display, and there is none ({error}): "
                "use 'rgb_array' or 'ansi'"
            ) from None
        self._pygame.display.set_caption("Tokaido Duo")
        self.is_open = True
        self._until = 0.0  # when the picture may change

    def _check_is_seen(self) -> None:
        """Refuse to draw where nobody looks, which SDL does by itself if there is no display."""
        driver = self._pygame.display.get_driver()
        if driver in _UNSEEN and not any(key in os.environ for key in _DRIVER_KEYS):
            raise self._pygame.error(f"SDL would draw {driver}")

    def show(self, pixels: Pixels, seconds: float) -> None:
        """Show a picture, once the one before has been there for its seconds."""
        while self.is_open and (left := self._until - time.monotonic()) > 0:
            time.sleep(min(left, _GLANCE))
            self.answer()
        if not self.is_open:
            return
        height, width, _ = pixels.shape
        image = self._pygame.image.frombuffer(pixels.tobytes(), (width, height), "RGB")
        self._surface.blit(image, (0, 0))
        self._pygame.display.flip()
        self._until = time.monotonic() + seconds
        self.answer()

    def answer(self) -> None:
        """Answer the desktop, so that it does not think the window hangs."""
        if self.is_open and any(
            event.type == self._pygame.QUIT for event in self._pygame.event.get()
        ):
            self.close()

    def close(self) -> None:
        """Close the window, once or again."""
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
