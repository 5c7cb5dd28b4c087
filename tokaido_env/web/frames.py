"""Games as frames, the JSON types that `static/frames.js` shows, live, recorded or annotated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypedDict

from tokaido_env.core.serialization import POINTS
from tokaido_env.render.narration import LogEntry
from tokaido_env.render.scene import Scene, status_text
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import Review
from tokaido_env.web.review_section import review_json


class Frame(TypedDict):
    """A position; frame i comes after i events."""

    panels: dict[str, dict[str, str]]
    """by panel and part the markup of its picture"""
    status: str


class ShownGame(TypedDict):
    """A game without its frames."""

    names: list[str]
    """of the players"""
    log: list[tuple[int, int | None, str]]
    """round, seat or None, and sentence of each event"""
    points: list[list[list[int]]]
    """for each frame the points of both players by track"""
    wins: list[float | None] | None
    """for each frame player_0's win probability, ties counted half, or None"""
    review: dict[str, Any] | None
    """None, or `html`, `remarks` by event, and `moments`"""


def frame_of(scene: Scene, status: str | None = None) -> Frame:
    """Return a frame; by default its status is what happens next, or how the game ended."""
    return {"panels": panels_of(scene), "status": status_text(scene) if status is None else status}


def game_of(
    scenes: Sequence[Scene],
    log: Sequence[LogEntry],
    *,
    review: Review | None = None,
    players: Collection[int] = (0, 1),
    number: int = 1,
) -> ShownGame:
    """Return a game without its frames.

    Args:
        scenes: of all positions.
        log: of the events between them.
        review: of the game.
        players: the seats with decisions that can be moments of the review.
        number: of the game on its page.
    """
    names, sentences = scenes[0].names, [entry.sentence for entry in log]
    values = [scene.value for scene in scenes]
    wins = [None if one is None else round((1 + one) / 2, 4) for one in values]
    if review is not None:
        wins = [round(float(value), 4) for value in review.values]
    return {
        "names": list(names),
        "log": [(entry.round, entry.seat, entry.sentence) for entry in log],
        "points": [[[of[key] for key in POINTS] for of in scene.points] for scene in scenes],
        "wins": None if wins[-1] is None else wins,
        "review": None
        if review is None
        else review_json(review, names, sentences, players, number),
    }
