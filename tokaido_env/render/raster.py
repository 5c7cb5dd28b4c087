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
from tokaido_env.core.optional_deps import extra_error
from tokaido_env.files import atomic_write
from tokaido_env.render.scene import SEATS, Events, Scene, States, moves, scenes_of
from tokaido_env.render.svg import WIDTH, draw

Pixels = npt.NDArray[np.uint8]  # (height, width, 3)
Colours = npt.NDArray[np.int64]  # red, green and blue packed into a number

_FONT = "DejaVu Sans"
_FONT_FILES = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
_MILLISECONDS, _LAST_MILLISECONDS = 800, 5000
_COLOURS = 255  # GIF reserves the last of 256 for unchanged pixels
_SAMPLES = 8  # frames from which the palette is chosen


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
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise extra_error("pictures need", error.name, "render") from None


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
    import_extra("PIL.Image")
    pictures = [draw(scene, "light") for scene in scenes]
    palette = _palette(pictures)
    frames = (_frame(_packed(picture), palette) for picture in pictures)
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
        states: `STATE` (rows,), as for `scene.scenes_of`.
        events: int16 (rows,).
        names: of the players.
    """
    rows = moves(events)
    rows[-1] = True
    return scenes_of(board, states, events, rows, names)


def _palette(pictures: list[str]) -> Colours:
    """Return the commonest colours of a game, one palette for all frames.

    A palette for each frame would make the animation flicker. The commonest colours keep filled
    areas exact; only the smoothed edges of letters change.
    """
    chosen = np.linspace(0, len(pictures) - 1, _SAMPLES).astype(int)
    samples = [_packed(pictures[index]) for index in chosen]
    colours, counts = np.unique(np.concatenate(samples), return_counts=True)
    return colours[np.argsort(-counts, kind="stable")[:_COLOURS]]


def _frame(picture: Colours, palette: Colours) -> Any:
    """Return a Pillow image with each colour replaced by the palette's nearest."""
    colours, indices = np.unique(picture, return_inverse=True)
    distances = (_unpacked(colours)[:, None] - _unpacked(palette)) ** 2
    nearest = distances.sum(axis=2).argmin(axis=1).astype(np.uint8)
    frame = import_extra("PIL.Image").fromarray(nearest[indices].reshape(picture.shape))
    frame.putpalette(_unpacked(palette).astype(np.uint8).tobytes())
    return frame


def _packed(picture: str) -> Colours:
    """Return a picture as one number per pixel, (height, width)."""
    return np.asarray(rasterise(picture, WIDTH) @ np.array([1 << 16, 1 << 8, 1]))


def _unpacked(colours: Colours) -> npt.NDArray[np.int64]:
    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=-1)
