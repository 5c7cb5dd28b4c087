"""SVG to pixels, and games as animated GIFs.

    pixels = rasterise(draw(game.scene(), "light"), 1000)

The font is Matplotlib's, so that pictures are the same on every machine.
"""

from __future__ import annotations

import functools
import importlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import atomic_write
from tokaido_env.render.scene import SEATS, Events, Scene, States, moves, scenes_of
from tokaido_env.render.svg import WIDTH, draw

Pixels = npt.NDArray[np.uint8]  # (height, width, 3)

_FONT = "DejaVu Sans"
_FONT_FILES = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
_MILLISECONDS, _LAST_MILLISECONDS = 800, 5000
_SAMPLES = 4  # frames from which Pillow chooses the palette


def rasterise(svg: str, width: int) -> Pixels:
    """Return the pixels of an SVG picture: uint8 (height, width, 3), on white.

    Args:
        svg: a whole `<svg>` element.
        width: in pixels; the height follows from the picture's aspect ratio.

    Raises:
        ModuleNotFoundError: if a package of the extra `[render]` is missing.
    """
    png = import_extra("resvg_py").svg_to_bytes(
        svg_string=svg,
        width=width,
        background="white",
        skip_system_fonts=True,
        font_files=_font_files(),
        font_family=_FONT,
        sans_serif_family=_FONT,
        serif_family=_FONT,  # the fallback
    )
    with import_extra("PIL.Image").open(io.BytesIO(png)) as image:
        return np.array(image.convert("RGB"))


def import_extra(name: str) -> Any:
    """Import a module of the extra `[render]`.

    Raises:
        ModuleNotFoundError: with the command that installs it.
    """
    require_extra("pictures need", "render", name)
    return importlib.import_module(name)


@functools.cache
def _font_files() -> list[str]:
    folder = Path(import_extra("matplotlib").get_data_path(), "fonts", "ttf")
    return [str((folder / name).resolve(strict=True)) for name in _FONT_FILES]


# Animations


def write_gif(scenes: Iterable[Scene], path: str | Path) -> int:
    """Write a game as an animated GIF atomically; return the number of frames.

    Args:
        scenes: one for each frame.
        path: the file.

    Raises:
        ModuleNotFoundError: if a package of the extra `[render]` is missing.
    """
    images = import_extra("PIL.Image")
    pictures = [draw(scene, "light") for scene in scenes]
    palette = _palette(images, pictures)
    frames = (
        images.fromarray(rasterise(picture, WIDTH)).quantize(
            palette=palette, dither=images.Dither.NONE
        )
        for picture in pictures
    )
    times = [_MILLISECONDS] * (len(pictures) - 1) + [_LAST_MILLISECONDS]
    options = {"save_all": True, "append_images": frames, "duration": times, "loop": 0}
    first = next(frames)
    with atomic_write(Path(path)) as file:
        first.save(file, "GIF", **options)
    return len(pictures)


def frames_of(
    board: Board, states: States, events: Events, names: tuple[str, str] = SEATS
) -> Iterator[Scene]:
    """Yield the scene before each move of a character, and at the end.

    Args:
        board: of the game.
        states: `STATE` (rows,), the position before each event, then the position at the end.
        events: int16 (rows,), codes of events.
        names: of the players.
    """
    rows = moves(events)
    rows[-1] = True
    return scenes_of(board, states, events, rows, names)


def _palette(images: Any, pictures: list[str]) -> Any:
    """Return an image of Pillow with the palette of all frames.

    A palette for each frame would make files more than twice as large.
    """
    chosen = np.linspace(0, len(pictures) - 1, _SAMPLES).astype(int)
    sample = np.concatenate([rasterise(pictures[index], WIDTH) for index in chosen])
    return images.fromarray(sample).quantize(method=images.Quantize.MAXCOVERAGE, kmeans=1)
