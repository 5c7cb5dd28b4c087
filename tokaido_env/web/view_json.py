"""Parts of a live game's snapshot, as JSON types."""

from __future__ import annotations

from tokaido_env.core.constants import CHARACTERS
from tokaido_env.render.scene import Scene
from tokaido_env.web.game_session import Advice, Session
from tokaido_env.web.position_form import JsonDict
from tokaido_env.web.previews import previews_of

_MAX_OUTCOMES = 24  # listed chance outcomes, the likeliest first
_ASKS = {"MOVE": "take a die and move", "EFFECT": "choose an effect", "DISCARD": "return a ware"}
_ASKS["REPEAT"] = "move again, or keep the hot spring token"


def choices(session: Session) -> list[JsonDict]:
    """Return a person's legal actions, or the chance outcomes that a person may enter."""
    game = session.game
    if session.waits_for == "human":
        return previews_of(game.board, game.states)
    if session.waits_for != "chance":
        return []
    likeliest = sorted(game.outcomes(), key=lambda outcome: -outcome[1])[:_MAX_OUTCOMES]
    return [
        {"label": label, "name": label, "text": f"{100 * share:.1f} %", "icon": kind}
        for label, share in likeliest
        for kind in [label.partition(":")[2].rpartition("=")[2].partition("/")[0]]
    ]


def probabilities(scene: Scene) -> list[JsonDict]:
    """Return the outcome probabilities of each die, the bag and each player's next painting."""
    counts = {
        f"{character}'s die": {str(face): faces.count(face) for face in sorted(set(faces))}
        for character, faces in zip(CHARACTERS, scene.board.faces, strict=True)
    }
    counts["next ware from the bag"] = scene.position["bag"]
    for seat, player in enumerate(scene.position["players"]):
        counts[f"player_{seat}'s next painting"] = player["hidden"]
    return [
        {"title": title, "outcomes": [[key, n / sum(of.values())] for key, n in of.items() if n]}
        for title, of in counts.items()
    ]


def status_of(session: Session) -> str:
    """Return the status as text; a single person is addressed as "you"."""
    text = session.status_text()
    if session.waits_for != "human" or len(session.humans) > 1:
        return text
    return f"Your turn: {_ASKS[session.game.phase.name]}{''.join(text.partition(' · ')[1:])}"


def advice_json(advice: Advice) -> JsonDict:
    """Return advice as JSON types."""
    moves = [{**move._asdict(), "text": move.describe()} for move in advice.moves]
    return {"moves": moves, "win_probability": advice.win_probability}
