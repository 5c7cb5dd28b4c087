"""A recorded game as an animated GIF: a frame for each move of a character."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tokaido_env.board import Board
from tokaido_env.game import Game
from tokaido_env.record import Record, replay, whole_file
from tokaido_env.render.raster import needed, rasterise
from tokaido_env.render.scene import Scene, moves, scene_of, step_of
from tokaido_env.render.svg import WIDTH, draw

_MILLISECONDS, _LAST_MILLISECONDS = 800, 5000
_COLOURS = 256
_SAMPLES = 3  # frames from which the colours of all are chosen


def write_gif(record: Record, path: str | Path, board: str | Path | Board | None = None) -> int:
    """Write a game as an animated GIF, whole or not at all; return the number of frames.

    Args:
        record: the game.
        path: the file.
        board: the board of the game, when it is not a built-in one.

    Raises:
        RecordError: if the record does not replay.
        ModuleNotFoundError: if a package of the extra `[render]` is missing.
    """
    image = needed("PIL.Image")
    pictures = [draw(scene, "light") for scene in scenes_of(record, board)]
    # One palette for all: with their own, frames would flicker and take more room.
    chosen = np.linspace(0, len(pictures) - 1, _SAMPLES).astype(int)
    sample = np.concatenate([rasterise(pictures[index], WIDTH) for index in chosen])
    palette = image.fromarray(sample).quantize(_COLOURS)
    frames = (
        image.fromarray(rasterise(picture, WIDTH)).quantize(
            palette=palette, dither=image.Dither.NONE
        )
        for picture in pictures
    )
    times = [_MILLISECONDS] * (len(pictures) - 1) + [_LAST_MILLISECONDS]
    options = {"save_all": True, "append_images": frames, "duration": times, "loop": 0}
    first = next(frames)
    with whole_file(Path(path)) as file:
        first.save(file, "GIF", **options)
    return len(pictures)


def scenes_of(record: Record, board: str | Path | Board | None = None) -> Iterator[Scene]:
    """Yield what there is to see before each move of a character, and at the end.

    Raises:
        RecordError: as `replay` does.
    """
    moved: tuple[Game, str] | None = None
    for game, event in replay(record, board):
        if event is None or moves(event):
            yield scene_of(game, last=moved and step_of(*moved), names=record.players)
            moved = None if event is None else (game.copy(luck="same"), event)
