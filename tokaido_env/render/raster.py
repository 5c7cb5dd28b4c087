"""A picture as pixels.

    pixels = rasterise(draw(game.scene(), "light"), 1000)

The font comes with Matplotlib and not from the machine, so that a picture is the same everywhere.
"""

from __future__ import annotations

import functools
import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.extras import missing

Pixels = npt.NDArray[np.uint8]  # (height, width, 3)

_FONT = "DejaVu Sans"
_FONT_FILES = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")


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
        raise missing("pictures need", error.name, "render") from None


@functools.cache
def _font_files() -> list[str]:
    folder = Path(needed("matplotlib").get_data_path(), "fonts", "ttf")
    return [str((folder / name).resolve(strict=True)) for name in _FONT_FILES]
