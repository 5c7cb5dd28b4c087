"""The state of a live game that its pages show, as JSON types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from tokaido_env.core.constants import CHARACTERS
from tokaido_env.render.scene import end_text
from tokaido_env.render.svg import panels_of
from tokaido_env.web.frames import game_of
from tokaido_env.web.game_session import Session, WaitsFor
from tokaido_env.web.jobs import Task
from tokaido_env.web.previews import previews_of

_MAX_OUTCOMES = 24  # listed chance outcomes, the likeliest first
_ASKS = {
    "MOVE": "take a die and move its character",
    "EFFECT": "choose what the {die} does here, or decline",
    "DISCARD": "you hold too many wares, return one",
    "REPEAT": "move the {die} again for the hot spring token, or keep the token",
}


class PageState(TypedDict):
    """All that a page shows, as JSON types, but for earlier frames; each change makes a new one."""

    names: list[str]
    """of the players"""
    log: list[tuple[int, int | None, str]]
    """round, seat or None, and sentence of each event"""
    points: list[list[list[int]]]
    """for each frame the points of both players by track"""
    wins: list[float | None] | None
    """for each frame player_0's win probability, ties counted half, or None"""
    review: dict[str, Any] | None
    """as `review_json`"""
    panels: dict[str, dict[str, str]]
    """by panel and part the markup of the picture"""
    status: str
    waits_for: WaitsFor
    player: int | None
    """the player to decide"""
    seats: list[str]
    """the spec of each player, "human" for a person; `names` are those of the record"""
    humans: list[int]
    """the seats of people"""
    board: str
    chance: str
    """ "sampled" or "explicit" """
    dice: list[dict[str, Any]]
    """if a person enters a roll, the `title` of each die, and the probabilities of its `faces`"""
    choices: list[dict[str, Any]]
    """as `previews_of`, or the chance outcomes that a person may enter"""
    winner: int | None
    can_undo: bool
    can_review: bool
    review_progress: tuple[int, int] | None
    """the judged decisions of the review, and all that it will judge"""
    advice: list[dict[str, Any]] | None
    """as `MoveSuggestion` with its `text`, the best move first"""
    version: int
    """number of changes so far"""
    game: str
    """id of the game, another one after each new game"""
    advisor: str
    jobs: list[dict[str, str]]
    """what agents compute now: the `task` ("move", "advice" or "review") and the `agent`"""
    agents_running: bool
    plays_forced: bool
    failure: dict[str, str] | None
    """the `task` of the newest job and its error as `text`; None after the next success"""
    save_error: str
    """why the game is not saved, "" if it is"""
    is_chosen: bool
    """whether a person chose this game; otherwise pages offer a choice"""
    opponents: list[dict[str, Any]]
    """as `opponents()`"""
    boards: list[str]


def page_state(session: Session, results: Mapping[Task, Any], **others: Any) -> PageState:
    """Return the state of a session for pages; `others` are the fields that it does not know.

    `results` has the newest "advice" and "review" of agents, if there are any.
    """
    game, advice, review = session.game, results.get("advice"), results.get("review")
    return {
        "panels": panels_of(session.scenes[-1]),
        "status": _status_of(session),
        **game_of(session.scenes, session.log, review=review, players=session.humans),  # type: ignore[typeddict-item]
        "waits_for": session.waits_for,
        "player": game.player,
        "seats": session.seats,
        "humans": session.humans,
        "board": game.board.name,
        "chance": game.chance,
        "dice": _dice(session),
        "choices": _choices(session),
        "winner": _winner(session),
        "can_undo": session.can_undo,
        "can_review": session.decisions > 0,
        "review_progress": None if review is None else review.progress(),
        "advice": advice and [{**move._asdict(), "text": move.describe()} for move in advice],
        **others,
    }


def _winner(session: Session) -> int | None:
    return session.game.winner() if session.resigned is None else 1 - session.resigned


def _choices(session: Session) -> list[dict[str, Any]]:
    """Return a person's legal actions, or the chance outcomes that a person may enter."""
    game = session.game
    if session.waits_for == "human":
        return previews_of(game.board, game.states)
    if session.waits_for != "chance" or _dice(session):
        return []
    likeliest = sorted(game.outcomes(), key=lambda outcome: -outcome[1])[:_MAX_OUTCOMES]
    return [
        {"label": label, "name": name, "text": f"{100 * share:.1f} %", "icon": ware}
        for label, share in likeliest
        for place, _, what in [label.partition(":")[2].rpartition("=")]
        for ware, _, price in [what.partition("/")]
        for name in [f"{place} buys {ware} for {price}" if price else f"{place} {ware}".strip()]
    ]


def _dice(session: Session) -> list[dict[str, Any]]:
    """Return the faces of each die, if a person enters a roll."""
    if session.waits_for != "chance" or session.game.phase.name != "ROLL":
        return []
    return [
        {"title": f"{name}'s die", "faces": {str(n): faces.count(n) / len(faces) for n in faces}}
        for name, faces in zip(CHARACTERS, session.game.board.faces, strict=True)
    ]


def _status_of(session: Session) -> str:
    """Return the status as text; a single person is addressed as "you"."""
    position = session.scenes[-1].position
    if session.waits_for == "nobody" and len(session.humans) == 1 and _winner(session) is not None:
        verb = "win" if _winner(session) in session.humans else "lose"
        return f"You {verb} · {session.status_text()}"
    if session.waits_for == "chance":
        return f"Enter what happens: {session.status_text()}"
    if session.waits_for != "human" or len(session.humans) > 1:
        return session.status_text()
    text = f"Your turn: {_ASKS[position['phase']].format_map(position)}."
    if position["end_triggered"] or position["round"] == session.game.board.max_rounds:
        text += f" This is the last round: {end_text(session.scenes[-1])}."
    return text
