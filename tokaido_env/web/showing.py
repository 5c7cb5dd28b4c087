"""What pages show of a session, as JSON types: the position, choices, odds, what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokaido_env.core.box import CHARACTERS
from tokaido_env.render import glyphs
from tokaido_env.render.elements import glyph_at
from tokaido_env.render.scene import Scene, story_of
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import Review
from tokaido_env.web.review_section import judged_by, remark_of, totals_rows, worst_of
from tokaido_env.web.session import Happened, Session

Told = dict[str, Any]

_MOST_ODDS = 24  # outcomes of chance that are listed, the likeliest
_SIGNS = {**glyphs.WARES, **glyphs.ICONS}


def picture_of(scene: Scene) -> Told:
    """Return how a position looks: the markup of each panel, and what happens there."""
    panels = {name: "".join(parts.values()) for name, parts in panels_of(scene).items()}
    return {"panels": panels, "story": story_of(scene)}


def choices_of(session: Session) -> list[Told]:
    """Return what a person may choose, or what chance may bring a person tells of."""
    game = session.game
    if session.waits_for == "human":
        labels = game.legal_labels()
        return [{"label": label, "words": session.meaning(label)} for label in labels]
    if session.waits_for == "chance":
        likely = sorted(game.outcomes(), key=lambda one: -one[1])[:_MOST_ODDS]
        return [
            {"label": label, "words": f"{odds:.1%}", "sign": _sign_of(label)}
            for label, odds in likely
        ]
    return []


def odds_of(scene: Scene) -> list[Told]:
    """Return the odds of each die, of the next ware and of each player's next painting."""
    position = scene.position
    dice = [
        _odds(f"{character}'s die", {str(face): faces.count(face) for face in sorted(set(faces))})
        for character, faces in zip(CHARACTERS, scene.board.faces, strict=True)
    ]
    hidden = [
        _odds(f"player_{seat}'s next painting", player["hidden"])
        for seat, player in enumerate(position["players"])
    ]
    return [*dice, _odds("the next ware of the bag", position["bag"]), *hidden]


def _odds(title: str, counts: dict[str, int]) -> Told:
    total = sum(counts.values())
    shares = [[label, count / total] for label, count in counts.items() if count]
    return {"title": title, "shares": shares}


def _sign_of(label: str) -> str:
    """Return the sign of the ware or the icon that an outcome brings, as markup; "": none."""
    thing = label.partition(":")[2].rpartition("=")[2].partition("/")[0]
    return glyph_at(_SIGNS[thing], 24) if thing in _SIGNS else ""


def review_of(review: Review, names: Sequence[str], log: Sequence[Happened]) -> Told:
    """Return what was found of the game that a log tells."""
    rows = review.choices().tolist()
    return {
        "judged": judged_by(review),
        "names": list(names),
        "totals": [list(row) for row in totals_rows(review)],
        "worst": [[row, log[row].sentence + remark_of(review, row)] for row in worst_of(review)],
        "remarks": {str(row): remark_of(review, row) for row in rows if review.mark(row)},
        "wins": [round(float(value), 4) for value in review.values],
    }
