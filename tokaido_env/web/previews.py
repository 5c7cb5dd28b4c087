"""Previews of legal actions: the gain of each, from positions that the rules core computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import ARTIST_STAY, LABELS, PASS
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.constants import CHARACTERS, GOLD_PRICE, ICONS, SIDES, WARES
from tokaido_env.core.rules import MAX_OUTCOMES, legal_mask
from tokaido_env.core.serialization import points_of
from tokaido_env.core.state import Phase
from tokaido_env.core.stepping import weights_of
from tokaido_env.render.narration import number_of
from tokaido_env.render.scene import state_after, step_of
from tokaido_env.web.position_form import JsonDict


def previews_of(board: Board, states: Any) -> list[JsonDict]:
    """Return the legal actions of the player to decide as JSON types, `pass` last.

    Args:
        board: of the position.
        states: `STATE` (1,), not changed.

    Returns:
        For each action its `label`; `group`, the title of its group; `name`, its destination or
        itself; `icon`, a name of `icons.GLYPHS` or ""; `text`, the gain before chance; `details`,
        a line for each effect that it allows.
    """
    legal = actions_of(legal_mask(board.record, states, 0))
    return [_preview(board, states, one) for one in sorted(legal, key=lambda a: (a == PASS, a))]


def _preview(board: Board, states: Any, action: int) -> JsonDict:
    after, details = state_after(board, states, action), []
    if action > ARTIST_STAY:
        icon, name = _gain(board, states, action, after)
        text = _odds(board, after)
    else:
        name, icon = _destination(board, states, action, after)
        gains = []
        for effect in _best_effects(board, after):
            then = state_after(board, after, effect)
            icon, gain = _gain(board, after, effect, then)
            gains.append(gain)
            details.append(" · ".join(filter(None, (gain, _odds(board, then)))))
        text = " or ".join(gains) or "no effect"
    found = {"label": LABELS[action], "group": _group(states[0], action), "name": name}
    return found | {"icon": icon, "text": text, "details": details}


def _group(state: Any, action: int) -> str:
    """Return the title of an action's group: its die, or the kind of decision."""
    die, phase = int(state["die"]), state["phase"]
    if phase == Phase.DISCARD:
        return "Return a ware"
    if phase == Phase.MOVE:
        die = CHARACTERS.index(LABELS[action].partition(":")[0])
    title = f"{CHARACTERS[die].capitalize()} {int(state['dice'][die])}"
    return title + {Phase.EFFECT: ": effect", Phase.REPEAT: ": move again"}.get(phase, "")


def _destination(board: Board, states: Any, action: int, after: Any) -> tuple[str, str]:
    """Return the name of a move's destination, and the icon of its station or ""."""
    _, _, start, end = step_of(board, states[0], action, after[0])
    name = board.stations[end] if isinstance(end, int) else end
    if LABELS[action] == "pilgrim:wave":
        return f"{name} with {SIDES[0][int(states['wave_side'][0][0])]}", name
    return (name, name) if start != end else ("stays", "")


def _best_effects(board: Board, states: Any) -> list[int]:
    """Return the effects that a move leads to, of each kind the largest."""
    if states["phase"][0] != Phase.EFFECT:
        return []
    labels = [LABELS[one] for one in actions_of(legal_mask(board.record, states, 0))]
    kinds = {one if one.startswith("take") else one.partition(":")[0]: one for one in labels}
    return [LABELS.index(one) for one in kinds.values() if one != "pass"]


def _gain(board: Board, states: Any, action: int, after: Any) -> tuple[str, str]:
    """Return the icon and the text of what an effect gives its player, before chance."""
    old, new, seat = states[0], after[0], int(states["player"][0])
    coins = int(new["coins"][seat]) - int(old["coins"][seat])
    coins += GOLD_PRICE * (int(new["gold"][seat]) - int(old["gold"][seat]))
    now, later = (sum(points_of(board.record, one)[seat].values()) for one in (states, after))
    icon, text = _head(LABELS[action], seat, old, new)
    gains = [f"+{number_of(coins, 'coin')}"] * (coins > 0)
    gains += [f"+{number_of(later - now, 'point')}"] * (later > now)
    gains += ["the last round"] * bool(new["end_triggered"] > old["end_triggered"])
    return icon or "coin", ": ".join(filter(None, [text, ", ".join(gains)]))


def _head(label: str, seat: int, old: Any, new: Any) -> tuple[str, str]:
    """Return the icon and the text of what an action does itself."""
    head, _, detail = label.partition(":")
    sold = (old["wares"][seat] - new["wares"][seat]).tolist()
    ware, front = WARES[int(np.argmax(sold))], ICONS[int(old["easel"][seat]) & 3]
    pending, wave = int(new["pending"]), detail.endswith("wave")
    if head == "take":
        side = CHARACTERS.index(detail)
        return "wave", f"{SIDES[side][int(old['wave_side'][side])]} wave"
    if head == "visit":
        return _visit(seat, old, new)
    keeps = "keep the hot spring token" if old["phase"] == Phase.REPEAT else "decline"
    return {
        "draw": ("bag", f"draw {number_of(pending, 'ware')}{' with robust' * wave}"),
        "paint": (
            "painting",
            f"reveal {number_of(pending, 'painting')}{' with proficient' * wave}",
        ),
        "sell": (ware, f"sell {number_of(sum(sold), ware)}{' with crafty' * wave}"),
        "gift": (front, f"give the {front}"),
        "discard": (ware, f"return a {ware}"),
        "pass": ("none", keeps),
    }[head]


def _visit(seat: int, old: Any, new: Any) -> tuple[str, str]:
    for track in ("temple", "garden"):
        if new[track][seat] > old[track][seat]:
            return track, f"{track} {int(new[track][seat])}"
    return (
        ("hot spring", "hot spring token") if new["hot_spring"] != old["hot_spring"] else ("", "")
    )


def _odds(board: Board, states: Any) -> str:
    """Return the odds of the next ware or painting, "" at other positions."""
    names = {Phase.DRAW: WARES, Phase.REVEAL: ICONS}.get(states["phase"][0], ())
    weights = np.zeros(MAX_OUTCOMES, np.int64)
    n, _ = weights_of(board.record, states, 0, weights) if names else (0, 0)
    odds = sorted(zip(weights[:n].tolist(), names, strict=True), reverse=True)
    total = max(1, int(weights.sum()))
    return ", ".join(f"{name} {weight / total:.0%}" for weight, name in odds if weight)
