"""Games as frames, the JSON types that `static/frames.js` shows, live, recorded or annotated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tokaido_env.core.serialization import POINTS
from tokaido_env.render.narration import LogEntry
from tokaido_env.render.scene import Scene
from tokaido_env.study.review import Review
from tokaido_env.web.review_section import review_json


def game_of(
    scenes: Sequence[Scene],
    log: Sequence[LogEntry],
    *,
    review: Review | None = None,
    players: Collection[int] = (0, 1),
    number: int = 1,
) -> dict[str, Any]:
    """Return the keys names, log, points, wins and review of `PageState`.

    Win probabilities are the review's if there is one, else the scenes'.

    Args:
        scenes: of all positions.
        log: of the events between them.
        review: of the game.
        players: the seats with decisions that can be moments of the review.
        number: of the game on its page, from 1.
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
