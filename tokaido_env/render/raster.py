"""A picture as pixels, and a played game as an animated GIF.

    pixels = rasterise(draw(game.scene(), "light"), 1000)

The font comes with Matplotlib and not from the machine, so that a picture is the same everywhere.
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
_COLOURS = 255  # the last of 256 stands for what a frame leaves as it was
_SAMPLES = 8  # frames from which the colours of all are chosen


def rasterise(svg: str, width: int) -> Pixels:
    """Return the pixels of an SVG picture: uint8 (height, width, 3), on white.

    Args:
        svg: a whole `<svg>` element.
        width: in pixels; the height follows from the picture's shape.

    Raises:
        ModuleNotFoundError: if a package of the extra `[render]` is missing.
    """
    png = needed("resvg_py").svg_to_bytes(
        svg_string=svg,
        width=width,
        background="white",
        skip_system_fonts=True,
        font_files=_font_files(),
        font_family=_FONT,
        sans_serif_family=_FONT,
        serif_family=_FONT,  # the last resort
    )
    with needed("PIL.Image").open(io.BytesIO(png)) as image:
        return np.array(image.convert("RGB"))


def needed(name: str) -> Any:
    """Import a module of the extra `[render]`.

    Raises:
        ModuleNotFoundError: saying how to install it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise extra_error("pictures need", error.name, "render") from None


@functools.cache
def _font_files() -> list[str]:
    folder = Path(needed("matplotlib").get_data_path(), "fonts", "ttf")
    return [str((folder / name).resolve(strict=True)) for name in _FONT_FILES]


# Animations


def write_gif(scenes: Iterable[Scene], path: str | Path) -> int:
    """Write a game as an animated GIF, whole or not at all; return the number of frames.

    Args:
        scenes: what there is to see in each frame.
        path: the file.

    Raises:
        ModuleNotFoundError: if a package of the extra `[render]` is missing.
    """
    needed("PIL.Image")
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
    """Yield what there is to see before each move of a character, and at the end.

    Args:
        board: of the game.
        states: `STATE` (rows,), as for `scene.scenes_of`.
        events: int16 (rows,).
        names: what to call the two players.
    """
    rows = moves(events)
    rows[-1] = True
    return scenes_of(board, states, events, rows, names)


def _palette(pictures: list[str]) -> Colours:
    """Return the commonest colours of a game.

    One palette for all frames: with their own they would flicker. The commonest, so that what is
    painted in one colour keeps it; the rest is the soft edges of letters.
    """
    chosen = np.linspace(0, len(pictures) - 1, _SAMPLES).astype(int)
    samples = [_packed(pictures[index]) for index in chosen]
    colours, counts = np.unique(np.concatenate(samples), return_counts=True)
    return colours[np.argsort(-counts, kind="stable")[:_COLOURS]]


def _frame(picture: Colours, palette: Colours) -> Any:
    """Return a picture as Pillow has it, each colour the nearest of the palette."""
    colours, where = np.unique(picture, return_inverse=True)
    distances = (_unpacked(colours)[:, None] - _unpacked(palette)) ** 2
    nearest = distances.sum(axis=2).argmin(axis=1).astype(np.uint8)
    frame = needed("PIL.Image").fromarray(nearest[where].reshape(picture.shape))
    frame.putpalette(_unpacked(palette).astype(np.uint8).tobytes())
    return frame


def _packed(picture: str) -> Colours:
    """Return a picture as one number for each pixel: (height, width)."""
    return np.asarray(rasterise(picture, WIDTH) @ np.array([1 << 16, 1 << 8, 1]))


def _unpacked(colours: Colours) -> npt.NDArray[np.int64]:
    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=-1)
